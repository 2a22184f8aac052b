"""What a template has come to make of each replica reaches what stands of it, where that goes whole.

MultiKueue creates a set in the worker cluster once and never raises its number afterwards (spread-and-groups.md,
section 4). One copy never gets another number of replicas here either, so that no resize would take such a change up.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core import lifecycle, together
from reconciler.core.grouped import wholes
from reconciler.core.grouping import whole
from reconciler.core.growth import Growth, Offer
from reconciler.core.needs import Needs, Part
from reconciler.core.reach import rung_of
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.wholes import Whole, more
from reconciler.core.wording import clause, count
from reconciler.model.capacity import ReplicaShape
from reconciler.model.placement import Placement
from reconciler.model.plan import Refusal, Resize, Suppressed


def take_up_other_pods(situation: Situation, standing: Standing, growth: Growth) -> None:
    """Resize what stands of a template by another number of pods a replica, where these fit beside it."""
    desired, grouped = situation.desired, wholes(situation.desired)
    for workload in standing.placed() if grouped else ():
        if workload not in grouped or workload not in desired.policies:
            continue
        template = desired.templates[workload]
        for placement in standing.of(workload):
            if placement.template_version in {"", lifecycle.version(template)}:
                continue
            goes_whole = whole(situation, workload, placement)
            shape = goes_whole.shape if goes_whole is not None else None
            if goes_whole is not None and shape is not None and _differs(placement, shape):
                _resize(situation, standing, growth, placement, into=(goes_whole, shape))


def _differs(placement: Placement, shape: ReplicaShape) -> bool:
    """Tell whether a replica has come to be of another number of pods; other pods are taken up by the next resize."""
    return placement.shape.group_size != shape.group_size


def _resize(
    situation: Situation,
    standing: Standing,
    growth: Growth,
    placement: Placement,
    *,
    into: tuple[Whole, ReplicaShape],
) -> None:
    goes_whole, shape = into
    before, after = placement.shape.group_size, shape.group_size
    detail = f"its template makes {count(after, 'pod')} of a replica, {before} before"
    there = _there(placement)
    answer = _room(situation, growth, placement, goes_whole, there) if after > before else None
    if isinstance(answer, Refusal):
        standing.suppress(
            Suppressed(
                workload=placement.workload,
                reason=answer.reason,
                message=f"{detail}; what it has on {placement.cluster} stays: {clause(answer.message)}",
                replicas=placement.replicas,
                until=growth.next_change(placement.workload),
                refusals=(answer,),
            )
        )
        return
    if answer is not None:
        together.take(growth, placement.cluster, more(goes_whole.of(placement.replicas), there))
    resized = lifecycle.renewed(placement, situation.desired, situation.now, placement.replicas)
    standing.change(Resize(before=placement, after=replace(resized, shape=shape.recorded), detail=detail))


def _there(placement: Placement) -> Needs:
    """Return what the pods take that stand."""
    pods = placement.replicas * placement.shape.group_size
    return Needs(main=Part(shape=replace(placement.shape, group_size=1), replicas=pods))


def _room(
    situation: Situation, growth: Growth, placement: Placement, goes_whole: Whole, there: Needs
) -> Offer | Refusal:
    """Say whether what is there has room for all of what it is to become."""
    order = situation.reach.order(placement.workload)
    rung = replace(rung_of(order, placement.cluster), limit=None)
    replicas = placement.replicas
    workload = placement.workload
    return together.assess(situation, growth, workload, rung, goes_whole, replicas=replicas, there=there)
