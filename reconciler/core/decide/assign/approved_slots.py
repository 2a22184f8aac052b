"""Replicas that a person has approved: they go to the clusters and subsets that were shown, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign.assignment import NOT_RELEASED, Assignment, by_cluster
from reconciler.core.decide.assign.gang_placement import assign_set
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
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
