"""Replicas of an Adaptive WorkloadSpread that find no node in time: they go to another subset, in the order of those.

Where some have had no node for rescheduleCriticalSeconds, their subset's part of that cluster counts as unschedulable
for a while, and gets nothing; the ledger remembers it. Others that wait there beside them go with them. What has a node
there stays, also while it is starting, and nothing moves back afterwards. The last subset is never unschedulable.
Replicas that nobody else takes stay where they wait: OpenKruise would delete and make them anew
(docs/reference/workloadspread.md, "Adaptive").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.decide.assign.replicas_by_subset import share_out_by_subset as spread_out
from reconciler.core.decide.assign.share import Share
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import ended, moved
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import unseen
from reconciler.core.spread.placement_subset import site
from reconciler.core.workloads import replica_count
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Change, Reason, Resize, Revert, Suppressed, Why
from reconciler.model.units import format_duration
from reconciler.model.workload_spread import WorkloadSpread
from reconciler.text.wording import count, plain


def moving_on(working_plan: WorkingPlan, workload: WorkloadId, now: datetime) -> Counter[str]:
    """Count the replicas that this pass has taken away since they found no node, by where they waited.

    What is moved in one commit is not among them: it has its place.
    """
    found = Counter[str]()
    # Most workloads have no such restraint, so that the changes are looked through for few.
    if any(one.kind is RestraintKind.UNSCHEDULABLE and one.since == now for one in working_plan.restraints(workload)):
        for change in working_plan.changes:
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


def move_on_what_finds_no_node(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Take back what has waited for a node for too long, where another subset takes it.

    What goes to one other cluster whole is moved in one commit. Else it is taken away here, and shared out with what is
    missing in the same pass; all commits of a pass are pushed together.
    """
    for workload in inputs.reach.adaptive():
        demand, spread = inputs.demands.get(workload), inputs.desired.policies[workload].spread
        if spread is None or not isinstance(demand, Demand) or working_plan.cooling(workload) is not None:
            continue
        for placement in working_plan.of(workload):
            # What is not missing any more comes home in its own time, and is no reason to go anywhere else.
            if demand.deficit >= working_plan.replicas(workload):
                turn = _Turn(
                    inputs=inputs, working_plan=working_plan, finder=finder, demand=demand, placement=placement
                )
                turn.take(spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What is done about one placement."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    demand: Demand
    placement: Placement

    def take(self, spread: WorkloadSpread) -> None:
        """Take replicas that wait away, as many as another subset takes, and hold back what they waited for."""
        waiting, placement, desired = self._waiting(spread), self.placement, self.inputs.desired
        if not waiting or spread.reschedule is None:
            return
        template, policy = desired.templates[placement.workload], desired.policies[placement.workload]
        here, shape = site(placement, policy, desired.clusters), self.demand.shape or placement.shape
        # What moves on whole makes room for the GPR that begins; where some of it would stay, it does not.
        for gone in (1, 0) if waiting == placement.replicas else (0,):
            found = spread_out(self.finder, template, policy, shape, waiting, without=here, ended=gone)
            going = sum(share.replicas for share in found.shares)
            if going == waiting:
                break
        lasted = format_duration(spread.reschedule)
        detail = (
            f"{waiting} of {count(placement.replicas, 'replica')} on {plain(placement.where)} had no node for {lasted}"
        )
        if not going:
            self.working_plan.suppress(
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
            since=self.inputs.now,
            until=self.inputs.now + spread.recovery,
            reason=detail,
            placement=placement.name,
        )
        self.working_plan.change(self._change(found.shares, placement.replicas - going, detail, restraint))

    def _waiting(self, spread: WorkloadSpread) -> int:
        """Count the replicas that have had no node for too long; look again where they may come to."""
        inputs, placement = self.inputs, self.placement
        _, subset = site(placement, inputs.desired.policies[placement.workload], inputs.desired.clusters)
        seen = inputs.observed.clusters.get(placement.cluster)
        homeless = seen.homeless.get(placement.name) if seen is not None else None
        if not spread.gives_up(subset) or seen is None or homeless is None or homeless.since is None:
            return 0
        if unseen(inputs.desired.fleet, inputs.observed, placement.cluster, inputs.now):
            return 0
        # Pods that an engine has not taken away yet are no replicas any more.
        waiting = min(replica_count.waiting(placement, seen), placement.replicas - replica_count.bound(placement, seen))
        due = homeless.since + (spread.reschedule or timedelta())
        if waiting > 0 and due > inputs.now:
            self.working_plan.wake(due)
        return waiting if due <= inputs.now else 0

    def _change(self, shares: Sequence[Share], stays: int, detail: str, restraint: Restraint) -> Change:
        inputs, placement = self.inputs, self.placement
        if stays:
            after = lifecycle.renewed(placement, inputs.desired, inputs.now, stays)
            return Resize(before=placement, after=after, detail=detail, restraint=restraint)
        if len(shares) == 1:
            return moved(
                inputs,
                self.working_plan,
                self.finder,
                placement,
                offer=shares[0].offer,
                why=Why.FAILED,
                detail=detail,
                restraint=restraint,
            )
        return ended(inputs, placement, Why.FAILED, detail, restraint=restraint)
