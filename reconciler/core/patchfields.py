"""Fields of a subset's patch that no Pod has: told when its file is read, since a patch is taken as it is.

A strategic merge puts such a field where it stands, as kubectl and OpenKruise do, and what applies the object refuses
it then, or drops it. Scalars are told apart by the fields of Kubernetes 1.37 (k8s.io/api/core/v1), for the types that
`SCALARS` names; what lies deeper is for the API server to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from reconciler.core.findings import Finding, Loc
from reconciler.core.podfields import ROOT, TYPES
from reconciler.core.spelling import nearest
from reconciler.errors import Severity
from reconciler.model.workload import Json

_MOST = 20
_PARTS = ("metadata", "spec")
_WORKLOAD = frozenset(
    {"paused", "replicas", "selector", "strategy", "template", "updateStrategy", "volumeClaimTemplates"}
)
"""Fields beside the pod template in the spec of what has one."""

SCALARS: Mapping[str, frozenset[str]] = {
    ROOT: frozenset({"apiVersion", "kind", "status"}),
    "ObjectMeta": frozenset({
        "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generateName", "generation", "name",
        "namespace", "resourceVersion", "selfLink", "uid",
    }),
    "PodSpec": frozenset({
        "activeDeadlineSeconds", "automountServiceAccountToken", "dnsPolicy", "enableServiceLinks", "hostIPC",
        "hostNetwork", "hostPID", "hostUsers", "hostname", "hostnameOverride", "nodeName", "preemptionPolicy",
        "priority", "priorityClassName", "restartPolicy", "runtimeClassName", "schedulerName", "serviceAccount",
        "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
        "terminationGracePeriodSeconds",
    }),
    "Container": frozenset({
        "image", "imagePullPolicy", "name", "restartPolicy", "stdin", "stdinOnce", "targetContainerName",
        "terminationMessagePath", "terminationMessagePolicy", "tty", "workingDir",
    }),
    "Resources": frozenset(),
}  # fmt: skip # a table, a row a line
"""The fields of these types that hold neither an object nor a list; with those of `podfields` they are all of them."""

_CALLED = {ROOT: "a Pod", "ObjectMeta": "metadata", "PodSpec": "the spec of a Pod", "Container": "a container"}


def unknown(patch: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Warn of the fields of a patch that no Pod has, each at its place below `loc`."""
    yield from islice(_unknown(patch, ROOT, loc), _MOST)


def _unknown(value: Json, kind: str, loc: Loc) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        return
    fields = TYPES[kind]
    for name, below in value.items():
        if name in fields:
            items = below if fields[name].many else [below]
            for index, item in enumerate(items if isinstance(items, list) else ()):
                place = (*loc, name, index) if fields[name].many else (*loc, name)
                yield from _unknown(item, fields[name].of, place)
        elif kind in SCALARS and name not in SCALARS[kind] and not name.startswith("$"):
            message = f"{_CALLED.get(kind, loc[-1])} has no such field: the cluster refuses it or leaves it out"
            hint = _instead(name, below, kind)
            yield Finding(loc=(*loc, name), message=message, hint=hint, severity=Severity.WARNING)


def _instead(name: str, value: Json, kind: str) -> str:
    """Say what was probably meant: the patch of a workload, a field of another place, or one of nearly this name."""
    if name in _WORKLOAD:
        parts = [f"{part}: …" for part in _PARTS if isinstance(value, Mapping) and part in value]
        instead = f"write it as patch: {{{', '.join(parts)}}}" if parts else "leave it out"
        return f"a patch is one of the pod, not of the workload: {instead}"
    for other, home in (("ObjectMeta", "metadata"), ("PodSpec", "spec")):
        if other != kind and name in TYPES[other].keys() | SCALARS[other]:
            return f"try {home}.{name}"
    return nearest(name, TYPES[kind].keys() | SCALARS[kind])
