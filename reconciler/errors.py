"""What can go wrong, told apart by what the reader has to do about it.

Everything may import this module; it imports nothing of ours.

* `InvalidInput`: somebody has to change a file, a flag or a remote's settings. Trying again is useless.
* `Transient`: the world is away. Back off, keep what was last known to be good, try again.
* `Conflict`: somebody else moved the branch first. Run the whole pass again on the new tip.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Whether a problem keeps its file out of force, or only deserves a look."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One thing that is wrong with one place of one file.

    `line` counts from 1; 0 means the file as a whole. `field` is a dotted path such as ``spec.steps[0].name``, empty
    for the document as a whole. `message` completes "field: ..."; `hint` says the way out ("try '4h'") or is empty.
    """

    path: str
    line: int = 0
    field: str = ""
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """Write the problem as ``path:line: field: message (hint)``, leaving out what is unknown."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        parts = [place, self.field, self.message] if self.field else [place, self.message]
        text = ": ".join(part for part in parts if part)
        return f"{text} ({self.hint})" if self.hint else text


class OverspillError(Exception):
    """Anything this program raises on purpose; the text is fit for a user to read."""


class InvalidInput(OverspillError):  # noqa: N818 -- the design names it so
    """Input that only a person can mend: a file, a flag, a refused push.

    `problems` may be empty when there is no file to point at; the text says it all then.
    """

    def __init__(self, message: str = "", *, problems: tuple[Problem, ...] = ()) -> None:
        """Join the problems' texts when no message of its own is given."""
        super().__init__(message or "\n".join(str(problem) for problem in problems))
        self.problems = problems


class Transient(OverspillError):  # noqa: N818 -- the design names it so
    """The world did not answer, or answered that it is busy: the same call may work later."""


class Conflict(OverspillError):  # noqa: N818 -- the design names it so
    """A ref moved between fetch and push, so what was decided no longer stands on the tip."""
