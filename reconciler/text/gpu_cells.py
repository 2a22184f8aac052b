"""Drawing of a cluster's GPUs: a cell for each GPU, node by node, as characters and the names of their colours.

Called by whatever shows clusters live: `overspill watch` and the demo. The colours are names that click and rich both
know; the characters tell the uses apart without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class GpuUse(Enum):
    """Who has a GPU, in the order in which cells are drawn."""

    BURST = "burst"
    """A replica that Overspill has placed here."""
    STARTING = "starting"
    """A replica that Overspill has placed here and that has no node yet."""
    HOME = "at home"
    """A replica of a workload of the fleet on its primary cluster."""
    OTHER = "other"
    FREE = "free"


CELLS: Mapping[GpuUse, tuple[str, str, str]] = {
    GpuUse.BURST: ("■", "#", "green"),
    GpuUse.STARTING: ("▨", "+", "yellow"),
    GpuUse.HOME: ("▣", "@", "cyan"),
    GpuUse.OTHER: ("▪", "x", "bright_black"),
    GpuUse.FREE: ("□", ".", "white"),
}
"""By use: the character, the character for screens of ASCII alone, and the colour."""

Run: TypeAlias = tuple[str, str]
"""Characters of one colour, and its name; empty for the colour of the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCells:
    """The drawn GPUs of one cluster."""

    lines: tuple[tuple[Run, ...], ...]
    gpus_per_cell: int
    """1, or more where the screen has no room for every GPU."""


def draw_gpus(
    nodes: Sequence[Mapping[GpuUse, int]], *, width: int, lines: int = 3, ascii_only: bool = False
) -> GpuCells:
    """Draw the GPUs of each node beside each other, with a gap between nodes, in at most `lines` of `width` columns.

    Where they do not fit by node, they are drawn by use alone; where they still do not fit, a cell stands for several
    GPUs, and no use is left out. A node that is wider than a line is broken.
    """
    width, lines = max(width, len(GpuUse)), max(lines, 1)
    groups = [cells for node in nodes if (cells := _cells(node, 1))]
    rows, size = _rows(groups, width), 1
    if len(rows) > lines:
        uses = {use: sum(node.get(use, 0) for node in nodes) for use in GpuUse}
        while len(cells := _cells(uses, size)) > width * lines:
            size = max(size + 1, -(-size * len(cells) // (width * lines + len(GpuUse))))
        rows = _rows([cells], width)
    return GpuCells(lines=tuple(_runs(row, ascii_only=ascii_only) for row in rows), gpus_per_cell=size)


def legend(uses: Sequence[GpuUse] = tuple(GpuUse), *, ascii_only: bool = False) -> tuple[Run, ...]:
    """Return a line that explains the cells."""
    line: list[Run] = []
    for number, use in enumerate(uses):
        symbol, plain, colour = CELLS[use]
        line += [("  ", "")] if number else []
        line += [(plain if ascii_only else symbol, colour), (f" {use.value}", "")]
    return tuple(line)


def _cells(uses: Mapping[GpuUse, int], size: int) -> list[GpuUse]:
    """List the cells of a group by use; what is not zero has one."""
    return [use for use in GpuUse for _ in range(-(-max(0, uses.get(use, 0)) // size))]


def _rows(groups: Sequence[list[GpuUse]], width: int) -> list[list[GpuUse | None]]:
    """Put groups into rows with a gap (None) between them."""
    rows: list[list[GpuUse | None]] = []
    for group in groups:
        if rows and len(rows[-1]) + 1 + len(group) <= width:
            rows[-1] += [None, *group]
        else:
            rows += [list(group[at : at + width]) for at in range(0, len(group), width)]
    return rows


def _runs(row: Sequence[GpuUse | None], *, ascii_only: bool) -> tuple[Run, ...]:
    """Join neighbours of one colour."""
    runs: list[Run] = []
    for use in row:
        symbol, plain, colour = CELLS[use] if use is not None else (" ", " ", "")
        text = plain if ascii_only else symbol
        if runs and runs[-1][1] == colour:
            runs[-1] = (runs[-1][0] + text, colour)
        else:
            runs.append((text, colour))
    return tuple(runs)
