"""The queue of all workloads that wait for room: those with missing replicas, requests and reservations.

Turns are taken in order, each with all that the workload is missing. Where that leaves another workload of the same
priority without room that it has more right to, the room that was taken is divided replica by replica (in eighths of
what they need, where they need many), to whoever has least of its share at that moment; and the pass is decided anew,
in the same order, each up to that number: its quota. So workloads stay together on few clusters, and a pass in which
all find room costs no more than one round. Where all that wait are alike, what each would get in order is a matter of
numbers alone: then quotas are known beforehand, and one round is enough as well.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.turns.fair_share import NOTHING, FairShares, Share
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The replicas that a turn would place, and the room for them, where that depends on numbers alone."""

    replicas: int
    # Equal for workloads whose replicas take the very same room.
    shape: Hashable = None
    # The replicas that each cluster has room for, among those where nothing but room may be lacking.
    room: Mapping[ClusterName, int] = field(default_factory=dict)


class Turn(NamedTuple):
    """The turn of one workload that waits for room. A tuple, since each pass makes one of all that wait."""

    # The highest comes first.
    priority: int
    # The moment since when it waits.
    since: datetime
    workload: WorkloadId
    # Places what has room, and suppresses the rest with the reason.
    take: Callable[[], None]
    # What it has before its turn, without its workspace, which only counts where room is short; a request has nothing
    # until it has all.
    share: Share = NOTHING
    # The replicas that may be placed alone: one, or one copy; 0 where all are placed together or none.
    unit: int = 0
    # Whether it is for what others have left, after each has had its quota.
    is_second: bool = False
    # Returns what a workload needs, and places nothing; None where only the turn itself can tell.
    need: Callable[[WorkloadId], Need | None] = lambda _: None


_FEW = 16
"""Turns below which they are as soon taken as foreseen."""

Urgency: TypeAlias = tuple[int, bool, Share, datetime, WorkloadId]
Take: TypeAlias = Callable[[Turn], object]
After: TypeAlias = Callable[[Turn], Iterable[Turn]]


def _take(turn: Turn) -> None:
    turn.take()


def serve(turns: Iterable[Turn], after: After, take: Take = _take) -> None:
    """Take all turns: the highest priority first, then the least share, the longest wait, and by name.

    `after` a turn others may have another one: those that were evicted for it, which go back into the queue. `take`
    says how a turn is taken.
    """
    _serve(sorted(turns, key=urgency), after, take)


def _serve(queue: list[Turn], after: After, take: Take) -> None:
    """Take all turns in the order that they have; `queue` grows by those who get another one."""
    for position, turn in enumerate(queue, start=1):
        take(turn)
        for again in after(turn):
            insort(queue, again, lo=position, key=urgency)


def urgency(turn: Turn) -> Urgency:
    """Return the sort key of a turn: the most urgent comes first."""
    return -turn.priority, turn.is_second, turn.share, turn.since, turn.workload


@dataclass(slots=True)
class InOrder:
    """Takes turns in order, each with all that is missing, and works out quotas where that was unfair."""

    quotas: dict[WorkloadId, int] = field(default_factory=dict)
    """The replicas that each workload may have where room is divided; empty where that was fair."""

    def serve(
        self, turns: Sequence[Turn], after: After, take: Take, working_plan: WorkingPlan, shares: FairShares
    ) -> None:
        """Take all turns, unless their quotas are known beforehand: then nothing is placed."""
        before = {turn.workload: working_plan.replicas(turn.workload) for turn in turns if turn.unit}
        position, queue = working_plan.position, sorted(turns, key=urgency)
        with working_plan.trial():
            self.quotas = _foreseen_quotas(queue, before, shares)
        if self.quotas:
            return
        _serve(queue, after, take)
        self.quotas = _quotas(_rivals(turns, before, position, working_plan), before, shares)


