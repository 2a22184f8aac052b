"""Pods that an object makes: their templates, their number, and the gangs among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.pod_admission import QUEUE_LABEL
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at, items, located, within
from reconciler.core.workloads.podless_kinds import makes_no_pods
from reconciler.model.kubernetes.workload_kind import EACH, Count, Path, PodTemplate, WorkloadKind
from reconciler.model.workload import Json
from reconciler.text.findings import Loc

_NVIDIA = "nvidia.com/gpu"
_SIGS = ".x-k8s.io", ".sigs.k8s.io"
"""How API groups and labels of projects of Kubernetes' SIGs end."""
_KUBERNETES = frozenset({"", "apps", "batch"})
"""API groups whose pods are made by Kubernetes' own controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplateSite:
    """A pod template of an object."""

    template: PodTemplate
    item: Path
    """Path of the item that the template is in."""
    loc: Loc
    """Place of the pod spec; empty where the object has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePods:
    """Pods that an object makes of one template."""

    place: PodTemplateSite
    spec: Json
    replicas: int | None
    """None where unknown."""
    least: int | None = None
    """Declared minimum of pods that must exist before any pod of the group runs; None without one."""


def pod_template_sites(manifest: Mapping[str, Json], declared: Kinds = NO_KINDS) -> Iterator[PodTemplateSite]:
    """Find the pod templates of an object, also of a kind that is not counted; broken objects have fewer."""
    kind = kind_of(manifest, declared)
    if kind is not None:
        yield from _sites(manifest, kind)


def _sites(manifest: Mapping[str, Json], kind: WorkloadKind) -> Iterator[PodTemplateSite]:
    for template in kind.templates:
        pattern = _pattern(template)
        for item in items(manifest, pattern):
            spec_path = _spec_path(manifest, template, item)
            yield PodTemplateSite(template=template, item=item, loc=located(manifest, spec_path) if spec_path else ())


def read_pods(
    manifest: Mapping[str, Json], declared: Kinds, others: tuple[Mapping[str, Json], ...] = ()
) -> Iterator[TemplatePods]:
    """Read the pods that an object makes; none of kinds that make none, or whose pods are not counted.

    `others` are the objects deployed with it, which it may refer to. Raises LookupError where a template is missing,
    and for an unknown kind, and ValueError for an unknown version.
    """
    kind = kind_of(manifest, declared)
    if kind is None and not makes_no_pods(group_kind(manifest)):
        raise LookupError(f"no table knows {group_kind(manifest).removeprefix('/')}")
    if kind is None or not kind.counted:
        return
    version = str(manifest.get("apiVersion", "")).rpartition("/")[2]
    if kind.versions and version not in kind.versions and not has_expression(version):
        raise ValueError(f"nothing is known of {kind.kind} {version}")
    if not kind.templates:
        raise LookupError(f"the pods of {kind.kind} are unknown")
    unsure = unknown_field(manifest, kind) is not None
    for place, spec in pod_specs(manifest, declared, others):
        replicas = 0 if stays_suspended(manifest, kind) else _pods_of(manifest, place)
        least = _minimum(manifest, place) if replicas else None
        yield TemplatePods(place=place, spec=spec, replicas=None if unsure else replicas, least=least)


def pod_specs(
    manifest: Mapping[str, Json], declared: Kinds, others: tuple[Mapping[str, Json], ...] = ()
) -> Iterator[tuple[PodTemplateSite, Mapping[str, Json]]]:
    """Yield the spec of each pod template of an object with its place, whether or not its pods are counted.

    `others` are the objects deployed with it. Raises LookupError where a template is missing.
    """
    for place in pod_template_sites(manifest, declared):
        spec = _spec(manifest, place, declared, others)
        if spec is not None:
            yield place, spec


def unknown_field(manifest: Mapping[str, Json], kind: WorkloadKind) -> Path | None:
    """Return the field of an object with which the size of its groups is unknown; None without one."""
    return next(
        (
            field_path
            for field_path in kind.unknown
            for item in items(manifest, field_path)
            if at(manifest, within(field_path, item, field_path)) is not None
        ),
        None,
    )


