"""Unschedulable replicas: bursts whose pods find no node on their cluster move to one that has room for them.

Their owners took the room back, a node was lost, a quota refuses them, or somebody else was faster. They have waited
for the scale-up window of their policy by then, as replicas on the primary have before they burst; those of an Adaptive
WorkloadSpread for its rescheduleCriticalSeconds (docs/background/upstream/workloadspread.md, "Adaptive"). The subset
that these leave counts as unschedulable on that cluster for a while and gets nothing; the last subset never does. A
spread that is not Adaptive holds replicas where they are. Replicas with a node stay, also while they start. What has
room nowhere else stays, and takes the next room that there is; OpenKruise would delete and recreate it.

What Kueue has evicted there waits for nothing: it goes in the next pass, as MultiKueue gives an evicted Workload back
to be dispatched again (step 4 of `reconcileGroup`, pkg/controller/admissionchecks/multikueue/workload.go of
kubernetes-sigs/kueue at ff69552). The cluster that it leaves gets nothing of it for a while.

Pods that go together leave together, and only while none of them has a node; what runs once, and a request, leave for
an eviction alone, if no pod of it has done its part.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from reconciler.core.capacity.scalable_nodes import longest_delay
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.relocate import may_leave, relocate
from reconciler.core.decide.steps.transfer import NO_NODE, NONE_RUNS, Cause, Departure
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ClusterObservation
from reconciler.model.placement import Placement, placement_path
from reconciler.model.units import format_duration
from reconciler.text.wording import count, sanitize

_LEAST_WAIT = timedelta(seconds=30)
"""Pods wait for those that they replace to end, which takes Kubernetes' default grace period."""


def move_unschedulable(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move the replicas that have had no node for too long, as far as other clusters have room.

    Only pods that wait are looked at, so that a pass over thousands of placements that run costs nothing here.
    """
    for cluster, seen in sorted(inputs.observed.clusters.items()):
        if (
            not (seen.pending_pods or seen.evicted)
            or not seen.healthy
            or unseen(inputs.desired.fleet, inputs.observed, cluster, inputs.now)
        ):
            continue
        for name in sorted({*seen.pending_pods, *seen.evicted}):
            placement = inputs.ledger.placements.get(placement_path(cluster, name))
            if placement is not None and placement in working_plan.of(placement.workload):
                step = partial(_move_when_due, inputs, working_plan, finder, placement, seen=seen)
                working_plan.decide(placement.workload, step)


def is_movable(inputs: PassInput, working_plan: WorkingPlan, placement: Placement) -> bool:
    """Return whether replicas of a placement that find no node may run on any other cluster."""
    return may_leave(inputs, working_plan, placement, NO_NODE) and _patience(inputs, placement) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patience:
    """How long replicas of a placement wait for a node before they leave, and for how long they stay away then."""

    window: timedelta
    rest: timedelta
    where: str
    """What they leave."""
    subset: str | None = None
    """The only subset that then gets nothing on the cluster; None for all of the workload."""


def _patience(inputs: PassInput, placement: Placement) -> _Patience | None:
    """Return the patience of a burst in force; None where its WorkloadSpread holds it where it is."""
    policy = inputs.desired.policies[placement.workload]
    if policy.spread is None:
        window, rest = max(policy.scale_up_window, _LEAST_WAIT), max(policy.cool_down, _LEAST_WAIT)
        return _Patience(window=window, rest=rest, where=placement.cluster)
    subset = inputs.slot(placement)[1]
    if policy.spread.reschedule is None or not policy.spread.gives_up(subset):
        return None
    window, rest = policy.spread.reschedule, policy.spread.recovery
    return _Patience(window=window, rest=rest, where=placement.where, subset=subset)


def _cause(inputs: PassInput, placement: Placement, seen: ClusterObservation) -> Cause | None:
    """Return why replicas of a placement may leave; None where they stay, since some that go with them may run."""
    unit, name = unit_of_workload(inputs, placement.workload, placement), placement.name
    # 1. Each of them goes by itself.
    if unit.is_loose:
        return NO_NODE
    # 2. Some of its pods have a node, or had one.
    if seen.bound.get(name) or name in seen.succeeded or name in seen.failed:
        return None
    # 3. What runs once may get its node at any time, unless its queue has ended it; a request stays.
    return None if (unit.once or placement.workload.request) and name not in seen.evicted else NONE_RUNS


def _move_when_due(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    seen: ClusterObservation,
) -> None:
    # 1. It has to stay whole, or where it is.
    cause = _cause(inputs, placement, seen)
    if cause is None or not may_leave(inputs, working_plan, placement, cause):
        return
    patience = _patience(inputs, placement)
    if patience is None:
        return
    # 2. Pods that the engine has yet to delete are no replicas any more.
    waiting = placement.replicas
    if cause is NO_NODE:
        unbound = placement.replicas - replica_count.bound_replicas(placement, seen)
        waiting = min(replica_count.pending_replicas(placement, seen), unbound)
    if waiting <= 0:
        return
    # 3. They may still get a node, from the scheduler or from the autoscaler, unless a queue has taken them back.
    evicted, pods = placement.name in seen.evicted, seen.pending_pods.get(placement.name)
    window = patience.window + longest_delay(inputs.desired.clusters.get(placement.cluster))
    if not evicted:
        since = pods.since if pods is not None else None
        if since is None:
            return
        if since + window > inputs.now:
            working_plan.wake(since + window)
            return
    # 4. They have waited for too long, or it is pointless.
    lost = "lost its quota" if evicted else f"had no node for {format_duration(window)}"
    detail = f"{waiting} of {count(placement.replicas, 'replica')} on {sanitize(patience.where)} {lost}"
    if words := seen.unadmitted.get(placement.name) or seen.refused.get(placement.name):
        detail += f": {words}"
    departure = Departure(
        placement=placement,
        replicas=waiting,
        cause=cause,
        detail=detail,
        restraint=lifecycle.move_restraint(
            placement, inputs.now, reason=detail, rest=patience.rest, subset=patience.subset
        ),
    )
    relocate(inputs, working_plan, finder, departure)
