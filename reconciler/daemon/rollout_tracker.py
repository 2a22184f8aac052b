"""Follows the rollouts of placements: a report on a commit counts if the tip holds the same record.

An engine may report on a commit behind the tip of the output branch. The report is about the current placement if the
commit and the tip hold the same placement.yaml: the commit wrote that record, or left it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.core.observe import rollouts
from reconciler.core.observe.rollouts import FileAtCommit, Rollouts, RolloutSigns, stale_clusters
from reconciler.daemon.branch import BranchReader
from reconciler.model.ids import BlobId
from reconciler.ports import Repository


class RolloutTracker:
    """Follows placements from pass to pass. Git is asked once a pass at most, and not at all while nothing changes."""

    def __init__(self) -> None:
        self._blobs: dict[FileAtCommit, BlobId | None] = {}
        self._rollouts = Rollouts()

    def follow(self, repository: Repository, branch: BranchReader, signs: RolloutSigns, now: datetime) -> Rollouts:
        """Return the rollouts of the placements of the ledger; the same signs give the same object."""
        if not signs.same_as(self._rollouts.signs):
            clusters = stale_clusters(self._rollouts, signs)
            current = self._compare(repository, branch, rollouts.files_to_read(self._rollouts, signs, clusters))
            self._rollouts = rollouts.follow(self._rollouts, signs, clusters, current, now)
        return self._rollouts

    def _compare(
        self, repository: Repository, branch: BranchReader, doubts: frozenset[FileAtCommit]
    ) -> Mapping[FileAtCommit, bool]:
        """Tell of each file at a commit whether it is as at the tip. The files of a commit never change."""
        read = repository.held([place for place in doubts if place not in self._blobs])
        self._blobs = {place: blob for place, blob in (*self._blobs.items(), *read.items()) if place in doubts}
        return {place: blob is not None and blob == branch.blob(place[1]) for place, blob in self._blobs.items()}
