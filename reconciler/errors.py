"""Errors by the reaction that they need.

Everything may import this module; it imports nothing of ours.

* `InvalidInput`: a file, a flag or a setting of the remote has to be changed. A retry is useless.
* `Transient`: an outside system is unreachable. Keep the last good state, back off, retry.
* `Conflict`: another commit has moved the branch. Run the whole pass again on the new tip.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Whether a problem keeps its file out of force, or is a warning."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One problem at one place of a file."""

    path: str
    line: int = 0
    """Counts from 1; 0 stands for the whole file."""
    field: str = ""
    """A dotted path such as ``spec.steps[0].name``; empty for the whole document."""
    message: str
    """Completes "field: ..."."""
    hint: str = ""
    """The way out ("try '4h'"), or empty."""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """Write the problem as ``path:line: field: message (hint)``, leaving out what is unknown."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        parts = [place, self.field, self.message] if self.field else [place, self.message]
        text = ": ".join(part for part in parts if part)
        return f"{text} ({self.hint})" if self.hint else text


class OverspillError(Exception):
    """Base of all errors that this program raises on purpose; its text is for users."""


class InvalidInput(OverspillError):  # noqa: N818 -- the design names it so
    """Input that the user has to mend: a file, a flag, a refused push.

    `problems` may be empty if no file is at fault; the text is complete then.
    """

    def __init__(self, message: str = "", *, problems: tuple[Problem, ...] = ()) -> None:
        """Join the problems' texts when no message of its own is given."""
        super().__init__(message or "\n".join(str(problem) for problem in problems))
        self.problems = problems


class Transient(OverspillError):  # noqa: N818 -- the design names it so
    """An outside system did not answer or is busy: the same call may work later."""


class Conflict(OverspillError):  # noqa: N818 -- the design names it so
    """A ref moved between fetch and push, so the decision is based on an old tip."""
