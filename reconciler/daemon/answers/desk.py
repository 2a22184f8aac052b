"""Answers for callers of the API from a mirror of their own, so that no pass waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Protocol

from reconciler.daemon.answers.history import History, HistorySelection, read_history
from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.errors import InvalidInput, Transient
from reconciler.model.tree import Identity
from reconciler.ports import Repository

PATIENCE = 20.0
"""Seconds that a caller waits for the answers to those before."""
_LOOKS = 10
_LOOK_EVERY = 0.2
_DEEP = 500
"""Commits of the output branch that are fetched where the newest pass is behind its tip."""


class OwnRepository(Repository, Protocol):
    """A repository that is closed in the end."""

    def close(self) -> None:
        """Remove the mirror."""
        ...


class AnswerDesk:
    """Answers one caller at a time, from any thread.

    The repository is opened with the first question: its mirror is one more copy of the branches.
    """

    def __init__(self, latest: LatestSnapshot, open_repository: Callable[[], OwnRepository], author: Identity) -> None:
        """Answer from the newest pass, and from a repository of its own that `author` commits to."""
        self._latest = latest
        self._open = open_repository
        self._author = author
        self._lock = Lock()
        self._repository: OwnRepository | None = None
        self._closed = False

    def history(self, selection: Callable[[Snapshot], HistorySelection]) -> History:
        """Read past placements. Raises InvalidInput as `read_history` does, and Transient when too many ask."""
        with self._turn() as repository:
            snapshot = self._fetched(repository)
            return read_history(repository, self._author, snapshot.decision.inputs.ledger, selection(snapshot))

    def close(self) -> None:
        """Remove the mirror once nobody reads it, and answer nobody any more."""
        self._closed = True
        with self._lock:
            if self._repository is not None:
                self._repository.close()
                self._repository = None

    @contextmanager
    def _turn(self) -> Iterator[OwnRepository]:
        """Wait until nobody else is answered. Raises Transient when that takes too long."""
        if not self._lock.acquire(timeout=PATIENCE):
            raise Transient("others are being answered")
        try:
            if self._closed:
                raise Transient("stopping: no more questions are answered")
            self._latest.read()  # before the first pass there is nothing to answer, and nothing to fetch
            if self._repository is None:
                self._repository = self._open()
            yield self._repository
        finally:
            self._lock.release()

    def _fetched(self, repository: OwnRepository) -> Snapshot:
        """Fetch, and return the newest pass, whose commits the mirror then holds."""
        for _ in range(_LOOKS):
            try:
                tips = repository.fetch()
            except InvalidInput as error:  # not of whoever asks
                raise Transient(str(error)) from error
            snapshot = self._latest.read()
            commit = snapshot.decision.inputs.ledger.commit
            if commit is None or repository.held({(commit, "README.md")}):
                return snapshot
            if tips.output is not None:
                repository.log(tips.output, limit=_DEEP)  # a new mirror begins with the tip alone
            time.sleep(_LOOK_EVERY)
        raise Transient("the output branch has been rewritten, and no pass has seen it yet")
