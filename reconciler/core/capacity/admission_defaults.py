"""Replicas as a cluster makes them: with what admission adds to their pods there.

The API server merges a RuntimeClass into each pod that names it, and gives the defaults of a namespace's LimitRanges to
containers that request nothing (docs/reference/kubernetes.md, "Pods that admission changes"). What nobody knows is an
obstacle, so that nothing is said to fit that may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.runtime_defaults import read_runtime_class
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.scheduling import RuntimeClass, UnstatedRequests
from reconciler.model.units import Quantity, Resources, total
from reconciler.model.workload import Json

_LIMITED_RESOURCES = ("cpu", "memory")
"""What LimitRanges are about, where nobody knows what they say."""


def with_admission_defaults(shape: ReplicaShape, seen: ClusterObservation) -> ReplicaShape:
    """Return a replica's shape with what a cluster adds to its pods; the same object where that is nothing.

    Of pods whose namespace nobody knows it is what the LimitRanges of any namespace give.
    """
    left = shape.unstated
    if left is None or shape.obstacle or not (left.runtime_class or seen.limit_ranges or seen.limit_ranges is None):
        return shape
    obstacle, _ = _obstacle(left, shape, seen)
    if obstacle:
        return replace(shape, obstacle=obstacle, unstated=None)
    whole = dict(left.spare)
    given = {name: amount for name, amount in _defaults(shape, left, seen).items() if name not in whole}
    shape = replace(shape, requests=_add_missing(shape.requests, given, left.defaults), unstated=None)
    runtime_class = _runtime_class(left, seen)
    return shape if runtime_class is None else _with_runtime_class(shape, runtime_class, left)


def with_included_runtime_class(shape: ReplicaShape, manifests: Iterable[Mapping[str, Json]]) -> ReplicaShape:
    """Return a replica's shape with what its RuntimeClass adds that comes along with its pods; else the same object."""
    left = shape.unstated
    if left is None or not left.runtime_class:
        return shape
    name = left.runtime_class
    for manifest in manifests:
        if group_kind(manifest) == "node.k8s.io/RuntimeClass" and at(manifest, ("metadata", "name")) == name:
            shape = replace(shape, unstated=left._replace(runtime_class=""))
            try:
                runtime_class = read_runtime_class(manifest)
                if all(isinstance(text, str) for text in _text_fields(runtime_class)):
                    return _with_runtime_class(shape, runtime_class, left)
            except (AttributeError, LookupError, TypeError, ValueError):
                pass
            return replace(shape, obstacle=f"nobody can read what its RuntimeClass {name} adds to pods")
    return shape


def without_admission_defaults(shape: ReplicaShape) -> ReplicaShape:
    """Return a replica's shape without what has been added to its pods where they were seen."""
    left = shape.unstated
    if left is None or not (left.defaults or left.overhead):
        return shape
    given, whole = dict(left.defaults), {name for name, _ in left.spare}
    alone = {name: amount for name, amount in given.items() if name not in whole}
    added = total([Resources(amounts=alone), Resources(amounts=dict(left.overhead))])
    rest = {name: amount for name, amount in shape.requests.minus(added).amounts.items() if amount}
    spare = tuple((name, Quantity(amount + given.get(name, 0))) for name, amount in left.spare)
    return replace(
        shape,
        requests=Resources(amounts=rest),
        unstated=UnstatedRequests(left.runtime_class, containers=left.containers, silent=left.silent, spare=spare),
    )


def admission_remedy(shape: ReplicaShape, seen: ClusterObservation) -> str:
    """Say how what a cluster adds to pods can be known or mended, where that is what keeps a replica out of it."""
    return _obstacle(shape.unstated, shape, seen)[1] if shape.unstated is not None else ""


