"""Replicas that a person has approved: they go to the clusters and subsets that were shown, all of them or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign.assignment import NOT_RELEASED, Assignment, by_cluster
from reconciler.core.decide.assign.bounds import left_out, off_order, out_of_reach
from reconciler.core.decide.assign.gang_placement import assign_set
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.distribution import ClusterShare, share_out
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy, StrategyName
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count

_APPROVED = "approved there"
_UNAPPROVED = "nobody has approved the burst there"


def assign_approved(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    replicas: int,
    *,
    unit: PlacementUnit,
) -> Assignment:
    """Assign what was shown to its clusters and subsets, or nothing where one of these refuses, with their refusals.

    A set goes to the cluster that was shown with all `replicas`.
    """
    if unit.is_set:
        return _assign_set(finder, template.workload, shape, replicas, unit=unit)
    order = {candidate.key: candidate for candidate in finder.order(template.workload)}
    answers: list[Candidate | Refusal] = []
    begun = 0
    for shown in unit.shown or ():
        candidate = order.get((shown.cluster, shown.subset))
        if candidate is None:
            message = f"policy {policy.name} does not burst there any more"
            answers.append(
                Refusal(cluster=shown.cluster, subset=shown.subset, reason=Reason.NOT_IN_POLICY, message=message)
            )
            continue
        answer = finder.assess(template, policy, shape, candidate, shown.replicas, more_gprs=begun)
        begun += not shown.beside
        answers.append(answer if isinstance(answer, Refusal) else answer.with_replicas(shown.replicas, _APPROVED))
    answers = _assess_beside(finder, template.workload, answers)
    answers = [*answers, *_refuse_beyond_bounds(finder, template.workload, policy, answers, unit=unit)]
    refusals = tuple(answer for answer in answers if isinstance(answer, Refusal))
    chosen = () if refusals else tuple(answer for answer in answers if isinstance(answer, Candidate))
    return Assignment(chosen=chosen, refusals=refusals)


def _assign_set(
    finder: CandidateFinder, workload: WorkloadId, shape: ReplicaShape, replicas: int, *, unit: PlacementUnit
) -> Assignment:
    """Close all clusters but the one that was shown."""
    shown = {placement.cluster for placement in unit.shown or ()}
    closed = {
        candidate.key: Refusal(cluster=candidate.cluster, reason=Reason.AWAITING_APPROVAL, message=_UNAPPROVED)
        for candidate in finder.order(workload)
        if candidate.cluster not in shown
    }
    released = replace(NOT_RELEASED, closed=closed)
    assignment = assign_set(finder, workload, shape, replicas, unit=unit, released=released)
    if assignment.chosen:
        return assignment
    return replace(assignment, refusals=tuple(each for each in assignment.refusals if each.cluster in shown))


def _refuse_beyond_bounds(
    finder: CandidateFinder,
    workload: WorkloadId,
    policy: BurstPolicy,
    answers: Sequence[Candidate | Refusal],
    *,
    unit: PlacementUnit,
) -> Iterator[Refusal]:
    """Refuse what was shown where the bounds of the policy, as labels and files are now, do not allow all of it.

    Its units are divided over the clusters that were shown, beside those that stand. Where that is not what was shown,
    an upper bound leaves a cluster out, or a lower one is out of reach.
    """
    chosen = [answer for answer in answers if isinstance(answer, Candidate)]
    if not policy.distribution.is_bounded or len(chosen) < len(answers):
        return
    order, each = finder.order(workload), replace(unit, shown=None)
    held, more = Counter[ClusterName](), Counter[ClusterName]()
    for (cluster, _), replicas in finder.held(workload).items():
        held[cluster] += each.units(replicas)
    for candidate in chosen:
        more[candidate.cluster] += each.units(candidate.replicas)
    after = held + more
    shares = [
        ClusterShare(
            cluster=cluster,
            rank=candidate.rank,
            most=after[cluster],
            capacity=after[cluster],
            keeps=held[cluster],
            groups=candidate.groups,
        )
        for candidate in order
        if after[cluster := candidate.cluster]
    ]
    bounds = replace(policy.distribution, strategy=StrategyName.ORDERED, tiers=False)
    division = share_out(after.total(), [*shares, *off_order(order, held)], bounds)
    if division.counts == after:
        return
    yield from left_out(division, policy)
    unreached = out_of_reach(division, policy, each="one copy" if unit.whole else "one replica")
    if unreached:
        yield Refusal(cluster=chosen[0].cluster, subset=chosen[0].subset, reason=Reason.SPREAD_LIMIT, message=unreached)


def _assess_beside(
    finder: CandidateFinder, workload: WorkloadId, answers: Sequence[Candidate | Refusal]
) -> list[Candidate | Refusal]:
    """Refuse the candidates that have no room for their replicas beside the others of their cluster."""
    refused = dict[ClusterSubset, Refusal]()
    for cluster, here in by_cluster(answer for answer in answers if isinstance(answer, Candidate)).items():
        left = finder.capacity.room(cluster, workload.workspace).copy()
        for place, candidate in enumerate(tightest_first(left, here, attrgetter("shape"))):
            replicas = candidate.replicas
            room = min(candidate.room, left.count(candidate.shape, MOST)) if place else candidate.room
            left.take(candidate.shape, replicas)
            answer = finder.assess_domains(workload, candidate, replicas)
            if room < replicas:
                message = f"has room for {room} of {count(replicas, 'replica')}"
                answer = Refusal(cluster=cluster, subset=candidate.subset, reason=Reason.NO_CAPACITY, message=message)
            if isinstance(answer, Refusal):
                refused[candidate.key] = answer
    return [answer if isinstance(answer, Refusal) else refused.get(answer.key, answer) for answer in answers]
