"""*Time*: the placements of the last hours as bars over the demand, as they stood at any commit of the branch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.commits.history import BurstHistory, as_they_stand, bursts, past_demand
from reconciler.core.commits.trailers import Trailer, action
from reconciler.daemon.answers.desk import RecentCommits
from reconciler.daemon.bug_log import BUGS
from reconciler.model.action import PLACEMENT_ENDS
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkspaceName
from reconciler.model.tree import LoggedCommit
from reconciler.web.viewer import Viewer
from reconciler.web.why import find_commit, may_see_commit

SPANS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "1d": timedelta(days=1), "7d": timedelta(days=7)}
"""The lengths that may be chosen."""
MOST_COMMITS = 2000
_MOST_BARS = 120
WIDTH, LEFT, LANE, HEAD, DEMAND = 1000, 190, 26, 26, 56
"""Measures of the drawing: its width, the room for names, the heights of a bar's lane, of the clock, and of demand."""
_TICKS = 6
_LETTER = 6.6
"""Room for a letter."""
_REPLICAS = re.compile(r": (?:[0-9]+ to )?([0-9]+) replicas?\b")
_STATED = re.compile(r"\b([0-9]+) (?:replicas?|pods?) (?:missing|unschedulable)\b")
_MOST_POINTS = 400
_NICE = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A placement."""

    burst: BurstHistory
    x: float
    y: float
    width: float
    replicas: int | None
    """None where no commit in sight says it."""
    open_left: bool
    """Whether it began before the commits that were read."""
    standing: bool
    reasons: str
    """The first sentence of why it began."""
    commit: str
    """The commit that it began with."""
    words: str = ""
    """What is written on it; empty where there is no room."""
    words_x: float = 0.0
    outside: bool = False
    """Whether the words end before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A workload with its demand and its bars."""

    workload: str
    y: float
    height: float
    demand: str
    """The points of an area; empty where no demand is known."""
    most: int
    """The highest demand in sight."""
    demand_y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark of the clock."""

    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMark:
    """A commit to go to."""

    id: str
    at: datetime
    subject: str
    x: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The view."""

    begin: datetime
    end: datetime
    span: str
    at: CommitMark | None
    """The commit that it stands at; None for the present."""
    before: str
    """The commit before it; empty for none."""
    after: str
    """The commit after it; empty for none."""
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    marks: tuple[CommitMark, ...]
    """The commits in sight, oldest first."""
    rows: tuple[Bar, ...]
    """All bars, the one that began last first, for the table."""
    left_out: int
    """Bars for which there is no room."""
    cut: bool
    """Whether commits before the first ones in sight were not read."""
    height: float
    curve: tuple[tuple[int, int, int], ...]
    """Moments in seconds with the replicas that were lent and those that were missing, where they change."""


def timeline_view(
    viewer: Viewer, log: RecentCommits, now: datetime, *, span: str = "6h", at: str = "", workload: str = ""
) -> Timeline:
    """Draw the view, at a commit or at the present; `at` names one that is in the log, or it is not heeded."""
    commits = [commit for commit in log.commits if may_see_commit(viewer, commit)]
    stands_at = find_commit(commits, at)
    if stands_at is not None:
        commits = commits[commits.index(stands_at) :]
    end = stands_at.at if stands_at is not None else now
    begin = end - SPANS[span]
    histories = bursts(commits, BUGS.note)
    if stands_at is None:
        histories = as_they_stand(histories, viewer.snapshot.decision.inputs.ledger, commits[0].at if commits else now)
    histories = tuple(
        burst
        for burst in histories
        if viewer.may_see(WorkspaceName(burst.workload.partition("/")[0]))
        and workload in ("", burst.workload)
        and (burst.ended_at is None or burst.ended_at >= begin)
    )
    scale = _Scale(begin=begin, end=end)
    drawing = _lanes(viewer, commits, histories[:_MOST_BARS], scale, present=stands_at is None)
    visible = [commit for commit in log.commits if may_see_commit(viewer, commit)]
    place = visible.index(stands_at) if stands_at is not None else -1
    marks = tuple(_mark(viewer, commit, scale) for commit in reversed(commits) if commit.at >= begin)
    return Timeline(
        begin=begin,
        end=end,
        span=span,
        at=None if stands_at is None else _mark(viewer, stands_at, scale),
        before=str(visible[place + 1].id) if place + 1 < len(visible) else "",
        after=str(visible[place - 1].id) if place > 0 else "",
        lanes=drawing,
        ticks=tuple(_ticks(scale)),
        marks=marks,
        rows=tuple(_bar(viewer, burst, scale, 0.0) for burst in histories[:_MOST_BARS]),
        left_out=max(0, len(histories) - _MOST_BARS),
        cut=log.cut,
        height=(drawing[-1].y + drawing[-1].height if drawing else HEAD) + 8,
        curve=_curve(viewer, commits, histories, scale, present=stands_at is None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Where moments lie in the drawing."""

    begin: datetime
    end: datetime

    def x(self, at: datetime) -> float:
        """Return the place of a moment, within the drawing."""
        share = (at - self.begin) / (self.end - self.begin)
        return round(LEFT + (WIDTH - LEFT - 10) * min(max(share, 0.0), 1.0), 1)


