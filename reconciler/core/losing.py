"""What runs in groups leaves a cluster that has been lost for too long, whole and in one commit.

A cluster is lost while it is out of sight or says that it is not well. Since when is this process's own record, as
MultiKueue has it (spread-and-groups.md, section 4): what git holds does not tell, and whoever has just been started may
be the one who has not looked yet. What has no groups stays, as it does on any cluster that merely cannot be seen.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.core import together
from reconciler.core.demand import unseen
from reconciler.core.ending import governing
from reconciler.core.grouping import gangs_of, needs_there
from reconciler.core.growth import Growth
from reconciler.core.moving import elsewhere_whole
from reconciler.core.situation import Lost, Situation
from reconciler.core.standing import Standing
from reconciler.core.wording import clause
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Move, Reason, Suppressed, Why
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration


def missed(before: Lost, desired: Desired, observed: Observed, now: datetime) -> Lost:
    """Note since when each cluster has been lost; one that is back is forgotten.

    One whose clock is ahead is there: it is compared with ours, and neither is known to be right.
    """
    found = {name: before.get(name, now) for name in sorted(desired.clusters) if _lost(name, desired, observed, now)}
    return before if found == before else found


def move_what_is_lost(situation: Situation, standing: Standing, growth: Growth) -> None:
    """Move what runs in groups off clusters that have been lost for longer than the Fleet's workerLostTimeout.

    What fits nowhere else as a whole stays where it is, and says so.
    """
    timeout = situation.desired.fleet.worker_lost_timeout
    for cluster, since in sorted(situation.lost.items()):
        due = since + timeout
        for placement in standing.on(cluster):
            if not gangs_of(situation, placement):
                continue
            if due > situation.now:
                standing.wake(due)
            else:
                _leave(situation, standing, growth, placement, _why(situation, cluster, since))


def _lost(name: ClusterName, desired: Desired, observed: Observed, now: datetime) -> bool:
    seen = observed.clusters.get(name)
    if seen is not None and seen.observed_at > now:
        return False
    return bool(unseen(desired.fleet, observed, name, now)) or seen is None or not seen.healthy


def _why(situation: Situation, cluster: ClusterName, since: datetime) -> str:
    seen = situation.observed.clusters.get(cluster)
    blind = unseen(situation.desired.fleet, situation.observed, cluster, situation.now)
    unwell = f"{cluster}: {clause(seen.message) or 'it reports itself unhealthy'}" if seen is not None else ""
    return f"{blind or unwell}, which has lasted for {format_duration(situation.now - since)}"


def _leave(situation: Situation, standing: Standing, growth: Growth, placement: Placement, detail: str) -> None:
    """Move a placement to the first other cluster that has room for all of it, in one change."""
    found, refusals = elsewhere_whole(situation, standing, growth, placement)
    if found is not None:
        after = found.placement
        choice = together.taken(growth, found.offer, found.needs, after.shape, after.workload, replicas=after.replicas)
        standing.change(
            Move(
                before=placement,
                after=after,
                why=Why.CLUSTER_LOST,
                detail=detail,
                choice=choice,
                refused=refusals,
                restraint=_restraint(situation, placement),
            )
        )
        return
    first = next((refusal for refusal in refusals if refusal.remedy), None)
    least = together.named(needs_there(situation, placement))
    nor = f", nor for {least}" if least else ""
    hint = f"; {first.cluster}: {clause(first.message)} ({first.remedy})" if first is not None else ""
    standing.suppress(
        Suppressed(
            workload=placement.workload,
            reason=Reason.CLUSTER_LOST,
            message=f"{detail}, and no other cluster has room for all of it{nor}: it stays there{hint}",
            replicas=placement.replicas,
            until=growth.next_change(placement.workload),
            refusals=refusals,
        )
    )


def _restraint(situation: Situation, placement: Placement) -> Restraint | None:
    """Keep a burst off the cluster that it has left, until what may run there still has had time to go.

    A request that moves on stays where it is, and its record has no place for this.
    """
    if placement.workload.request:
        return None
    rest = max(situation.desired.fleet.worker_lost_timeout, governing(situation.desired, placement.workload).cool_down)
    return Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=placement.cluster,
        since=situation.now,
        until=situation.now + rest,
        reason=f"{placement.name} was moved away, and may still run there",
        placement=placement.name,
    )
