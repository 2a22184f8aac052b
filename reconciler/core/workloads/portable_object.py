"""A live object without what belongs to its own cluster: status, identity, owners, assigned addresses and defaults.

What API servers, controllers, Helm and GitOps engines add is left out; what a person wrote stays. Defaults are those of
Kubernetes 1.37 (https://kubernetes.io/docs/reference/kubernetes-api/): another cluster sets them again.
"""

from __future__ import annotations

import json
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

OF_THE_CLUSTER = frozenset({"istio-ca-root-cert", "kube-root-ca.crt", "openshift-service-ca.crt"})
"""ConfigMaps that a controller writes into each namespace, with the certificates of its own cluster."""

ADDRESSES = ("externalIPs", "loadBalancerIP")
"""Fields of a Service that are addresses of its own cluster, though a person writes them."""

_TOOL_NOTES = (
    "kubectl.kubernetes.io/*", "deployment.kubernetes.io/*", "deprecated.daemonset.template.generation",
    "autoscaling.alpha.kubernetes.io/*", "pv.kubernetes.io/*", "volume.kubernetes.io/*", "volume.beta.kubernetes.io/*",
    "batch.kubernetes.io/*", "endpoints.kubernetes.io/*", "meta.helm.sh/*", "helm.sh/*", "app.kubernetes.io/managed-by",
    "helm.toolkit.fluxcd.io/*", "kustomize.toolkit.fluxcd.io/*", "reconcile.fluxcd.io/*", "argocd.argoproj.io/*",
    "overspill.dev/*", "kopf.zalando.org/*", "field.cattle.io/*", "cattle.io/*",
)  # fmt: skip # a list of words, filled line by line
"""Annotations and labels of an object that kubectl, controllers, Helm and engines write, as patterns."""

_GENERATED = frozenset({
    "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-revision-hash", "controller-uid",
    "job-name", "leaderworkerset.sigs.k8s.io/template-revision-hash", "pod-template-hash",
})  # fmt: skip # a list of words, filled line by line
"""Labels that controllers add to objects and to pod templates, and will add again. Selectors keep them."""

_ASSIGNED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "/Service": tuple(
        ("spec", name)
        for name in ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy", *ADDRESSES)
    ),
    "/PersistentVolumeClaim": (("spec", "volumeName"),),
    "/ServiceAccount": (("secrets",),),
}
"""Fields that a cluster assigns, or that are its own addresses, by kind."""

_DEFAULTED_GROUPS = frozenset({"", "apps", "batch"})
"""Groups whose objects the API server completes with `_DEFAULTS`; it completes no pod template of a custom kind."""

_DEFAULTS: Mapping[str, Json] = {
    "allocateLoadBalancerNodePorts": True,
    "completionMode": "NonIndexed",
    "defaultMode": 420,
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "internalTrafficPolicy": "Cluster",
    "manualSelector": False,
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
    "suspend": False,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "volumeMode": "Filesystem",
}
"""Fields below `spec` with the values that the API server gives them where nobody has set them."""

_PROBE = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})
_DEFAULTS_BESIDE: Mapping[str, tuple[Json, frozenset[str]]] = {
    "apiVersion": ("v1", frozenset({"fieldPath"})),
    "failureThreshold": (3, _PROBE),
    "periodSeconds": (10, _PROBE),
    "restartPolicy": ("Always", frozenset({"containers"})),  # of a pod; of an init container it makes a sidecar
    "successThreshold": (1, _PROBE),
    "terminationGracePeriodSeconds": (30, frozenset({"containers"})),  # a probe has its own
    "timeoutSeconds": (1, _PROBE),
}
"""Further defaults, each with the fields of which one has to stand beside it."""

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""The `managedBy` that Kueue gives a job of a queue whose jobs MultiKueue runs: no other cluster would make its pods.

