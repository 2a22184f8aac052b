"""How many replicas go to which cluster, once it is known what each can take.

One interface for every strategy: offers in order of preference, lazily, so that a cluster that is not needed is never
looked at. Never more than was offered, never more than was wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.core.reach import Rung
from reconciler.model.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one cluster can take of a workload now."""

    rung: Rung
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one cluster is given."""

    offer: Offer
    replicas: int


def ordered(wanted: int, offers: Iterable[Offer]) -> tuple[Share, ...]:
    """Fill the clusters one after the other, each as far as it goes."""
    shares: list[Share] = []
    if wanted <= 0:
        return ()
    for offer in offers:
        share = min(wanted, offer.replicas)
        if share:
            shares.append(Share(offer=offer, replicas=share))
            wanted -= share
        if not wanted:
            break
    return tuple(shares)


def drained(surplus: int, placements: Sequence[Placement], rungs: Sequence[Rung]) -> tuple[tuple[Placement, int], ...]:
    """Say which placements give replicas back and how many each keeps: the reverse of the order they were filled in.

    The last cluster in the order first, and within it the newest placement; a cluster that is no longer in the order
    comes before all others.
    """
    rank = {rung.cluster: rung.rank for rung in rungs}
    last = len(rungs) + 1
    by_age = sorted(placements, key=lambda placement: (placement.created_at, placement.name), reverse=True)
    kept: list[tuple[Placement, int]] = []
    for placement in sorted(by_age, key=lambda placement: rank.get(placement.cluster, last), reverse=True):
        if surplus <= 0:
            break
        back = min(surplus, placement.replicas)
        kept.append((placement, placement.replicas - back))
        surplus -= back
    return tuple(kept)
