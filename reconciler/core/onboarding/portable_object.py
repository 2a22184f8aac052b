"""A live object without what belongs to its own cluster: status, identity, owners, assigned addresses and defaults.

What API servers, controllers, Helm and GitOps engines add is left out; what a person wrote stays. Defaults are those of
Kubernetes 1.37 (https://kubernetes.io/docs/reference/kubernetes-api/): another cluster sets them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.model.workload import Json

_IDENTITY = frozenset({
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName", "generation",
    "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
})  # fmt: skip # a list of words, filled line by line
"""Fields of `metadata` that an API server or a controller sets."""

_MARKS = (
    "kubectl.kubernetes.io/*", "deployment.kubernetes.io/*", "deprecated.daemonset.template.generation",
    "autoscaling.alpha.kubernetes.io/*", "pv.kubernetes.io/*", "volume.kubernetes.io/*", "volume.beta.kubernetes.io/*",
    "batch.kubernetes.io/*", "controller-uid", "job-name", "pod-template-hash", "controller-revision-hash",
    "statefulset.kubernetes.io/*", "endpoints.kubernetes.io/*", "leaderworkerset.sigs.k8s.io/template-revision-hash",
    "meta.helm.sh/*", "helm.sh/*", "app.kubernetes.io/managed-by", "helm.toolkit.fluxcd.io/*",
    "kustomize.toolkit.fluxcd.io/*", "reconcile.fluxcd.io/*", "argocd.argoproj.io/*", "overspill.dev/*",
    "kopf.zalando.org/*", "field.cattle.io/*", "cattle.io/*",
)  # fmt: skip # a list of words, filled line by line
"""Annotations and labels of kubectl, controllers, Helm and engines, as patterns."""

_ASSIGNED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "/Service": tuple(
        ("spec", name)
        for name in (
            "clusterIP", "clusterIPs", "externalIPs", "healthCheckNodePort", "internalTrafficPolicy", "ipFamilies",
            "ipFamilyPolicy", "loadBalancerIP",
        )
    ),
    "/PersistentVolumeClaim": (("spec", "volumeName"),),
    "/ServiceAccount": (("secrets",),),
    "batch/Job": (("spec", "selector"),),
}  # fmt: skip # a list of words, filled line by line
"""Fields that a cluster assigns, by kind."""

_DEFAULTED_GROUPS = frozenset({"", "apps", "batch"})
"""Groups whose objects the API server completes with `_DEFAULTS`; it completes no pod template of a custom kind."""

_DEFAULTS: Mapping[str, Json] = {
    "allocateLoadBalancerNodePorts": True,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "defaultMode": 420,
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "failureThreshold": 3,
    "manualSelector": False,
    "periodSeconds": 10,
    "podManagementPolicy": "OrderedReady",
    "podReplacementPolicy": "TerminatingOrFailed",
    "progressDeadlineSeconds": 600,
    "protocol": "TCP",
    "revisionHistoryLimit": 10,
    "schedulerName": "default-scheduler",
    "scheme": "HTTP",
    "securityContext": {},
    "sessionAffinity": "None",
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "successThreshold": 1,
    "suspend": False,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "timeoutSeconds": 1,
    "volumeMode": "Filesystem",
}
"""Fields below `spec` with the values that the API server gives them where nobody has set them."""

_DEFAULTS_BESIDE: Mapping[str, tuple[str, str]] = {
    "apiVersion": ("v1", "fieldPath"),
    "restartPolicy": ("Always", "containers"),  # of a pod; of an init container it makes a sidecar
}
"""Further defaults, each with the field that has to stand beside it."""

_LABELS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector"})
"""Fields below `spec` whose keys are a person's own words."""

_SELECTOR_FIELDS = ("matchExpressions", "matchLabels")


def portable(manifest: Mapping[str, Json]) -> dict[str, Json]:
    """Return an object as another cluster can take it; braces that would read as expressions are kept as they are."""
    kind = group_kind(manifest)
    kept = {name: value for name, value in manifest.items() if name != "status"}
    for path in _ASSIGNED.get(kind, ()):
        if _at(kept, path) not in ("None", ["None"]):  # a headless Service is written so
            kept = _without(kept, path)
    metadata, spec = kept.get("metadata"), kept.get("spec")
    kept["metadata"] = _metadata(metadata if isinstance(metadata, dict) else {})
    if isinstance(spec, dict):
        kept["spec"] = _written(spec, completed=kind.partition("/")[0] in _DEFAULTED_GROUPS)
    return {name: _quoted(value) for name, value in kept.items()}


def _metadata(metadata: Mapping[str, Json]) -> dict[str, Json]:
    """Return metadata without identity, and without what tools note in it."""
    kept = {name: value for name, value in metadata.items() if name not in _IDENTITY}
    for part in ("labels", "annotations"):
        words = _without_marks(kept.pop(part, None))
        if words:
            kept[part] = words
    return kept


def _written(value: Json, *, completed: bool) -> Json:
    """Return a part of a spec without nulls and what tools note; without defaults where the server has completed it."""
    if isinstance(value, list):
        return [_written(item, completed=completed) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Json] = {}
    for name, item in value.items():
        if item is None or (completed and _is_default(name, item, value)):
            continue
        if name == "metadata" and isinstance(item, dict):
            if metadata := _metadata(item):
                kept[name] = metadata
        elif name in _LABELS or (name == "selector" and not _is_label_selector(item)):
            kept[name] = _without_marks(item)
        else:
            kept[name] = _written(item, completed=completed)
    return kept


def _is_default(name: str, item: Json, beside: Mapping[str, Json]) -> bool:
    if name == "serviceAccount":
        return bool(beside.get("serviceAccountName") == item)  # the old name of the same field
    usual, neighbour = _DEFAULTS_BESIDE.get(name, (_DEFAULTS.get(name), name))
    return usual is not None and item == usual and neighbour in beside


def _is_label_selector(value: Json) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), dict | list) for name in _SELECTOR_FIELDS)


def _without_marks(words: Json) -> Json:
    """Return labels or annotations without those of tools; anything else as it is."""
    if not isinstance(words, dict):
        return words
    return {key: word for key, word in words.items() if not _is_mark(key)}


def _quoted(value: Json) -> Json:
    """Return a value whose braces are text, where the file of a template would read them as expressions."""
    if isinstance(value, str):
        return f"{{% raw %}}{value}{{% endraw %}}" if has_expression(value) else value
    if isinstance(value, list):
        return [_quoted(item) for item in value]
    if isinstance(value, dict):
        return {key: _quoted(item) for key, item in value.items()}
    return value


def _is_mark(key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in _MARKS)


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _without(value: Json, path: tuple[str, ...]) -> dict[str, Json]:
    """Return a mapping without the field at a path."""
    first, *rest = path
    kept = dict(value)
    if not rest:
        kept.pop(first, None)
    elif isinstance(kept.get(first), dict):
        kept[first] = _without(kept[first], tuple(rest))
    return kept
