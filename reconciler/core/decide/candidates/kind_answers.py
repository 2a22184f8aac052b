"""The answers that the clusters give bursts of one kind in a pass, each kept until the room of its cluster changes.

A turn asks those clusters alone whose room has changed since the last turn of its kind: it costs what has changed and
what it takes, however many clusters its policy names.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

from reconciler.core.decide.candidates.free_capacity import FleetCapacity, Mark
from reconciler.core.decide.distribution import ClusterShare, SortedShares
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import StrategyName


def share_of(candidate: Candidate, *, most: int, capacity: int, keeps: int = 0) -> ClusterShare:
    """Make the share of a candidate, with all that the policy says of it."""
    return ClusterShare(
        candidate.cluster,
        candidate.rank,
        most,
        capacity,
        keeps,
        candidate.least,
        candidate.weight,
        candidate.groups,
        candidate.tier,
        (),
        candidate.rank if candidate.scores else 0,
    )


def off_order_candidate(cluster: ClusterName, rank: int = 0) -> Candidate:
    """Return a candidate for a cluster that has replicas and is no longer in the order: it gets no more."""
    return Candidate(cluster=cluster, rank=rank, weight=0)


class KindAnswers:
    """The answers of the candidates of one kind, in their order; a position is an index into that order.

    A refusal for another reason than room holds for the whole pass. All other answers are due again once the room of
    their clusters may have changed.
    """

    def __init__(
        self, candidates: Sequence[Candidate], strategy: StrategyName, kind: tuple[Hashable, ...] = ()
    ) -> None:
        """Begin without any answer; each cluster is a candidate once. No `kind` is that of one burst alone."""
        self.kind = kind
        self.candidates = candidates
        self.positions = {candidate.cluster: position for position, candidate in enumerate(candidates)}
        self.is_plain = all(candidate.weight and not candidate.least for candidate in candidates)
        """Whether no candidate has a minimum, and each may have more."""
        self.able: dict[ClusterName, Candidate] = {}
        """The candidates with room, in no order."""
        self._answers: list[Candidate | Refusal | None] = [None] * len(candidates)
        self._due = set(range(len(candidates)))
        self._mark: Mark | None = None
        self._refusals: tuple[Refusal, ...] | None = ()
        self._strategy = strategy
        self._shares = SortedShares(strategy)
        self._shared: set[ClusterName] = set()

    def follow(self, capacity: FleetCapacity) -> None:
        """Note the clusters whose room may have changed since the last time."""
        mark = capacity.mark
        if mark == self._mark:
            return
        changed = self.positions if self._mark is None else capacity.changed_since(self._mark)
        for cluster in self.positions if changed is None else changed:
            position = self.positions.get(cluster)
            if position is None:
                continue
            answer = self._answers[position]
            if isinstance(answer, Candidate) or (answer is not None and answer.reason is Reason.NO_CAPACITY):
                self._due.add(position)
        self._mark = mark

    @property
    def due(self) -> Collection[int]:
        """The positions without an answer that holds, in order."""
        return sorted(self._due)

    def answer(self, position: int) -> Candidate | Refusal | None:
        """Return the answer at a position; None where it is due."""
        return None if position in self._due else self._answers[position]

    def passes(self, position: int) -> bool:
        """Tell whether a cluster has let bursts of the kind past its filter, so that only its room is to be counted."""
        return self._answers[position] is not None

    def put(self, position: int, answer: Candidate | Refusal) -> None:
        """Keep an answer."""
        before, self._answers[position] = self._answers[position], answer
        self._due.discard(position)
        if isinstance(answer, Candidate):
            self.able[answer.cluster] = answer
            self._shared.add(answer.cluster)
            if isinstance(before, Refusal):
                self._refusals = None
            return
        self._refusals = None
        if isinstance(before, Candidate):
            del self.able[answer.cluster]
            self._shared.add(answer.cluster)

    def with_answers(self, answers: Iterable[tuple[int, Candidate | Refusal]]) -> KindAnswers:
        """Return the answers for one burst alone, with some of its own, each with its position."""
        own = KindAnswers(self.candidates, self._strategy)
        kept = ((position, answer) for position, answer in enumerate(self._answers) if answer is not None)
        for position, answer in (*kept, *answers):
            own.put(position, answer)
        return own

    def refusals(self) -> tuple[Refusal, ...]:
        """Return the refusals in order."""
        if self._refusals is None:
            self._refusals = tuple(answer for answer in self._answers if isinstance(answer, Refusal))
        return self._refusals

    def shares(self) -> Sequence[ClusterShare]:
        """Return the shares that clusters with room have of a burst without replicas, as its strategy prefers them."""
        if self._shared:
            able = (self.able[cluster] for cluster in self._shared if cluster in self.able)
            self._shares.replace(
                self._shared,
                [share_of(candidate, most=candidate.room, capacity=candidate.room) for candidate in able],
            )
            self._shared.clear()
        return self._shares.shares
