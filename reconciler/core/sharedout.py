"""What an explanation tells of how missing replicas are shared out over clusters, and over their subsets in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.core.growth import CandidateFinder
from reconciler.core.seats import Site
from reconciler.core.shares import ShareOut
from reconciler.core.subsetorder import rows_of
from reconciler.core.wording import plain
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import where
from reconciler.model.plan import Reason, Refusal, Suppressed
from reconciler.model.policy import BurstPolicy
from reconciler.model.workloadspread import WorkloadSpread


def beyond(outcome: ShareOut) -> Mapping[Site, Refusal]:
    """Gather which clusters that have room get nothing, since their subset may have no more of it."""
    limited, given = (Reason.SPREAD_LIMIT, Reason.TAKEN), {share.offer.candidate.site for share in outcome.shares}
    found = {(one.cluster, one.subset): one for one in outcome.refusals if one.reason in limited}
    return {place: refusal for place, refusal in found.items() if place not in given}


def ranks(
    finder: CandidateFinder, workload: WorkloadId, policy: BurstPolicy, spread: WorkloadSpread, fits: Mapping[Site, int]
) -> Mapping[Site, int]:
    """Give each site its number in the order in which they are filled, by what each has room for."""
    rows = rows_of(finder, workload, spread, finder.seated(workload, policy), lambda place: fits.get(place, 0))
    ordered = [place for row in rows for place in row if place in fits]
    return {place: rank for rank, place in enumerate(ordered, start=1)}


def describe_shares(outcome: ShareOut, refused: Collection[Site], held: Iterable[Suppressed]) -> Iterator[str]:
    """Say how what is missing would be shared out, and what spoke for each cluster that does not refuse after all.

    What is `held` back has been told.
    """
    for share in outcome.shares:
        why = f" ({share.because})" if share.because else ""
        if share.offer.candidate.site not in refused:
            yield f"{plain(where(*share.offer.candidate.site))} would take {share.replicas} of what is missing{why}."
    if outcome.lacking and outcome.lacking not in {one.message for one in held}:
        yield f"{outcome.lacking[0].upper()}{outcome.lacking[1:]}."
