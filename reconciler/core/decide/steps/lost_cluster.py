"""Lost clusters: gangs leave a cluster that has been lost for too long, whole and in one commit.

A cluster is lost while it is unseen or reports itself unhealthy. The moment since when is a record of this process
alone, as with MultiKueue (docs/reference/groups.md, "MultiKueue"): git does not hold it, and a process that has just
started may be the one that has not looked yet. Workloads without gangs stay, as on any cluster that merely cannot be
seen.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.gang import gangs_of, placement_needs
from reconciler.core.decide.state.pass_input import LostClusters, PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import policy_of
from reconciler.core.decide.steps.move import find_gang_move
from reconciler.core.observe.demand import unseen
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Move, Reason, Suppressed, Why
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration
from reconciler.text.wording import as_clause


def lost_since(before: LostClusters, desired: Desired, observed: Observed, now: datetime) -> LostClusters:
    """Return since when each cluster has been lost; a cluster that is back is left out.

    A cluster whose clock is ahead of this process is seen: neither clock is known to be right.
    """
    lost = {name: before.get(name, now) for name in sorted(desired.clusters) if _lost(name, desired, observed, now)}
    return before if lost == before else lost


def leave_lost_clusters(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move gangs off clusters that have been lost for longer than the Fleet's workerLostTimeout.

    A gang that fits on no other cluster stays, and is suppressed with the reason.
    """
    timeout = inputs.desired.fleet.worker_lost_timeout
    for cluster, since in sorted(inputs.lost.items()):
        due = since + timeout
        for placement in working_plan.on(cluster):
            if not gangs_of(inputs, placement):
                continue
            if due > inputs.now:
                working_plan.wake(due)
            else:
                _leave(inputs, working_plan, finder, placement, _why(inputs, cluster, since))


def _lost(name: ClusterName, desired: Desired, observed: Observed, now: datetime) -> bool:
    seen = observed.clusters.get(name)
    if seen is not None and seen.observed_at > now:
        return False
    return bool(unseen(desired.fleet, observed, name, now)) or seen is None or not seen.healthy


def _why(inputs: PassInput, cluster: ClusterName, since: datetime) -> str:
    seen = inputs.observed.clusters.get(cluster)
    blind = unseen(inputs.desired.fleet, inputs.observed, cluster, inputs.now)
    unwell = f"{cluster}: {as_clause(seen.message) or 'it reports itself unhealthy'}" if seen is not None else ""
    return f"{blind or unwell}, which has lasted for {format_duration(inputs.now - since)}"


def _leave(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, placement: Placement, detail: str
) -> None:
    """Move a placement to the first other cluster that has room for all of it, in one change."""
    move, refusals = find_gang_move(inputs, working_plan, finder, placement)
    if move is not None:
        after = move.placement
        choice = gang_placement.choose(
            finder, move.candidate, move.needs, after.shape, after.workload, replicas=after.replicas
        )
        working_plan.change(
            Move(
                before=placement,
                after=after,
                why=Why.CLUSTER_LOST,
                detail=detail,
                choice=choice,
                refused=refusals,
                restraint=_restraint(inputs, placement),
            )
        )
        return
    first = next((refusal for refusal in refusals if refusal.remedy), None)
    minimum = gang_placement.describe_minimum(placement_needs(inputs, placement))
    nor = f", nor for {minimum}" if minimum else ""
    hint = f"; {first.cluster}: {as_clause(first.message)} ({first.remedy})" if first is not None else ""
    working_plan.suppress(
        Suppressed(
            workload=placement.workload,
            reason=Reason.CLUSTER_LOST,
            message=f"{detail}, and no other cluster has room for all of it{nor}: it stays there{hint}",
            replicas=placement.replicas,
            until=finder.next_change(placement.workload),
            refusals=refusals,
        )
    )


def _restraint(inputs: PassInput, placement: Placement) -> Restraint | None:
    """Keep a burst off the cluster that it has left, until what may run there still has had time to go.

    A request that moves on stays where it is, and its record has no place for this.
    """
    if placement.workload.request:
        return None
    rest = max(inputs.desired.fleet.worker_lost_timeout, policy_of(inputs.desired, placement.workload).cool_down)
    return Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=placement.cluster,
        since=inputs.now,
        until=inputs.now + rest,
        reason=f"{placement.name} was moved away, and may still run there",
        placement=placement.name,
    )
