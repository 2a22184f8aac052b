"""The past demand of a workload: the most replicas that were missing in each five minutes, for signals that look back.

A step function over whole steps of five minutes: it grows at its end and is cut at its beginning by whole days, so
that passes share nearly all of it. Times in which nobody watched are part of it. Commits carry its end, from which a
process that starts anew learns the rest (docs/how-to/signals.md, "Forecasts").
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from reconciler.model.signal import DemandLevel
from reconciler.text.digits import whole_number
from reconciler.text.timestamps import format_time, parse_time

STEP = timedelta(minutes=5)
_DAY = timedelta(days=1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MOST_WRITTEN = 20
"""Levels that one commit carries."""
_DIGITS = 9
_UNKNOWN = "?"

Levels = tuple[DemandLevel, ...]
"""The levels of one workload, oldest first, each until the next one."""


def step_of(at: datetime) -> datetime:
    """Return the begin of the step that a moment is in."""
    return at - (at - _EPOCH) % STEP


def steps_in(duration: timedelta) -> int:
    """Count the steps that a duration takes, a part of one as a whole."""
    return -(-duration // STEP)


def extended(levels: Levels, missing: int | None, at: datetime, keep: timedelta) -> Levels:
    """Add the present missing replicas, None where they are unknown, and drop whole days that `keep` does not cover.

    A step has the most of what was missing in it; what is missing at its end goes on with the next. A clock that jumped
    back begins the past anew. Empty until something is known.
    """
    step = step_of(at)
    following = step + STEP
    cut = (at - keep).replace(hour=0, minute=0, second=0, microsecond=0)
    # 1. Most passes: nothing has changed, and nothing is to be dropped.
    if levels and levels[-1].missing == missing and levels[-1].at <= following and _begins_at(levels, cut):
        return levels
    # 2. The clock jumped back.
    if levels and levels[-1].at > following:
        levels = ()
    # 3. Nothing has ever been known.
    if not levels and missing is None:
        return ()
    # 4. The step that is under way, and what goes on after it.
    before = level_at(levels, step)
    most = max((count for count in (before, missing) if count is not None), default=None)
    kept = [level for level in levels if level.at < step]
    for level in (DemandLevel(at=step, missing=most), DemandLevel(at=following, missing=missing)):
        if (kept[-1].missing if kept else None) != level.missing:
            kept.append(level)
    # 5. Whole days, so that what is recorded of each pass differs little from the one before.
    while not _begins_at(kept, cut):
        kept.pop(0)
    return tuple(kept)


def _begins_at(levels: Sequence[DemandLevel], cut: datetime) -> bool:
    """Return whether the first level reaches to the cut, or begins after it."""
    return len(levels) == 1 or levels[1].at > cut


def level_at(levels: Sequence[DemandLevel], at: datetime) -> int | None:
    """Return the level at a moment; None where nobody watched."""
    index = bisect_right(levels, at, key=lambda level: level.at) - 1
    return levels[index].missing if index >= 0 else None


def peak(levels: Sequence[DemandLevel], begin: datetime, end: datetime) -> int | None:
    """Return the most that was missing from `begin` until `end`; None where nobody watched for some of it."""
    first = bisect_right(levels, begin, key=lambda level: level.at) - 1
    if first < 0:
        return None
    most = 0
    for level in levels[first:]:
        if level.at >= end:
            break
        if level.missing is None:
            return None
        most = max(most, level.missing)
    return most


def write_levels(levels: Levels, at: datetime) -> str:
    """Write the last levels until a moment, a day of them at most: ``2026-11-20T10:00:00Z 0 +25m 3 +40m 5``.

    Empty where nothing is known.
    """
    begun = [level for level in levels if level.at <= at]
    first = len(begun) - 1
    while first > 0 and len(begun) - first < _MOST_WRITTEN and begun[first].at > at - _DAY:
        first -= 1
    recent = begun[max(0, first) :]
    if not recent or all(level.missing is None for level in recent):
        return ""
    begin = recent[0].at
    later = (f"+{(level.at - begin) // timedelta(minutes=1)}m {_written(level)}" for level in recent[1:])
    return " ".join((format_time(begin), _written(recent[0]), *later))


def _written(level: DemandLevel) -> str:
    return _UNKNOWN if level.missing is None else str(level.missing)


def read_levels(text: str) -> Levels:
    """Read what `write_levels` wrote. Raises ValueError for anything else."""
    words = text.split()
    if not words or len(words) % 2:
        raise ValueError(f"{text!r} is no past demand")
    begin = parse_time(words[0])
    levels = []
    for word, count in zip(words[::2], words[1::2], strict=True):
        if word != words[0] and not (word.startswith("+") and word.endswith("m")):
            raise ValueError(f"{word!r} is no distance in minutes")
        minutes = 0 if word == words[0] else whole_number(word[1:-1], _DIGITS)
        if minutes is None:
            raise ValueError(f"{word!r} is no distance in minutes")
        missing = whole_number(count, _DIGITS)
        if missing is None and count != _UNKNOWN:
            raise ValueError(f"{count!r} is no number of replicas")
        levels.append(DemandLevel(at=begin + timedelta(minutes=minutes), missing=missing))
    if any(later.at <= earlier.at for earlier, later in pairwise(levels)):
        raise ValueError(f"{text!r} is not in order")
    return tuple(levels)


def followed_by(levels: Levels, later: Levels, at: datetime) -> Levels:
    """Return levels with those that a later commit, made `at` a moment, tells; from then on they are unknown."""
    begin = later[0].at
    kept = [level for level in levels if level.at < begin]
    for level in (*later, DemandLevel(at=max(step_of(at), later[-1].at) + STEP, missing=None)):
        if not kept or kept[-1].missing != level.missing:
            kept.append(level)
    return tuple(kept)
