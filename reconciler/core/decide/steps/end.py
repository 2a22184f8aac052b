"""Placements that end, or leave, because of time or because of what people say in the fleet repository.

Whose placements are not as people allow them: on a cluster that they may not be on, or above a limit.

Nearly always nobody's, and the answer follows from the fleet repository and the output branch alone. So it is worked
out anew only where one of them has changed, and a pass in which nothing has changed looks at no placement for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer
from reconciler.core.decide.candidates.gang import whole
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.close_requests import astray, released
from reconciler.core.decide.steps.move import elsewhere, elsewhere_whole
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.placement_subset import site
from reconciler.core.spread.subset_pods import first_ordinal
from reconciler.core.workloads import replica_count
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import PlacementGroup, Placements
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Move, Reason, Refusal, Revert, Why
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.tree import Identity
from reconciler.model.units import format_duration


def overstepping(inputs: PassInput, working_plan: WorkingPlan) -> tuple[WorkloadId, ...]:
    """List the workloads, by name, whose placements may have to be moved or cut back, whatever is seen.

    A superset: what this pass has changed already is among them, and so is all that a WorkloadSpread governs, whose
    quotas depend on what runs on the primary cluster.
    """
    found = _LAST.of(inputs.desired, inputs.reach, inputs.ledger.placements)
    return tuple(sorted(workload for workload in {*found, *working_plan.altered()} if working_plan.of(workload)))


class _Overstepping:
    """What was found last, and of what, set at once for whoever asks meanwhile. Losing it costs time alone."""

    def __init__(self) -> None:
        self._last: tuple[ClusterOrder, Placements, frozenset[WorkloadId]] | None = None

    def of(self, desired: Desired, reach: ClusterOrder, placements: Placements) -> frozenset[WorkloadId]:
        touched, found = None, frozenset[WorkloadId]()
        if self._last is not None and self._last[0] is reach:
            touched, found = placements.touched_since(self._last[1]), self._last[2]
        if touched is None:
            found = frozenset(_among(placements.workloads(), desired, reach, placements))
        elif touched:
            found = found.difference(touched).union(_among(touched, desired, reach, placements))
        self._last = reach, placements, found
        return found


_LAST = _Overstepping()


def _among(
    workloads: Iterable[WorkloadId], desired: Desired, reach: ClusterOrder, placements: Placements
) -> Iterable[WorkloadId]:
    return (workload for workload in workloads if not _within(workload, placements.of(workload), desired, reach))


def _within(workload: WorkloadId, lent: PlacementGroup, desired: Desired, reach: ClusterOrder) -> bool:
    policy = desired.policies.get(workload)
    if policy is None or workload not in desired.templates or policy.spread is not None:
        return False
    if not lent.clusters <= reach.allowed(workload):
        return False
    tightest = reach.tightest(workload)
    return (policy.max_replicas is None or lent.replicas <= policy.max_replicas) and (
        tightest is None or lent.most <= tightest
    )


ABSENT = frozenset({Reason.UNKNOWN_CLUSTER, Reason.NOT_IN_POLICY})
"""Refusals that only say what is not there: while a file is broken, it may be what is in that file."""


def end_what_has_lapsed(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Revert every burst whose time is over, whether or not anything can be seen."""
    for placement in working_plan.lapsed():
        lasted = format_duration(placement.expires_at - placement.created_at)
        late = inputs.now - placement.expires_at
        overdue = f", {format_duration(late)} late" if late.total_seconds() >= 1 else ""
        revert(inputs, working_plan, placement, Why.EXPIRED, f"its {lasted} are over{overdue}")


