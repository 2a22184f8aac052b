"""Gangs on one cluster: whether it has room for all pods, and the room that they take.

A gang with a minimum goes where all of it has room; where there is no such cluster, to one with room for the minimum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from reconciler.core.capacity.gangs import GangWorkload, additional_requirements
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.capacity.shared_topology import (
    count_groups,
    describe_shared_domains,
)
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign.assignment import Assignment, Released, SetPods
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.gang_fit import gang_refusal
from reconciler.core.decide.candidates.gang_start import may_start, start
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.cluster_order import candidate_of
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.plan import Choice, Reason, Refusal
from reconciler.text.wording import count, join_names

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class RoomQuery(Protocol[_T_co]):
    """Asks one candidate whether it has room for a gang."""

    def __call__(self, candidate: Candidate, *, least: bool) -> _T_co | Refusal:
        """Answer for the whole gang or, at `least`, for its minimum."""


def describe_minimum(need: PodRequirements | None) -> str:
    """Name the minimum of a gang that has one; empty where the whole gang has to fit."""
    return f"its minimum of {need.start} of {count(need.pods, 'pod')}" if need is not None and may_start(need) else ""


def with_room(
    need: PodRequirements | None, candidates: Iterable[Candidate], ask: RoomQuery[_T], refusals: list[Refusal]
) -> Iterator[_T]:
    """Yield the answers of the candidates with room for the whole gang, then of others with room for its minimum.

    What is yielded may take its room before the next candidate is asked. `refusals` are made those of the round so far.
    """
    left = list(candidates)
    for least in (False, True) if need is not None and may_start(need) else (False,):
        asked, left = left, []
        refusals.clear()
        for candidate in asked:
            answer = ask(candidate, least=least)
            if isinstance(answer, Refusal):
                refusals.append(answer)
                left.append(candidate)
            else:
                yield answer


def fit_gang(
    inputs: PassInput,
    finder: CandidateFinder,
    workspace: WorkspaceName,
    candidate: Candidate,
    need: PodRequirements,
    *,
    least: bool = False,
) -> Candidate | Refusal:
    """Return a candidate that has room for the whole gang, or at `least` for its minimum; else why it has none.

    The candidate has been assessed for the main pods of the gang. One with room for the minimum alone has the pods that
    `start` there.
    """
    too_small = gang_refusal(inputs, finder.capacity, workspace, candidate, need)
    if too_small is None and need.shared:
        return candidate._replace(because=describe_shared_domains(need.shared))
    if too_small is None or not least or not may_start(need):
        return too_small or candidate
    gang_start = start(finder.capacity.room(candidate.cluster, workspace), need)
    if gang_start is not None:
        return candidate._replace(start=gang_start.fits, because=gang_start.describe())
    return replace(too_small, message=f"{too_small.message}, and none for {describe_minimum(need)}")


def assess(
    inputs: PassInput,
    finder: CandidateFinder,
    workload: WorkloadId,
    candidate: Candidate,
    whole: GangWorkload,
    *,
    replicas: int,
    placed: PodRequirements | None = None,
    more_gprs: int = 0,
    least: bool = False,
) -> Candidate | Refusal:
    """Say whether a candidate has room for so many replicas of a gang, or why not; the pods `placed` have theirs.

    `more_gprs` are the placements that begin beside it, less those that end. At `least` the minimum of a gang will do.
    """
    template, policy = inputs.desired.templates[workload], inputs.desired.policies[workload]
    if candidate.limit is not None and replicas > candidate.limit:
        return Refusal(
            cluster=candidate.cluster,
            reason=Reason.CLUSTER_LIMIT,
            message=f"may have {count(candidate.limit, 'replica')} at most, and all {replicas} go together",
            remedy=f"raise its maxReplicas in policy {policy.name}",
        )
    if whole.unknown:
        return Refusal(cluster=candidate.cluster, reason=Reason.NO_SHAPE, message=whole.unknown, remedy=whole.remedy)
    need = whole.on(inputs.observed.clusters.get(candidate.cluster)).of(replicas)
    if placed is not None:
        need = additional_requirements(need, placed)
    pods, unbound = max(1, need.main.replicas), candidate._replace(limit=None)
    answer = finder.assess(template, policy, need.main.shape, unbound, pods, more_gprs=more_gprs, whole=replicas)
    if isinstance(answer, Candidate):
        answer = fit_gang(inputs, finder, workload.workspace, answer, need, least=least)
    return answer if isinstance(answer, Refusal) else answer._replace(limit=candidate.limit, room=replicas)


def first_within_limit(
    inputs: PassInput,
    finder: CandidateFinder,
    workload: WorkloadId,
    candidates: Iterable[Candidate],
    whole: GangWorkload,
    *,
    missing: int,
) -> Candidate | None:
    """Return the cluster whose limit allows most groups and that has room for these, where none takes all of them."""
    limited = [
        (candidate.limit, candidate)
        for candidate in candidates
        if candidate.limit is not None and 0 < candidate.limit < missing
    ]
    for limit, candidate in sorted(limited, key=lambda pair: -pair[0]):
        answer = assess(inputs, finder, workload, candidate, whole, replicas=limit)
        if isinstance(answer, Candidate):
            return answer
    return None


def assess_missing(
    inputs: PassInput,
    finder: CandidateFinder,
    workload: WorkloadId,
    candidate: Candidate,
    whole: GangWorkload,
    *,
    missing: int,
    least: bool = False,
) -> Candidate | Refusal:
    """Say whether a candidate would take all missing replicas of a gang; none where the rest is on another cluster.

    Where none is missing, one is asked for. At `least` the minimum of a gang will do.
    """
    held, rest = finder.held(workload), "the rest" if missing > 0 else "all"
    missing = max(1, missing)
    here, others = held[candidate.key], sorted(cluster for cluster, _ in held if cluster != candidate.cluster)
    if others and not here:
        return Refusal(
            cluster=candidate.cluster,
            reason=Reason.SPREAD_LIMIT,
            message=f"it goes whole, and {rest} of it is on {join_names(others)}",
        )
    placed = whole.of(here) if here else None
    replicas = here + missing
    answer = assess(inputs, finder, workload, candidate, whole, replicas=replicas, placed=placed, least=least)
    return answer if isinstance(answer, Refusal) else answer._replace(room=missing)


def assign_set(
    finder: CandidateFinder,
    workload: WorkloadId,
    shape: ReplicaShape,
    replicas: int,
    *,
    unit: PlacementUnit,
    released: Released,
) -> Assignment:
    """Assign a set that goes whole: to the first cluster with room for all of it, else to one for its minimum.

    Missing replicas join those that are placed, or wait. Where no cluster takes all of a set that has not begun, the
    one that may have most of its groups, and has room for these, gets as many.
    """
    gang, held, order = unit.gang, finder.held(workload), finder.order(workload)
    if gang is None:
        raise AssertionError(f"{workload} is no set")
    moves, here = bool(released.places), 0 if released.places else held.total()
    candidates = [candidate for candidate in order if candidate.key not in held]
    if held and not moves:
        candidates = [candidate_of(order, cluster) for cluster, _ in sorted(held)]

    def ask(candidate: Candidate, *, least: bool) -> Candidate | Refusal:
        if candidate.key in released.closed:
            return released.closed[candidate.key]
        if not moves:
            return assess_missing(finder.inputs, finder, workload, candidate, gang, missing=replicas, least=least)
        return assess(
            finder.inputs,
            finder,
            workload,
            candidate,
            gang,
            replicas=replicas,
            more_gprs=-released.ends,
            least=least,
        )

    refusals = list[Refusal]()
    candidate = next(with_room(gang.more(here, replicas), candidates, ask, refusals), None)
    if candidate is None and gang.divisible and not held:
        allowed = [candidate for candidate in candidates if candidate.key not in released.closed]
        candidate = first_within_limit(finder.inputs, finder, workload, allowed, gang, missing=replicas)
    if candidate is None:
        return Assignment(chosen=(), refusals=tuple(refusals))
    given = min(replicas, candidate.room)
    pods = set_pods(finder, gang, candidate.cluster, given, here=here, shape=shape)
    return Assignment(chosen=(candidate._replace(replicas=given),), refusals=tuple(refusals), pods=pods)


def set_pods(
    finder: CandidateFinder,
    whole: GangWorkload,
    cluster: ClusterName,
    replicas: int,
    *,
    here: int = 0,
    shape: ReplicaShape,
) -> SetPods:
    """Return what more replicas of a gang take on a cluster beside those `here`; `shape` is theirs if it has none."""
    gang = whole.on(finder.inputs.observed.clusters.get(cluster))
    return SetPods(needs=gang.more(here, replicas), shape=gang.shape or shape, by_pod=gang.by_pod)


def take(finder: CandidateFinder, cluster: ClusterName, need: PodRequirements, workspace: WorkspaceName) -> None:
    """Hand out the room of a whole gang, in the order in which it was found."""
    for pods in finder.capacity.gang_pods(cluster, need, workspace):
        finder.capacity.take(cluster, *pods)


def choose(finder: CandidateFinder, candidate: Candidate, pods: SetPods, workspace: WorkspaceName) -> Choice:
    """Record the candidate that takes the pods of a gang for its `replicas`, and take its capacity.

    Where not all of it has room, the pods that start take capacity, and no others.
    """
    if not pods.by_pod:
        candidate = _count_in_replicas(finder, candidate, pods, workspace)
    elif not pods.shape.requests.amounts:
        candidate = candidate._replace(fits=candidate.replicas)  # what requests nothing fits without end
    choice = finder.choice(candidate, workspace)
    if not candidate.start:
        take(finder, candidate.cluster, pods.needs, workspace)
    for starting in candidate.start:
        finder.capacity.take(candidate.cluster, *starting)
    return choice


def _count_in_replicas(
    finder: CandidateFinder, candidate: Candidate, pods: SetPods, workspace: WorkspaceName
) -> Candidate:
    """Count a gang in replicas of its own shape, not in its main pods, by which it was assessed.

    The pods of a replica may differ, and its shape requests the most that any of them does: at least the `replicas`
    that are placed fit, and those that find a topology domain each. No replica fits where only the minimum starts.
    """
    shape, shared = pods.shape, pods.needs.shared
    if candidate.start and candidate.because:
        return candidate._replace(shape=shape, fits=0)
    room = finder.capacity.room(candidate.cluster, workspace)
    fits = count_groups(room, shared, shape) if shared else room.count(shape, MOST)
    return candidate._replace(shape=shape, fits=max(fits, candidate.replicas))
