"""The desk that answers callers of the API, over a repository in memory."""

from __future__ import annotations

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.helm.rendering import Helm
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.ports import Clock
from tests.fakes.memory_repository import OURS, MemoryRepository


def answer_desk(latest: LatestSnapshot, repository: MemoryRepository, clock: Clock | None = None) -> AnswerDesk:
    """Answer from the repository that passes use as well: nothing is cloned in memory."""
    return AnswerDesk(
        latest,
        lambda: repository,
        charts=Helm(),
        clock=clock or SystemClock(),
        author=OURS,
        output_branch="placements",
    )