def end_what_is_not_wanted(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Take back what people no longer ask for anywhere."""
    for workload in overstepping(inputs, working_plan):
        # 1. Nobody asks for it by name any more.
        if workload.request and workload not in inputs.desired.policies:
            gone = astray(inputs, working_plan, workload)
            for placement in working_plan.of(workload) if gone else ():
                revert(inputs, working_plan, placement, Why.POLICY, gone)
            continue
        # 2. Neither template nor policy: its absence counts only when every file could be read.
        missing = _missing(inputs.desired, workload)
        if missing and not inputs.desired.incomplete:
            for placement in working_plan.of(workload):
                revert(inputs, working_plan, placement, Why.POLICY, missing)


def move_what_may_not_stay(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move what is on a cluster that people no longer allow to another that has room.

    What nobody needs any more has been given back before: it is to end where it is.
    """
    for workload in overstepping(inputs, working_plan):
        if _missing(inputs.desired, workload):
            continue
        if working_plan.lent(workload).clusters <= inputs.reach.allowed(workload):
            continue
        for placement in working_plan.of(workload):
            refusal = inputs.reach.banned(workload, placement.cluster)
            if refusal is None or (refusal.reason in ABSENT and inputs.desired.incomplete):
                continue
            _move(inputs, working_plan, finder, placement, f"{placement.cluster}: {refusal.message}")


def revert(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, why: Why, detail: str) -> None:
    """End a placement, and keep its workload at home for the cool-down of its policy; a request goes on or ends."""
    working_plan.change(ended(inputs, placement, why, detail))
    if placement.workload.request:
        released(inputs, working_plan, placement, why, detail)


def ended(
    inputs: PassInput,
    placement: Placement,
    why: Why,
    detail: str,
    *,
    author: Identity | None = None,
    restraint: Restraint | None = None,
) -> Revert:
    """Make the end of a placement; without a `restraint` it leaves the cool-down of its policy."""
    policy = governing(inputs.desired, placement.workload)
    restraint = restraint or lifecycle.cool_down(placement, policy, why, inputs.now)
    seen = inputs.observed.clusters.get(placement.cluster)
    phase = lifecycle.final_phase(placement, replica_count.bound(placement, seen), why)
    return Revert(placement=placement, why=why, detail=detail, restraint=restraint, phase=phase, author=author)


def governing(desired: Desired, workload: WorkloadId) -> BurstPolicy:
    """Return a workload's policy, or the defaults for one that is gone and still has to be ended decently."""
    return desired.policies.get(workload) or BurstPolicy(name="")


def _move(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, placement: Placement, detail: str
) -> None:
    """Move a placement, whole, to the first cluster that takes it; end it where none does.

    Where the workload has a placement already, the two become one, and end when that one does: two placements there
    would deploy the same objects, and the end of one would take the other's away. A request goes to another of its
    clusters, or back to the queue where none has room, and keeps its end.
    """
    if placement.workload.request:
        _move_whole(inputs, working_plan, finder, placement, detail)
        return
    template, policy = inputs.desired.templates[placement.workload], governing(inputs.desired, placement.workload)
    if whole(inputs, placement.workload, placement) is not None:
        _move_whole(inputs, working_plan, finder, placement, detail)
        return
    offer, refusals = elsewhere(finder, template, policy, placement)
    if offer is None:
        revert(inputs, working_plan, placement, Why.POLICY, detail)
        return
    working_plan.change(
        moved(inputs, working_plan, finder, placement, offer=offer, why=Why.POLICY, detail=detail, refused=refusals)
    )


def moved(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    offer: Offer,
    why: Why,
    detail: str,
    refused: tuple[Refusal, ...] = (),
    restraint: Restraint | None = None,
) -> Move:
    """Make the move of a placement to the cluster of an offer, and take the room there."""
    policy, subset = governing(inputs.desired, placement.workload), offer.candidate.subset
    cluster = inputs.desired.clusters[offer.candidate.cluster]
    there = [one for one in working_plan.of(placement.workload) if one.cluster == cluster.name]
    if policy.spread is not None:
        there = [one for one in there if site(one, policy, inputs.desired.clusters) == offer.candidate.site]
    joined = next(iter(there), None)
    replicas = placement.replicas + (joined.replicas if joined else 0)
    name = lifecycle.placement_name(placement.workload, cluster.name, inputs.now, subset)
    after = replace(
        lifecycle.renewed(joined or placement, inputs.desired, inputs.now, replicas),
        name=joined.name if joined else name,
        cluster=cluster.name,
        engine=cluster.engine,
        subset=subset,
        first_ordinal=joined.first_ordinal if joined else first_ordinal(policy.spread, subset),
        shape=joined.shape if joined else offer.shape.recorded,
    )
    choice = finder.choice(offer, offer.shape, placement.workload.workspace)
    finder.rooms.take(cluster.name, offer.shape, placement.replicas)
    return Move(
        before=placement,
        after=after,
        joined=joined,
        why=why,
        detail=detail,
        choice=choice,
        refused=refused,
        restraint=restraint,
    )


def _move_whole(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, placement: Placement, detail: str
) -> None:
    """Move what goes whole, as requests do, to the first cluster that has room for all of it; end it where none has."""
    found, refusals = elsewhere_whole(inputs, working_plan, finder, placement)
    if found is None:
        revert(inputs, working_plan, placement, Why.POLICY, detail)
        return
    after = found.placement
    choice = gang_placement.taken(
        finder, found.offer, found.needs, after.shape, after.workload, replicas=after.replicas
    )
    change = Move(
        before=placement,
        after=after,
        why=Why.POLICY,
        detail=detail,
        choice=choice,
        refused=refusals,
    )
    working_plan.change(change)


def _missing(desired: Desired, workload: WorkloadId) -> str:
    """Say what of a workload people have taken out of the fleet repository."""
    if workload not in desired.templates:
        return f"template {workload} is no longer in the fleet repository"
    if workload not in desired.policies:
        return f"no policy lets {workload} burst any more"
    return ""
