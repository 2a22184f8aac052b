"""Errors by the reaction that they need.

Everything may import this module; it imports nothing of ours.

* `InvalidInput`: a file, a flag or a setting of the remote has to be changed. A retry is useless.
* `Transient`: an outside system is unreachable. Keep the last good state, back off, retry.
* `Pending`: the answer is being made in the background. Go on without it; the daemon is woken once it is ready.
* `Conflict`: another commit has moved the branch. Run the whole pass again on the new tip.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable
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


_UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),  # joiners, fillers, vowels without a shape
            *range(0x180B, 0x1810),  # selectors of variants, in which whole texts can hide
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
            *(0x2800, 0x1D159),  # blanks that are no spaces
        ),
    )
)
"""What stays unseen and yet counts as printable: the rest of Unicode's Default_Ignorable_Code_Point does not."""
_EMOJI_SIGN = "\ufe0f"
"""The one selector that people type, after a symbol that is an emoji with it."""
_MOST_MARKS = 5
"""Marks that writing puts on one letter; more of them climb over the lines above and below."""


def replace_unseen(text: str, stand_in: Callable[[str], str]) -> str:
    """Return a text with a stand-in for each character that would end a line, order a terminal about or stay unseen.

    So have those that turn the reading direction, and those that are stacked beyond what any writing does.
    """
    if text.isascii():
        if text.isprintable():
            return text
        return "".join(char if char.isprintable() else stand_in(char) for char in text)
    shown, marks, before = [], 0, ""
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        seen = char.isprintable() and marks <= _MOST_MARKS
        seen = seen and (char not in _UNSEEN or (char == _EMOJI_SIGN and before == "So"))
        shown.append(char if seen else stand_in(char))
        before = category
    return "".join(shown)


_RUNNER_COMMAND = re.compile(r"#(?=#[\w-]*\[)|(?<!\S):(?=:[A-Za-z][\w-]*(?:::|\s|$))")
"""What the programs that run CI jobs take for an order in a line of the output: ``##[group]``, ``##vso[...]`` and
``##teamcity[...]`` anywhere, ``::group::`` and ``::error file=x::`` at the start, where ``::ffff:10.0.0.1`` is none
(https://github.com/actions/runner ActionCommand.cs,
https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands)."""


def one_line(text: str) -> str:
    """Escape what would end a line, command a terminal or the runner of a CI job, or stay unseen."""
    shown = replace_unseen(text, _escaped)
    if "##" in shown or "::" in shown:
        return _RUNNER_COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", shown)
    return shown


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


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
