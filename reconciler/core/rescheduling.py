"""Replicas of an Adaptive WorkloadSpread that find no node in time: they go to another subset, in the order of those.

Where some have had no node for rescheduleCriticalSeconds, their subset's part of that cluster counts as unschedulable
for a while, and gets nothing; the ledger remembers it. Others that wait there beside them go with them. What has a node
there stays, also while it is starting, and nothing moves back afterwards. The last subset is never unschedulable.
Replicas that nobody else takes stay where they wait: OpenKruise would delete and make them anew (spread-and-groups.md,
section 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core import headcount, lifecycle
from reconciler.core.demand import unseen
from reconciler.core.ending import ended, moved
from reconciler.core.growth import Growth
from reconciler.core.seats import site
from reconciler.core.shares import Share
from reconciler.core.situation import Situation
from reconciler.core.spreading import spread as spread_out
from reconciler.core.standing import Standing
from reconciler.core.wording import count, plain
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Change, Reason, Resize, Revert, Suppressed, Why
from reconciler.model.units import format_duration
from reconciler.model.workloadspread import WorkloadSpread


def moving_on(standing: Standing, workload: WorkloadId, now: datetime) -> Counter[str]:
    """Count the replicas that this pass has taken away since they found no node, by where they waited.

    What is moved in one commit is not among them: it has its place.
    """
    found = Counter[str]()
    # Most workloads have no such restraint, so that the changes are looked through for few.
    if any(one.kind is RestraintKind.UNSCHEDULABLE and one.since == now for one in standing.restraints(workload)):
        for change in standing.changes:
            match change:
                case Resize(before=before, after=after, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE)):
                    left, rest = before, after.replicas
                case Revert(placement=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE)):
                    rest = 0
                case _:
                    continue
            if left.workload == workload:
                found[left.where] += left.replicas - rest
    return found


def move_on_what_finds_no_node(situation: Situation, standing: Standing, growth: Growth) -> None:
    """Take back what has waited for a node for too long, where another subset takes it.

    What goes to one other cluster whole is moved in one commit. Else it is taken away here, and shared out with what is
    missing in the same pass; all commits of a pass are pushed together.
    """
    for workload in situation.reach.adaptive():
        demand, spread = situation.demands.get(workload), situation.desired.policies[workload].spread
        if spread is None or not isinstance(demand, Demand) or standing.cooling(workload) is not None:
            continue
        for placement in standing.of(workload):
            # What is not missing any more comes home in its own time, and is no reason to go anywhere else.
            if demand.deficit >= standing.replicas(workload):
                turn = _Turn(situation=situation, standing=standing, growth=growth, demand=demand, placement=placement)
                turn.take(spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What is done about one placement."""

    situation: Situation
    standing: Standing
    growth: Growth
    demand: Demand
    placement: Placement

    def take(self, spread: WorkloadSpread) -> None:
        """Take replicas that wait away, as many as another subset takes, and hold back what they waited for."""
        waiting, placement, desired = self._waiting(spread), self.placement, self.situation.desired
        if not waiting or spread.reschedule is None:
            return
        template, policy = desired.templates[placement.workload], desired.policies[placement.workload]
        here, shape = site(placement, policy, desired.clusters), self.demand.shape or placement.shape
        found = spread_out(self.growth, template, policy, shape, waiting, without=here)
        going, lasted = sum(share.replicas for share in found.shares), format_duration(spread.reschedule)
        detail = (
            f"{waiting} of {count(placement.replicas, 'replica')} on {plain(placement.where)} had no node for {lasted}"
        )
        if not going:
            self.standing.suppress(
                Suppressed(
                    workload=placement.workload,
                    reason=Reason.NO_CAPACITY,
                    message=f"{detail}, and no other subset has room",
                    replicas=waiting,
                    refusals=found.refusals,
                )
            )
            return
        restraint = Restraint(
            kind=RestraintKind.UNSCHEDULABLE,
            cluster=placement.cluster,
            subset=here[1],
            since=self.situation.now,
            until=self.situation.now + spread.recovery,
            reason=detail,
            placement=placement.name,
        )
        self.standing.change(self._change(found.shares, placement.replicas - going, detail, restraint))

    def _waiting(self, spread: WorkloadSpread) -> int:
        """Count the replicas that have had no node for too long; look again where they may come to."""
        situation, placement = self.situation, self.placement
        _, subset = site(placement, situation.desired.policies[placement.workload], situation.desired.clusters)
        seen = situation.observed.clusters.get(placement.cluster)
        homeless = seen.homeless.get(placement.name) if seen is not None else None
        if not spread.gives_up(subset) or seen is None or homeless is None or homeless.since is None:
            return 0
        if unseen(situation.desired.fleet, situation.observed, placement.cluster, situation.now):
            return 0
        # Pods that an engine has not taken away yet are no replicas any more.
        waiting = min(headcount.waiting(placement, seen), placement.replicas - headcount.bound(placement, seen))
        due = homeless.since + (spread.reschedule or timedelta())
        if waiting > 0 and due > situation.now:
            self.standing.wake(due)
        return waiting if due <= situation.now else 0

    def _change(self, shares: Sequence[Share], stays: int, detail: str, restraint: Restraint) -> Change:
        situation, placement = self.situation, self.placement
        if stays:
            after = lifecycle.renewed(placement, situation.desired, situation.now, stays)
            return Resize(before=placement, after=after, detail=detail, restraint=restraint)
        if len(shares) == 1:
            return moved(
                situation,
                self.standing,
                self.growth,
                placement,
                offer=shares[0].offer,
                why=Why.FAILED,
                detail=detail,
                restraint=restraint,
            )
        return ended(situation, placement, Why.FAILED, detail, restraint=restraint)
