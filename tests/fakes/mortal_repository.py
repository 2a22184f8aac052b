"""A repository whose caller is killed at a chosen call of its port, for tests of what a killed daemon leaves behind."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from reconciler.ports import Repository

CALLS = frozenset(name for name, value in vars(Repository).items() if callable(value) and not name.startswith("_"))
"""The calls of the port, at each of which the daemon may die."""


class Killed(BaseException):
    """Stands for kill -9: nothing of the daemon may catch it."""


class Fuse:
    """The calls that are left to a caller, before or after the last of which it dies."""

    def __init__(self, left: int = 0, *, after: bool = False) -> None:
        self.left, self.after = left, after


class Mortal:
    """A subject, a repository by default, whose caller dies when a fuse has burnt down; several may share one fuse."""

    def __init__(self, subject: Any, fuse: Fuse | None = None, *, calls: Collection[str] | None = CALLS) -> None:
        self._subject, self.fuse, self._calls = subject, fuse or Fuse(), calls

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        if not callable(value) or (self._calls is not None and name not in self._calls):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            self.fuse.left -= 1
            if self.fuse.left == 0 and not self.fuse.after:
                raise Killed
            result = value(*arguments, **named)
            if self.fuse.left == 0:
                raise Killed
            return result

        return call
