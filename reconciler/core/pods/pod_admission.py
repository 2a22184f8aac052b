"""The properties of a pod that ResourceQuotas and LimitRanges of its namespace look at, from its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from reconciler.core.pods.pod_requests import LimitRangerDefaults, limit_ranger_defaults
from reconciler.core.pods.pod_requests import parse_amounts as parsed
from reconciler.core.pods.topology_annotations import PREFERRED, REQUIRED, SLICE, SLICE_LEVELS, UNCONSTRAINED
from reconciler.model.kubernetes.admission import ContainerResources, PodAdmission, VolumeClaim
from reconciler.model.kubernetes.queues import QueueClaim
from reconciler.model.kubernetes.scheduling import Amounts
from reconciler.model.units import Quantity
from reconciler.model.workload import Json

_AFFINITIES = ("podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NONE: frozenset[str] = frozenset()
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The label of an object, or of a pod, that names its LocalQueue."""
POD_GROUP = "kueue.x-k8s.io/pod-group-name"
"""The label of a pod that Kueue admits with others."""
_TOPOLOGY = (REQUIRED, PREFERRED, UNCONSTRAINED, SLICE, SLICE_LEVELS)
"""Annotations of a pod template by which its pods ask Kueue for a topology."""
DEFAULT_QUEUE = "default"
"""The LocalQueue of what names none, if the namespace has one (`DefaultLocalQueueName` of Kueue)."""


def pod_admission(spec: Json, metadata: Json = None) -> PodAdmission:
    """Read a pod or a pod template; `metadata` are as in `replica_shape`.

    What a LimitRange of its own cluster gave to a pod is left out: another cluster gives its own. So is the default
    LocalQueue, by which Kueue labels objects that name none.
    """
    labels = (metadata or {}).get("labels") or {}
    queue = str(labels.get(QUEUE_LABEL) or "")
    whole = spec.get("resources") or {}
    return _shared(
        PodAdmission(
            namespace=str((metadata or {}).get("namespace") or ""),
            containers=tuple(_containers(spec, metadata)),
            requests=_stated(parsed(whole.get("requests"))),
            limits=_stated(parsed(whole.get("limits"))),
            runtime_class=str(spec.get("runtimeClassName") or ""),
            overhead=_stated(parsed(spec.get("overhead"))),
            priority_class=str(spec.get("priorityClassName") or ""),
            terminating=spec.get("activeDeadlineSeconds") is not None,
            crosses_namespaces=any(_crosses_namespaces(spec)),
            claims=sum(1 for claim in spec.get("resourceClaims") or () if claim.get("resourceClaimTemplateName")),
            volumes=tuple(
                volume_claim((volume["ephemeral"].get("volumeClaimTemplate") or {}).get("spec") or {})
                for volume in spec.get("volumes") or ()
                if volume.get("ephemeral")
            ),
            queue=QueueClaim(
                queue="" if queue == DEFAULT_QUEUE else queue,
                each=bool(queue) and POD_GROUP not in labels,
                topology=asks_for_topology((metadata or {}).get("annotations")),
            ),
        )
    )


def asks_for_topology(annotations: Json) -> bool:
    """Return whether annotations of a pod, or of its template, ask Kueue for a topology.

    `NewPodSetTopologyRequest` of kubernetes-sigs/kueue at ff69552, pkg/controller/jobframework/tas.go.
    """
    return any(name in (annotations or {}) for name in _TOPOLOGY)


def volume_claim(spec: Json) -> VolumeClaim:
    """Read the spec of a PersistentVolumeClaim."""
    requests = parsed(((spec.get("resources") or {}).get("requests")) or {})
    return VolumeClaim(
        storage_class=str(spec.get("storageClassName") or ""),
        attributes_class=str(spec.get("volumeAttributesClassName") or ""),
        storage=_stated({name: amount for name, amount in requests.items() if name == "storage"}),
    )


@lru_cache(maxsize=4096)
def _shared(admission: PodAdmission) -> PodAdmission:
    """Return the same object for equal values, which thousands of pods share."""
    return admission


def _stated(amounts: Mapping[str, Quantity]) -> Amounts:
    """Sort amounts by resource; a zero is stated, too."""
    return tuple(sorted(amounts.items()))


def _containers(spec: Json, metadata: Json) -> Iterator[ContainerResources]:
    requested, limited = (limit_ranger_defaults(metadata, kind) for kind in ("request", "limit"))
    for early, field in ((True, "initContainers"), (False, "containers")):
        for container in spec.get(field) or ():
            yield _container(container, requested, limited, early=early)


def _container(
    container: Json, requested: LimitRangerDefaults, limited: LimitRangerDefaults, *, early: bool
) -> ContainerResources:
    name, resources = str(container.get("name") or ""), container.get("resources") or {}
    limits = _without(parsed(resources.get("limits")), limited.get((early, name), _NONE))
    requests = {**limits, **parsed(resources.get("requests"))}
    return ContainerResources(
        name=name,
        requests=_stated(_without(requests, requested.get((early, name), _NONE))),
        limits=_stated(limits),
        early=early,
        sidecar=early and container.get("restartPolicy") == "Always",
    )


def _without(amounts: Mapping[str, Quantity], given: frozenset[str]) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if name not in given}


def _crosses_namespaces(spec: Json) -> Iterator[bool]:
    """Yield for each term of pod affinity and anti-affinity whether it names namespaces."""
    affinity = spec.get("affinity") or {}
    for kind in _AFFINITIES:
        rules = affinity.get(kind) or {}
        terms = [*(rules.get(_REQUIRED) or ())]
        terms += [weighted.get("podAffinityTerm") or {} for weighted in rules.get(_PREFERRED) or ()]
        for term in terms:
            yield bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
