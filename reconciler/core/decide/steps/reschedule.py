"""Reschedule: replicas of an Adaptive WorkloadSpread that find no node in time go to another subset, in their order.

Where replicas have had no node for rescheduleCriticalSeconds, their subset's part of that cluster counts as
unschedulable for a while and gets nothing; the ledger remembers that. Other replicas that wait there go with them.
Replicas with a node stay, also while they start, and nothing moves back afterwards. The last subset is never
unschedulable. Replicas that no other subset takes stay where they wait; OpenKruise would delete and recreate them
(docs/background/upstream/workloadspread.md, "Adaptive").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from reconciler.core.capacity.scalable_nodes import longest_delay
from reconciler.core.decide.assign.replicas_by_subset import assign_by_subset
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.gate import may_not_move
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import make_move, make_revert
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import unseen
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.core.workloads import replica_count
from reconciler.model.candidate import Candidate
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Change, EndReason, Reason, Resize, Revert, Suppressed
from reconciler.model.units import format_duration
from reconciler.text.wording import count, sanitize


def count_rescheduled(working_plan: WorkingPlan, workload: WorkloadId, now: datetime) -> Counter[str]:
    """Count the replicas that this pass has taken from where they found no node, by that cluster and subset.

    Replicas that move in one commit do not count: they have their place.
    """
    taken = Counter[str]()
    # Most workloads have no such restraint, so that the changes are looked through for few.
    if any(
        restraint.kind is RestraintKind.UNSCHEDULABLE and restraint.since == now
        for restraint in working_plan.restraints(workload)
    ):
        for change in working_plan.changes:
            match change:
                case Resize(before=before, after=after, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE)):
                    left, rest = before, after.replicas
                case Revert(placement=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE)):
                    rest = 0
                case _:
                    continue
            if left.workload == workload:
                taken[left.where] += left.replicas - rest
    return taken


def reschedule_unschedulable(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Take replicas from where they have waited for a node for too long, as far as another subset has room.

    A placement that goes whole to one other cluster moves in one commit. Other replicas are taken away here, and
    assigned with the missing ones in the same pass; all commits of a pass are pushed together.
    """
    for workload in inputs.reach.adaptive():
        working_plan.decide(workload, partial(_reschedule, inputs, working_plan, finder, workload))


def _reschedule(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> None:
    demand, spread = inputs.demands.get(workload), inputs.desired.policies[workload].spread
    if spread is None or not isinstance(demand, Demand) or working_plan.cooling(workload) is not None:
        return
    for placement in working_plan.of(workload):
        # Replicas that are no longer missing come home in their own time, and go nowhere else.
        if demand.missing >= working_plan.replicas(workload):
            step = _Reschedule(
                inputs=inputs, working_plan=working_plan, finder=finder, demand=demand, placement=placement
            )
            step.decide(spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reschedule:
    """The step for one placement."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    demand: Demand
    placement: Placement

    def decide(self, spread: WorkloadSpread) -> None:
        """Take as many waiting replicas away as other subsets have room for, and restrain the subset they leave."""
        waiting, placement, desired = self._count_overdue(spread), self.placement, self.inputs.desired
        if not waiting or spread.reschedule is None:
            return
        template, policy = desired.templates[placement.workload], desired.policies[placement.workload]
        here, shape = cluster_subset(placement, policy, desired.clusters), self.demand.shape or placement.shape
        # A placement that goes whole makes room for the GPR that begins; one that keeps replicas does not.
        for ended in (1, 0) if waiting == placement.replicas else (0,):
            assignment = assign_by_subset(self.finder, template, policy, shape, waiting, without=here, ended=ended)
            going = sum(candidate.replicas for candidate in assignment.chosen)
            if going == waiting:
                break
        if template.copy is not None and not (going == placement.replicas and len(assignment.chosen) == 1):
            going = 0  # a copy is not divided
        lasted = format_duration(spread.reschedule)
        replicas = count(placement.replicas, "replica")
        detail = f"{waiting} of {replicas} on {sanitize(placement.where)} had no node for {lasted}"
        if not going:
            self.working_plan.suppress(
                Suppressed(
                    workload=placement.workload,
                    reason=Reason.NO_CAPACITY,
                    message=f"{detail}, and no other subset has room",
                    replicas=waiting,
                    refusals=assignment.refusals,
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
        self.working_plan.change(self._change(assignment.chosen, placement.replicas - going, detail, restraint))

    def _count_overdue(self, spread: WorkloadSpread) -> int:
        """Count the replicas that have had no node for too long; wake when others will have."""
        inputs, placement = self.inputs, self.placement
        _, subset = cluster_subset(placement, inputs.desired.policies[placement.workload], inputs.desired.clusters)
        seen = inputs.observed.clusters.get(placement.cluster)
        pending_pods = seen.pending_pods.get(placement.name) if seen is not None else None
        if not spread.gives_up(subset) or seen is None or pending_pods is None or pending_pods.since is None:
            return 0
        if unseen(inputs.desired.fleet, inputs.observed, placement.cluster, inputs.now):
            return 0
        # Pods that the engine has yet to delete are no replicas any more.
        waiting = min(
            replica_count.pending_replicas(placement, seen),
            placement.replicas - replica_count.bound_replicas(placement, seen),
        )
        due = pending_pods.since + (spread.reschedule or timedelta())
        due += longest_delay(inputs.desired.clusters.get(placement.cluster))  # they may wait for a node
        if waiting > 0 and due > inputs.now:
            self.working_plan.wake(due)
        return waiting if due <= inputs.now else 0

    def _change(self, chosen: Sequence[Candidate], stays: int, detail: str, restraint: Restraint) -> Change:
        inputs, placement = self.inputs, self.placement
        if stays:
            after = lifecycle.resized_placement(placement, inputs.desired, inputs.now, stays)
            return Resize(before=placement, after=after, detail=detail, restraint=restraint)
        if len(chosen) == 1 and may_not_move(inputs, placement, chosen[0].cluster) is None:
            return make_move(
                inputs,
                self.working_plan,
                self.finder,
                placement,
                candidate=chosen[0]._replace(because=""),  # a move says where it goes, not how its subset fills
                why=EndReason.FAILED,
                detail=detail,
                restraint=restraint,
            )
        return make_revert(inputs, placement, EndReason.FAILED, detail, restraint=restraint)
