"""Which tests show each row of a page, as egs.yaml and platform.yaml have it: heading, first cell, names of tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import yaml

_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)
_TESTS = Path(__file__).parents[2]

Shown = dict[str, dict[str, list[str]]]


def shown(page: str) -> Shown:
    """Read which tests show each row of a page."""
    read: Shown = yaml.safe_load((Path(__file__).parent / f"{page}.yaml").read_text())
    return read


@cache
def tests() -> tuple[str, ...]:
    """List the names of all tests, once for each function of that name."""
    return tuple(name for path in _TESTS.rglob("test_*.py") for name in _TEST.findall(path.read_text()))


def unclear(page: str) -> list[str]:
    """List the names that no test has, or several have."""
    named = (name for rows in shown(page).values() for row in rows.values() for name in row or ["none"])
    return [name for name in named if tests().count(name) != 1]


def cells(text: str) -> list[list[str]]:
    """Return the cells of every row of the tables in a text, without the rows that name columns."""
    found: list[list[str]] = []
    for line in text.splitlines():
        row = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else []
        if row and set("".join(row)) <= set("-: "):
            found.pop()
        elif row:
            found.append(row)
    return found


def rows_by_heading(text: str) -> dict[str, list[str]]:
    """Return the first cell of every row, by the heading that it is below."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        if firsts := [row[0] for row in cells(body)]:
            found[heading] = firsts
    return found
