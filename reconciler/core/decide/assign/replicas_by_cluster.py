"""Replicas assigned to the clusters of a workload by the distribution of its policy.

Translates candidates into the shares that `core.decide.distribution` divides, and its answer back into candidates and
refusals. Where a policy fills one cluster after the other, a cluster that is not needed is never assessed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign import replicas_by_subset, subset_order
from reconciler.core.decide.assign.approved_slots import assign_approved
from reconciler.core.decide.assign.assignment import NOT_RELEASED, Assignment, Released, assign_within_gpr_limit
from reconciler.core.decide.assign.bounds import (
    describe_label_values,
    divide_in_reach,
    left_out,
    off_order,
    out_of_reach,
)
from reconciler.core.decide.assign.copies import assess_unit, assign_units
from reconciler.core.decide.assign.gang_placement import assess, assess_missing, assign_set
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.kind_answers import KindAnswers, share_of
from reconciler.core.decide.distribution import Division, reachable
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count


def assign(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    replicas: int,
    *,
    unit: PlacementUnit,
    released: Released = NOT_RELEASED,
) -> Assignment:
    """Assign replicas to the clusters of a workload: missing ones, or those that a placement has `released`.

    Replicas that stay where they are count for the shares and the bounds of the policy, those that leave do not.
    """
    # 1. As it was approved.
    if unit.shown is not None:
        return assign_approved(finder, template, policy, shape, replicas, unit=unit)
    # 2. A set, all to one cluster.
    if unit.is_set:
        return assign_set(finder, template.workload, shape, replicas, unit=unit, released=released)
    # 3. Unit by unit, each whole to one cluster.
    if not unit.is_single:
        return assign_units(finder, template, policy, shape, replicas, unit=unit, released=released)
    # 4. Subset by subset, by its WorkloadSpread.
    if policy.subsets:
        return replicas_by_subset.assign_by_subset(finder, template, policy, shape, replicas, released=released)
    # 5. One cluster after the other.
    if policy.fills_in_order and released.returns is None:
        return _fill(finder, template, policy, shape, replicas, released=released)
    # 6. Over several clusters at once, by the strategy of the policy.
    return _divide(finder, template, policy, shape, replicas, released=released)


def assess_alone(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    candidate: Candidate,
    *,
    unit: PlacementUnit,
    missing: int,
) -> Candidate | Refusal:
    """Return a candidate with what it would take of missing replicas if it was the only one, or why it takes none.

    Where none is missing, it is asked for one unit.
    """
    if unit.gang is not None and unit.apart:
        inputs, workload = finder.inputs, template.workload
        return assess(inputs, finder, workload, candidate, unit.gang, replicas=unit.size, least=True)
    if unit.gang is not None and unit.is_set and not unit.unknown:
        return assess_missing(
            finder.inputs, finder, template.workload, candidate, unit.gang, missing=missing, least=True
        )
    if unit.whole:
        size = unit.replicas(max(missing, 1))
        return assess_unit(finder, template, policy, shape, candidate, unit=unit, size=size)
    return finder.assess(template, policy, shape, candidate, MOST)


def _fill(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    replicas: int,
    *,
    released: Released,
) -> Assignment:
    """Fill one cluster after the other. Replicas that a placement has released go to one cluster where one has room."""
    if released.ends:
        together = PlacementUnit().together(replicas)
        whole = assign_units(finder, template, policy, shape, replicas, unit=together, released=released)
        if whole.chosen:
            return whole
    refusals = list[Refusal]()
    candidates = finder.find(template, policy, shape, replicas, refusals, ended=released.ends, closed=released.closed)
    others = (candidate for candidate in candidates if candidate.key not in released.left)
    return Assignment(chosen=tuple(_in_order(replicas, others)), refusals=tuple(refusals))


def _divide(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    replicas: int,
    *,
    released: Released,
) -> Assignment:
    """Divide over all clusters that have room, again without each whose GPR would be too many for the workspace.

    Where a lower bound of the policy is out of reach, missing replicas wait for it, one for each cluster or value that
    can be used; replicas that leave a cluster go where there is room, since they have served already.
    """
    answers = finder.answers(template, policy, shape, more_gprs=-released.ends)
    held = finder.held(template.workload)
    has = released.staying(held)
    shut = {*released.leaving, *(name for name, _ in released.closed)}
    refusals = [*released.closed.values(), *(each for each in answers.refusals() if each.cluster not in shut)]
    closed = {*(name for name, _ in released.left), *shut}

    def divide(beyond: Sequence[Refusal]) -> Assignment:
        kept_off = {*closed, *(refusal.cluster for refusal in beyond)}
        division = _division(answers, policy, has, replicas, kept_off, released=released)
        counts: dict[ClusterSubset, int] = {(cluster, ""): number for cluster, number in division.counts.items()}
        chosen = tuple(
            answers.able[cluster].with_replicas(
                division.counts[cluster] - has.get(cluster, 0), choice_reason(division, answers.able[cluster], policy)
            )
            for cluster in sorted(division.because, key=answers.positions.__getitem__)
            if division.counts[cluster] > has.get(cluster, 0)
        )
        told = (*refusals, *beyond, *left_out(division, policy))
        return Assignment(chosen=chosen, refusals=told, out_of_reach=out_of_reach(division, policy), counts=counts)

    return assign_within_gpr_limit(finder, template.workload, divide, released=released)


def _division(
    answers: KindAnswers,
    policy: BurstPolicy,
    held: Mapping[ClusterName, int],
    replicas: int,
    closed: Collection[ClusterName],
    *,
    released: Released,
) -> Division:
    """Divide over the clusters with room that are not closed, and over those that have replicas.

    Where a lower bound is out of reach, it is lowered for released replicas that may not go back.
    """
    shares, returns, apart = answers.shares(), released.returns is not None, {*held, *closed}
    if apart:
        shares = [share for share in shares if share.cluster not in apart]
    reached = reachable(replicas, shares, policy.distribution) if answers.is_plain else len(shares)
    refused = {refusal.cluster: refusal for refusal in answers.refusals()} if returns else {}
    own = [] if returns else off_order(answers.candidates, held)
    for cluster in held.keys() & answers.positions.keys():
        able, candidate = answers.able.get(cluster), answers.candidates[answers.positions[cluster]]
        room = 0 if able is None or cluster in closed else able.room
        keeps, most = released.bounds_of(candidate.key, held[cluster], room, refused.get(cluster))
        own.append(share_of(candidate, keeps=keeps, most=most, capacity=most))
    total = sum(share.keeps for share in own) + replicas
    shares, beyond = [*shares[:reached], *own], shares[reached:]
    lowered = bool(released.replicas) and not returns
    return divide_in_reach(total, shares, policy.distribution, lowered=lowered, beyond=beyond)


def describe_distribution(policy: BurstPolicy) -> str:
    """Describe the distribution of a policy in one line; empty where it fills one cluster after the other."""
    if policy.subsets:
        return subset_order.describe_subset_order(policy)
    if policy.fills_in_order:
        return ""
    distribution = policy.distribution
    words = [f"{distribution.strategy} in tiers" if distribution.tiers else str(distribution.strategy)]
    words += [f"at least {count(least, 'cluster')}"] if (least := distribution.min_clusters) else []
    words += [f"at most {count(most, 'cluster')}"] if (most := distribution.max_clusters) is not None else []
    for bound in distribution.spread_constraints:
        words += [f"at least {describe_label_values(bound.min_groups, bound)}"] if bound.min_groups else []
        words += [f"at most {describe_label_values(most, bound)}"] if (most := bound.max_groups) is not None else []
    return ", ".join(words)


def choice_reason(division: Division, candidate: Candidate, policy: BurstPolicy) -> str:
    """Return the words that speak for a cluster; empty where its rank alone does."""
    plain = policy.distribution.traits.fills_in_order and division.counts[candidate.cluster] > candidate.least
    return "" if plain else division.because[candidate.cluster]


def _in_order(missing: int, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Fill the clusters one after the other, each as far as it goes."""
    if missing <= 0:
        return
    for candidate in candidates:
        replicas = min(missing, candidate.room)
        if replicas:
            yield candidate.with_replicas(replicas)
            missing -= replicas
        if not missing:
            return