def _lanes(
    viewer: Viewer, commits: Sequence[LoggedCommit], histories: Sequence[BurstHistory], scale: _Scale, *, present: bool
) -> tuple[Lane, ...]:
    """Draw the workloads below each other, each with its bars below its demand."""
    workloads = sorted({burst.workload for burst in histories})
    levels = _levels(viewer, commits, workloads, present=present)
    lanes: list[Lane] = []
    y = float(HEAD)
    for workload in workloads:
        own = sorted(
            (burst for burst in histories if burst.workload == workload),
            key=lambda burst: (burst.started_at or scale.begin, burst.id),
        )
        points = [*_points(levels.get(workload, ()), scale)]
        most = max((missing for _, missing in points), default=0)
        room = DEMAND if most else 0
        bars, rows = _pack(viewer, own, scale, y + room)
        height = room + rows * LANE + 14
        lanes.append(
            Lane(
                workload=workload,
                y=y,
                height=height,
                demand=_area(points, y + DEMAND - 6, most, scale) if most else "",
                most=most,
                demand_y=y + DEMAND - 6,
                bars=bars,
            )
        )
        y += height
    return tuple(lanes)


def _pack(viewer: Viewer, histories: Sequence[BurstHistory], scale: _Scale, top: float) -> tuple[tuple[Bar, ...], int]:
    """Put bars into as few rows as hold them side by side, and count the rows."""
    ends: list[float] = []
    bars: list[Bar] = []
    for burst in histories:
        left, right = scale.x(burst.started_at or scale.begin), scale.x(burst.ended_at or scale.end)
        row = next((number for number, end in enumerate(ends) if end + 4 <= left), len(ends))
        before = ends[row] if row < len(ends) else float(LEFT)
        ends[row : row + 1] = [max(right, left + 3)]
        bars.append(_with_words(_bar(viewer, burst, scale, top + row * LANE), left - before))
    return tuple(bars), len(ends)


def _bar(viewer: Viewer, burst: BurstHistory, scale: _Scale, y: float) -> Bar:
    left, right = scale.x(burst.started_at or scale.begin), scale.x(burst.ended_at or scale.end)
    counts = [
        int(match[1])
        for step in burst.steps
        if step.action not in PLACEMENT_ENDS and (match := _REPLICAS.search(step.subject))
    ]
    reasons = burst.steps[0].reasons.partition("\n")[0] if burst.steps else ""
    return Bar(
        burst=burst,
        x=left,
        y=y,
        width=max(round(right - left, 1), 3.0),
        replicas=counts[-1] if counts else None,
        open_left=burst.started_at is None,
        standing=burst.ended_at is None,
        reasons=viewer.say(reasons),
        commit=str(burst.steps[0].commit) if burst.steps else "",
    )


def _with_words(bar: Bar, room: float) -> Bar:
    """Write on a bar as much as there is room for, or else before it."""
    count = "" if bar.replicas is None else f"{bar.replicas} on "
    short = f"{count}{bar.burst.where}"
    choices = (short,) if bar.standing else (f"{short}, {bar.burst.why}", short)
    inside = next((text for text in choices if len(text) * _LETTER <= bar.width - 10), "")
    if inside or len(short) * _LETTER > room - 12:
        return replace(bar, words=inside, words_x=bar.x + 7)
    return replace(bar, words=short, words_x=bar.x - 6, outside=True)