Where it stands is up to the kind: `spec` of Jobs and JobSets, `spec.runPolicy` of Kubeflow's.
"""

MANAGERS = (("spec", "managedBy"), ("spec", "runPolicy", "managedBy"))
"""The field of Jobs, JobSets, TrainJobs and Ray's kinds, and that of Kubeflow's jobs."""

_SELECTORS = frozenset({"matchLabels", "nodeSelector"})
"""Fields below `spec` with labels that something is chosen by: they stay as they are."""

_SELECTOR_FIELDS = ("matchExpressions", "matchLabels")


def is_managed_by_multikueue(manifest: Mapping[str, Json]) -> bool:
    """Return whether MultiKueue manages a job, and sends it to another cluster."""
    return any(_at(manifest, field_path) == MULTIKUEUE for field_path in MANAGERS)


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
        if kind == "batch/Job" and spec.get("manualSelector") is not True:
            spec = _without(spec, ("selector",))
        if kind == "/Service":
            spec = _without_node_ports(spec)
        kept["spec"] = _written(spec, completed=kind.partition("/")[0] in _DEFAULTED_GROUPS)
    return {name: quoted(value) for name, value in kept.items()}


def _metadata(metadata: Mapping[str, Json], *, notes: tuple[str, ...] = _TOOL_NOTES) -> dict[str, Json]:
    """Return metadata without identity, and without what tools note in it and controllers add to it."""
    kept = {name: value for name, value in metadata.items() if name not in _IDENTITY}
    for part in ("labels", "annotations"):
        words = kept.pop(part, None)
        if isinstance(words, dict):
            own = {key: word for key, word in words.items() if not _is_added(key, notes)}
            kept |= {part: own} if own else {}
    return kept


def _written(value: Json, *, completed: bool) -> Json:
    """Return a part of a spec without nulls and what controllers add, and without defaults where it was completed."""
    if isinstance(value, list):
        return [_written(item, completed=completed) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Json] = {}
    for name, item in value.items():
        if item is None or (name == "managedBy" and item == MULTIKUEUE):
            continue
        if completed and _is_default(name, item, value):
            continue
        if name == "metadata" and isinstance(item, dict):
            # A selector may name any label of a pod template, so only those stay out that controllers add again.
            if metadata := _metadata(item, notes=()):
                kept[name] = metadata
        elif name in _SELECTORS or (name == "selector" and not _is_label_selector(item)):
            kept[name] = item
        elif name == "volumeClaimTemplates" and isinstance(item, list):
            kept[name] = [_written(_without(claim, ("status",)), completed=completed) for claim in item]
        else:
            kept[name] = _written(item, completed=completed)
    return kept


def _is_default(name: str, item: Json, beside: Mapping[str, Json]) -> bool:
    if name == "serviceAccount":
        return bool(beside.get("serviceAccountName") == item)  # the old name of the same field
    if name == "backoffLimit":
        return item == 6 and "backoffLimitPerIndex" not in beside  # noqa: PLR2004 # another default with it
    usual, neighbours = _DEFAULTS_BESIDE.get(name, (_DEFAULTS.get(name), beside.keys()))
    return usual is not None and bool(item == usual) and not neighbours.isdisjoint(beside)


def _is_label_selector(value: Json) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), dict | list) for name in _SELECTOR_FIELDS)


def _is_added(key: str, notes: tuple[str, ...]) -> bool:
    return key in _GENERATED or any(fnmatchcase(key, pattern) for pattern in notes)


def _without_node_ports(spec: Mapping[str, Json]) -> dict[str, Json]:
    """Return a Service without the ports of nodes, which its cluster has assigned or may hold for another."""
    ports = spec.get("ports")
    if not isinstance(ports, list):
        return dict(spec)
    return {**spec, "ports": [_without(port, ("nodePort",)) if isinstance(port, dict) else port for port in ports]}


def quoted(value: Json) -> Json:
    """Return a value whose braces are text, where the file of a template would read them as expressions."""
    if isinstance(value, str):
        return quoted_text(value) if has_expression(value) else value
    if isinstance(value, list):
        return [quoted(item) for item in value]
    if isinstance(value, dict):
        return {key: quoted(item) for key, item in value.items()}
    return value


def quoted_text(text: str) -> str:
    """Return a leaf of a template that renders to a text with braces.

    A raw block keeps it readable. A text that a raw block cannot hold, since it has one of its own or carriage returns,
    is the string constant of an expression.
    """
    if "raw" in text or "\r" in text:
        return f"{{{{ {json.dumps(text)} }}}}"
    return f"{{% raw %}}{text}{{% endraw %}}"


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _without(value: Json, path: tuple[str, ...]) -> Json:
    """Return a mapping without the field at a path; anything else as it is."""
    if not isinstance(value, dict):
        return value
    first, *rest = path
    kept = dict(value)
    if not rest:
        kept.pop(first, None)
    elif isinstance(kept.get(first), dict):
        kept[first] = _without(kept[first], tuple(rest))
    return kept
