"""The desk that answers callers of the API, over a repository in memory."""

from __future__ import annotations

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.helm.rendering import Helm
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.snapshot import LatestSnapshot
from tests.fakes.memory_repository import OURS, MemoryRepository


def answer_desk(latest: LatestSnapshot, repository: MemoryRepository) -> AnswerDesk:
    """Answer from the repository that passes use as well: nothing is cloned in memory."""
    return AnswerDesk(latest, lambda: repository, charts=Helm(), clock=SystemClock(), author=OURS)
