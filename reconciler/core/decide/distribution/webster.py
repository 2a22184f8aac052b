"""Webster's method (Sainte-Laguë): seats go one by one to the largest claim, weight / (2 x seats + 1).

The method favours neither large nor small claims, and one more seat takes none away from any claim: a total that grows
never moves running replicas. Karmada's weighted division goes by it, too (its cases are in the conformance tests).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

_SCALE = 64
"""Bits by which claims are scaled, to compare them as integers: those to fewer than 2**31 seats that differ at all
differ by at least one then."""


_FEW = 64
"""Seats for each claim that are handed out one by one."""


class Claim(NamedTuple):
    """The claim of one cluster to seats, which are replicas. Of equal claims the one with fewer seats goes first."""

    weight: int
    # The most seats that it may have.
    most: int
    # Its place in the order, which decides last.
    rank: int
    # The seats that it has already.
    seats: int = 0


def apportion(more: int, claims: Sequence[Claim]) -> tuple[int, ...]:
    """Hand out so many seats more, as far as claims may have them; return the seats of each claim.

    The work is bounded by the number of claims, however many the seats are.
    """
    seats = [claim.seats for claim in claims]
    if more > _FEW * len(claims):
        level = _level(more, claims)
        seats = [_seats_above(claim, level) for claim in claims]
        more -= sum(seats) - sum(claim.seats for claim in claims)
    queue = [
        _bid(claim, seats[place], place)
        for place, claim in enumerate(claims)
        if claim.weight > 0 and seats[place] < claim.most
    ]
    heapq.heapify(queue)
    while more > 0 and queue:
        *_, place = heapq.heappop(queue)
        seats[place] += 1
        more -= 1
        claim = claims[place]
        if seats[place] < claim.most:
            heapq.heappush(queue, _bid(claim, seats[place], place))
    return tuple(seats)


def _level(more: int, claims: Sequence[Claim]) -> int:
    """Return the least bid above which no more seats are taken than there are: those of the very next bid remain."""
    taken = sum(claim.seats for claim in claims)
    low, high = 0, 1 + (max((claim.weight for claim in claims), default=0) << _SCALE)
    while high - low > 1:
        middle = (low + high) // 2
        if sum(_seats_above(claim, middle) for claim in claims) - taken <= more:
            high = middle
        else:
            low = middle
    return high


def _seats_above(claim: Claim, level: int) -> int:
    """Return the seats of a claim once all of its bids of at least a level have been served."""
    if claim.weight <= 0:
        return claim.seats
    served = ((claim.weight << _SCALE) // level + 1) // 2
    return max(claim.seats, min(claim.most, served))


def _bid(claim: Claim, seats: int, place: int) -> tuple[int, int, int, int]:
    """Return a sort key: the largest claim comes first."""
    return -((claim.weight << _SCALE) // (2 * seats + 1)), seats, claim.rank, place
