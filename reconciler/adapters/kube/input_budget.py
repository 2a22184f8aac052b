"""What the answers of all clusters together may take of this process: memory while they are read, and time.

Each answer and each object is bounded by itself (`reconciler.model.bounds`); many clusters at the same moment are
bounded here. All of it lives in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from reconciler.model.bounds import CLUSTER_BYTES_IN_FLIGHT, CLUSTER_WORK

_SHARED_RATE = 0.4
"""Seconds of work a second of all clusters together that have used up their own `CLUSTER_WORK`."""


@dataclass(slots=True, eq=False)
class PartialAnswer:
    """An answer, or an event of a watch, that is being received."""

    content: bytearray = field(default_factory=bytearray)
    cut: bool = False
    """Whether its content has been dropped, since it was the largest of too much."""


class InputBudget:
    """The answers in flight of some servers, and the time that it takes to read them."""

    def __init__(self) -> None:
        """Begin without any answer."""
        self._answers: set[PartialAnswer] = set()
        self._bytes = 0
        self._debtors: set[WorkCredit] = set()

    @contextmanager
    def answer(self) -> Iterator[PartialAnswer]:
        """Hold the content of one answer for as long as it is received."""
        answer = PartialAnswer()
        self._answers.add(answer)
        try:
            yield answer
        finally:
            self._answers.discard(answer)
            self._drop(answer)

    def add(self, answer: PartialAnswer, chunk: bytes) -> None:
        """Add to an answer. Where all together become too much, the largest is cut: no small one waits for it."""
        answer.content += chunk
        self._bytes += len(chunk)
        while self._bytes > CLUSTER_BYTES_IN_FLIGHT.most:
            largest = max(self._answers, key=lambda other: len(other.content))
            self._drop(largest)
            largest.cut = True

    def take(self, answer: PartialAnswer, end: int) -> bytes:
        """Take the first bytes out of an answer, and leave the rest."""
        taken = bytes(answer.content[:end])
        del answer.content[:end]
        self._bytes -= len(taken)
        return taken

    def work_credit(self) -> WorkCredit:
        """Return the credit of one more server."""
        return WorkCredit(self._debtors)

    def _drop(self, answer: PartialAnswer) -> None:
        self._bytes -= len(answer.content)
        answer.content = bytearray()


class WorkCredit:
    """The time of work that the answers of one server may still cost at once.

    Lists of a large cluster take many seconds of work when it is first seen, and hardly any afterwards. A server that
    goes on as at first is read more slowly, so that the thread of passes and the other servers get on.
    """

    def __init__(self, debtors: set[WorkCredit]) -> None:
        """Begin with the whole credit; `debtors` are the servers that have used theirs up."""
        self._debtors = debtors
        self._left = float(CLUSTER_WORK.most)
        self._at = time.monotonic()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Take the time of some work in this thread off the credit."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.spend(time.thread_time() - began)

    def spend(self, seconds: float) -> None:
        """Take some time off the credit."""
        self._left -= seconds

    async def wait(self) -> None:
        """Wait until the credit is no longer overdrawn; other servers go on meanwhile."""
        if pause := self.pause():
            await asyncio.sleep(pause)

    def pause(self) -> float:
        """Return the seconds to wait; 0 while there is credit."""
        now = time.monotonic()
        rate = _SHARED_RATE / max(1, len(self._debtors))
        self._left = min(float(CLUSTER_WORK.most), self._left + (now - self._at) * rate)
        self._at = now
        if self._left >= 0:
            self._debtors.discard(self)
            return 0.0
        self._debtors.add(self)
        return min(-self._left * len(self._debtors) / _SHARED_RATE, _LONGEST_WAIT)


_LONGEST_WAIT = 10.0
"""Seconds; the credit is looked at again after the next piece of work."""
