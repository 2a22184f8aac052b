"""The newest pass for readers, and the output branch as it left it.

The loop posts, any thread reads, and neither waits for the other: a snapshot never changes, and the next one takes its
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.state.pass_input import EarlierFailures
from reconciler.core.explain.catalogue import Catalogue, CatalogueItem
from reconciler.core.explain.request_state import suppressed_by_request
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.item_status import ItemStatus, burst_status, request_status, unknown_status
from reconciler.daemon.reconcile import Outcome, PassDecision
from reconciler.errors import Bug, OverspillError, Transient
from reconciler.model.ids import BlobId, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The decision of a pass, with the output branch as its push left it."""

    decision: PassDecision  # its plan has no changes left to make
    blobs: Mapping[str, BlobId]  # the files of the records, by path
    catalogue: Catalogue  # finds requests and placements by name
    held: Mapping[WorkloadId, tuple[Suppressed, ...]]  # suppressed changes of requests
    failures: EarlierFailures = field(default_factory=EarlierFailures)  # given up by the next whole pass

    @property
    def owners(self) -> Mapping[str, WorkspaceName]:
        """The workspace of each placement, by its name."""
        return self.catalogue.owners

    def status(self, item: CatalogueItem) -> ItemStatus:
        """Return the status of an item of the catalogue; an unknown status says so, and harms no other item."""
        status = attempt(Seam.STATUS, "/".join(filter(None, item.key)), partial(self._status, item))
        if isinstance(status, Bug):
            BUGS.note(status)
            return unknown_status(item.subject, status)
        return status

    def _status(self, item: CatalogueItem) -> ItemStatus:
        if isinstance(item.subject, Placement):
            return burst_status(self.decision, item.subject)
        return request_status(self.decision, item.subject, self.held.get(item.subject.workload, ()))


class LatestSnapshot:
    """Holds the newest snapshot."""

    def __init__(self, branch: BranchReader) -> None:
        """Follow the output branch by the reader that passes use."""
        self._branch = branch
        self._snapshot: Snapshot | None = None

    def post(self, outcome: Outcome) -> None:
        """Record a pass, in the thread that runs passes.

        A caller with a receipt reads at least the state of that receipt: the pushed commits are read back first.
        """
        plan = replace(outcome.plan, suppressed=outcome.rendered.suppressed)
        # Readers begin with the pods of subsets that the pass has left.
        inputs = replace(outcome.decision.inputs, drafted=plan.drafted.next_pass())
        decision = replace(outcome.decision, inputs=inputs, plan=plan)
        if outcome.commits:
            # The commits are pushed all the same, and the next pass reads them.
            with suppress(OverspillError):
                ledger = self._branch.ledger(outcome.commits[-1])
                inputs, plan = replace(decision.inputs, ledger=ledger), replace(decision.plan, changes=())
                decision = replace(decision, inputs=inputs, plan=plan)
        ledger = decision.inputs.ledger
        catalogue = self._snapshot.catalogue if self._snapshot else None
        if (
            catalogue is None
            or catalogue.requests is not ledger.requests
            or catalogue.placements is not ledger.placements
        ):
            catalogue = Catalogue(ledger.requests, ledger.placements)
        failures = outcome.failures
        if failures is None:
            failures = self._snapshot.failures if self._snapshot else EarlierFailures()
        self._snapshot = Snapshot(
            decision=decision,
            blobs=self._branch.blobs,
            catalogue=catalogue,
            held=suppressed_by_request(decision.plan),
            failures=failures,
        )

    def read(self) -> Snapshot:
        """Return the newest snapshot, from any thread. Raises Transient while no pass has succeeded."""
        if self._snapshot is None:
            raise Transient("starting: no pass has ended well yet")
        return self._snapshot
