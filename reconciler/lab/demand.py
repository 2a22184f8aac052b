"""Demand: wanted replicas over time.

Made up, from a table, from the log of requests that a service has answered, or from recorded passes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from reconciler.adapters.recording_files import read_recording
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.lab.scenario import Series
from reconciler.model.bounds import REQUEST_LOG
from reconciler.model.ids import ClusterName
from reconciler.text.digits import whole_number
from reconciler.text.findings import shortened
from reconciler.text.spelling import nearest
from reconciler.text.timestamps import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What one replica of a language model serves: the tokens that it reads and those that it writes a second.

    A request keeps a replica busy for both, one after the other; requests beside each other add up.
    """

    context_tokens: float
    generated_tokens: float
    window: int = 60
    """Seconds over which the load is averaged."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request of a log."""

    second: float
    """Since the first request."""
    context_tokens: int
    generated_tokens: int


_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def read_requests(path: Path) -> tuple[LoggedRequest, ...]:
    """Read a log of requests in the columns of Azure's public LLM traces: TIMESTAMP, ContextTokens, GeneratedTokens.

    https://github.com/Azure/AzurePublicDataset. Rows may be in any order. Raises InvalidInput with the line of the
    first row that is none, and for a log over a longer time than REQUEST_LOG.
    """
    rows: list[tuple[datetime, int, int]] = []
    for number, row in _rows(path, _COLUMNS):
        moment = _time(path, number, row["TIMESTAMP"])
        rows.append((moment, _whole(path, number, row["ContextTokens"]), _whole(path, number, row["GeneratedTokens"])))
    rows.sort()
    first, last = rows[0][0], rows[-1][0]
    if (last - first).total_seconds() > REQUEST_LOG.most:
        between = f"from {format_time(first)} to {format_time(last)}"
        raise InvalidInput(f"{path}: the requests are {between}, over {REQUEST_LOG} (leave a part of them out)")
    return tuple(LoggedRequest((moment - first).total_seconds(), *tokens) for moment, *tokens in rows)


def read_wanted(path: Path) -> Series:
    """Read a table of wanted replicas: columns ``second`` and ``replicas``.

    Raises InvalidInput with the line of the first row that is none.
    """
    points: list[tuple[int, int]] = []
    for number, row in _rows(path, ("second", "replicas")):
        second, replicas = _whole(path, number, row["second"]), _whole(path, number, row["replicas"])
        if second < 0 or replicas < 0 or (points and second < points[-1][0]):
            raise _row_error(
                path, number, f"{second},{replicas}", "seconds go up from 0, and replicas are not negative"
            )
        points.append((second, replicas))
    return Series.of(points)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDemand:
    """What workloads wanted in recorded passes."""

    first: datetime
    last: datetime
    wanted: Mapping[tuple[ClusterName, str], Sequence[tuple[datetime, int]]]
    """The replicas from each change on, by cluster and object (``namespace/name``)."""


def read_recorded(place: Path, workload: str, *, cluster: str = "", begin: datetime | None = None) -> Series:
    """Read what a workload wanted in recorded passes, by its object ``namespace/name`` on its primary.

    Seconds count from `begin`, or from the first pass. `cluster` names the primary where several clusters report the
    object. Raises InvalidInput for a damaged recording, for a workload that is not in it and for a time outside.
    """
    recorded = _recorded(place)
    objects = {name for _, name in recorded.wanted}
    clusters = [seen for seen, name in recorded.wanted if name == workload and cluster in ("", seen)]
    if len(clusters) != 1:
        if workload not in objects:
            what, hint = f"no pass saw {workload}", nearest(workload, objects)
        else:
            reporting = sorted(seen for seen, name in recorded.wanted if name == workload)
            what, hint = f"{workload} is on {', '.join(reporting)}", "name its primary as cluster"
        raise InvalidInput(f"reading the recording {place}: {what}{f' ({hint})' if hint else ''}")
    start = begin or recorded.first
    if not recorded.first <= start <= recorded.last:
        raise InvalidInput(
            f"reading the recording {place}: {format_time(start)} is not in it (its passes are from"
            f" {format_time(recorded.first)} to {format_time(recorded.last)})"
        )
    return Series.of(
        (max(0, int((at - start).total_seconds())), replicas)
        for at, replicas in sorted(recorded.wanted[clusters[0], workload], key=itemgetter(0))
    )


@lru_cache(maxsize=1)
def _recorded(place: Path) -> RecordedDemand:
    """Read a recording; kept, since a scenario may take the demand of several workloads from it."""
    moments: list[datetime] = []
    problems: list[Problem] = []
    wanted: dict[tuple[ClusterName, str], list[tuple[datetime, int]]] = {}
    for entry in read_recording(place):
        if isinstance(entry, Problem):
            problems.append(entry)
            continue
        moments.append(entry.at)
        for name, seen in entry.observed.clusters.items():
            for workload in seen.workloads:
                points = wanted.setdefault((name, f"{workload.ref.namespace}/{workload.ref.name}"), [])
                if not points or points[-1][1] != workload.wanted:
                    points.append((entry.at, workload.wanted))
    if not moments or any(problem.severity is Severity.ERROR for problem in problems):
        raise InvalidInput(problems=tuple(problems))
    return RecordedDemand(first=moments[0], last=moments[-1], wanted=wanted)


