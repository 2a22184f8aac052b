"""A run as an SVG picture on one time axis.

It has the replicas that are missing and those of them that are served, the GPUs of each cluster in use, and a mark for
each commit, which says its subject and its reason where the pointer rests on it. All runs of a scenario have the same
axis, and all clusters of a picture the same scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from reconciler.lab.accounts import HOUR, ServiceSample
from reconciler.lab.controllers import CommitNote
from reconciler.lab.simulation import Result
from reconciler.model.ids import ClusterName

AREAS: Mapping[str, str] = {"missing replicas that nobody serves": "#f0a3a9", "served": "#7cc48b"}
"""Colours of the replicas."""
KINDS: Mapping[str, str] = {
    "burst": "#1a7f37", "resize": "#0969da", "extend": "#8c959f", "move": "#8250df", "Revert": "#cf222e",
}  # fmt: skip # a key
"""Colours of the commits, by how their subjects begin."""
_FREQUENT, _OTHER = "extend", "#57606a"
_COLOURS = ("#0969da", "#bf8700", "#8250df", "#1a7f37", "#cf222e", "#57606a")

_WIDTH, _LEFT, _RIGHT = 1100, 84, 24
_TOP, _DEMAND, _CLUSTER, _COMMITS, _GAP = 6, 130, 46, 26, 12
_MOST_POINTS = 2000
"""Points of one line; of more, those that share a pixel are one."""
_TICKS, _MOST_TICKS = (300, 600, 1800, HOUR, 3 * HOUR, 6 * HOUR, 24 * HOUR, 72 * HOUR), 12
"""Seconds between two ticks of the axis, and how many ticks there may be."""

_HEADER, _LETTER = 44, 5.8
"""Height of the title and the key of a picture that stands alone, and the width of a letter there."""
_STYLE = (
    "svg{color:#1f2328}.paper{fill:#fff}text{font:11px system-ui,sans-serif;fill:currentColor}"
    ".title{font-size:14px;font-weight:600}"
    "@media(prefers-color-scheme:dark){svg{color:#e6edf3}.paper{fill:#0d1117}}"
)


def draw(result: Result, length: int) -> str:
    """Draw a run of so many seconds as an element of a page, which has the key and the size of the letters."""
    body, height = _body(result, length)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{_label(result)}">{body}</svg>'


def draw_alone(result: Result, length: int, about: str) -> str:
    """Draw a run as a file of its own, with its title and its key, for light and dark pages."""
    body, height = _body(result, length)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height + _HEADER}" role="img" '
        f'aria-label="{_label(result)}"><style>{_STYLE}</style>'
        f'<rect class="paper" width="{_WIDTH}" height="{height + _HEADER}"/>'
        f'<text class="title" x="{_LEFT}" y="16">{_label(result)}: {escape(about)}</text>{_key()}'
        f'<g transform="translate(0 {_HEADER})">{body}</g></svg>\n'
    )


def _label(result: Result) -> str:
    return escape(f"{result.scenario}, {result.controller}")


def _key() -> str:
    parts, x = [], float(_LEFT)
    for name, colour in [*AREAS.items(), ("commits:", ""), *KINDS.items()]:
        if colour:
            parts.append(f'<rect x="{x:.0f}" y="27" width="9" height="9" rx="2" fill="{colour}"/>')
            x += 13
        parts.append(f'<text x="{x:.0f}" y="36">{escape(name)}</text>')
        x += len(name) * _LETTER + 14
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _Plot:
    """The time axis that all of a picture share."""

    samples: Sequence[ServiceSample]
    end: int
    """The last second."""

    def x(self, second: int) -> str:
        """Return the place of a moment."""
        return f"{_LEFT + second * (_WIDTH - _LEFT - _RIGHT) / self.end:.1f}"

    def area(self, value: Callable[[ServiceSample], int], most: int, top: int, height: int, colour: str) -> str:
        """Draw a number over time as a filled area of steps."""
        bottom = top + height
        path = [f"M{_LEFT} {bottom}"]
        for second, number in self._steps(value):
            path.append(f"H{self.x(second)}V{bottom - height * number / most:.1f}")
        path.append(f"H{self.x(self.end)}V{bottom}Z")
        return f'<path d="{"".join(path)}" fill="{colour}"/>'

    def line(self, y: int) -> str:
        """Draw the line that a number is counted from."""
        return f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="currentColor" opacity=".25"/>'

    def _steps(self, value: Callable[[ServiceSample], int]) -> Iterable[tuple[int, int]]:
        """Yield the moments at which a number changes; of several within one pixel, the highest."""
        pixel = max(1, self.end // _MOST_POINTS)
        last = None
        for _, within in groupby(self.samples, lambda sample: sample.second // pixel):
            several = list(within)
            number = max(map(value, several))
            if number != last:
                yield several[0].second, number
                last = number


def _body(result: Result, length: int) -> tuple[str, int]:
    """Draw all that a picture has beside its title and its key, and return its height."""
    plot = _Plot(result.samples, max(length, 1))
    clusters = sorted({name for sample in result.samples for name in sample.gpus})
    most = max((gpus for sample in result.samples for gpus in sample.gpus.values()), default=0)
    parts = [_demand(plot)]
    top = _TOP + _DEMAND + _GAP
    for number, cluster in enumerate(clusters):
        parts.append(_use(plot, cluster, max(1, most), top, _COLOURS[number % len(_COLOURS)]))
        top += _CLUSTER + _GAP
    if result.history:
        parts.append(f"{_text('commits', top + 13)}{_marks(plot, result.history, top)}")
        top += _COMMITS
    parts.append(_axis(plot, top))
    return "".join(parts), top + 2 * _GAP


def _text(text: str, y: int) -> str:
    """Write something to the left of the axis."""
    return f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end">{escape(text)}</text>'


def _demand(plot: _Plot) -> str:
    most = max((sample.missing for sample in plot.samples), default=0)
    height = max(1, most)
    missing, served = (
        plot.area(value, height, _TOP, _DEMAND, colour)
        for value, colour in zip(
            (lambda sample: sample.missing, lambda sample: sample.served), AREAS.values(), strict=True
        )
    )
    names = f"{_text(f'{most} replicas', _TOP + 8)}{_text('0', _TOP + _DEMAND)}"
    return f"{missing}{served}{plot.line(_TOP + _DEMAND)}{names}"


def _use(plot: _Plot, cluster: ClusterName, scale: int, top: int, colour: str) -> str:
    most = max((sample.gpus.get(cluster, 0) for sample in plot.samples), default=0)
    area = plot.area(lambda sample: sample.gpus.get(cluster, 0), scale, top, _CLUSTER, f"{colour}88")
    return f"{area}{plot.line(top + _CLUSTER)}{_text(cluster, top + 26)}{_text(f'{most} GPUs', top + 41)}"


def _marks(plot: _Plot, history: Sequence[CommitNote], top: int) -> str:
    """Mark each commit, renewals shorter; those of one second are one mark with all of them in its text."""
    marks = []
    for second, commits in groupby(history, lambda commit: commit.second):
        several = list(commits)
        kind = several[0].subject.partition("(")[0].partition(" ")[0]
        height = _COMMITS - (14 if kind == _FREQUENT else 8)
        text = "\n\n".join(f"{commit.subject}\n{commit.reason}" for commit in several)
        marks.append(
            f'<path d="M{plot.x(second)} {top + _COMMITS - 8}v-{height}" stroke="{KINDS.get(kind, _OTHER)}"'
            f' stroke-width="2"><title>{escape(_moment(second))} {escape(text)}</title></path>'
        )
    return "".join(marks)


def _axis(plot: _Plot, top: int) -> str:
    """Draw the time axis."""
    step = next((step for step in _TICKS if plot.end / step <= _MOST_TICKS), _TICKS[-1])
    ticks = "".join(
        f'<path d="M{plot.x(second)} {top}v4" stroke="currentColor"/>'
        f'<text x="{plot.x(second)}" y="{top + 16}" text-anchor="middle">{_moment(second)}</text>'
        for second in range(0, plot.end + 1, step)
    )
    return f'<path d="M{_LEFT} {top}H{_WIDTH - _RIGHT}" stroke="currentColor" opacity=".4"/>{ticks}'


def _moment(second: int) -> str:
    """Write a moment of a run: hours and minutes, and days where there are any."""
    days, rest = divmod(second, 24 * HOUR)
    clock = f"{rest // HOUR}:{rest % HOUR // 60:02}"
    return f"{days}d {clock}" if days else clock