def pod_labels_path(manifest: Mapping[str, Json], place: PodTemplateSite) -> Path:
    """Return the path of a template's pod labels; empty without a template, or where they cannot be written.

    A template that is read in place of another is labelled there.
    """
    template, item = place.template, place.item
    template_paths = [template_path for template_path in (template.spec, template.resources) if template_path]
    if template.labels[-2:] == ("metadata", "labels") and template.spec[:-1] == template.labels[:-2]:
        template_paths.append(template.labels[:-2])  # metadata without a spec beside it are a template as well
    stand = (within(template_path, item, _pattern(template)) for template_path in template_paths)
    if not template.labels or not any(isinstance(at(manifest, template_path), Mapping) for template_path in stand):
        return ()
    return within(template.labels, item, _pattern(template))


def pod_metadata(manifest: Mapping[str, Json], place: PodTemplateSite) -> Json:
    """Return the metadata of a template's pods known before rendering: namespace, annotations, and labels.

    Labels with expressions are left out. Annotations stand beside the labels.
    """
    labels_path, labels = pod_labels_path(manifest, place), _stated_labels(manifest, place)
    annotations = at(manifest, (*labels_path[:-1], "annotations")) if labels_path else None
    namespace = str(at(manifest, ("metadata", "namespace")) or "")
    return {
        "labels": {key: value for key, value in labels.items() if not has_expression(f"{key}{value}")},
        "annotations": annotations or {},
        "namespace": "" if has_expression(namespace) else namespace,
    }


def has_whole_labels(manifest: Mapping[str, Json], place: PodTemplateSite) -> bool:
    """Return whether the labels of a template's pods are known before rendering.

    Operators add labels to the pods of their kinds; those that Kubernetes' own controllers add are known.
    """
    group = group_kind(manifest).partition("/")[0]
    stated = _stated_labels(manifest, place).items()
    return group in _KUBERNETES and not any(has_expression(f"{key}{value}") for key, value in stated)


