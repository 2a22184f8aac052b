"""The nodes of a cluster as the rules of pods about their neighbours see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.affinity import selected
from reconciler.core.noderoom import NodeCapacity
from reconciler.core.selecting import described
from reconciler.core.tainting import CORDON, UNREADY, repelled, tolerates
from reconciler.core.topology import NOBODY_TELLS, Seat, seated, unsettled
from reconciler.core.wording import count
from reconciler.model.capacity import ClosedNode, ReplicaShape
from reconciler.model.neighbours import PodRules


def seats(
    shape: ReplicaShape, nodes: Iterable[NodeCapacity], closed: Iterable[ClosedNode], holds: Mapping[str, int]
) -> list[Seat] | None:
    """Seat a shape: `holds` is how many of its pods each node has room for, by name; None where nobody knows the pods.

    Room of which nobody knows on which of several nodes it is counts as none.
    """
    found: list[Seat] = []
    for node in nodes:
        if node.one_of:
            continue
        if node.pods is None:
            return None
        room, meant = holds.get(node.name, 0), selected(shape, node.labels, node.name)
        tolerated = repelled(shape.tolerations, node.taints) is None
        found.append(
            Seat(
                labels=node.labels,
                pods=node.pods,
                holds=min(room, 1) if shape.apart else room,
                meant=meant,
                tolerated=tolerated,
                # Of devices that are claimed the scheduler may find some where none could be counted.
                tempting=meant and tolerated and bool(shape.devices and node.devices),
            )
        )
    for shut in closed:
        if shut.pods is None:
            return None
        meant = selected(shape, shut.labels, shut.name)
        # The scheduler keeps pods off it by a taint only, and some tolerate that.
        tempting = meant and tolerates(shape.tolerations, CORDON if shut.ready else UNREADY)
        found.append(Seat(labels=shut.labels, pods=shut.pods, meant=meant, closed=True, tempting=tempting))
    return found


def fitting(rules: PodRules, places: list[Seat] | None, moving: Iterable[PodRules]) -> int:
    """Count the pods that find a place by their rules; none where nobody can tell."""
    return 0 if places is None or unsettled(rules, places, moving) else seated(rules, places)


def hindrance(shape: ReplicaShape, rules: PodRules, places: list[Seat] | None, moving: Iterable[PodRules]) -> str:
    """Say what in the rules keeps a shape from nodes that it has room on; empty where it is not the rules."""
    wants = f"wants {described(rules)}"
    why = NOBODY_TELLS if places is None else unsettled(rules, places, moving)
    if places is None or why:
        return f"{wants}, and {why}"
    roomy = [seat for seat in places if seat.holds]
    if not roomy:
        return ""
    for rule in rules.all:
        if not any(rule.key in seat.labels for seat in roomy):
            return f"{wants}, and no node that has room has the label {rule.key}"
    able = seated(rules, places)
    if able >= shape.group_size:
        return ""
    if not able:
        return f"{wants}, which leaves none of {count(len(roomy), 'node')} that has room"
    return f"{wants}, which leaves a place for {able} of {count(shape.group_size, 'pod')} of a group"