def _levels(
    viewer: Viewer, commits: Sequence[LoggedCommit], workloads: Iterable[str], *, present: bool
) -> dict[str, list[tuple[datetime, int | None]]]:
    """Return what was missing over time, by workload, as far as commits and the present tell."""
    names = set(workloads)
    past: dict[str, list[tuple[datetime, int | None]]] = {}
    for name, levels in past_demand(commits, names, BUGS.note).items():
        past[name] = [(level.at, level.missing) for level in levels]
    for name in names - past.keys():
        past[name] = [*_stated_demand(commits, name)]
    for workload, demand in viewer.snapshot.decision.inputs.demands.items() if present else ():
        if str(workload) in names and isinstance(demand, Demand):
            watched = [(sample.at, sample.missing) for sample in demand.history]
            known = [(level.at, level.missing) for level in demand.past] or past[str(workload)]
            before = [level for level in known if not watched or level[0] < watched[0][0]]
            past[str(workload)] = [*before, *watched]
    return past


def _stated_demand(commits: Sequence[LoggedCommit], workload: str) -> Iterator[tuple[datetime, int | None]]:
    """Yield what the reasons of commits say was missing, for a workload whose past no trailer tells."""
    for commit in reversed(commits):
        if f"({workload})" not in commit.subject:
            continue
        stated = _STATED.search(commit.body)
        if stated:
            yield commit.at, int(stated[1])
        elif Trailer.WHY.read(commit) == "demand-gone" and action(commit) in PLACEMENT_ENDS:
            yield commit.at, 0


def _points(levels: Sequence[tuple[datetime, int | None]], scale: _Scale) -> Iterator[tuple[float, int]]:
    """Yield where each level begins; a level that nobody knows is drawn as none."""
    before = 0
    for at, missing in levels:
        if at <= scale.begin:
            before = missing or 0
            continue
        if at > scale.end:
            break
        yield scale.x(at), missing or 0
    if before:
        yield scale.x(scale.begin), before


def _area(points: Iterable[tuple[float, int]], floor: float, most: int, scale: _Scale) -> str:
    """Write the points of the area below the steps of a demand."""
    ordered = sorted(points)
    tall = DEMAND - 20
    path = [(ordered[0][0], floor)]
    height = floor
    for x, missing in ordered:
        path.append((x, height))
        height = floor - tall * missing / most
        path.append((x, height))
    right = scale.x(scale.end)
    path += [(right, height), (right, floor)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in path)


def _ticks(scale: _Scale) -> Iterator[Tick]:
    length = scale.end - scale.begin
    step = next((step for step in _NICE if length / step <= _TICKS + 1), _NICE[-1])
    day = scale.end.replace(hour=0, minute=0, second=0, microsecond=0)
    at = day - (-(-(day - scale.begin) // step)) * step
    while at <= scale.end:
        if at >= scale.begin:
            yield Tick(x=scale.x(at), label=f"{at:%d %b}" if step >= timedelta(days=1) else f"{at:%H:%M}")
        at += step


def _mark(viewer: Viewer, commit: LoggedCommit, scale: _Scale) -> CommitMark:
    return CommitMark(id=commit.id, at=commit.at, subject=viewer.say(commit.subject), x=scale.x(commit.at))


def _curve(
    viewer: Viewer, commits: Sequence[LoggedCommit], histories: Sequence[BurstHistory], scale: _Scale, *, present: bool
) -> tuple[tuple[int, int, int], ...]:
    """Sum up what was lent and what was missing, at each moment at which either changed."""
    lent: list[tuple[datetime, int]] = []
    for burst in histories:
        held = 0
        for step in burst.steps:
            match = _REPLICAS.search(step.subject)
            after = 0 if step.action in PLACEMENT_ENDS else int(match[1]) if match else held
            lent.append((max(step.at, scale.begin), after - held))
            held = after
    levels = _levels(viewer, commits, {burst.workload for burst in histories}, present=present)
    missed: list[tuple[datetime, int]] = []
    for steps in levels.values():
        held = 0
        for at, missing in steps:
            missed.append((max(at, scale.begin), (missing or 0) - held))
            held = missing or 0
    moments = sorted({scale.begin, scale.end, *(at for at, _ in (*lent, *missed) if at <= scale.end)})
    return tuple(
        (
            int(at.timestamp()),
            sum(change for since, change in lent if since <= at),
            sum(change for since, change in missed if since <= at),
        )
        for at in moments[-_MOST_POINTS:]
    )
