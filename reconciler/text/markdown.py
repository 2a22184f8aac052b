"""Markdown for pull requests: tables and words that hold whatever a file says, and read as text alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def escaped(text: str) -> str:
    """Return a text on one line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return a text as code; in a table too, where a bar would end the cell."""
    line = " ".join(text.split()).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    return "\n".join([_row(headers), f"|{'---|' * len(headers)}", *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "|".join(("", *(f" {cell} " if cell else " " for cell in cells), ""))
