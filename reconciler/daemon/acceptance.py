"""Whether what engines say is about what stands: their commits compared with the tip of the output branch.

A commit is as good as the tip where it holds the very placement.yaml that the tip holds: it is the commit that wrote
it, or a later one that left it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.core.observe import rollouts
from reconciler.core.observe.rollouts import Place, Rollouts, RolloutSigns, stale
from reconciler.daemon.branch import BranchReader
from reconciler.model.ids import BlobId
from reconciler.ports import Repository


class Acceptance:
    """Follows placements from pass to pass. Git is asked once a pass at most, and not at all while nothing changes."""

    def __init__(self) -> None:
        self._known: dict[Place, BlobId | None] = {}
        self._rollouts = Rollouts()

    def follow(self, repository: Repository, branch: BranchReader, signs: RolloutSigns, now: datetime) -> Rollouts:
        """Say what has become of the placements of the ledger; the same signs give the same object."""
        if not signs.same_as(self._rollouts.signs):
            clusters = stale(self._rollouts, signs)
            held = self._answered(repository, branch, rollouts.doubts(self._rollouts, signs, clusters))
            self._rollouts = rollouts.follow(self._rollouts, signs, clusters, held, now)
        return self._rollouts

    def _answered(self, repository: Repository, branch: BranchReader, doubts: frozenset[Place]) -> Mapping[Place, bool]:
        """Tell of each file at a commit whether it is as at the tip. What a commit holds never changes."""
        new = repository.held([place for place in doubts if place not in self._known])
        self._known = {place: blob for place, blob in (*self._known.items(), *new.items()) if place in doubts}
        return {place: blob is not None and blob == branch.blob(place[1]) for place, blob in self._known.items()}
