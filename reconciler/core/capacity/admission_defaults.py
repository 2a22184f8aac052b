"""Requests of a replica with the defaults that admission adds to its pods in a cluster.

The API server merges a RuntimeClass into each pod that names it, and gives the defaults of a namespace's LimitRanges to
containers without requests. Unknown defaults make the pod unschedulable, so that fit is never overestimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.capacity.included_admission import with_included
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.runtime_defaults import read_runtime_class
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.scheduling import RuntimeClass, UnstatedRequests, sorted_amounts
from reconciler.model.units import Quantity, Resources, total
from reconciler.model.workload import Json

_LIMITED_RESOURCES = ("cpu", "memory")
"""Resources that LimitRanges are assumed to set where they cannot be listed."""


def with_admission_defaults(shape: ReplicaShape, seen: ClusterObservation) -> ReplicaShape:
    """Return a replica's shape with the defaults of a cluster; the same object where there are none.

    For pods whose namespace is unknown, the largest default of any namespace is added.
    """
    gaps, seen = shape.unstated, with_included(seen, shape.admission)
    if gaps is None or shape.obstacle or not (gaps.runtime_class or seen.limit_ranges or seen.limit_ranges is None):
        return shape
    obstacle, _ = _obstacle(gaps, shape, seen)
    if obstacle:
        return replace(shape, obstacle=obstacle, unstated=None)
    pod_level = dict(gaps.spare)
    defaults = {name: amount for name, amount in _defaults(shape, gaps, seen).items() if name not in pod_level}
    shape = replace(shape, requests=_add_missing(shape.requests, defaults, gaps.defaults), unstated=None)
    runtime_class = _runtime_class(gaps, seen)
    return shape if runtime_class is None else _with_runtime_class(shape, runtime_class, gaps)


def with_included_runtime_class(shape: ReplicaShape, manifests: Iterable[Mapping[str, Json]]) -> ReplicaShape:
    """Return a shape with the overhead of a RuntimeClass among its manifests; else the same object."""
    gaps = shape.unstated
    if gaps is None or not gaps.runtime_class:
        return shape
    name = gaps.runtime_class
    for manifest in manifests:
        if group_kind(manifest) == "node.k8s.io/RuntimeClass" and at(manifest, ("metadata", "name")) == name:
            shape = replace(shape, unstated=gaps._replace(runtime_class=""))
            try:
                runtime_class = read_runtime_class(manifest)
                if all(isinstance(text, str) for text in _text_fields(runtime_class)):
                    overhead = sorted_amounts(runtime_class.overhead.amounts)
                    admission = (
                        stated._replace(runtime_class="", overhead=overhead) if stated.runtime_class == name else stated
                        for stated in shape.admission
                    )
                    return _with_runtime_class(replace(shape, admission=tuple(admission)), runtime_class, gaps)
            except (AttributeError, LookupError, TypeError, ValueError):
                pass
            return replace(shape, obstacle=f"its RuntimeClass {name} is unreadable")
    return shape


def without_admission_defaults(shape: ReplicaShape) -> ReplicaShape:
    """Return a replica's shape without the defaults that its source cluster added to its pods."""
    gaps = shape.unstated
    if gaps is None or not (gaps.defaults or gaps.overhead):
        return shape
    defaults, pod_level = dict(gaps.defaults), {name for name, _ in gaps.spare}
    container_defaults = {name: amount for name, amount in defaults.items() if name not in pod_level}
    added = total([Resources(amounts=container_defaults), Resources(amounts=dict(gaps.overhead))])
    rest = {name: amount for name, amount in shape.requests.minus(added).amounts.items() if amount}
    spare = tuple((name, Quantity(amount + defaults.get(name, 0))) for name, amount in gaps.spare)
    return replace(
        shape,
        requests=Resources(amounts=rest),
        unstated=UnstatedRequests(gaps.runtime_class, containers=gaps.containers, silent=gaps.silent, spare=spare),
    )


def admission_remedy(shape: ReplicaShape, seen: ClusterObservation) -> str:
    """Return the remedy for unknown or conflicting admission defaults; empty where they are no obstacle."""
    seen = with_included(seen, shape.admission)
    return _obstacle(shape.unstated, shape, seen)[1] if shape.unstated is not None else ""