def load(requests: Sequence[LoggedRequest], throughput: Throughput) -> list[float]:
    """Return for each second the replicas that the requests of the window before it kept busy, on average."""
    if not requests:
        return []
    length = math.ceil(requests[-1].second) + 1
    work = [0.0] * (length + 1)
    for request in requests:
        work[int(request.second)] += (
            request.context_tokens / throughput.context_tokens + request.generated_tokens / throughput.generated_tokens
        )
    busy, total = [], 0.0
    for second in range(length):
        total += work[second]
        if second >= throughput.window:
            total -= work[second - throughput.window]
        busy.append(max(0.0, total) / throughput.window)
    return busy


def wanted_replicas(loads: Sequence[float]) -> Series:
    """Round loads by second up to whole replicas."""
    return Series.of((second, math.ceil(round(value, 6))) for second, value in enumerate(loads))


def scaled(loads: Sequence[float], *, home_share: float, peak: int) -> tuple[list[float], int]:
    """Scale a load so that its peak is `peak` replicas above what the primary has room for.

    The primary's room is the quantile `home_share` of the load. Returns the scaled load and that room.
    """
    ordered = sorted(loads)
    quantile = ordered[min(len(ordered) - 1, int(home_share * len(ordered)))]
    factor = peak / (ordered[-1] - quantile)
    return [value * factor for value in loads], math.ceil(quantile * factor)


def plateau(home: int, above: int, *, begin: int, end: int) -> Series:
    """Want so many replicas more than the primary has room for, from one moment to another."""
    return Series.of([(0, home), (begin, home + above), (end, home)])


def flap(home: int, above: int, *, period: int, high: int, length: int) -> Series:
    """Want more for a part of each period."""
    starts = range(period - high, length, period)
    return Series.of(point for start in starts for point in ((start, home + above), (start + high, home)))


def ramp(home: int, above: int, *, length: int) -> Series:
    """Want one replica more at a time up to the middle of the run, and one fewer at a time after it."""
    step = length // (2 * above + 2)
    counts = [*range(above + 1), *range(above, -1, -1)]
    return Series.of((place * step, home + count) for place, count in enumerate(counts))


def diurnal(home: int, above: int, *, length: int, step: int = 600) -> Series:
    """Want what people want by day: the most in the early afternoon, and less than the primary's room by night."""
    day = 24 * 3600

    def replicas(second: int) -> int:
        height = math.cos(2 * math.pi * (second % day - 14 * 3600) / day)
        return max(0, round(home + above * (2 * height - 1)))

    return Series.of((second, replicas(second)) for second in range(0, length, step))


def by_day(used: int, *, length: int, begin: int = 9, end: int = 18) -> Series:
    """Use GPUs by day, from one hour to another, every day."""
    days = range(0, length, 24 * 3600)
    return Series.of(point for day in days for point in ((day + begin * 3600, used), (day + end * 3600, 0)))


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file with their line numbers. Raises InvalidInput for a file without any."""
    expected = f"its first line names the columns: {','.join(columns)}"
    empty = True
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
            reader = csv.DictReader(file, restval="")
            names = reader.fieldnames
            if names is None:
                raise InvalidInput(f"{path} is empty ({expected})")
            missing = [column for column in columns if column not in names]
            if missing:
                held = shortened(", ".join(names))
                raise InvalidInput(f"{path}:1: column {missing[0]} is missing, there are {held} ({expected})")
            for row in reader:
                empty = False
                yield reader.line_num, row
    except OSError as error:
        raise InvalidInput(f"reading {path}: {error.strerror or error} (try another path)") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"reading {path}: {error} (try CSV in UTF-8)") from error
    if empty:
        raise InvalidInput(f"{path} has no row below its columns (try another file)")


def _whole(path: Path, number: int, text: str) -> int:
    value = whole_number(text.strip())
    if value is None:
        raise _row_error(path, number, text, "a whole number is needed")
    return value


def _time(path: Path, number: int, text: str) -> datetime:
    """Read a time of up to nine digits behind the second, in UTC."""
    head, _, digits = text.partition(".")
    try:
        return datetime.fromisoformat(f"{head}.{digits[:6]:0<6}").replace(tzinfo=UTC)
    except ValueError as error:
        raise _row_error(path, number, text, "a time is needed, as 2023-11-16 18:17:03.97") from error


def _row_error(path: Path, number: int, text: str, needed: str) -> InvalidInput:
    return InvalidInput(f"{path}:{number}: {f'{shortened(text)!r}' if text else 'a cell is empty'} ({needed})")
