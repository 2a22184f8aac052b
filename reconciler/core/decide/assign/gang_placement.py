"""Whether a cluster has room for all of something that goes there whole, and what it takes there.

A gang with a minimum goes where all of it has room; where there is no such cluster, to one with room for the minimum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from reconciler.core.capacity import exclusive_topology, remedies
from reconciler.core.capacity.gangs import GangWorkload, more
from reconciler.core.capacity.pod_needs import PodRequirements
from reconciler.core.capacity.room import ClusterCapacity
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer
from reconciler.core.decide.candidates.gang_start import may_start, start
from reconciler.core.decide.candidates.gpr_limits import beyond_limits
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.plan import Choice, Reason, Refusal
from reconciler.text.wording import amounts, count, listed

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

_MANY = 1024
"""Pods that are asked for to see whether a taint keeps some from any domain."""


class RoomQuery(Protocol[_T_co]):
    """Ask a cluster what it has room for."""

    def __call__(self, candidate: Candidate, *, least: bool) -> _T_co | Refusal:
        """Answer for all of it or, where the minimum will do, for at `least` that."""


def ways(need: PodRequirements | None) -> tuple[bool, ...]:
    """Say for what room is looked for on all clusters, one after the other: for all of it, then for its minimum."""
    return (False, True) if need is not None and may_start(need) else (False,)


def named(need: PodRequirements | None) -> str:
    """Name the minimum of what has one and has no room for that either; empty where all of it has to fit."""
    return f"its minimum of {need.start} of {count(need.pods, 'pod')}" if need is not None and may_start(need) else ""


def first(
    need: PodRequirements | None, candidates: Iterable[Candidate], asked: RoomQuery[_T]
) -> tuple[_T | None, tuple[Refusal, ...]]:
    """Return what the first cluster answers that has room for all of it, else the first that has for its minimum.

    Beside it stand those that have refused before.
    """
    refusals: tuple[Refusal, ...] = ()
    found = tuple(candidates)
    for least in ways(need):
        refusals = ()
        for candidate in found:
            answer = asked(candidate, least=least)
            if not isinstance(answer, Refusal):
                return answer, refusals
            refusals = (*refusals, answer)
    return None, refusals


def fitted(
    inputs: PassInput,
    finder: CandidateFinder,
    workspace: WorkspaceName,
    offer: Offer,
    need: PodRequirements,
    *,
    least: bool = False,
) -> Offer | Refusal:
    """Say whether a cluster that has room for some of it has any for the whole; or for the minimum, if that will do."""
    small = _too_small(inputs, finder, workspace, offer, need)
    if small is None or not least or not may_start(need):
        return small or offer
    started = start(finder.rooms.room(offer.candidate.cluster, workspace), need)
    if started is not None:
        return replace(offer, start=started)
    return replace(small, message=f"{small.message}, and none for {named(need)}")


def _too_small(
    inputs: PassInput, finder: CandidateFinder, workspace: WorkspaceName, offer: Offer, need: PodRequirements
) -> Refusal | None:
    """Say why a cluster that has room for some of it has none for the whole."""
    name, main = offer.candidate.cluster, need.main
    room, seen = finder.rooms.room(name, workspace), inputs.observed.clusters[name]
    if offer.replicas < main.replicas:
        each = listed(amounts(main.shape.requests)) or "nothing"
        message = f"needs {each} for each of {count(main.replicas, 'pod')}, has room for {offer.replicas}"
        remedy = remedies.remedy(room, seen, main.shape, main.replicas)
    else:
        fitting = room.together(part.room for part in need.parts)
        if fitting == len(need.parts):
            return _undivided(inputs, finder, name, room, need)
        part = need.parts[fitting]
        what = f"{count(part.replicas, 'pod')} with {listed(amounts(part.shape.requests))}"
        message = room.shortfall(part.room[0]) if part.apart else f"has no room for {what} beside the rest of it"
        remedy = remedies.remedy(room, seen, *part.room)
    return Refusal(cluster=name, reason=Reason.NO_CAPACITY, message=message, remedy=remedy)


def assess(
    inputs: PassInput,
    finder: CandidateFinder,
    workload: WorkloadId,
    candidate: Candidate,
    whole: GangWorkload,
    *,
    replicas: int,
    there: PodRequirements | None = None,
    more_gprs: int = 0,
    least: bool = False,
) -> Offer | Refusal:
    """Say whether a cluster has room for so many replicas that go whole, or why not; what is `there` has its room.

    `more_gprs` are the placements that begin, less those that end, beside it. At `least` has the minimum of a gang do.
    """
    template, policy = inputs.desired.templates[workload], inputs.desired.policies[workload]
    if candidate.limit is not None and replicas > candidate.limit:
        return Refusal(
            cluster=candidate.cluster,
            reason=Reason.CLUSTER_LIMIT,
            message=f"may have {count(candidate.limit, 'replica')} at most, and all {replicas} go together",
            remedy=f"raise its maxReplicas in policy {policy.name}",
        )
    need = whole.of(replicas)
    if there is not None:
        need = more(need, there)
    wanted, unbound = max(1, need.main.replicas), replace(candidate, limit=None)
    answer = finder.assess(template, policy, need.main.shape, unbound, wanted, more=more_gprs)
    if isinstance(answer, Refusal):
        return answer
    limited = beyond_limits(inputs, workload, candidate.cluster, need.main.shape, replicas)
    found = limited or fitted(inputs, finder, workload.workspace, answer, need, least=least)
    return found if isinstance(found, Refusal) else replace(found, candidate=candidate, replicas=replicas)


def offered(
    inputs: PassInput,
    finder: CandidateFinder,
    workload: WorkloadId,
    candidate: Candidate,
    whole: GangWorkload,
    *,
    lacking: int,
) -> Offer | Refusal:
    """Say how many replicas more a cluster would take: all that are lacking or, where the rest is elsewhere, none.

    Where none is lacking, it is asked for one.
    """
    held, rest = finder.held(workload), "the rest" if lacking > 0 else "all"
    lacking = max(1, lacking)
    here, others = held[candidate.cluster], sorted(name for name in held if name != candidate.cluster)
    if others and not here:
        return Refusal(
            cluster=candidate.cluster,
            reason=Reason.SPREAD_LIMIT,
            message=f"it goes whole, and {rest} of it is on {listed(others)}",
        )
    there = whole.of(here) if here else None
    least = there is None and may_start(whole.of(lacking))
    answer = assess(inputs, finder, workload, candidate, whole, replicas=here + lacking, there=there, least=least)
    return answer if isinstance(answer, Refusal) else replace(answer, replicas=lacking)


def take(finder: CandidateFinder, cluster: ClusterName, need: PodRequirements) -> None:
    """Hand out the room of all of it."""
    for part in need.parts:
        finder.rooms.take(cluster, *part.room)


def taken(
    finder: CandidateFinder,
    offer: Offer,
    need: PodRequirements,
    shape: ReplicaShape,
    workload: WorkloadId,
    *,
    replicas: int,
) -> Choice:
    """Hand out the room of what a cluster offers, and return what spoke for it before.

    Of what demand lends at least the `replicas` fit that are placed: pods may differ, and their one shape asks for the
    most that any does. Of a gang that only starts there none fits, and the room of the pods which do is handed out: the
    others take none.
    """
    choice, started = finder.choice(offer, shape, workload.workspace), offer.start
    if not workload.request:
        choice = replace(choice, fits=0 if started is not None and started.told else max(choice.fits, replicas))
    if started is None:
        take(finder, offer.candidate.cluster, need)
        return choice
    for own, number in started.fits:
        finder.rooms.take(offer.candidate.cluster, own, number)
    return replace(choice, because=started.told)


def _undivided(
    inputs: PassInput, finder: CandidateFinder, cluster: ClusterName, room: ClusterCapacity, need: PodRequirements
) -> Refusal | None:
    """Say why there are no domains for groups that want their own, beside all that wants none."""
    if not need.domains:
        return None
    seen, left, message, remedy = inputs.observed.clusters[cluster], room, "", remedies.NODES
    nodes, given = exclusive_topology.NODES.of(seen), dict[str, list[tuple[str, str]]]()
    for wanted in need.domains:
        used, others = finder.rooms.domains(cluster, wanted), need.marked.get(wanted.mark, 0)
        besides = given.setdefault(wanted.mark, [])
        found = exclusive_topology.place(left, nodes, wanted, used=used, loose=others, besides=besides)
        if isinstance(found, str):
            message = found
            remedy = remedies.remedy(left, seen, wanted.units[0].pods[0][0], _MANY) if wanted.units[0].pods else remedy
            break
        left = room.copy() if left is room else left  # until then what was answered of it before holds
        exclusive_topology.take(left, found, wanted.key)
        besides += [(wanted.key, value) for _, value in found]
    loose = [
        (exclusive_topology.outside(part.shape, given) if need.marked else part.shape, part.replicas)
        for part in need.loose
    ]
    if not message and left.together(loose) < len(loose):
        message = "has no room for the other pods beside the groups that want domains of their own"
    return Refusal(cluster=cluster, reason=Reason.NO_CAPACITY, message=message, remedy=remedy) if message else None
