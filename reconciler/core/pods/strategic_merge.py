"""Kubernetes' strategic merge patch on a Pod: what ``kubectl patch --local --type strategic`` makes of it.

The rules were read from apimachinery's strategicpatch of Kubernetes 1.36.3, and a test compares with the real kubectl.
Objects are merged, null deletes, scalars and atomic lists are replaced, other lists are merged item by item, and
directives are keys of the patch:

- ``$patch: replace`` or ``delete``, of an object or an item of a list (``merge`` is no directive of Kubernetes');
- ``$retainKeys``: the fields that stay; those in the patch must be among them;
- ``$deleteFromPrimitiveList/<field>``: scalars to take out of a list;
- ``$setElementOrder/<field>``: the order of a list by its keys, or scalars.

A directive in a new item of a list that is already there stays as text, as it does with kubectl.

Order: items of the patch keep the order of the patch, other items that of the list; an item of the list comes before an
item of the patch where it stood before it.

The fields of a Pod are data, from the Go types of Kubernetes 1.36.3 (k8s.io/api/core/v1 and apimachinery's ObjectMeta:
the tags ``patchStrategy`` and ``patchMergeKey``); 1.37 adds one such list to a pod's spec, `evictionResponders`. A list
without a merge key is atomic, such as tolerations, envFrom and the claims of resources. ``retainKeys``, which volumes
and resourceClaims have as well, is for programs that compute patches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.workload import Json
from reconciler.text.findings import Loc, dotted, shortened

ROOT = "Pod"
FLAT = ""
"""Every type without objects and lists in it, maps of texts among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodField:
    """A field that holds objects, or a list."""

    of: str = FLAT
    """Type of the objects or items; `FLAT` for scalars."""
    many: bool = False
    """Whether it is a list."""
    merges: bool = False
    """Whether the list is merged: objects by `key`, scalars as a set. Other lists are replaced."""
    key: str = ""


def _by(key: str, of: str = FLAT) -> PodField:
    return PodField(of=of, many=True, merges=True, key=key)


def _all(of: str, *names: str) -> dict[str, PodField]:
    return dict.fromkeys(names, PodField(of=of))


def _lists(*names: str, of: str = FLAT) -> dict[str, PodField]:
    return dict.fromkeys(names, PodField(of=of, many=True))


