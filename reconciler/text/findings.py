"""A problem before its file and line are known.

Checks of values return findings; the owner of the document (`schema.yaml.Document.line`) turns them into problems. The
values can then be checked once and cached, whatever path the file has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from reconciler.errors import Problem, Severity, one_line
from reconciler.text.wording import count

Loc: TypeAlias = tuple[str | int, ...]
"""The path from a document's root to a node, in the names of the file: ``("spec", "steps", 0, "name")``."""

MOST_TOLD = 100
"""Problems of one file that are reported; after these are fixed, the next check reports the rest."""
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


_Told = TypeVar("_Told", bound=Finding | Problem)


def told(found: Sequence[_Told], most: int = MOST_TOLD) -> tuple[_Told, ...]:
    """Return what is reported of many problems of one file or object: the first ones, and how many more there are.

    Errors come before warnings, each in the order in which they were found.
    """
    ordered = sorted(found, key=lambda each: each.severity)  # "error" sorts before "warning"
    if len(ordered) <= most:
        return tuple(found)
    first, message = ordered[most], f"has {count(len(ordered) - most, 'more problem')}"
    place: dict[str, Any] = {"line": 0, "field": "", "bug": None}
    if isinstance(first, Finding):
        place = {"loc": first.loc[:1]}
    return (*ordered[:most], replace(first, message=message, hint="", **place))
