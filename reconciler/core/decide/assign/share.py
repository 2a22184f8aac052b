"""What comes of sharing replicas out, by whatever rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.core.decide.candidates.finder import CandidateFinder, Offer
from reconciler.core.spread.placement_subset import Site
from reconciler.model.ids import WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one cluster is given, and what spoke for it beside its place in the order."""

    offer: Offer
    replicas: int
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOut:
    """What comes of missing replicas: shares, the refusals met on the way, and a lower bound that is out of reach.

    So many of them as `home` counts go nowhere, since their primary has room for them. `counts` is what each site comes
    to have, where all of them are shared out together.
    """

    shares: tuple[Share, ...]
    refusals: tuple[Refusal, ...]
    lacking: str = ""
    home: int = 0
    counts: Mapping[Site, int] = field(default_factory=dict)


def beyond_gprs(
    finder: CandidateFinder, workspace: WorkspaceName, new: Iterable[Share], *, ended: int = 0
) -> tuple[Share, Refusal] | None:
    """Find one among shares that begin a GPR that the workspace may not begin beside the others: the smallest.

    `ended` are the GPRs that make room for them.
    """
    for begun, share in enumerate(sorted(new, key=lambda share: (-share.replicas, share.offer.candidate.rank)), -ended):
        limited = finder.limited(workspace, share.offer.candidate.cluster, share.offer.shape, more=begun)
        if limited is not None:
            return share, limited
    return None


def newest_first(placements: Iterable[Placement], stays: int) -> Iterator[tuple[Placement, int]]:
    """Take from the newest of a cluster's placements until so many are left, and say what each keeps."""
    here = sorted(placements, key=lambda placement: (placement.created_at, placement.name), reverse=True)
    surplus = sum(placement.replicas for placement in here) - stays
    for placement in here:
        if surplus <= 0:
            return
        back = min(surplus, placement.replicas)
        yield placement, placement.replicas - back
        surplus -= back
