"""What readers are told: the newest pass, and what it left on the output branch.

The loop posts, anybody reads, and nobody waits for the other: what is posted never changes, and is put in place of what
was there before.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from reconciler.core.explain.catalogue import Catalogue, CatalogueItem
from reconciler.core.explain.request_state import held_back
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.item_status import ItemStatus, burst_status, request_status
from reconciler.daemon.reconcile import Outcome, View
from reconciler.errors import OverspillError, Transient
from reconciler.model.ids import BlobId, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a pass saw and decided, with the output branch as it stands after it; its plan has no changes left to make.

    `blobs` are the records' files at that commit, by path; `catalogue` is how what stands there is found by name;
    `held` is what the pass held back of requests.
    """

    view: View
    blobs: Mapping[str, BlobId]
    catalogue: Catalogue
    held: Mapping[WorkloadId, tuple[Suppressed, ...]]

    @property
    def owners(self) -> Mapping[str, WorkspaceName]:
        """The workspace of each placement, by its name."""
        return self.catalogue.owners

    def status(self, item: CatalogueItem) -> ItemStatus:
        """Tell how something of the catalogue stands."""
        if isinstance(item.subject, Placement):
            return burst_status(self.view, item.subject)
        return request_status(self.view, item.subject, self.held.get(item.subject.workload, ()))


class LatestSnapshot:
    """Holds the newest reading."""

    def __init__(self, branch: BranchReader) -> None:
        """Follow the output branch by the reader that passes use."""
        self._branch = branch
        self._reading: Snapshot | None = None

    def post(self, outcome: Outcome) -> None:
        """Take note of a pass, in the thread that runs them.

        Whoever got a receipt reads what it says: what the pass has pushed is read back before anybody is told of it.
        """
        last = self._reading
        view = replace(outcome.view, plan=replace(outcome.plan, suppressed=outcome.rendered.suppressed))
        if outcome.commits:
            # It is pushed all the same, and the next pass reads it.
            with suppress(OverspillError):
                ledger = self._branch.ledger(outcome.commits[-1])
                view = replace(view, ledger=ledger, plan=replace(view.plan, changes=()))
        ledger = view.ledger
        known = last.catalogue if last else None
        same = known is not None and known.requests is ledger.requests and known.placements is ledger.placements
        catalogue = known if known is not None and same else Catalogue(ledger.requests, ledger.placements)
        self._reading = Snapshot(view=view, blobs=self._branch.blobs, catalogue=catalogue, held=held_back(view.plan))

    def read(self) -> Snapshot:
        """Return what is known, from any thread. Raises Transient while no pass has ended well."""
        if self._reading is None:
            raise Transient("starting: no pass has ended well yet")
        return self._reading
