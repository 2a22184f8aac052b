"""Errors by the reaction that they need.

Everything may import this module; it imports nothing of ours.

* `InvalidInput`: a file, a flag or a setting of the remote has to be changed. A retry is useless.
* `Transient`: an outside system is unreachable. Keep the last good state, back off, retry.
* `Pending`: the answer is being made in the background. Go on without it; the daemon is woken once it is ready.
* `Conflict`: another commit has moved the branch. Run the whole pass again on the new tip.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Severity(StrEnum):
    """Whether a problem keeps its file out of force, or is a warning."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Bug:
    """An exception that nothing foresaw, and the one item that it cost (`reconciler.bulkhead`)."""

    item: str
    """The file, workload, cluster or call, by name."""
    task: str
    """The work on the item, such as ``rendering the template``."""
    error: str
    """The exception: its type and its text."""
    trace: str = dataclasses.field(default="", compare=False, repr=False)
    """Its traceback, as Python prints it."""

    def __str__(self) -> str:
        """Name the item, the work and the exception in one line."""
        return one_line(f"{self.item}: a bug in {self.task}: {self.error}")

    @property
    def summary(self) -> str:
        """The bug without its item, for where that is named already."""
        return f"a bug of Overspill in {self.task}: {self.error}"

    def problem(self, path: str, line: int = 0, severity: Severity = Severity.ERROR) -> Problem:
        """Report the bug as a problem of a file."""
        return Problem(path=path, line=line, message=self.summary, hint=_REPORT, severity=severity, bug=self)


_REPORT = "please report it; only this is left out"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """A problem at one place of a file."""

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
    bug: Bug | None = dataclasses.field(default=None, compare=False, repr=False)
    """The exception behind it, where nothing foresaw it."""

    def at(self, path: str) -> Problem:
        """Locate a problem of a file's content in the file."""
        bug = self.bug and dataclasses.replace(self.bug, item=path)
        return dataclasses.replace(self, path=path, bug=bug)

    def __str__(self) -> str:
        """Write the problem as ``path:line: field: message (hint)`` on one line, leaving out what is unknown.

        Whatever a file is called, its name ends no line and sends a terminal no commands.
        """
        place = f"{self.path}:{self.line}" if self.line else self.path
        parts = [place, self.field, self.message] if self.field else [place, self.message]
        text = ": ".join(part for part in parts if part)
        return one_line(f"{text} ({self.hint})" if self.hint else text)


def one_line(text: str) -> str:
    """Escape what would end a line or command a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


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


class HostKeyChanged(InvalidInput):
    """The remote has not proved to be the host that is known: an alarm, beside the refusal."""


class LostBranch(InvalidInput):
    """A branch of the remote lacks commits that it had: nothing is written until a person has settled that."""


class Transient(OverspillError):  # noqa: N818 -- the design names it so
    """An outside system did not answer or is busy: the same call may work later.

    `pause` is the first wait of a rate limit, under which waits grow beyond those of an outage.
    """

    def __init__(self, message: str = "", *, pause: timedelta | None = None) -> None:
        """Take the message, and the first wait if the system has asked for quiet."""
        super().__init__(message)
        self.pause = pause


class Pending(Transient):
    """The answer is being made in the background, and nothing waits for it."""


class Conflict(OverspillError):  # noqa: N818 -- the design names it so
    """A ref moved between fetch and push, so the decision is based on an old tip."""
