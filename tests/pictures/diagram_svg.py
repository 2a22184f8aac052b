"""Diagrams of boxes and arrows as SVG, readable on light and on dark pages.

The overview is that of README.md; the life of a placement is the table of transitions that the program goes by.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from reconciler.model.placement import TRANSITIONS, Phase

_STYLE = """\
text { font: 14px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 12px; fill: #57606a }
.title { font-weight: 600 }
rect { fill: #f6f8fa; stroke: #8c959f }
.strong { fill: #ddf4ff; stroke: #0969da }
path { fill: none; stroke: #57606a; stroke-width: 1.5 }
.head { fill: #57606a; stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9198a1 }
  rect { fill: #151b23; stroke: #656c76 }
  .strong { fill: #0c2d6b; stroke: #4493f8 }
  path { stroke: #9198a1 }
  .head { fill: #9198a1 }
}"""
_LINE = 18
_HEAD = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box with a title and lines below it, by its upper left corner; `tall` leaves room for boxes within."""

    x: int
    y: int
    width: int
    title: str
    lines: tuple[str, ...] = ()
    strong: bool = False
    tall: int = 0

    @property
    def height(self) -> int:
        """Height that the title and the lines need."""
        return self.tall + 20 + _LINE * (1 + len(self.lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """An arrow through points, with words beside it; the last piece is horizontal or vertical."""

    points: tuple[tuple[int, int], ...]
    words: str = ""
    at: tuple[int, int] = (0, 0)
    anchor: str = "middle"


def overview() -> str:
    """Draw what Overspill reads and writes, and who applies it."""
    boxes = (
        Box(x=10, y=10, width=230, title="people"),
        Box(x=10, y=100, width=230, title="main", lines=("clusters, tenants, policies, templates",)),
        Box(x=10, y=210, width=230, title="placements", lines=("clusters/*/*",)),
        Box(x=330, y=140, width=220, title="overspill run", lines=("look, decide, commit, push",), strong=True),
        Box(x=640, y=100, width=210, title="clusters", lines=("free nodes, missing replicas",)),
        Box(x=640, y=210, width=210, title="Argo CD, Flux or kubectl", lines=("apply, and prune after a revert",)),
    )
    arrows = (
        Arrow(points=((125, 48), (125, 100)), words="pull requests", at=(133, 79), anchor="start"),
        Arrow(points=((240, 120), (440, 120), (440, 140)), words="read", at=(290, 112)),
        Arrow(points=((640, 120), (500, 120), (500, 140)), words="watch", at=(590, 112)),
        Arrow(points=((440, 196), (440, 230), (240, 230)), words="commits and reverts", at=(340, 222)),
        Arrow(points=((240, 254), (640, 254)), words="follow", at=(560, 246)),
        Arrow(points=((745, 210), (745, 156))),
    )
    return _document(860, 276, "What Overspill reads and writes", boxes, arrows)


def life() -> str:
    """Draw the phases of a placement with what leads from one to the next."""
    ends = [phase for phase in Phase if phase not in {before for before, _ in TRANSITIONS}]
    rows = {end: 10 + 100 * number for number, end in enumerate(ends)}
    force = Box(x=110, y=76, width=460, title="in force", tall=90)
    phases = {
        Phase.PENDING: Box(x=130, y=120, width=150, title=str(Phase.PENDING), lines=_events(Phase.PENDING)),
        Phase.RUNNING: Box(
            x=400, y=120, width=150, title=str(Phase.RUNNING), lines=_events(Phase.RUNNING), strong=True
        ),
        **{end: Box(x=680, y=rows[end], width=240, title=str(end), lines=_reasons(end)) for end in ends},
    }
    middle = 120 + phases[Phase.RUNNING].height // 2
    arrows = [
        Arrow(points=((10, middle), (130, middle)), words="placed", at=(65, middle - 8)),
        Arrow(
            points=((280, middle - 10), (400, middle - 10)),
            words=_between(Phase.PENDING, Phase.RUNNING),
            at=(340, middle - 18),
        ),
        Arrow(
            points=((400, middle + 14), (280, middle + 14)),
            words=_between(Phase.RUNNING, Phase.PENDING),
            at=(340, middle + 32),
        ),
    ]
    for end in ends:
        box = phases[end]
        beside = box.y + box.height // 2
        arrows.append(Arrow(points=((570, middle), (625, middle), (625, beside), (680, beside))))
    return _document(930, 290, "The life of a placement", (force, *phases.values()), arrows)


def _between(before: Phase, after: Phase) -> str:
    return ", ".join(
        str(event) for (source, event), target in TRANSITIONS.items() if (source, target) == (before, after)
    )


def _events(phase: Phase) -> tuple[str, ...]:
    """List what leaves a phase as it is."""
    words = _between(phase, phase)
    return (f"stays: {words}",) if words else ()


def _reasons(end: Phase) -> tuple[str, ...]:
    """List what ends a placement in a phase, from whichever phase."""
    events = dict.fromkeys(str(event) for (_, event), target in TRANSITIONS.items() if target is end)
    return (", ".join(events),)


def _document(width: int, height: int, title: str, boxes: Sequence[Box], arrows: Iterable[Arrow]) -> str:
    """Write a whole picture."""
    parts = [*map(_box, boxes), *map(_arrow, arrows)]
    size = f'viewBox="0 0 {width} {height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">\n'
        f"<style>\n{_STYLE}\n</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _box(box: Box) -> str:
    strong = ' class="strong"' if box.strong else ""
    rows = [
        f'<rect{strong} x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>',
        _text(box.x + box.width // 2, box.y + 24, box.title, "title"),
        *(
            _text(box.x + box.width // 2, box.y + 24 + _LINE * number, line, "small")
            for number, line in enumerate(box.lines, start=1)
        ),
    ]
    return "\n".join(rows)


def _arrow(arrow: Arrow) -> str:
    (before_x, before_y), (x, y) = arrow.points[-2:]
    across, down = (x > before_x) - (x < before_x), (y > before_y) - (y < before_y)
    side_x, side_y = _HEAD * abs(down), _HEAD * abs(across)
    back_x, back_y = x - 2 * _HEAD * across, y - 2 * _HEAD * down
    line = " L ".join(f"{left} {top}" for left, top in arrow.points)
    head = f"M {x} {y} L {back_x - side_x} {back_y - side_y} L {back_x + side_x} {back_y + side_y} Z"
    parts = [f'<path d="M {line}"/>', f'<path class="head" d="{head}"/>']
    if arrow.words:
        parts.append(_text(*arrow.at, arrow.words, "small", arrow.anchor))
    return "\n".join(parts)


def _text(x: int, y: int, words: str, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


DIAGRAMS = {"overview": overview, "life-of-a-placement": life}
"""The diagrams of docs/pictures, by the names of their files."""

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

if __name__ == "__main__":
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    for name, draw in DIAGRAMS.items():
        (directory / f"{name}.svg").write_text(draw(), encoding="utf-8")
