"""The branches of clusters that the remote does not let us move, and the pause before each is tried again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from reconciler.errors import InvalidInput, OverspillError
from reconciler.model.branch_refusal import BranchRefusal
from reconciler.model.ids import ClusterName

REFUSAL_PAUSE = timedelta(minutes=5)
"""Time without a push to a branch that a person has to allow first."""
FAULT_PAUSE = timedelta(seconds=30)
"""The same where waiting may help, or another branch may be the refused one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paused:
    refusal: BranchRefusal
    until: float
    """By the clock of `monotonic`."""


class RefusedBranches:
    """Holds the last refusal of each branch that was not pushed since. It is lost with the process, which tries again.

    A refused branch is pushed apart from the others until it has been taken.
    """

    def __init__(self) -> None:
        self._paused: dict[ClusterName, _Paused] = {}

    def __contains__(self, cluster: ClusterName) -> bool:
        return cluster in self._paused

    @property
    def refusals(self) -> tuple[BranchRefusal, ...]:
        """All refusals, by cluster."""
        return tuple(paused.refusal for _, paused in sorted(self._paused.items()))

    def due(self, lacking: Collection[ClusterName]) -> frozenset[ClusterName]:
        """Return the clusters whose branch is to be pushed now, of those whose branch lacks commits.

        The refusals of all others are forgotten.
        """
        self._paused = {cluster: paused for cluster, paused in self._paused.items() if cluster in lacking}
        now = monotonic()
        return frozenset(lacking) - {cluster for cluster, paused in self._paused.items() if now < paused.until}

    def note_refused(self, cluster: ClusterName, branch: str, error: OverspillError, *, is_certain: bool) -> None:
        """Note a refusal, which begins a pause: a short one unless it is certain that it is for this branch."""
        pause = REFUSAL_PAUSE if is_certain and isinstance(error, InvalidInput) else FAULT_PAUSE
        refusal = BranchRefusal(cluster=cluster, branch=branch.removeprefix("refs/heads/"), error=str(error))
        self._paused[cluster] = _Paused(refusal=refusal, until=monotonic() + pause.total_seconds())

    def note_moved(self, cluster: ClusterName) -> None:
        """Note that the remote has taken the branch."""
        self._paused.pop(cluster, None)
