"""Unschedulable replicas: bursts whose pods find no node on their cluster move to one that has room for them.

Their owners took the room back, a node was lost, or somebody else was faster. They have waited for the scale-up window
of their policy by then, as replicas on the primary have before they burst. What has room nowhere else stays, and takes
the next room that there is. An Adaptive WorkloadSpread has a rule of its own (`reschedule`); a fixed one holds replicas
where they are.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from reconciler.core.capacity.scalable_nodes import longest_delay
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.relocate import Departure, may_relocate, relocate
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.placement import Placement, placement_path
from reconciler.model.plan import EndReason, Reason
from reconciler.model.units import format_duration
from reconciler.text.wording import count

_LEAST_WAIT = timedelta(seconds=30)
"""Pods wait for those that they replace to end, which takes Kubernetes' default grace period."""


def move_unschedulable(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move the replicas that have had no node for too long, as far as other clusters have room.

    Only pods that wait are looked at, so that a pass over thousands of placements that run costs nothing here.
    """
    for cluster, seen in sorted(inputs.observed.clusters.items()):
        if (
            not seen.pending_pods
            or not seen.healthy
            or unseen(inputs.desired.fleet, inputs.observed, cluster, inputs.now)
        ):
            continue
        for name, pods in sorted(seen.pending_pods.items()):
            placement = inputs.ledger.placements.get(placement_path(cluster, name))
            if placement is not None and placement in working_plan.of(placement.workload):
                step = partial(_move_when_due, inputs, working_plan, finder, placement, seen=seen, pods=pods)
                working_plan.decide(placement.workload, step)


def is_movable(inputs: PassInput, working_plan: WorkingPlan, placement: Placement) -> bool:
    """Tell whether replicas of a placement that find no node may run on any other cluster."""
    if not may_relocate(inputs, working_plan, placement):
        return False
    policy, template = inputs.desired.policies[placement.workload], inputs.desired.templates[placement.workload]
    return policy.spread is None and not template.runs_once


def _move_when_due(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    seen: ClusterObservation,
    pods: PendingPods,
) -> None:
    # 1. It has to stay whole, or where it is.
    if pods.since is None or not is_movable(inputs, working_plan, placement):
        return
    # 2. Pods that the engine has yet to delete are no replicas any more.
    unbound = placement.replicas - replica_count.bound_replicas(placement, seen)
    waiting = min(replica_count.pending_replicas(placement, seen), unbound)
    if waiting <= 0:
        return
    # 3. They may still get a node, from the scheduler or from the autoscaler.
    policy = inputs.desired.policies[placement.workload]
    window = max(policy.scale_up_window, _LEAST_WAIT)
    window += longest_delay(inputs.desired.clusters.get(placement.cluster))
    if pods.since + window > inputs.now:
        working_plan.wake(pods.since + window)
        return
    # 4. They have waited for too long.
    detail = (
        f"{waiting} of {count(placement.replicas, 'replica')} on {placement.cluster} had no node for"
        f" {format_duration(window)}"
    )
    if words := seen.unadmitted.get(placement.name):
        detail += f": {words}"
    departure = Departure(
        placement=placement,
        replicas=waiting,
        why=EndReason.FAILED,
        held=Reason.NO_CAPACITY,
        detail=detail,
        left=detail,
        rest=_LEAST_WAIT,
    )
    relocate(inputs, working_plan, finder, departure)