@dataclass(slots=True)
class ToQuota:
    """Takes turns in order, each up to its quota, and then once more for what is left."""

    quotas: Mapping[WorkloadId, int]

    def serve(self, turns: Sequence[Turn], after: After, take: Take, working_plan: WorkingPlan, _: FairShares) -> None:
        """Take all turns."""
        second = [turn._replace(is_second=True) for turn in turns if turn.workload in self.quotas]
        quotas = working_plan.quotas
        quotas.update(self.quotas)

        def take_part(turn: Turn) -> None:
            if turn.is_second:
                quotas.pop(turn.workload, None)
                working_plan.retract(turn.workload)
            elif turn.workload in quotas and quotas[turn.workload] <= working_plan.replicas(turn.workload):
                return  # it has its quota: nearly all that wait
            take(turn)

        serve([*turns, *second], after, take_part)


Rule: TypeAlias = InOrder | ToQuota
"""How the turns of a pass are taken."""


class _Rival(NamedTuple):
    """A workload that took room which another one of its priority lacks, or that lacks some. A tuple, as a turn is."""

    turn: Turn
    gained: int
    short: int
    # Where it took room, and where nothing but room was lacking.
    clusters: frozenset[ClusterName]


def _rivals(
    turns: Iterable[Turn], before: Mapping[WorkloadId, int], position: int, plan: WorkingPlan
) -> Iterable[list[_Rival]]:
    """Group the workloads of one priority that compete for the room of the same clusters, where some found none."""
    taken: dict[WorkloadId, set[ClusterName]] = defaultdict(set)
    for workload, cluster in _placed(plan, position):
        taken[workload].add(cluster)
    if not taken:
        return []
    changed = plan.changed_workloads()
    full: dict[int, frozenset[ClusterName]] = {}  # workloads that are alike have the very same refusals
    alike: dict[tuple[int, frozenset[ClusterName]], list[_Rival]] = {}
    for turn in turns:
        if not turn.unit:
            continue
        workload = turn.workload
        held = plan.unplaceable(workload)
        refusals = held.refusals if held is not None else ()
        clusters = full.get(id(refusals))
        if clusters is None:
            clusters = full[id(refusals)] = frozenset(
                refusal.cluster for refusal in refusals if refusal.reason is Reason.NO_CAPACITY
            )
        if workload in taken:
            clusters |= taken[workload]
        gained = plan.replicas(workload) - before[workload] if workload in changed else 0
        rival = _Rival(turn, gained, held.replicas if held is not None else 0, clusters)
        alike.setdefault((turn.priority, clusters), []).append(rival)
    groups = _joined(alike)
    return [rivals for rivals in groups if any(rival.short for rival in rivals)]


def _joined(alike: Mapping[tuple[int, frozenset[ClusterName]], Sequence[_Rival]]) -> Iterable[list[_Rival]]:
    """Join the rivals of one priority whose clusters overlap, be it by way of others."""
    groups: dict[tuple[int, ClusterName], list[_Rival]] = {}
    alone: list[list[_Rival]] = []
    for (priority, clusters), rivals in alike.items():
        beside = (groups.get((priority, cluster)) for cluster in sorted(clusters))  # in the same order in each process
        joined = {id(group): group for group in beside if group is not None}
        largest = max(joined.values(), key=len, default=[])
        for group in joined.values():
            if group is not largest:
                largest += group
                for rival in group:
                    groups.update(((priority, cluster), largest) for cluster in rival.clusters)
        largest += rivals
        groups.update(((priority, cluster), largest) for cluster in clusters)
        if not clusters:
            alone.append(largest)
    return [*{id(group): group for group in groups.values()}.values(), *alone]


def _quotas(
    groups: Iterable[list[_Rival]], before: Mapping[WorkloadId, int], shares: FairShares
) -> dict[WorkloadId, int]:
    """Divide the room of each group of rivals that was given out unfairly; `before` are the replicas of each before."""
    quotas: dict[WorkloadId, int] = {}
    for rivals in groups:
        if _is_unfair(rivals, shares):
            quotas |= _divide(rivals, before, shares)
    shares.forget()
    return quotas


