"""Pages of long tables, by their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from reconciler.bulkhead import Seam, attempt
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage(Generic[R]):
    """The rows of one page."""

    rows: tuple[R, ...]
    number: int
    """From 1."""
    pages: int
    """At least 1."""
    total: int
    """Rows of all pages."""
    first: int
    """The position of the page's first row, from 1; 0 without rows."""

    @property
    def last(self) -> int:
        """The position of the page's last row."""
        return self.first + len(self.rows) - 1 if self.rows else 0


def page_of(items: Sequence[T], number: int, size: int, row: Callable[[T], R]) -> TablePage[R]:
    """Make the rows of a page, and of no other; a number beyond the last page is the last page.

    A row that meets an unforeseen exception is left out, and logged.
    """
    pages = max(1, -(-len(items) // size))
    number = min(max(number, 1), pages)
    start = (number - 1) * size
    made = [attempt(Seam.STATUS, item, partial(row, item)) for item in items[start : start + size]]
    for bug in made:
        if isinstance(bug, Bug):
            BUGS.note(bug)
    rows = tuple(entry for entry in made if not isinstance(entry, Bug))
    return TablePage(rows=rows, number=number, pages=pages, total=len(items), first=start + 1 if rows else 0)
