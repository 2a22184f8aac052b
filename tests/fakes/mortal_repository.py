"""A repository whose caller is killed at a chosen call of its port, for tests of what a killed daemon leaves behind."""

from __future__ import annotations

from typing import Any

from reconciler.ports import Repository

CALLS = frozenset(name for name, value in vars(Repository).items() if callable(value) and not name.startswith("_"))
"""The calls of the port, at each of which the daemon may die."""


class Killed(BaseException):
    """Stands for kill -9: nothing of the daemon may catch it."""


class Mortal:
    """Any repository; its caller dies when `left` calls are done, before or after the last has had its effect."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.left = 0
        self.after = False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._repository, name)
        if name not in CALLS:
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Killed
            result = value(*arguments, **named)
            if self.left == 0:
                raise Killed
            return result

        return call
