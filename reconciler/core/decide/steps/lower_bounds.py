"""Lower bounds: a workload that has come to have too few clusters or values of a label gets some again.

A loss may leave one region where the policy wants two. As soon as another can be used, as many units move there as the
bounds need, and no more (docs/how-to/spread.md, "How many clusters, regions and zones"). Where `maxClusters` allows no
more clusters, one is given up for it. Until then it is told.

An upper bound that a changed label or file has left behind is told as well: what runs stays (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.decide.assign.bounds import describe_label_values, unmet_bound
from reconciler.core.decide.assign.surplus import take_surplus
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.distribution import reached
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.relocate import relocate
from reconciler.core.decide.steps.transfer import BOUND_UNMET, Departure
from reconciler.core.ledger import lifecycle
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal, Suppressed
from reconciler.text.wording import count


def restore_lower_bounds(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move replicas to as many more clusters, and values of the label, as their policy wants and can be used."""
    for workload in inputs.reach.with_bounds():
        working_plan.decide(workload, partial(_restore, inputs, working_plan, finder, workload))


def tell_unmet_bounds(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Suppress what this pass leaves with fewer clusters or values of a label than its policy wants, or with too many.

    It is told for as long as it is so, whatever keeps it from being restored: the budget of moves, a hold, a surplus
    that is about to come home, or a primary that is unseen.
    """
    told = working_plan.told(Reason.BOUND_UNMET)
    for workload in inputs.reach.with_bounds():
        if workload not in told:
            working_plan.decide(workload, partial(_tell, inputs, working_plan, finder, workload))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unmet:
    """A lower bound that the replicas of a workload do not reach."""

    held: Mapping[ClusterName, tuple[str, ...]]
    """The clusters with replicas, each with its values of the labels; none where the policy no longer names it."""
    labels: tuple[int, ...]
    """The labels of which values are missing, by their index; empty where clusters alone are."""
    lacking: int
    """How many clusters or values are missing, of the bound that is furthest from being met."""
    detail: str

    def is_met_by(self, candidate: Candidate) -> bool:
        """Return whether replicas on a cluster bring the bound nearer."""
        if candidate.cluster in self.held:
            return False
        held = [values for values in self.held.values() if values]
        new = (candidate.groups[index] not in {values[index] for values in held} for index in self.labels)
        return any(new) if self.labels else True


def _unmet(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId
) -> _Unmet | None:
    total = _units(inputs, working_plan, workload)
    if total <= 1:
        return None
    policy = inputs.desired.policies[workload]
    held = _held_groups(finder, workload)
    has = reached(held.values(), policy.distribution)
    lacking = has.lacking(policy.distribution, total)
    if not any(lacking):
        return None
    unmet = unmet_bound(has, policy, total)
    return _Unmet(
        held=held,
        labels=tuple(index for index, number in enumerate(lacking[1:]) if number),
        lacking=max(lacking),
        detail=f"{unmet.wanted}, and it has {unmet.has}",
    )


def _units(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> int:
    """Count the units that are placed, each of which one cluster has."""
    unit = unit_of_workload(inputs, workload)
    return sum(unit.units(placement.replicas) for placement in working_plan.of(workload))


def _restore(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> None:
    unmet = _unmet(inputs, working_plan, finder, workload)
    if unmet is None:
        return
    # 1. Where values of a label are missing, only clusters with another one help.
    helps = frozenset(candidate.key for candidate in finder.order(workload) if unmet.is_met_by(candidate))
    # 2. No more clusters may have any: all replicas of some go, in part to the others that have some.
    given_up = _given_up_clusters(inputs, finder, workload, unmet)
    for placement in working_plan.of(workload):
        if placement.cluster in given_up:
            departure = _departure(inputs, placement, placement.replicas, unmet.detail)
            relocate(inputs, working_plan, finder, replace(departure, towards=helps))
    if given_up:
        return
    # 3. Units go that would be given back first, one for each that is missing.
    message = (
        f"has replicas of it, and policy {inputs.desired.policies[workload].name} wants others to have some as well"
    )
    closed = {
        candidate.key: Refusal(cluster=candidate.cluster, reason=Reason.BOUND_UNMET, message=message)
        for candidate in finder.order(workload)
        if candidate.key not in helps
    }
    for placement, replicas in _leaving_units(inputs, working_plan, workload, unmet.lacking):
        departure = _departure(inputs, placement, replicas, unmet.detail)
        relocate(inputs, working_plan, finder, replace(departure, closed=closed))


def _given_up_clusters(
    inputs: PassInput, finder: CandidateFinder, workload: WorkloadId, unmet: _Unmet
) -> frozenset[ClusterName]:
    """Name the clusters in whose place others have to come, since the policy allows no more of them.

    They are those with the fewest replicas, and of equal ones the last in the order; others keep their values.
    """
    most = inputs.desired.policies[workload].distribution.max_clusters
    above = 0 if most is None else len(unmet.held) + unmet.lacking - most
    replicas, left = finder.held(workload), dict(unmet.held)
    ranks = {candidate.cluster: candidate.rank for candidate in finder.order(workload)}
    for cluster in sorted(unmet.held, key=lambda name: (replicas[name, ""], -ranks.get(name, 0), name)):
        others = [values for name, values in left.items() if name != cluster]
        values = enumerate(unmet.held[cluster])
        known = all(value in {other[index] for other in others if other} for index, value in values)
        if above > 0 and others and known:
            del left[cluster]
            above -= 1
    return frozenset(unmet.held.keys() - left.keys())


def _leaving_units(
    inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, units: int
) -> Iterator[tuple[Placement, int]]:
    """Yield the placements that lose a number of units, with their replicas, in the order of giving back."""
    unit, placements = unit_of_workload(inputs, workload), working_plan.of(workload)
    largest = max(placement.replicas // unit.units(placement.replicas) for placement in placements)
    for placement, rest, _ in take_surplus(inputs, working_plan, units * largest, placements, partly=False):
        going = placement.replicas - rest
        if units <= 0:
            return
        units -= unit.units(going)
        yield placement, going


def _tell(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> None:
    unmet = _unmet(inputs, working_plan, finder, workload)
    number, message = _exceeded(inputs, finder, workload) if unmet is None else (unmet.lacking, unmet.detail)
    if message:
        working_plan.suppress(
            Suppressed(workload=workload, reason=Reason.BOUND_UNMET, message=message, replicas=number)
        )


def _exceeded(inputs: PassInput, finder: CandidateFinder, workload: WorkloadId) -> tuple[int, str]:
    """Return by how much a workload has more clusters or values than its policy allows, and which; empty for none."""
    policy = inputs.desired.policies[workload]
    distribution = policy.distribution
    has = reached(_held_groups(finder, workload).values(), distribution)
    bounds = [(has.clusters, distribution.max_clusters, count(distribution.max_clusters or 0, "cluster"))]
    for groups, bound in zip(has.groups, distribution.spread_constraints, strict=True):
        bounds.append((groups, bound.max_groups, describe_label_values(bound.max_groups or 0, bound)))
    for number, most, allowed in bounds:
        if most is not None and number > most:
            stays = "what runs stays: `overspill revert` ends what is too much"
            return number - most, f"policy {policy.name} spreads over {allowed} at most, and it has {number} ({stays})"
    return 0, ""


def _held_groups(finder: CandidateFinder, workload: WorkloadId) -> dict[ClusterName, tuple[str, ...]]:
    """Return the clusters with replicas, each with its values of the labels; none where the policy names it no more."""
    groups = {candidate.cluster: candidate.groups for candidate in finder.order(workload)}
    return {cluster: groups.get(cluster, ()) for cluster, _ in finder.held(workload)}


def _departure(inputs: PassInput, placement: Placement, replicas: int, detail: str) -> Departure:
    return Departure(
        placement=placement,
        replicas=replicas,
        cause=BOUND_UNMET,
        detail=detail,
        restraint=lifecycle.move_restraint(placement, inputs.now),
    )
