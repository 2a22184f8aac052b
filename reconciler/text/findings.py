"""A problem before its file and line are known.

Checks of values return findings; the owner of the document (`schema.yaml.Document.line`) turns them into problems. The
values can then be checked once and cached, whatever path the file has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.errors import Problem, Severity, one_line

Loc: TypeAlias = tuple[str | int, ...]
"""The path from a document's root to a node, in the names of the file: ``("spec", "steps", 0, "name")``."""

_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem at one location of a document. The fields are those of `errors.Problem`."""

    loc: Loc = ()
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def problem(self, *, path: str, line: int) -> Problem:
        """Locate the finding in a file."""
        return Problem(
            path=path,
            line=line,
            field=dotted(self.loc),
            message=self.message,
            hint=self.hint,
            severity=self.severity,
        )


def dotted(loc: Loc) -> str:
    """Write a location as a field path: ``spec.steps[0].name``, ``metadata.labels["nvidia.com/gpu"]``."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _WORD.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{shortened(part)}"]'
    return text


def shortened(text: str, limit: int = 80) -> str:
    """Shorten a foreign text to fit in a message, on one printable line."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return one_line(shown)