def _obstacle(gaps: UnstatedRequests, shape: ReplicaShape, seen: ClusterObservation) -> tuple[str, str]:
    """Return why the admission defaults are unknown or rejected by the API server, and the remedy."""
    name, runtime_class = gaps.runtime_class, _runtime_class(gaps, seen)
    if name and seen.runtime_classes is None:
        rights = "by the rights of bootstrap/rbac.yaml, or in its observation"
        return f"RuntimeClass {name} is unknown there", f"let its RuntimeClasses be seen: {rights}"
    if name and runtime_class is None:
        return f"has no RuntimeClass {name}", f"create RuntimeClass {name} there"
    selector, labels = shape.node_selector, runtime_class.node_selector if runtime_class is not None else {}
    key = next((key for key, value in labels.items() if selector.get(key, value) != value), None)
    if key is not None:
        others = f"wants nodes with {key}={labels[key]}, and its pods want {key}={selector[key]}"
        return f"its RuntimeClass {name} {others}", "let its pods, or the RuntimeClass, ask for other nodes"
    if seen.limit_ranges is None and any(map(gaps.lacking, _LIMITED_RESOURCES)):
        return (
            "LimitRanges are unknown there, and a container requests no cpu or memory",
            "give Overspill the rights of bootstrap/rbac.yaml there, or state requests in every container",
        )
    beyond = _exceeded_resource(shape, gaps, seen)
    if not beyond:
        return "", ""
    return (
        f"LimitRanges there give its containers more {beyond} than its pods request as a whole",
        "state requests in every container, or more for the pod as a whole",
    )


def _text_fields(runtime_class: RuntimeClass) -> Iterator[object]:
    """Yield the values that have to be text in a RuntimeClass that no API server has validated."""
    yield from (*runtime_class.overhead.amounts, *runtime_class.node_selector, *runtime_class.node_selector.values())
    for toleration in runtime_class.tolerations:
        yield from (toleration.key, toleration.operator, toleration.value, toleration.effect)


def _runtime_class(gaps: UnstatedRequests, seen: ClusterObservation) -> RuntimeClass | None:
    return (seen.runtime_classes or {}).get(gaps.runtime_class) if gaps.runtime_class else None


def _exceeded_resource(shape: ReplicaShape, gaps: UnstatedRequests, seen: ClusterObservation) -> str:
    """Name the resource whose container defaults exceed the pod-level request: the API server rejects such a pod."""
    defaults, included = _defaults(shape, gaps, seen) if gaps.spare else {}, dict(gaps.defaults)
    return next((name for name, spare in gaps.spare if defaults.get(name, 0) - included.get(name, 0) > spare), "")


def _defaults(shape: ReplicaShape, gaps: UnstatedRequests, seen: ClusterObservation) -> Mapping[str, Quantity]:
    """Sum the LimitRange defaults of containers without requests, by the largest default of their namespaces."""
    namespaces = {who.namespace for who in shape.who if who.namespace}
    largest: dict[str, Quantity] = {}
    ranges = seen.limit_ranges or {}
    for namespace in namespaces or ranges:
        given = ranges.get(namespace)
        for resource, amount in given.amounts.items() if given is not None else ():
            largest[resource] = max(largest.get(resource, Quantity(0)), Quantity(amount * gaps.lacking(resource)))
    return largest


def _with_runtime_class(shape: ReplicaShape, runtime_class: RuntimeClass, gaps: UnstatedRequests) -> ReplicaShape:
    """Add what a RuntimeClass adds to a pod, less the overhead that the pod has already."""
    return replace(
        shape,
        requests=_add_missing(shape.requests, runtime_class.overhead.amounts, gaps.overhead),
        node_selector=dict(sorted({**shape.node_selector, **runtime_class.node_selector}.items())),
        tolerations=tuple(dict.fromkeys((*shape.tolerations, *runtime_class.tolerations))),
    )


def _add_missing(
    requests: Resources, added: Mapping[str, Quantity], stated_amounts: Iterable[tuple[str, Quantity]]
) -> Resources:
    """Add amounts to requests, less the part that the requests include already."""
    amounts, stated = dict(requests.amounts), dict(stated_amounts)
    for name, amount in added.items():
        missing = amount - stated.get(name, 0)
        if missing > 0:
            amounts[name] = Quantity(amounts.get(name, 0) + missing)
    return Resources(amounts=amounts)
