"""Ages and remaining times for people, as short as kubectl writes them."""

from __future__ import annotations

from datetime import timedelta

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
_STEPS = (
    (2 * _MINUTE, 1, 0),
    (10 * _MINUTE, _MINUTE, 1),
    (3 * _HOUR, _MINUTE, 0),
    (8 * _HOUR, _HOUR, _MINUTE),
    (2 * _DAY, _HOUR, 0),
    (8 * _DAY, _DAY, _HOUR),
    (2 * _YEAR, _DAY, 0),
    (8 * _YEAR, _YEAR, _DAY),
)
"""Below so many seconds: the unit, and the finer unit of the rest; 0 for none. kubectl's own steps:
https://github.com/kubernetes/apimachinery/blob/master/pkg/util/duration/duration.go."""
_NAMES = {1: "s", _MINUTE: "m", _HOUR: "h", _DAY: "d", _YEAR: "y"}


def format_age(age: timedelta) -> str:
    """Write an age in one or two units: ``45s``, ``2m30s``, ``3h12m``, ``5d``. A negative age is ``0s``."""
    seconds = max(0, int(age.total_seconds()))
    unit, finer = next(((unit, finer) for below, unit, finer in _STEPS if seconds < below), (_YEAR, 0))
    whole, rest = divmod(seconds, unit)
    more = rest // finer if finer else 0
    return f"{whole}{_NAMES[unit]}" + (f"{more}{_NAMES[finer]}" if more else "")
