"""Markdown for pull requests: tables, and text from files that stays plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reconciler.errors import one_line
from reconciler.text.references import guarded

_SPECIAL = re.compile(r"([\\`*_{}\[\]|#~&])")
_DOLLAR = re.compile(r"(?<=\S)\$")
"""What may end a formula, and with two in a row begin one; an amount such as ``2.99 $/h`` keeps its own."""


def escaped(text: str) -> str:
    """Return a text on one line, for the middle of a line, without markup, mentions, links and other references.

    Hosts look for references in the text that they have rendered, where no backslash is left. A dash or number at the
    start of a line would still begin a list.
    """
    marked = _SPECIAL.sub(r"\\\1", guarded(_one_line(text)))
    marked = _DOLLAR.sub("&dollar;", marked)  # hosts read formulas where Markdown has a backslash before it as well
    return marked.replace("<", "&lt;").replace(">", "&gt;")  # no program that looks for a tag finds one


def _one_line(text: str) -> str:
    """Fold spaces; what would turn the reading direction or stay unseen is shown."""
    return one_line(" ".join(text.split()))


def code(text: str) -> str:
    """Return a text as code for the cell of a table, in which a bar has a backslash; elsewhere the backslash shows.

    Hosts look for no reference in code, and a name that is copied from it is as it was.
    """
    line = _one_line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    return "\n".join([row(headers), f"|{'---|' * len(headers)}", *map(row, rows)])


def row(cells: Sequence[str]) -> str:
    """Return a row of a table; its cells are Markdown already."""
    return "|".join(("", *(f" {cell} " if cell else " " for cell in cells), ""))
