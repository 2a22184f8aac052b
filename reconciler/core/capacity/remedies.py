"""What would give pods room where they have too little: a toleration where a taint keeps them off, else nodes."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.capacity.node import node_capacities, pods_fitting
from reconciler.core.capacity.room import ClusterCapacity
from reconciler.core.workloads.node_affinity import selects_node
from reconciler.core.workloads.taints import untolerated_taint
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.scheduling import Taint, Toleration
from reconciler.text.wording import sanitize

ADD_NODES = "free or add nodes there"
_TOLERATE_ALL = (Toleration(operator="Exists"),)


def remedy(
    room: ClusterCapacity, seen: ClusterObservation, shape: ReplicaShape, wanted: int, *, deployed: bool = True
) -> str:
    """Say what would let more replicas of a shape fit, where fewer than `wanted` do.

    What only reserves room is not `deployed`: it has no pods that could tolerate anything.
    """
    if room.admitted(shape).obstacle:
        return room.remedy(shape)
    shape = room.admitted(shape)
    taint = _blocking_taint(room, seen, shape, wanted)
    if taint is None:
        return ADD_NODES
    named = sanitize(str(taint))
    if not deployed:
        return f"take the taint {named} off nodes there, or free or add nodes without it"
    return f"tolerate {named} in its pods ({_toleration(taint)}), or free or add nodes without that taint"


def _blocking_taint(room: ClusterCapacity, seen: ClusterObservation, shape: ReplicaShape, wanted: int) -> Taint | None:
    """Find the taint of a node that a replica could use but for it; None where no taint is in the way."""
    if room.count(replace(shape, tolerations=_TOLERATE_ALL), wanted) <= room.count(shape, wanted):
        return None
    able = (
        node_capacity
        for node_capacity in node_capacities(seen)
        if selects_node(shape, node_capacity.labels, node_capacity.name) and pods_fitting(node_capacity, shape)
    )
    return next(
        (taint for node in able if (taint := untolerated_taint(shape.tolerations, node.taints)) is not None), None
    )


def _toleration(taint: Taint) -> str:
    """Write the toleration of a taint as it stands in a pod."""
    value = f"operator: Equal, value: {sanitize(taint.value)}" if taint.value else "operator: Exists"
    return f"{{key: {sanitize(taint.key)}, {value}, effect: {taint.effect}}}"
