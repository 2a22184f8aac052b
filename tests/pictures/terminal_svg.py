"""Screens of a terminal as SVG, still or moving: no script, no font and no address in them, the same bytes each time.

A moving picture is one loop. Each line that differs is drawn once, and a rule of CSS says when it shows, so that a
minute of a screen takes some hundred kilobytes. Where nothing moves, as for readers who have asked for that, one frame
stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from rich.color import ColorType
from rich.console import Console
from rich.style import Style
from rich.text import Text

CELL, LINE, SIZE = 8.4, 18, 14
"""Pixels: the width of a column, the height of a line, the size of the letters."""
_EDGE, _BAR = 14, 30
_TALL = 12.0
_PAPER, _INK = "#0d1117", "#e6edf3"
_COLOURS: Mapping[int, str] = {
    0: "#0d1117", 1: "#ff7b72", 2: "#56d364", 3: "#e3b341", 4: "#79c0ff", 5: "#d2a8ff", 6: "#56d4dd", 7: "#c9d1d9",
    8: "#6e7681", 9: "#ffa198", 10: "#7ee787", 11: "#f2cc60", 12: "#a5d6ff", 13: "#e2c5ff", 14: "#b3f0ff", 15: "#fff",
}  # fmt: skip # the sixteen colours of terminals
_SHAPES = frozenset("■▨▣▪□━─")
"""Characters that are drawn as shapes: fonts give them any width and height."""


@dataclass(frozen=True, slots=True)
class Run:
    """Characters beside each other in one style."""

    column: int
    text: str
    colour: str
    ground: str
    bold: bool
    dim: bool


def still(lines: Sequence[Text], columns: int, title: str) -> str:
    """Draw one screen."""
    drawn = "\n".join(filter(None, (_line(runs(line), row) for row, line in enumerate(lines))))
    return _document(drawn, columns, len(lines), title, "")


def film(frames: Sequence[tuple[float, Sequence[Text]]], columns: int, title: str, *, rest: int) -> str:
    """Draw frames, each shown for so many seconds, over and over; `rest` is the number of the frame that can stand."""
    length = sum(seconds for seconds, _ in frames)
    shown: dict[tuple[int, tuple[Run, ...]], list[tuple[float, float]]] = {}
    begin = 0.0
    for seconds, lines in frames:
        for row, line in enumerate(lines):
            spans = shown.setdefault((row, runs(line)), [])
            if spans and spans[-1][1] == begin:
                spans[-1] = (spans[-1][0], begin + seconds)
            else:
                spans.append((begin, begin + seconds))
        begin += seconds
    standing = {(row, runs(line)) for row, line in enumerate(frames[rest][1])}
    rules, drawn, names = [], [], dict[str, str]()
    for place, spans in sorted(shown.items(), key=lambda item: (item[0][0], item[1])):
        row, content = place
        text = _line(content, row)
        if not text:
            continue
        if spans == [(0.0, begin)]:
            drawn.append(text)
            continue
        stops = _stops(spans, length)
        name = names.setdefault(stops, f"k{len(names)}")
        if name == f"k{len(rules)}":
            rules.append(f"@keyframes {name}{{{stops}}}.{name}{{animation-name:{name}}}")
        drawn.append(f'<g class="f {name}{" s" if place in standing else ""}">{text}</g>')
    moves = (
        f".f{{animation:{length:g}s step-end infinite;visibility:hidden}}.s{{visibility:visible}}{''.join(rules)}"
        "@media(prefers-reduced-motion:reduce){.f{animation:none}}"
    )
    height = max(len(lines) for _, lines in frames)
    return _document("\n".join(drawn), columns, height, title, moves)


def runs(line: Text) -> tuple[Run, ...]:
    """Take a line apart by style; blanks at both ends of a run are left out where nothing shows."""
    console = Console(width=500, color_system="standard", force_terminal=True, legacy_windows=False)
    found, column = [], 0
    whole = console.get_style(line.style)  # that rich leaves out where a text has no other
    pieces = ((segment.text, whole + (segment.style or Style.null())) for segment in line.render(console))
    for style, group in groupby(pieces, key=lambda piece: piece[1]):
        text = "".join(piece for piece, _ in group)
        colour, ground = _colour(style, _INK, back=False), _colour(style, "", back=True)
        if style.reverse:
            colour, ground = ground or _PAPER, colour
        kept = text if ground else text.lstrip(" ")
        if kept.strip(" ") or ground:
            begin = column + len(text) - len(kept)
            kept = kept if ground else kept.rstrip(" ")
            found.append(Run(begin, kept, colour, ground, bool(style.bold), bool(style.dim)))
        column += len(text)
    return tuple(found)


def _colour(style: Style, default: str, *, back: bool) -> str:
    colour = style.bgcolor if back else style.color
    if colour is None or colour.type is ColorType.DEFAULT or colour.number is None:
        return default
    return _COLOURS[colour.number]


def _stops(spans: Iterable[tuple[float, float]], length: float) -> str:
    """Write the keyframes of what shows from and to these seconds."""
    stops: dict[str, str] = {"0%": "hidden"}
    for begin, end in spans:
        stops[f"{100 * begin / length:.2f}".rstrip("0").rstrip(".") + "%"] = "visible"
        if end < length:
            stops[f"{100 * end / length:.2f}".rstrip("0").rstrip(".") + "%"] = "hidden"
    return "".join(f"{at}{{visibility:{state}}}" for at, state in stops.items())


def _line(content: Sequence[Run], row: int) -> str:
    """Draw the runs of a line; a cell is as wide as two columns where the second is blank."""
    ends = [run.column for run in content[1:]] + [content[-1].column + 999] if content else []
    return "".join(
        part
        for run, end in zip(content, ends, strict=True)
        for part in _drawn(run, row, wide=run.text[1:2] == " " or (len(run.text) == 1 and end > run.column + 1))
    )


def _drawn(run: Run, row: int, *, wide: bool) -> Iterator[str]:
    """Draw a run: its ground, then its shapes or its letters."""
    x, y = _EDGE + run.column * CELL, _BAR + row * LINE
    if run.ground:
        width = len(run.text) * CELL
        yield f'<rect x="{x:g}" y="{y}" width="{width:.1f}" height="{LINE}" rx="2" fill="{run.ground}"/>'
    if _SHAPES.issuperset(run.text.replace(" ", "")) and run.text.strip():
        yield from _shapes(run, x, y, _TALL if wide else CELL - 2)
        return
    text = run.text.strip(" ")
    if text:
        at = x + (len(run.text) - len(run.text.lstrip(" "))) * CELL
        look = (' font-weight="600"' if run.bold else "") + (' opacity=".65"' if run.dim else "")
        fill = "" if run.colour == _INK else f' fill="{run.colour}"'
        blanks = escape(text, quote=False).replace("  ", "\u00a0 ")
        yield f'<text x="{at:g}" y="{y + SIZE}" textLength="{len(text) * CELL:.1f}"{fill}{look}>{blanks}</text>'


def _shapes(run: Run, x: float, y: int, side: float) -> Iterator[str]:
    """Draw cells as boxes of so many pixels across, and bars as lines, a path for each kind."""
    paths: dict[str, str] = {}
    for char, group in groupby(enumerate(run.text), key=lambda item: item[1]):
        places = [x + number * CELL for number, _ in group]
        if char in "━─":
            paths[char] = paths.get(char, "") + f"M{places[0]:.1f} {y + 10}h{len(places) * CELL:.1f}"
        for left in places if char in "■▨▣▪□" else ():
            inset = {"▪": side / 4}.get(char, 0.5 if char in "▣□▨" else 0)
            paths[char] = paths.get(char, "") + _box(left, y, side, inset)
            if char == "▣":
                paths["■"] = paths.get("■", "") + _box(left, y, side, side / 4)
    faint = ' opacity=".65"' if run.dim else ""
    for char, path in paths.items():
        if char in "━─":
            width = 3 if char == "━" else 1
            yield f'<path d="{path}" stroke="{run.colour}" stroke-width="{width}" fill="none"{faint}/>'
        elif char in "▣□▨":
            fill = f'"{run.colour}" fill-opacity=".4"' if char == "▨" else '"none"'
            quiet = ' stroke-opacity=".45"' if char == "□" else ""
            yield f'<path d="{path}" stroke="{run.colour}"{quiet} fill={fill}/>'
        else:
            yield f'<path d="{path}" fill="{run.colour}"{faint}/>'


def _box(left: float, y: int, side: float, inset: float) -> str:
    """Write the path of a box in the middle of a line."""
    width, height = side - 2 * inset, _TALL - 2 * inset
    return f"M{left + inset:.1f} {y + 4 + inset:g}h{width:g}v{height:g}h-{width:g}z"


def _document(drawn: str, columns: int, lines: int, title: str, moves: str) -> str:
    """Put what is drawn into a window with a title."""
    width, height = round(columns * CELL + 2 * _EDGE), lines * LINE + _BAR + _EDGE
    style = (
        f'text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;'
        f"white-space:pre}}svg{{fill:{_INK}}}.t{{font:12px system-ui,sans-serif;fill:#8b949e}}{moves}"
    )
    lights = "".join(f'<circle cx="{18 + 16 * number}" cy="15" r="5" fill="#30363d"/>' for number in range(3))
    name = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
        f"<style>{style}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>{lights}'
        f'<text class="t" x="{width / 2:g}" y="19" text-anchor="middle">{name}</text>\n{drawn}\n</svg>\n'
    )
