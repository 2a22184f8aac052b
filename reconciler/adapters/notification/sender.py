"""What a courier asks of the way to a receiver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from reconciler.core.notification.message import Uncertain
from reconciler.environment import PREFIX
from reconciler.model.events.event import Notice

VARIABLE = f"{PREFIX}NOTIFICATION_SECRETS"
_MOST_BYTES = 64 << 10

ONLY = ""
"""The target of a receiver that has but one."""


class NotTaken(Exception):  # noqa: N818 - an answer, not a fault
    """The receiver has not taken it; the text says why, without the address and without a secret."""


class Sender(Protocol):
    """The way to one receiver."""

    def ready(self) -> None:
        """Do what needs no receiver, such as reading its secret. Raises NotTaken where nothing could be sent."""
        ...

    def targets(self, notice: Notice) -> Sequence[str]:
        """Name where a notice is sent to, at least one: clusters for Kubernetes Events, `ONLY` for the others."""
        ...

    def send(self, target: str, notices: Sequence[Notice], uncertain: Uncertain | None = None, /) -> None:
        """Tell a target of notices; raises NotTaken where it has taken none of them.

        A receiver that knows repeated events gets one notice at a time.
        """
        ...


class SingleTarget:
    """What senders to one place share."""

    def targets(self, _notice: Notice) -> Sequence[str]:
        """Name the only target."""
        return (ONLY,)


class Secrets:
    """The secrets of receivers: a file each in one directory, read anew each time, as Kubernetes may replace it."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def read(self, name: str) -> str:
        """Return a secret. Raises NotTaken where there is none."""
        if self._directory is None:
            raise NotTaken(f"its secret {name!r} cannot be read ({VARIABLE} names no directory with such a file)")
        path = self._directory / name
        try:
            with path.open(encoding="utf-8") as file:
                secret = file.read(_MOST_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise NotTaken(f"its secret cannot be read from {path}: {why}") from error
        if not secret:
            raise NotTaken(f"its secret in {path} is empty")
        return secret
