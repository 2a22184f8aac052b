"""The layout of tables: as wide as their cells, or within the width of a terminal.

Names, ids, moments and numbers are copied and compared, so they are never broken; prose is broken between words. Where
the unbroken columns leave no room for prose, prose goes below its row. docs/decisions/0017-tables-of-our-own.md says
why rich's tables do not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from rich.cells import cell_len

Style: TypeAlias = Callable[[str, str], str]
"""A function of a header and the text of a cell that returns the text in its colour."""

PROSE = frozenset({"DEMAND", "NOTE", "VERDICT", "WHAT WOULD CHANGE IT", "WHY"})
"""Headers of the columns that hold sentences."""

NONE = "-"
"""The text of a cell without a value."""

_GAP = "  "
_INDENT = "    "
_READABLE = 24
"""A column of prose that is narrower than this, and than its text, is a ladder of single words."""


def aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines of columns two spaces apart, each as wide as its widest cell as terminals count."""
    widths = _widths(headers, rows)
    for row in (headers, *rows):
        yield _line(row, widths)


def fitted(
    headers: Sequence[str], rows: Sequence[Sequence[str]], width: int, style: Style = lambda _, text: text
) -> Iterator[str]:
    """Yield lines that are no wider than `width`, the headers in the first; `style` colours the other cells.

    A line is wider only where a single name or moment is.
    """
    widths = _widths(headers, rows)
    prose = [column for column, header in enumerate(headers) if header in PROSE]
    room = width - sum(widths) - len(_GAP) * (len(headers) - 1) + sum(widths[column] for column in prose)
    least = [
        max(
            min(widths[column], _READABLE),
            *(cell_len(word) for row in (headers, *rows) for word in row[column].split()),
        )
        for column in prose
    ]
    if sum(least) > room:
        yield from _below(headers, rows, widths, width, style)
        return
    for column, share in zip(prose, _share_width(room, least, [widths[column] for column in prose]), strict=True):
        widths[column] = share
    for place, row in enumerate((headers, *rows)):
        cells = [wrapped(text, widths[column]) if column in prose else [text] for column, text in enumerate(row)]
        for number in range(max(map(len, cells))):
            line = [cell[number] if number < len(cell) else "" for cell in cells]
            yield _line(line, widths, _styles(headers, style) if place else ())


def wrapped(text: str, width: int) -> list[str]:
    """Break a text between words into lines no wider than `width`; only a word that is wider by itself is folded."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.text import Text  # noqa: PLC0415 - only a terminal needs it

    lines = Text(text).wrap(Console(width=width), width, overflow="fold", no_wrap=False)
    return [line.plain.rstrip() for line in lines] or [""]


def _styles(headers: Sequence[str], style: Style) -> list[Callable[[str], str]]:
    return [partial(style, header) for header in headers]


def _below(
    headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], width: int, style: Style
) -> Iterator[str]:
    """Yield the first columns as far as they go, and under each row the others by name."""
    fixed = [column for column, header in enumerate(headers) if header not in PROSE]
    shown = fixed[:1]
    for column in fixed[1:]:
        if sum(widths[each] + len(_GAP) for each in shown) + widths[column] > width:
            break
        shown.append(column)
    rest = fixed[len(shown) :]
    prose = [column for column in range(len(headers)) if column not in fixed]
    for number, row in enumerate((headers, *rows)):
        styles = _styles([headers[column] for column in shown], style) if number else ()
        yield _line([row[column] for column in shown], [widths[column] for column in shown], styles)
        if number == 0:
            continue
        for line in _wrap([f"{headers[column]}: {row[column]}" for column in rest], width - len(_INDENT)):
            yield _INDENT + line
        for column in prose:
            if row[column] != NONE:
                for line in wrapped(f"{headers[column]}: {row[column]}", width - len(_INDENT)):
                    yield _INDENT + line


def _wrap(items: Sequence[str], width: int) -> list[str]:
    """Put items beside each other while there is room, else in another line; no item is broken."""
    lines: list[str] = []
    for item in items:
        if lines and cell_len(lines[-1] + _GAP + item) <= width:
            lines[-1] += _GAP + item
        else:
            lines.append(item)
    return lines


def _share_width(room: int, least: Sequence[int], most: Sequence[int]) -> list[int]:
    """Give each column its least, and share out the rest of the room evenly, to none more than its most."""
    widths, spare = list(least), room - sum(least)
    wanting = sorted(range(len(widths)), key=lambda column: most[column] - least[column])
    for number, column in enumerate(wanting):
        more = min(most[column] - least[column], spare // (len(wanting) - number))
        widths[column] += more
        spare -= more
    return widths


def _widths(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(row[column]) for row in (headers, *rows)) for column in range(len(headers))]


def _line(row: Sequence[str], widths: Sequence[int], styles: Sequence[Callable[[str], str]] = ()) -> str:
    """Join cells, padded by their own width: the marks of a colour take none."""
    styled = [style(text) for style, text in zip(styles, row, strict=True)] if styles else row
    pads = (" " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True))
    return _GAP.join(text + pad for text, pad in zip(styled, pads, strict=True)).rstrip()