def added_labels(manifest: Mapping[str, Json]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the labels that an operator adds to the pods of an object, as far as the table of kinds has them.

    The second value are the keys of others that it may add, as in `PodIdentity.added`: those of the table, and all of
    the domain of its API group.
    """
    name = group_kind(manifest)
    kind, own, group = BUILT_IN.get(name), at(manifest, ("metadata", "name")), name.partition("/")[0]
    keys, known = {f"{group}/"}, dict[str, str]()
    if group.endswith(_SIGS[0]) and not (kind is not None and kind.subgroup_key):  # which has all that matter
        keys.add(f"{group.removesuffix(_SIGS[0])}{_SIGS[1]}/")
    for mark in kind.marks if kind is not None else ():
        keys |= {mark.label, *(key for key, _ in mark.beside)}
        if kind is not None and len(kind.marks) == 1:
            known |= dict(mark.beside)
            if not mark.made_up and isinstance(own, str) and not has_expression(own):
                known[mark.label] = own
    if kind is not None:
        keys |= {label for part in kind.scaled_as for label in part.labels}
        if kind.together is not None:
            keys |= {kind.together.label, *(kind.together.leader or ())[:1]}
    return known, tuple(sorted(keys - known.keys() - {"", "/"}))


def _stated_labels(manifest: Mapping[str, Json], place: PodTemplateSite) -> Mapping[str, Json]:
    """Return the labels of a pod template as they are written."""
    labels_path = pod_labels_path(manifest, place)
    return (at(manifest, labels_path) if labels_path else None) or {}


def group_count(manifest: Mapping[str, Json], kind: WorkloadKind) -> int | None:
    """Count the groups that an object makes; None where its pods are no gang, or the number is unknown."""
    if kind.together is None:
        return None
    return _product(manifest, kind.together.counts, None)


def wanted_pods(manifest: Mapping[str, Json], kind: WorkloadKind) -> int | None:
    """Count the pods that an object asks for now; None where unknown."""
    return 0 if stays_suspended(manifest, kind) else pod_count(manifest, kind)


def pods_of_group(manifest: Mapping[str, Json], kind: WorkloadKind, place: PodTemplateSite) -> int | None:
    """Count the pods that one group of an object, suspended or not, has of a template; None where unknown.

    A number that an expression decides is unknown, but for the number of groups.
    """
    groups = kind.together.counts if kind.together is not None else ()
    counts = tuple(count for count in place.template.counts if count not in groups)
    for count in counts:
        for field_path in (count.path, count.instead, count.over, count.least, count.most):
            if isinstance(value := _value(manifest, count, field_path, place), str) and has_expression(value):
                return None
    return _product(manifest, counts, place)


def pod_count(manifest: Mapping[str, Json], kind: WorkloadKind) -> int | None:
    """Count the pods of all templates of an object that is not suspended; None where unknown."""
    if unknown_field(manifest, kind) is not None:
        return None
    sites = (place for place in _sites(manifest, kind) if not place.template.optional or _is_described(manifest, place))
    counts = [_pods_of(manifest, site) for site in sites]
    return sum(number for number in counts if number is not None) if None not in counts else None


def _is_described(manifest: Mapping[str, Json], place: PodTemplateSite) -> bool:
    """Return whether the object describes the pods of a template."""
    template = place.template
    field_paths = (tuple(map(str, place.loc)), within(template.resources, place.item, _pattern(template)))
    return any(field_path and at(manifest, field_path) is not None for field_path in field_paths)


def gang_minimum(manifest: Mapping[str, Json], kind: WorkloadKind, size: int) -> int:
    """Return how many pods of a group of this size have to exist before any of them runs."""
    together = kind.together
    if together is None:
        return 1
    if together.eager is not None and at(manifest, together.eager[0]) == together.eager[1]:
        return 1
    return min(size, declared_minimum(manifest, kind) or size)


def declared_minimum(manifest: Mapping[str, Json], kind: WorkloadKind) -> int | None:
    """Return the declared minimum of a group; None without one."""
    together = kind.together
    return _whole_number(at(manifest, together.gang), 0) or None if together is not None and together.gang else None


def _pattern(template: PodTemplate) -> Path:
    """Return the path of a template that has its ``*``."""
    return next((pod_path for pod_path in (template.spec, template.resources) if EACH in pod_path), ())


def _spec_path(manifest: Mapping[str, Json], template: PodTemplate, item: Path) -> Path:
    """Return the path of the pod spec of a template: `instead` where only that exists."""
    pattern = _pattern(template)
    own = within(template.spec, item, pattern)
    return within(template.instead, item, pattern) if template.instead and at(manifest, own) is None else own


def _spec(
    manifest: Mapping[str, Json], place: PodTemplateSite, declared: Kinds, others: tuple[Mapping[str, Json], ...]
) -> Json | None:
    """Assemble the pod spec of a template; None where it makes no pods."""
    template = place.template
    spec_path = tuple(str(part) for part in place.loc)
    spec = at(manifest, spec_path) if spec_path else None
    if template.reference and spec is None:
        return _referenced_pod_spec(at(manifest, template.reference), declared, others)
    apart = at(manifest, within(template.resources, place.item, _pattern(template))) if template.resources else None
    if spec is None and apart is None:
        if template.optional:
            return None
        raise LookupError("its pods are described elsewhere")
    spec = dict(spec or {})
    containers = [
        *(spec.get("containers") or ()),
        *(spec[container] for container in template.containers if spec.get(container)),
    ]
    if apart is not None:
        containers.append({"resources": _requirements(apart)})
    if template.completed and not any(container.get("resources") for container in containers):
        raise LookupError("what its pods need is said elsewhere")
    return {**spec, "containers": containers}


def _referenced_pod_spec(reference: Json, declared: Kinds, others: tuple[Mapping[str, Json], ...]) -> Json:
    """Return the pod spec of a referenced object that is deployed with this one."""
    for other in others:
        same = all(other.get(field) == reference.get(field) for field in ("apiVersion", "kind"))
        if same and at(other, ("metadata", "name")) == reference.get("name"):
            for pods_made in read_pods(other, declared):
                return pods_made.spec
    raise LookupError("the object that it refers to is not deployed with it")


def _requirements(stated: Mapping[str, Json]) -> Json:
    """Convert requirements outside of the pod spec into those of a container."""
    parts: dict[str, Json] = {}
    for part in ("limits", "requests"):
        amounts = dict(stated.get(part) or {})
        called = amounts.pop("gpuType", None) or _NVIDIA
        amounts |= amounts.pop("custom", None) or {}
        if "gpu" in amounts:
            amounts[called] = amounts.pop("gpu")
        parts[part] = amounts
    return parts


def is_suspended(manifest: Mapping[str, Json], kind: WorkloadKind) -> bool:
    """Return whether an object is suspended, by its owner or by Kueue."""
    return _is_stopped(manifest, kind) or any(at(manifest, field_path) is True for field_path in kind.suspended)


def _is_stopped(manifest: Mapping[str, Json], kind: WorkloadKind) -> bool:
    """Return whether the owner of an object has stopped it by an annotation."""
    annotation = at(manifest, ("metadata", "annotations", kind.stopped)) if kind.stopped else None
    return str(annotation).lower() == "true"


def stays_suspended(manifest: Mapping[str, Json], kind: WorkloadKind) -> bool:
    """Return whether an object is suspended and not in a queue of Kueue, which resumes it, or stopped."""
    if _is_stopped(manifest, kind):
        return True
    return at(manifest, ("metadata", "labels", QUEUE_LABEL)) is None and is_suspended(manifest, kind)


def _pods_of(manifest: Mapping[str, Json], place: PodTemplateSite) -> int | None:
    """Count the pods of a template; 0 where its item is suspended by itself."""
    suspended = place.template.suspended
    if suspended and at(manifest, within(suspended, place.item, _pattern(place.template))) is True:
        return 0
    return _product(manifest, place.template.counts, place)


def _product(manifest: Mapping[str, Json], counts: tuple[Count, ...], place: PodTemplateSite | None) -> int | None:
    number = 1
    for count in counts:
        factor = _factor(manifest, count, place)
        if factor is None:
            return None
        number *= factor
    return number


def _minimum(manifest: Mapping[str, Json], place: PodTemplateSite) -> int | None:
    """Count the pods of a template that have to start together, where any of its numbers has a minimum."""
    number, stated = 1, False
    for count in place.template.counts:
        factor = _factor(manifest, count, place) or 0
        enough = _whole_number(_value(manifest, count, count.enough, place), -1)
        if count.elastic and at(manifest, count.elastic) is True:
            enough = max(0, _whole_number(_value(manifest, count, count.least, place), 0))
        stated = stated or enough >= 0
        number *= factor if enough < 0 else min(factor, enough)
    return number if stated else None


def _value(manifest: Mapping[str, Json], count: Count, field_path: Path, place: PodTemplateSite | None) -> Json:
    """Return the value at one of the paths of a number."""
    if not field_path:
        return None
    if count.among is not None and place is not None:
        return _value_in_listing_item(manifest, field_path, count.among, place.item)
    return at(manifest, field_path if place is None else within(field_path, place.item, _pattern(place.template)))


def _factor(manifest: Mapping[str, Json], count: Count, place: PodTemplateSite | None) -> int | None:
    """Read one number; a value that is no number, as an unrendered expression, counts as one."""

    def stands(field_path: Path) -> Json:
        return _value(manifest, count, field_path, place)

    factor, other = stands(count.path), stands(count.instead)
    if factor is None and other is None:
        if count.default is None:
            return None
        number = count.default
    else:
        number = _whole_number(other if factor is None else factor)
    if factor is not None and count.over:
        number = max(1, number // max(1, _whole_number(stands(count.over))))
    number = max(number - count.less, _whole_number(stands(count.least), 0))
    return min(number, _whole_number(stands(count.most), number))


def _value_in_listing_item(manifest: Mapping[str, Json], field_path: Path, fields: tuple[str, str], item: Path) -> Json:
    """Return the value in the item whose first field here lists the template item's second field."""
    listed, named = fields
    name = at(manifest, (*item, named))
    for other in items(manifest, field_path):
        names = at(manifest, (*other, listed))
        if isinstance(names, list) and name in names:
            return at(manifest, within(field_path, other, field_path))
    return None


def _whole_number(value: Json, default: int = 1) -> int:
    return value if type(value) is int and value >= 0 else default