TYPES: Mapping[str, Mapping[str, PodField]] = {
    FLAT: {},
    ROOT: {**_all("ObjectMeta", "metadata"), **_all("PodSpec", "spec")},
    "ObjectMeta": {
        **_all(FLAT, "annotations", "labels"),
        **_lists("managedFields", of="ManagedFields"),
        "finalizers": PodField(many=True, merges=True),
        "ownerReferences": _by("uid"),
    },
    "ManagedFields": _all(FLAT, "fieldsV1"),
    "PodSpec": {
        **_all("Affinity", "affinity"),
        **_all("DNSConfig", "dnsConfig"),
        **_all(FLAT, "nodeSelector", "os", "overhead", "schedulingGroup"),
        **_all("Resources", "resources"),
        **_all("PodSecurityContext", "securityContext"),
        **_lists("readinessGates", "tolerations"),
        "containers": _by("name", "Container"),
        "ephemeralContainers": _by("name", "Container"),
        "evictionResponders": _by("name"),
        "hostAliases": _by("ip", "HostAlias"),
        "imagePullSecrets": _by("name"),
        "initContainers": _by("name", "Container"),
        "resourceClaims": _by("name"),
        "schedulingGates": _by("name"),
        "topologySpreadConstraints": _by("topologyKey", "TopologySpread"),
        "volumes": _by("name", "Volume"),
    },
    "Affinity": {**_all("NodeAffinity", "nodeAffinity"), **_all("NearPods", "podAffinity", "podAntiAffinity")},
    "NearPods": {
        **_lists("preferredDuringSchedulingIgnoredDuringExecution", of="WeightedPodTerm"),
        **_lists("requiredDuringSchedulingIgnoredDuringExecution", of="PodTerm"),
    },
    "NodeAffinity": {
        **_lists("preferredDuringSchedulingIgnoredDuringExecution", of="PreferredNodeTerm"),
        **_all("NodeSelector", "requiredDuringSchedulingIgnoredDuringExecution"),
    },
    "NodeSelector": _lists("nodeSelectorTerms", of="NodeTerm"),
    "NodeTerm": _lists("matchExpressions", "matchFields", of="Requirement"),
    "PreferredNodeTerm": _all("NodeTerm", "preference"),
    "Requirement": _lists("values"),
    "WeightedPodTerm": _all("PodTerm", "podAffinityTerm"),
    "PodTerm": {
        **_all("LabelSelector", "labelSelector", "namespaceSelector"),
        **_lists("matchLabelKeys", "mismatchLabelKeys", "namespaces"),
    },
    "LabelSelector": {**_all(FLAT, "matchLabels"), **_lists("matchExpressions", of="Requirement")},
    "TopologySpread": {**_all("LabelSelector", "labelSelector"), **_lists("matchLabelKeys")},
    "DNSConfig": _lists("nameservers", "options", "searches"),
    "HostAlias": _lists("hostnames"),
    "PodSecurityContext": {
        **_all(FLAT, "appArmorProfile", "seLinuxOptions", "seccompProfile", "windowsOptions"),
        **_lists("supplementalGroups", "sysctls"),
    },
    "SecurityContext": {
        **_all(FLAT, "appArmorProfile", "seLinuxOptions", "seccompProfile", "windowsOptions"),
        **_all("Capabilities", "capabilities"),
    },
    "Capabilities": _lists("add", "drop"),
    "Resources": {**_all(FLAT, "limits", "requests"), **_lists("claims")},
    "Container": {
        **_lists("args", "command", "resizePolicy"),
        **_lists("envFrom", of="EnvFrom"),
        **_lists("restartPolicyRules", of="RestartRule"),
        "env": _by("name", "EnvVar"),
        "ports": _by("containerPort"),
        "volumeDevices": _by("devicePath"),
        "volumeMounts": _by("mountPath"),
        **_all("Lifecycle", "lifecycle"),
        **_all("Probe", "livenessProbe", "readinessProbe", "startupProbe"),
        **_all("Resources", "resources"),
        **_all("SecurityContext", "securityContext"),
    },
    "RestartRule": _all("ExitCodes", "exitCodes"),
    "ExitCodes": _lists("values"),
    "EnvFrom": _all(FLAT, "configMapRef", "secretRef"),
    "EnvVar": _all("EnvSource", "valueFrom"),
    "EnvSource": _all(FLAT, "configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    "Lifecycle": _all("Handler", "postStart", "preStop"),
    "Handler": {**_all("Exec", "exec"), **_all("HTTPGet", "httpGet"), **_all(FLAT, "sleep", "tcpSocket")},
    "Probe": {**_all("Exec", "exec"), **_all("HTTPGet", "httpGet"), **_all(FLAT, "grpc", "tcpSocket")},
    "Exec": _lists("command"),
    "HTTPGet": _lists("httpHeaders"),
    "Volume": {
        **_all(
            FLAT, "awsElasticBlockStore", "azureDisk", "azureFile", "emptyDir", "flocker", "gcePersistentDisk",
            "gitRepo", "glusterfs", "hostPath", "image", "nfs", "persistentVolumeClaim", "photonPersistentDisk",
            "portworxVolume", "quobyte", "vsphereVolume",
        ),
        **_all("OfItems", "configMap", "secret"),
        **_all("OfDownward", "downwardAPI"),
        **_all("OfMonitors", "cephfs", "rbd"),
        **_all("OfSecret", "cinder", "scaleIO", "storageos"),
        **_all("CSI", "csi"),
        **_all("FlexVolume", "flexVolume"),
        **_all("ISCSI", "iscsi"),
        **_all("Ephemeral", "ephemeral"),
        **_all("FibreChannel", "fc"),
        **_all("Projected", "projected"),
    },
    "OfItems": _lists("items"),
    "OfDownward": _lists("items", of="DownwardFile"),
    "DownwardFile": _all(FLAT, "fieldRef", "resourceFieldRef"),
    "OfMonitors": {**_all(FLAT, "secretRef"), **_lists("monitors")},
    "OfSecret": _all(FLAT, "secretRef"),
    "CSI": _all(FLAT, "nodePublishSecretRef", "volumeAttributes"),
    "FlexVolume": _all(FLAT, "options", "secretRef"),
    "ISCSI": {**_all(FLAT, "secretRef"), **_lists("portals")},
    "FibreChannel": _lists("targetWWNs", "wwids"),
    "Ephemeral": _all("ClaimTemplate", "volumeClaimTemplate"),
    "ClaimTemplate": {**_all("ObjectMeta", "metadata"), **_all("ClaimSpec", "spec")},
    "ClaimSpec": {
        **_all(FLAT, "dataSource", "dataSourceRef"),
        **_all("ClaimResources", "resources"),
        **_all("LabelSelector", "selector"),
        **_lists("accessModes"),
    },
    "ClaimResources": _all(FLAT, "limits", "requests"),
    "Projected": _lists("sources", of="Projection"),
    "Projection": {
        **_all("OfSelector", "clusterTrustBundle"),
        **_all("OfItems", "configMap", "secret"),
        **_all("OfDownward", "downwardAPI"),
        **_all("OfUser", "podCertificate"),
        **_all(FLAT, "serviceAccountToken"),
    },
    "OfSelector": _all("LabelSelector", "labelSelector"),
    "OfUser": _all(FLAT, "userAnnotations"),
}  # fmt: skip # a table, a row a line
"""The fields of each type, by the names that a Pod has them under; scalars are left out, since they are replaced."""


PATCH_DIRECTIVE = "$patch"
ItemKey = tuple[type, Json]


class Unmergeable(ValueError):  # noqa: N818 -- it says what a patch is
    """A patch that cannot be applied.

    `loc` is the place in the patch, and `message` completes "field: ...". The remedy is to mend the patch, unless there
    is a `hint`.
    """

    def __init__(self, loc: Loc, message: str, hint: str = "") -> None:
        """Say it as ``field: message``."""
        super().__init__(f"{dotted(loc)}: {message}" if loc else message)
        self.loc = loc
        self.message = message
        self.hint = hint


def item_type(loc: Loc, *lists: Sequence[Json]) -> type:
    """Return the type of all items of these lists; raises Unmergeable where there are several, or none."""
    types = {_type(item) for items in lists for item in items}
    if len(types) != 1 or types & {type(None), list}:
        raise Unmergeable(loc, "its items are to be all objects, or all scalars of one type")
    return types.pop()


def key_of_item(item: Json, key: str, loc: Loc) -> ItemKey:
    """Return the merge key of an item. 80 and "80" differ."""
    if key and not isinstance(item, Mapping):
        raise Unmergeable(loc, "is no object")
    if key and key not in item:
        raise Unmergeable(loc, f"has no {key}, by which the list is merged")
    value = item[key] if key else item
    if isinstance(value, (Mapping, list)):
        raise Unmergeable((*loc, key) if key else loc, "is no scalar")
    return type(value), value


def apply_item_directives(
    old: Sequence[Json], new: Sequence[Json], key: str, loc: Loc
) -> tuple[list[Json], list[Json]]:
    """Apply the directives among the items of a patch; return the rest of the list and of the patch.

    Where one of them replaces the list, the patch's items are the list, and none is left to merge.
    """
    gone: set[ItemKey] = set()
    replaced, left = False, []
    for index, item in enumerate(new):
        if PATCH_DIRECTIVE not in item:
            left.append(item)
        elif item[PATCH_DIRECTIVE] == "delete":
            gone.add(key_of_item(item, key, (*loc, index)))
        elif item[PATCH_DIRECTIVE] == "replace":
            replaced = True
        else:
            message = f"{shortened(str(item[PATCH_DIRECTIVE]))!r} is neither replace nor delete"
            raise Unmergeable((*loc, index, PATCH_DIRECTIVE), message)
    if replaced:
        return left, []
    return [item for item in old if not gone or key not in item or key_of_item(item, key, loc) not in gone], left


def server_order(old: Sequence[Json], new: Sequence[Json], field: PodField, loc: Loc) -> list[Json]:
    """Return the list that an explicit order is compared with, after deletions and additions.

    Kubernetes compares with the storage of the original list, where items move up into the places of deleted ones, and
    new ones take the places that become free.
    """
    stored, used = [*old], len(old)
    if not field.key:
        return stored
    for item in new:
        item_key = key_of_item(item, field.key, loc) if item.get(PATCH_DIRECTIVE) == "delete" else None
        for at in range(used - 1, -1, -1) if item_key else ():
            if key_of_item(stored[at], field.key, loc) == item_key:
                stored[at : used - 1] = stored[at + 1 : used]
                used -= 1
    if not any(item.get(PATCH_DIRECTIVE) == "replace" for item in new):
        stored_keys = {key_of_item(item, field.key, loc) for item in stored[:used]}
        added = [
            item for item in new if PATCH_DIRECTIVE not in item and key_of_item(item, field.key, loc) not in stored_keys
        ]
        stored[used:] = [*added, *stored[used + len(added) :]][: len(old) - used]
    return stored


def distinct(items: Sequence[Json]) -> list[Json]:
    """Return scalars without duplicates."""
    return [value for _, value in dict.fromkeys(key_of_item(item, "", ()) for item in items)]


def check_order(new: Sequence[Json], order: Sequence[Json], key: str, loc: Loc) -> None:
    """Raise Unmergeable unless an explicit order lists the items of a patch in their order."""
    if not new or not order:
        return
    rest = [item for item in new if not (key and isinstance(item, Mapping) and item.get(PATCH_DIRECTIVE) == "delete")]
    at = 0
    for key_value in order:
        while at < len(rest) and isinstance(rest[at], Mapping) and PATCH_DIRECTIVE in rest[at]:
            at += 1
        if at < len(rest) and key_of_item(key_value, key, loc) == key_of_item(rest[at], key, loc):
            at += 1
    if at < len(rest):
        raise Unmergeable(loc, "does not list the items of the patch in their order")


def reordered(items: Sequence[Json], order: Sequence[Json], server: Sequence[Json], key: str, loc: Loc) -> list[Json]:
    """Sort items of `order` by it and others by `server`, and interleave both by `server`."""
    first, second = _ranks(order, key, loc), _ranks(server, key, loc)
    keyed = [(key_of_item(item, key, loc), item) for item in items]
    ours = _sort([pair for pair in keyed if pair[0] in first], first)
    others = _sort([pair for pair in keyed if pair[0] not in first], second)
    made: list[Json] = []
    while ours and others:
        left, right = second.get(others[0][0]), second.get(ours[0][0])
        before = left is not None and right is not None and left < right
        made.append((others if before else ours).pop(0)[1])
    return [*made, *(item for _, item in (*ours, *others))]


def _ranks(order: Sequence[Json], key: str, loc: Loc) -> dict[ItemKey, int]:
    ranks: dict[ItemKey, int] = {}
    for index, item in enumerate(order):
        ranks.setdefault(key_of_item(item, key, (*loc, index)), index)
    return ranks


def _sort(items: list[tuple[ItemKey, Json]], ranks: Mapping[ItemKey, int]) -> list[tuple[ItemKey, Json]]:
    """Sort by insertion; an item without a rank goes before all others, as in Kubernetes' comparison."""
    made: list[tuple[ItemKey, Json]] = []
    for item in items:
        at, rank = len(made), ranks.get(item[0])
        while at and _before(rank, ranks.get(made[at - 1][0])):
            at -= 1
        made.insert(at, item)
    return made


def _before(left: int | None, right: int | None) -> bool:
    return left is None or right is None or left < right


def _type(value: Json) -> type:
    return dict if isinstance(value, Mapping) else type(value)


_RETAIN = "$retainKeys"
_REMOVE = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"


def merge(pod: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return the patched pod; neither argument is changed.

    Keys keep the order of the pod, and new ones follow in that of the patch. Raises Unmergeable.
    """
    return _object(pod, patch, ROOT, ())


def leftover_directive(value: Json, loc: Loc = ()) -> Loc | None:
    """Return the place of a directive that is left in a merged object; None without any."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            place = (
                (*loc, key)
                if key == PATCH_DIRECTIVE or key.startswith((_RETAIN, f"{_REMOVE}/", f"{_ORDER}/"))
                else None
            )
            if place := place or leftover_directive(below, (*loc, key)):
                return place
    if isinstance(value, list):
        for index, item in enumerate(value):
            if place := leftover_directive(item, (*loc, index)):
                return place
    return None


def _object(original: Mapping[str, Json], patch: Mapping[str, Json], kind: str, loc: Loc) -> dict[str, Json]:
    """Merge an object of a type."""
    if PATCH_DIRECTIVE in patch:
        return _apply_directive(patch, loc)
    merged, rest = dict(original), dict(patch)
    if _RETAIN in rest:
        merged = _retain_keys(merged, rest, loc)
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _merge_ordered(merged, rest, key, kind, loc)
    for key, value in rest.items():
        name = _directive_field(key, _REMOVE, loc) if key.startswith(_REMOVE) else key
        if value is None:
            merged.pop(name, None)
        elif name != key:
            _remove(merged, name, value, kind, (*loc, key))
        else:
            _set(merged, key, value, kind, (*loc, key))
    return merged


def _apply_directive(patch: Mapping[str, Json], loc: Loc) -> dict[str, Json]:
    """Apply a directive to a whole object."""
    match patch[PATCH_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != PATCH_DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise Unmergeable((*loc, PATCH_DIRECTIVE), f"{shortened(str(other))!r} is neither replace nor delete")


def _retain_keys(merged: dict[str, Json], rest: dict[str, Json], loc: Loc) -> dict[str, Json]:
    """Keep only the retained fields of an object, and remove the directive from the patch."""
    stays = rest.pop(_RETAIN)
    if not isinstance(stays, list):
        raise Unmergeable((*loc, _RETAIN), "is no list of fields")
    for key, value in rest.items():
        if value is not None and not key.startswith((_REMOVE, _ORDER)) and key not in stays:
            raise Unmergeable((*loc, key), f"is set and not among {_RETAIN}")
    return {key: value for key, value in merged.items() if key in stays}


def _merge_ordered(merged: dict[str, Json], rest: dict[str, Json], key: str, kind: str, loc: Loc) -> None:
    """Merge a list with an explicit order, and remove both from the patch."""
    order, name = rest.pop(key), _directive_field(key, _ORDER, loc)
    field = _list_field(kind, name, (*loc, name))
    old, new = merged.get(name, []), rest.get(name, [])
    for where, value in ((key, order), (name, old), (name, new)):
        if not isinstance(value, list):
            raise Unmergeable((*loc, where), "is no list")
    check_order(new, order, field.key, (*loc, key))
    if name not in merged and name not in rest:
        return
    server = old
    if name not in rest:
        made = old
    elif name not in merged:
        made = _without_directed_objects(new)
    else:
        made = _list(old, new, field, (*loc, name))
        server = server_order(old, new, field, (*loc, name)) if field.merges else old
    if not old and not new:
        raise Unmergeable((*loc, key), "orders a list in which nothing is")
    item_type((*loc, name), old, new)
    merged[name] = reordered(made, order, server, field.key, (*loc, name))
    rest.pop(name, None)


def _remove(merged: dict[str, Json], name: str, value: Json, kind: str, loc: Loc) -> None:
    """Remove scalars from a list."""
    current = merged.get(name)
    if isinstance(current, list) and isinstance(value, list):
        merged[name] = _list(current, value, _list_field(kind, name, loc), loc, removing=True)
    elif name in merged and type(current) is type(value):
        _set(merged, name, value, kind, loc)


def _set(merged: dict[str, Json], name: str, value: Json, kind: str, loc: Loc) -> None:
    """Merge a value into a field, which may be missing or of another type."""
    current = merged.get(name)
    if isinstance(current, Mapping) and isinstance(value, Mapping):
        merged[name] = _object(current, value, _object_field(kind, name, loc), loc)
    elif isinstance(current, list) and isinstance(value, list):
        merged[name] = _list(current, value, _list_field(kind, name, loc), loc)
    elif _has_directive(value):
        merged.pop(name, None)
    else:
        merged[name] = _without_directed_objects(_without_nulls(value))


def _list(old: list[Json], new: list[Json], field: PodField, loc: Loc, *, removing: bool = False) -> list[Json]:
    """Merge a list, or replace an atomic one."""
    if not (field.merges or removing):
        return [*new]
    if not old and not new:
        return old
    kind = item_type(loc, old, new)
    if kind is not dict:
        if removing:
            return [item for item in old if item not in new]
        return reordered(distinct([*old, *new]), new, old, "", loc)
    if not field.key:
        raise Unmergeable(loc, "its items are no scalars, and nothing says by what they are merged")
    kept, added = apply_item_directives(old, new, field.key, loc)
    made = [*kept]
    places: dict[ItemKey, int] = {}
    for index, item in enumerate(kept):
        if field.key in item:
            places.setdefault(key_of_item(item, field.key, (*loc, index)), index)
    for index, item in enumerate(added):
        item_key = key_of_item(item, field.key, (*loc, index))
        at = places.setdefault(item_key, len(made))
        if at == len(made):
            made.append(item)
        else:
            made[at] = _object(made[at], item, field.of, (*loc, index))
    return reordered(made, added, kept, field.key, loc)


def _without_directed_objects(value: Json) -> Json:
    """Remove objects with a directive from a new value."""
    if isinstance(value, Mapping):
        return {key: _without_directed_objects(below) for key, below in value.items() if not _has_directive(below)}
    if isinstance(value, list):
        return [_without_directed_objects(item) for item in value if not _has_directive(item)]
    return value


def _without_nulls(value: Json) -> Json:
    """Remove fields without a value from a new value; items of lists stay."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(below) for key, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _has_directive(value: Json) -> bool:
    return isinstance(value, Mapping) and PATCH_DIRECTIVE in value


def _directive_field(key: str, prefix: str, loc: Loc) -> str:
    """Return the field that the key of a directive names."""
    head, slash, name = key.partition("/")
    if head != prefix or not slash:
        raise Unmergeable((*loc, key), f"names no list, as {prefix}/finalizers does")
    return name


def _object_field(kind: str, name: str, loc: Loc) -> str:
    """Return the type of a field that holds an object."""
    field = TYPES[kind].get(name)
    if field is None or field.many:
        raise Unmergeable(loc, "a Pod has no such object")
    return field.of


def _list_field(kind: str, name: str, loc: Loc) -> PodField:
    """Return the field of a list."""
    field = TYPES[kind].get(name)
    if field is None or not field.many:
        raise Unmergeable(loc, "a Pod has no such list")
    return field