def _obstacle(left: UnstatedRequests, shape: ReplicaShape, seen: ClusterObservation) -> tuple[str, str]:
    """Say what keeps anybody from knowing what is added to a pod, or has the API server refuse it; and the way out."""
    name, runtime_class = left.runtime_class, _runtime_class(left, seen)
    if name and seen.runtime_classes is None:
        rights = "by the rights of bootstrap/rbac.yaml, or in its observation"
        return f"nobody says what RuntimeClass {name} adds to pods there", f"let its RuntimeClasses be seen: {rights}"
    if name and runtime_class is None:
        return f"has no RuntimeClass {name}", f"create RuntimeClass {name} there"
    selector, wanted = shape.node_selector, runtime_class.node_selector if runtime_class is not None else {}
    key = next((key for key, value in wanted.items() if selector.get(key, value) != value), None)
    if key is not None:
        others = f"wants nodes with {key}={wanted[key]}, and its pods want {key}={selector[key]}"
        return f"its RuntimeClass {name} {others}", "let its pods, or the RuntimeClass, ask for other nodes"
    if seen.limit_ranges is None and any(map(left.lacking, _LIMITED_RESOURCES)):
        return (
            "nobody says what LimitRanges give to containers there that request no cpu or memory",
            "give Overspill the rights of bootstrap/rbac.yaml there, or state requests in every container",
        )
    beyond = _exceeded_resource(shape, left, seen)
    if not beyond:
        return "", ""
    return (
        f"LimitRanges there give its containers more {beyond} than its pods request as a whole",
        "state requests in every container, or more for the pod as a whole",
    )


def _text_fields(runtime_class: RuntimeClass) -> Iterator[object]:
    """Yield what has to be text in a RuntimeClass at which no API server has looked."""
    yield from (*runtime_class.overhead.amounts, *runtime_class.node_selector, *runtime_class.node_selector.values())
    for toleration in runtime_class.tolerations:
        yield from (toleration.key, toleration.operator, toleration.value, toleration.effect)


def _runtime_class(left: UnstatedRequests, seen: ClusterObservation) -> RuntimeClass | None:
    return (seen.runtime_classes or {}).get(left.runtime_class) if left.runtime_class else None


def _exceeded_resource(shape: ReplicaShape, left: UnstatedRequests, seen: ClusterObservation) -> str:
    """Name the resource of which containers are given more than the pod as a whole has to spare: it is refused then."""
    given, had = _defaults(shape, left, seen) if left.spare else {}, dict(left.defaults)
    return next((name for name, spare in left.spare if given.get(name, 0) - had.get(name, 0) > spare), "")


def _defaults(shape: ReplicaShape, left: UnstatedRequests, seen: ClusterObservation) -> Mapping[str, Quantity]:
    """Add up what containers are given that request nothing: the most that a namespace of theirs gives."""
    named = {who.namespace for who in shape.who if who.namespace}
    largest: dict[str, Quantity] = {}
    ranges = seen.limit_ranges or {}
    for namespace in named or ranges:
        given = ranges.get(namespace)
        for resource, amount in given.amounts.items() if given is not None else ():
            largest[resource] = max(largest.get(resource, Quantity(0)), Quantity(amount * left.lacking(resource)))
    return largest


def _with_runtime_class(shape: ReplicaShape, runtime_class: RuntimeClass, left: UnstatedRequests) -> ReplicaShape:
    """Add what a RuntimeClass does to a pod, less the overhead that it shows already."""
    return replace(
        shape,
        requests=_add_missing(shape.requests, runtime_class.overhead.amounts, left.overhead),
        node_selector=dict(sorted({**shape.node_selector, **runtime_class.node_selector}.items())),
        tolerations=tuple(dict.fromkeys((*shape.tolerations, *runtime_class.tolerations))),
    )


def _add_missing(
    requests: Resources, added: Mapping[str, Quantity], stated_amounts: Iterable[tuple[str, Quantity]]
) -> Resources:
    """Add to requests what is added here, less what of it they have already."""
    amounts, stated = dict(requests.amounts), dict(stated_amounts)
    for name, amount in added.items():
        more = amount - stated.get(name, 0)
        if more > 0:
            amounts[name] = Quantity(amounts.get(name, 0) + more)
    return Resources(amounts=amounts)
