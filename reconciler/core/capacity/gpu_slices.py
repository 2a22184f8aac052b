"""Which slices of GPUs a replica would get on a cluster, where its pods ask for GPUs by number and name no model.

Device plugins give out time slices, MPS shares and MIG slices under the name of whole GPUs, so that pods fit where they
get a part of what they have at home. kube-scheduler does not tell them apart, and what is free counts them equally.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.gpu_models import NodeGpus, gpus_of_node, gpus_of_pod, mig_profile_share, tells_gpus
from reconciler.core.pods.node_affinity import selects_node
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.capacity import WHOLE, ClusterObservation, GpuSlices, Node, Pool, ReplicaShape, SliceKind
from reconciler.model.units import Resources
from reconciler.text.wording import is_gpu

_MAX_SHAPES = 1000
"""Shapes whose slices on one cluster are kept."""
_PROFILE = re.compile(r"profile[^\"']{0,20}[\"']([^\"']+)[\"']")
"""The MIG profile in the selector of a claim, in CEL."""


@dataclass(frozen=True, slots=True)
class _NodeClass:
    """Nodes of one pool with the same GPUs and taints."""

    pool: Pool
    nodes: list[Node]
    labelled: set[str]
    """The keys of the labels by which some of these nodes differ from others of the pool."""
    gpus: tuple[NodeGpus, ...]


def gpu_slices(seen: ClusterObservation | None, shape: ReplicaShape | None) -> GpuSlices | None:
    """Return the slices that a replica may get on the nodes of a cluster, free or not; None where it gets whole GPUs.

    None as well where it asks for no GPUs, or nothing is known.
    """
    if seen is None or shape is None or not gpus_of_pod(shape):
        return None
    if shape.devices:
        return _claimed(shape)
    classes, answers = _SLICED.of(seen)
    if not classes:
        return None
    key = placement_key(shape)
    if key not in answers:
        if len(answers) >= _MAX_SHAPES:
            answers.clear()
        answers[key] = _sum_up(_usable(classes, shape))
    return answers[key]


def has_slices(seen: ClusterObservation) -> bool:
    """Return whether a cluster has slices of GPUs."""
    return bool(_SLICED.of(seen)[0])


def has_whole_gpus(seen: ClusterObservation | None, shape: ReplicaShape | None) -> bool:
    """Return whether a replica gets whole GPUs on a cluster, as far as its nodes tell; True where it has none."""
    slices = gpu_slices(seen, shape)
    return slices is None or slices.mixed


def with_gpu_share(shape: ReplicaShape, seen: ClusterObservation | None) -> ReplicaShape:
    """Return a shape with the part of a GPU that its replicas get on a cluster for each that they ask for."""
    slices = gpu_slices(seen, shape)
    share = WHOLE if slices is None else slices.paid_share
    return shape if shape.gpu_share == share else replace(shape, gpu_share=share)


def recorded_shape(shape: ReplicaShape, seen: ClusterObservation | None) -> ReplicaShape:
    """Return the shape that the record of a placement on a cluster has, with the part of a GPU that it pays for."""
    return with_gpu_share(shape, seen).recorded


def placement_key(shape: ReplicaShape) -> Hashable:
    """Return a value that is equal for shapes that the same nodes would take if they were empty."""
    return (
        tuple(shape.node_selector.items()),
        shape.node_terms,
        shape.tolerations,
        tuple(shape.requests.amounts.items()),
        bool(shape.devices),
    )


def holds_when_empty(node: Node, pool: Pool, shape: ReplicaShape) -> bool:
    """Return whether an empty node would take a pod of a shape; a node whose size is unknown would."""
    labels = {**pool.labels, **node.labels} if node.labels else pool.labels
    if not selects_node(shape, labels, node.name):
        return False
    if untolerated_taint(shape.tolerations, pool.taints + node.taints) is not None:
        return False
    sizes = node.allocatable.amounts
    known = {name: amount for name, amount in shape.requests.amounts.items() if name in sizes}
    return node.allocatable.holds(Resources(amounts=known)) > 0 if known else True


def _claimed(shape: ReplicaShape) -> GpuSlices | None:
    """Return the MIG slices that a claim selects by their profile."""
    texts = (text for request in shape.devices for option in request.options for text in option.selectors)
    for text in texts:
        profile = _PROFILE.search(text)
        share = mig_profile_share(profile[1]) if profile else None
        if share is not None:
            return GpuSlices(kind=SliceKind.MIG, share=share)
    return None


def _node_classes(seen: ClusterObservation) -> tuple[tuple[_NodeClass, ...], dict[Hashable, GpuSlices | None]]:
    """List the classes of nodes with GPUs where any has slices, none where all are whole; and no answers yet."""
    made: list[_NodeClass] = []
    for pool in seen.pools:
        classes: dict[Hashable, _NodeClass] = {}
        for node in pool.nodes:
            own = tuple(label for label in node.labels.items() if tells_gpus(label[0])) if node.labels else ()
            key = id(node.allocatable), own, node.taints
            if key not in classes:
                gpus = tuple(each for each in gpus_of_node(node, pool) if is_gpu(each.resource))
                classes[key] = _NodeClass(pool, [], set(), gpus)
            classes[key].nodes.append(node)
            classes[key].labelled.update(node.labels)
        made += (each for each in classes.values() if each.gpus)
    sliced = any(gpus.part for each in made for gpus in each.gpus)
    return (tuple(made) if sliced else ()), {}


_SLICED = ClusterCache(_node_classes)
"""The nodes of a cluster that has slices, and what was answered of them."""


def _usable(classes: Iterable[_NodeClass], shape: ReplicaShape) -> Iterator[NodeGpus]:
    """Yield the GPUs that a pod would be given on some node if that was empty, by the resources that it requests."""
    keys = {*shape.node_selector, *(label.key for term in shape.node_terms for label in term.labels)}
    by_name = any(term.fields for term in shape.node_terms)
    for each in classes:
        gpus = [gpus for gpus in each.gpus if gpus.resource in shape.requests.amounts]
        # One of them speaks for all, unless the shape selects by a label that not all of them have, or by name.
        differ = by_name or not keys.isdisjoint(each.labelled)
        if gpus and any(holds_when_empty(node, each.pool, shape) for node in each.nodes[: None if differ else 1]):
            yield from gpus


def _sum_up(usable: Iterable[NodeGpus]) -> GpuSlices | None:
    usable = tuple(usable)
    parts = [gpus for gpus in usable if gpus.kind is not None]
    if not parts:
        return None
    kinds = {gpus.kind for gpus in parts}
    kind = parts[0].kind if len(kinds) == 1 and parts[0].kind is not None else SliceKind.OTHER
    return GpuSlices(kind=kind, share=max(gpus.share for gpus in parts), mixed=len(parts) < len(usable))
