"""Webster's method (Sainte-Laguë): seats go one by one to who has the largest claim, weight / (2 x seats + 1).

It favours neither large nor small, and one seat more takes none away from anybody: a share that grows never moves what
runs. Karmada's weighted division goes by it, too (its cases are in the conformance tests).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one party has and may come to have. Of equal claims who has fewer seats goes first, then by `rank`."""

    weight: int
    most: int
    rank: int
    seats: int = 0


def apportion(more: int, claims: Sequence[Claim]) -> tuple[int, ...]:
    """Hand out so many seats more, as far as anybody may have them; return what each comes to have."""
    seats = [claim.seats for claim in claims]
    queue = [_bid(claim, claim.seats, place) for place, claim in enumerate(claims) if _wants(claim, claim.seats)]
    heapq.heapify(queue)
    while more > 0 and queue:
        *_, place = heapq.heappop(queue)
        seats[place] += 1
        more -= 1
        if _wants(claims[place], seats[place]):
            heapq.heappush(queue, _bid(claims[place], seats[place], place))
    return tuple(seats)


def _wants(claim: Claim, seats: int) -> bool:
    return claim.weight > 0 and seats < claim.most


def _bid(claim: Claim, seats: int, place: int) -> tuple[Fraction, int, int, int]:
    return Fraction(-claim.weight, 2 * seats + 1), seats, claim.rank, place
