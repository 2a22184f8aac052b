"""Replicas assigned to the clusters of a workload by the distribution of its policy.

Translates candidates into the shares that `core.decide.distribution` divides, and its answer back into candidates and
refusals. Where a policy fills one cluster after the other, a cluster that is not needed is never assessed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign import replicas_by_subset, subset_order
from reconciler.core.decide.assign.assignment import NOT_RELEASED, Assignment, Released, refuse_beyond_gpr_limit
from reconciler.core.decide.assign.copies import assign_units
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.kind_answers import KindAnswers, share_of
from reconciler.core.decide.distribution import ClusterShare, Division, reachable, share_out
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy, StrategyName
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count, join_names


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
    # 1. Unit by unit, each whole to one cluster.
    if not unit.is_single:
        return assign_units(finder, template, policy, shape, replicas, unit=unit, released=released)
    # 2. Subset by subset, by its WorkloadSpread.
    if policy.spread is not None:
        return replicas_by_subset.assign_by_subset(finder, template, policy, shape, replicas, released=released)
    # 3. One cluster after the other.
    if policy.fills_in_order:
        return _fill(finder, template, policy, shape, replicas, released=released)
    # 4. Over several clusters at once, by the strategy of the policy.
    return _divide(finder, template, policy, shape, replicas, released=released)


def _assign_whole(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    *,
    released: Released,
) -> Assignment:
    """Assign all that a placement has released to the first cluster that has room for it."""
    refusals, replicas = list[Refusal](), released.replicas
    ended, closed = released.ended, released.closed
    for candidate in finder.find(
        template, policy, shape, replicas, refusals, ended=ended, closed=closed, together=True
    ):
        if candidate.key == released.place:
            continue
        if candidate.room >= replicas:
            return Assignment(chosen=(candidate.with_replicas(replicas),), refusals=tuple(refusals))
        refusals.append(_too_small(finder, candidate, shape, replicas))
    return Assignment(chosen=(), refusals=tuple(refusals))


def _too_small(finder: CandidateFinder, candidate: Candidate, shape: ReplicaShape, replicas: int) -> Refusal:
    """Refuse a cluster that has room for some replicas that move together, or may have some, but not all."""
    limited = candidate.limit is not None and candidate.fits > candidate.room
    verb = "may have" if limited else "has room for"
    more = " more" if limited else ""
    held = "" if limited else finder.describe_held(candidate.cluster, shape)
    return Refusal(
        cluster=candidate.cluster,
        subset=candidate.subset,
        reason=Reason.CLUSTER_LIMIT if limited else Reason.NO_CAPACITY,
        message=f"{verb} {candidate.room}{more} of {count(replicas, 'replica')}, which move together{held}",
        remedy="" if limited else "free or add nodes there",
    )


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
        whole = _assign_whole(finder, template, policy, shape, released=released)
        if whole.chosen:
            return whole
    refusals = list[Refusal]()
    candidates = finder.find(template, policy, shape, replicas, refusals, ended=released.ended, closed=released.closed)
    others = (candidate for candidate in candidates if candidate.key != released.place)
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
    answers = finder.answers(template, policy, shape, more_gprs=-released.ended)
    held = finder.held_by_cluster(template.workload)
    held[released.place[0]] -= released.replicas
    stays = {cluster: has for cluster, has in held.items() if has and cluster not in released.leaving}
    shut = {*released.leaving, *(name for name, _ in released.closed)}
    refusals = [*released.closed.values(), *(each for each in answers.refusals() if each.cluster not in shut)]
    closed = {released.place[0], *shut}
    while True:
        division = _division(answers, policy, stays, replicas, closed, lowered=bool(released.replicas))
        chosen = tuple(
            answers.able[cluster].with_replicas(
                division.counts[cluster] - stays.get(cluster, 0), choice_reason(division, answers.able[cluster], policy)
            )
            for cluster in sorted(division.because, key=answers.positions.__getitem__)
        )
        new = (candidate for candidate in chosen if not stays.get(candidate.cluster))
        beyond = refuse_beyond_gpr_limit(finder, template.workspace, new, ended=released.ended)
        if beyond is None:
            refusals += _left_out(division, policy)
            return Assignment(chosen=chosen, refusals=tuple(refusals), out_of_reach=_out_of_reach(division, policy))
        refusals.append(beyond[1])
        closed.add(beyond[1].cluster)


def _division(
    answers: KindAnswers,
    policy: BurstPolicy,
    held: Mapping[ClusterName, int],
    replicas: int,
    closed: Collection[ClusterName],
    *,
    lowered: bool,
) -> Division:
    """Divide over the clusters with room that are not closed, and over those that have replicas.

    Where a lower bound is out of reach, it may be `lowered` to what can be reached.
    """
    shares = answers.shares()
    if held or closed:
        shares = [share for share in shares if share.cluster not in held and share.cluster not in closed]
    reached = reachable(replicas, shares, policy.distribution) if answers.is_plain else len(shares)
    keeping = []
    for cluster in held.keys() & answers.positions.keys():
        taking = None if cluster in closed else answers.able.get(cluster)
        has, candidate = held[cluster], answers.candidates[answers.positions[cluster]]
        most = has + (0 if taking is None else taking.room)
        keeping.append(share_of(candidate, keeps=has, most=most, capacity=most))
    total = sum(held.values()) + replicas
    shares, beyond = [*shares[:reached], *keeping, *off_order(answers.candidates, held)], shares[reached:]
    division = share_out(total, shares, policy.distribution, beyond=beyond)
    if division.out_of_reach is None or not lowered:
        return division
    clusters, groups = division.out_of_reach
    within = replace(
        policy.distribution,
        min_clusters=min(policy.distribution.min_clusters, clusters),
        min_groups=min(policy.distribution.min_groups, groups),
    )
    return replace(share_out(total, shares, within, beyond=beyond), out_of_reach=division.out_of_reach)


def describe_distribution(policy: BurstPolicy) -> str:
    """Describe the distribution of a policy in one line; empty where it fills one cluster after the other."""
    if policy.spread is not None:
        return subset_order.describe_subset_order(policy, policy.spread)
    if policy.fills_in_order:
        return ""
    distribution = policy.distribution
    words = [f"{distribution.strategy} in tiers" if distribution.tiers else str(distribution.strategy)]
    words += [f"at least {count(least, 'cluster')}"] if (least := distribution.min_clusters) else []
    words += [f"at most {count(most, 'cluster')}"] if (most := distribution.max_clusters) is not None else []
    words += [f"at least {describe_label_values(least, policy)}"] if (least := distribution.min_groups) else []
    words += [f"at most {describe_label_values(most, policy)}"] if (most := distribution.max_groups) is not None else []
    return ", ".join(words)


def choice_reason(division: Division, candidate: Candidate, policy: BurstPolicy) -> str:
    """Return the words that speak for a cluster; empty where its rank alone does."""
    plain = (
        policy.distribution.strategy is StrategyName.ORDERED and division.counts[candidate.cluster] > candidate.least
    )
    return "" if plain else division.because[candidate.cluster]


def describe_label_values(number: int, policy: BurstPolicy) -> str:
    """Call so many values of the label that a policy spreads over."""
    return f"{count(number, 'value')} of {policy.distribution.spread_by}"


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


def off_order(
    candidates: Sequence[Candidate], held: Mapping[ClusterName, int], *, stay: bool = True
) -> list[ClusterShare]:
    """Make shares of clusters that have replicas and are no longer in the order: they come last and get no more."""
    named = {candidate.cluster for candidate in candidates}
    off = sorted(cluster for cluster in held if cluster not in named)
    return [
        ClusterShare(
            cluster=cluster,
            rank=len(candidates) + place,
            keeps=held[cluster] if stay else 0,
            most=held[cluster],
            capacity=held[cluster],
            weight=0,
        )
        for place, cluster in enumerate(off, start=1)
    ]


def _left_out(division: Division, policy: BurstPolicy) -> Iterator[Refusal]:
    """Refuse the clusters that have room and are beyond an upper bound of the policy, with that bound."""
    distribution = policy.distribution
    taken = [cluster for cluster, replicas in sorted(division.counts.items()) if replicas]
    for share in division.left_out:
        if not share.free:
            continue
        clusters, groups = distribution.max_clusters, distribution.max_groups
        if groups is None or (clusters is not None and len(taken) >= clusters):
            most, bound = count(clusters or 0, "cluster"), "maxClusters"
        else:
            most, bound = describe_label_values(groups, policy), "spreadConstraint.maxGroups"
        yield Refusal(
            cluster=share.cluster,
            reason=Reason.SPREAD_LIMIT,
            message=f"policy {policy.name} spreads over {most} at most: {join_names(taken)}",
            remedy=f"raise spec.distribution.{bound} of policy {policy.name}",
        )


def _out_of_reach(division: Division, policy: BurstPolicy) -> str:
    """Describe the lower bound of the policy that is out of reach; empty where none is."""
    if division.out_of_reach is None:
        return ""
    distribution, (clusters, groups) = policy.distribution, division.out_of_reach
    few = groups < distribution.min_groups
    bound = "spreadConstraint.minGroups" if few else "minClusters"
    least = (
        describe_label_values(distribution.min_groups, policy) if few else count(distribution.min_clusters, "cluster")
    )
    return (
        f"policy {policy.name} spreads over {least} at least, and only {groups if few else clusters} can be used:"
        f" until then each has one replica (free or add such clusters, or lower spec.distribution.{bound})"
    )
