"""The newest pass for readers, and the output branch as it left it.

The loop posts, any thread reads, and neither waits for the other: a snapshot never changes, and the next one takes its
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from reconciler.core.explain.catalogue import Catalogue, CatalogueItem
from reconciler.core.explain.request_state import suppressed_by_request
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.item_status import ItemStatus, burst_status, request_status
from reconciler.daemon.reconcile import Outcome, View
from reconciler.errors import OverspillError, Transient
from reconciler.model.ids import BlobId, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a pass saw and decided, with the output branch as it stands after it."""

    view: View  # its plan has no changes left to make
    blobs: Mapping[str, BlobId]  # the files of the records, by path
    catalogue: Catalogue  # finds requests and placements by name
    held: Mapping[WorkloadId, tuple[Suppressed, ...]]  # what the pass held back of requests

    @property
    def owners(self) -> Mapping[str, WorkspaceName]:
        """The workspace of each placement, by its name."""
        return self.catalogue.owners

    def status(self, item: CatalogueItem) -> ItemStatus:
        """Return the status of an item of the catalogue."""
        if isinstance(item.subject, Placement):
            return burst_status(self.view, item.subject)
        return request_status(self.view, item.subject, self.held.get(item.subject.workload, ()))


class LatestSnapshot:
    """Holds the newest snapshot."""

    def __init__(self, branch: BranchReader) -> None:
        """Follow the output branch by the reader that passes use."""
        self._branch = branch
        self._snapshot: Snapshot | None = None

    def post(self, outcome: Outcome) -> None:
        """Take note of a pass, in the thread that runs passes.

        A caller with a receipt reads the state that the receipt tells of: the pushed commits are read back first.
        """
        view = replace(outcome.view, plan=replace(outcome.plan, suppressed=outcome.rendered.suppressed))
        if outcome.commits:
            # It is pushed all the same, and the next pass reads it.
            with suppress(OverspillError):
                ledger = self._branch.ledger(outcome.commits[-1])
                view = replace(view, ledger=ledger, plan=replace(view.plan, changes=()))
        ledger = view.ledger
        catalogue = self._snapshot.catalogue if self._snapshot else None
        if (
            catalogue is None
            or catalogue.requests is not ledger.requests
            or catalogue.placements is not ledger.placements
        ):
            catalogue = Catalogue(ledger.requests, ledger.placements)
        self._snapshot = Snapshot(
            view=view, blobs=self._branch.blobs, catalogue=catalogue, held=suppressed_by_request(view.plan)
        )

    def read(self) -> Snapshot:
        """Return the newest snapshot, from any thread. Raises Transient while no pass has succeeded."""
        if self._snapshot is None:
            raise Transient("starting: no pass has ended well yet")
        return self._snapshot
