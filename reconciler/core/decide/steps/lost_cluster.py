"""Lost clusters: bursts leave a cluster that has been lost for too long.

A cluster is lost while it is unseen or reports itself unhealthy. The moment since when is a record of this process
alone, as with MultiKueue (docs/background/upstream/groups.md, "MultiKueue"): git does not hold it, and a process that
has just started may be the one that has not looked yet.

Gangs go whole and in one commit, after the Fleet's workerLostTimeout. Replicas that run each for themselves go as far
as other clusters have room, and sooner: a second copy of them only serves more. What runs once and is no gang stays,
and so do requests without gangs.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import LostClusters, PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.relocate import relocate
from reconciler.core.decide.steps.transfer import CLUSTER_LOST, Departure
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import unseen
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import SERVING_LOST_TIMEOUT, Desired
from reconciler.model.units import format_duration
from reconciler.text.wording import as_clause


def lost_since(before: LostClusters, desired: Desired, observed: Observed, now: datetime) -> LostClusters:
    """Return since when each cluster has been lost; a cluster that is back is left out.

    A cluster whose clock is ahead of this process is seen: neither clock is known to be right.
    """
    lost = {name: before.get(name, now) for name in sorted(desired.clusters) if _lost(name, desired, observed, now)}
    return before if lost == before else lost


def leave_lost_clusters(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move bursts off clusters that have been lost for longer than their timeout.

    What fits on no other cluster stays, and is suppressed with the reason.
    """
    for cluster, since in sorted(inputs.lost.items()):
        for placement in working_plan.on(cluster):
            step = partial(_leave_when_due, inputs, working_plan, finder, placement, since=since)
            working_plan.decide(placement.workload, step)


def lost_timeout(inputs: PassInput, placement: Placement) -> timedelta | None:
    """Return how long the cluster of a placement may be lost before it leaves; None where it stays.

    The policy's timeout goes before the Fleet's.
    """
    policy = inputs.desired.policies.get(placement.workload)
    if policy is None:
        return None
    own = policy.worker_lost_timeout
    unit = unit_of_workload(inputs, placement.workload, placement)
    if unit.groups(placement.replicas):
        return own or inputs.desired.fleet.worker_lost_timeout
    return None if unit.apart else own or SERVING_LOST_TIMEOUT


def _leave_when_due(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    since: datetime,
) -> None:
    timeout = lost_timeout(inputs, placement)
    if timeout is None:
        return
    if since + timeout > inputs.now:
        working_plan.wake(since + timeout)
        return
    # Nothing new goes there until its old pods have had time to end.
    rest = max(timeout, inputs.desired.policies[placement.workload].cool_down)
    reason = f"{placement.name} was moved away, and may still run there"
    departure = Departure(
        placement=placement,
        replicas=placement.replicas,
        cause=CLUSTER_LOST,
        detail=_describe_loss(inputs, placement.cluster),
        restraint=lifecycle.move_restraint(placement, inputs.now, reason=reason, rest=rest),
    )
    relocate(inputs, working_plan, finder, departure)


def _lost(name: ClusterName, desired: Desired, observed: Observed, now: datetime) -> bool:
    seen = observed.clusters.get(name)
    if seen is not None and seen.observed_at > now:
        return False
    return bool(unseen(desired.fleet, observed, name, now)) or seen is None or not seen.healthy


def _describe_loss(inputs: PassInput, cluster: ClusterName) -> str:
    seen = inputs.observed.clusters.get(cluster)
    blind = unseen(inputs.desired.fleet, inputs.observed, cluster, inputs.now)
    unwell = f"{cluster}: {as_clause(seen.message) or 'it reports itself unhealthy'}" if seen is not None else ""
    return f"{blind or unwell}, which has lasted for {format_duration(inputs.now - inputs.lost[cluster])}"
