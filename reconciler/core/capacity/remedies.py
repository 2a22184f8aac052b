"""Remedies for pods without room: a toleration where a taint excludes them, else more nodes."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.node import node_capacities, pods_fitting
from reconciler.core.capacity.shortfall import ADD_NODES
from reconciler.core.pods.node_affinity import selects_node
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.text.wording import sanitize

_TOLERATE_ALL = (Toleration(operator="Exists"),)


def remedy(
    room: ClusterCapacity, seen: ClusterObservation, shape: ReplicaShape, wanted: int, *, deployed: bool = True
) -> str:
    """Return a remedy by which more replicas of a shape would fit, where fewer than `wanted` do.

    A reservation is not `deployed`: it has no pods that could tolerate a taint.
    """
    if room.admitted(shape).obstacle:
        return room.remedy(shape)
    if (refused := room.refused_pods(shape, wanted)) is not None:
        return refused.remedy
    shape = room.admitted(shape)
    taint = _blocking_taint(room, seen, shape, wanted)
    if taint is None:
        return ADD_NODES
    named = sanitize(str(taint))
    if not deployed:
        return f"take the taint {named} off nodes there, or free or add nodes without it"
    return f"tolerate {named} in its pods ({_toleration(taint)}), or free or add nodes without that taint"


def _blocking_taint(room: ClusterCapacity, seen: ClusterObservation, shape: ReplicaShape, wanted: int) -> Taint | None:
    """Return the taint of a node with room that excludes the shape; None where no taint does."""
    if room.count(replace(shape, tolerations=_TOLERATE_ALL), wanted) <= room.count(shape, wanted):
        return None
    nodes = (
        candidate
        for candidate in node_capacities(seen)
        if selects_node(shape, candidate.labels, candidate.name) and pods_fitting(candidate, shape)
    )
    return next(
        (taint for node in nodes if (taint := untolerated_taint(shape.tolerations, node.taints)) is not None), None
    )


def _toleration(taint: Taint) -> str:
    """Write the toleration of a taint as in a pod spec."""
    value = f"operator: Equal, value: {sanitize(taint.value)}" if taint.value else "operator: Exists"
    return f"{{key: {sanitize(taint.key)}, {value}, effect: {taint.effect}}}"