def _foreseen_quotas(
    turns: Sequence[Turn], before: Mapping[WorkloadId, int], shares: FairShares
) -> dict[WorkloadId, int]:
    """Work out the quotas that these turns in order would lead to, where all of them need the very same room.

    Empty where turns in order are fair, or where they have to be taken for that to be known.
    """
    if len(turns) < _FEW:
        return {}
    first = next((need for turn in turns if (need := turn.need(turn.workload)) is None or need.replicas), None)
    left = sum(first.room.values()) if first is not None else 0
    if first is None or not left:
        return {}
    rivals: dict[int, list[_Rival]] = {}
    for turn in turns:
        need = turn.need(turn.workload)
        if need is None or (need.replicas and (need.shape, need.room) != (first.shape, first.room)):
            shares.forget()
            return {}
        gained = min(need.replicas, left)
        left -= gained
        shares.expect(turn.workload, gained)
        if need.replicas:
            rival = _Rival(turn=turn, gained=gained, short=need.replicas - gained, clusters=frozenset(first.room))
            rivals.setdefault(turn.priority, []).append(rival)
    return _quotas((group for group in rivals.values() if any(rival.short for rival in group)), before, shares)


def _is_unfair(rivals: Sequence[_Rival], shares: FairShares) -> bool:
    """Tell whether a workload got replicas for which another one, which has less of its share, found no room."""
    # Of those alike the poorest that waits and the richest that took tell for all.
    waiting: dict[Hashable, tuple[float, _Rival]] = {}
    takers: dict[Hashable, tuple[float, _Rival]] = {}
    for rival in rivals:
        turn, gained, short, clusters = rival
        alike = turn.workload.workspace, clusters
        if short:
            share = shares.of_workload(turn.workload) if gained else turn.share.workload
            least = waiting.get(alike)
            if least is None or share < least[0]:
                waiting[alike] = share, rival
        if gained:
            share = shares.of_workload(turn.workload, -shares.margin(turn.workload, turn.unit))
            if alike not in takers or share > takers[alike][0]:
                takers[alike] = share, rival
    return any(
        not poor.clusters.isdisjoint(rich.clusters)
        and poor is not rich
        and shares.is_poorer(poor.turn.workload, rich.turn.workload, shares.margin(rich.turn.workload, rich.turn.unit))
        for _, poor in waiting.values()
        for _, rich in takers.values()
    )


def _divide(rivals: Sequence[_Rival], before: Mapping[WorkloadId, int], shares: FairShares) -> dict[WorkloadId, int]:
    """Divide the room that rivals took, replica by replica, to whoever has least of its share; return their quotas."""
    quotas = {rival.turn.workload: before[rival.turn.workload] for rival in rivals}
    most = {rival.turn.workload: quotas[rival.turn.workload] + rival.gained + rival.short for rival in rivals}
    room = sum(rival.gained * shares.size(rival.turn.workload) for rival in rivals)
    for rival in rivals:
        shares.expect(rival.turn.workload, -rival.gained)
    waiting = [
        (shares.of(rival.turn.workload), rival.turn.since, rival.turn.workload, rival.turn.unit) for rival in rivals
    ]
    heapify(waiting)
    while waiting and room > 0:
        share, since, workload, unit = heappop(waiting)
        if shares.has_rivals:
            now = shares.of(workload)
            if now > share:  # others of its workspace have got room since it was queued
                heappush(waiting, (now, since, workload, unit))
                continue
        left = most[workload] - quotas[workload]
        part = shares.part(workload, unit)
        part = left if part > unit and left < 2 * part else part
        part = min(part, left, room // shares.size(workload)) // unit * unit
        if not part:
            continue
        room -= part * shares.size(workload)
        quotas[workload] += part
        shares.expect(workload, part)
        heappush(waiting, (shares.of(workload), since, workload, unit))
    return quotas


def _placed(plan: WorkingPlan, position: int) -> Iterator[tuple[WorkloadId, ClusterName]]:
    """Yield the workload and the cluster of each change since a position that placed replicas."""
    for change in plan.changes[position:]:
        if change.grows:
            yield change.workload, change.placement.cluster
