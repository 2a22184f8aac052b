"""Replicas that are likely to be missing soon: the signal `forecast` of a BurstPolicy.

A forecast says what will be missing from the demand of the past alone. How often it was right is not remembered: the
same question is asked again of the past as it was then, and compared with what came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import islice, pairwise

from reconciler.core.signals.past_demand import STEP, Levels, level_at, peak, step_of, steps_in
from reconciler.model.signal import Foresight, ReplicaRequest
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

FORECAST = "forecast"
JUDGED = 20
"""The newest forecasts that are judged."""
_CLOSE = 1
"""Replicas by which a forecast that came true may be off."""
_SPARE_DAYS = timedelta(days=1)


class Method(StrEnum):
    """What a forecast goes by."""

    TREND = "Trend"
    YESTERDAY = "SameTimeYesterday"
    LAST_WEEK = "SameTimeLastWeek"


_PERIODS = {Method.YESTERDAY: (timedelta(days=1), "yesterday"), Method.LAST_WEEK: (timedelta(days=7), "last week")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Replicas that are foreseen from the past demand of a workload (a `model.signal.Signal`)."""

    name: str
    method: Method
    ahead: timedelta
    """How long before they are missing replicas are asked for."""
    window: timedelta
    """The time that a trend is worked out from; of no effect for the other methods."""

    @property
    def label(self) -> str:
        """Name of the signal in commits, tables and messages."""
        return f"{FORECAST} {self.name}"

    @property
    def source(self) -> str:
        """Empty: nobody is asked."""
        return ""

    @property
    def looks_back(self) -> timedelta:
        """The past that the forecast needs, with those by which it is judged."""
        judged = JUDGED * (self._reach + STEP)
        if self.method is Method.TREND:
            return self.window + judged
        period, _ = _PERIODS[self.method]
        return 2 * period + self._reach + _SPARE_DAYS

    @property
    def _reach(self) -> timedelta:
        """How far it looks ahead, in whole steps; the step under way is part of it."""
        return (steps_in(self.ahead) + 1) * STEP

    def asks(self, now: datetime) -> tuple[ReplicaRequest, ...]:
        """Return none: what is foreseen differs between workloads."""
        del now
        return ()

    def next_change(self, now: datetime) -> datetime | None:
        """Return the begin of the next step."""
        return step_of(now) + STEP

    def foresees(self, levels: Levels, missing: int, now: datetime) -> Foresight:
        """Return what is foreseen of a workload with this past, of which so many replicas are missing now."""
        step = step_of(now)
        foreseen = self._foreseen(levels, step)
        if foreseen is None:
            return Foresight(request=None, statement=f"{self.label} foresees nothing: {self._obstacle(levels, step)}")
        by = format_time(step + self._reach)
        if foreseen <= missing:
            return Foresight(
                request=None, statement=f"{self.label} foresees {foreseen} missing until {by}, no more than now"
            )
        more = f" ({foreseen - missing} more than now)" if missing else ""
        cause = f"foresees {foreseen} missing until {by}{more}, {self._basis()}; {self._record(levels, step)}"
        request = ReplicaRequest(
            signal=self.label, replicas=foreseen, since=step, cause=cause, beyond=False, planned=True
        )
        return Foresight(request=request, statement=f"{self.label} {cause}")

    def _foreseen(self, levels: Levels, step: datetime) -> int | None:
        """Return the most that will be missing from the step's begin on, by the past before it; None if unknown."""
        if self.method is Method.TREND:
            return self._continued(levels, step)
        period, _ = _PERIODS[self.method]
        return peak(levels, step - period, step - period + self._reach)

    def _continued(self, levels: Levels, step: datetime) -> int | None:
        """Continue the line that fits the steps of the window best, where it rises; None where it does not.

        It is the line of least squares, in fractions, so that every machine comes to the same. One jump is no trend:
        what has come at once need not go on.
        """
        number = max(2, steps_in(self.window))
        counts = [level_at(levels, step - distance * STEP) for distance in range(number, 0, -1)]
        known = [(index, each) for index, each in enumerate(counts) if each is not None]
        if len(known) < number or _has_jumped([each for _, each in known]):
            return None
        xs, ys = sum(index for index, _ in known), sum(each for _, each in known)
        products, squares = sum(index * each for index, each in known), sum(index * index for index, _ in known)
        slope = Fraction(number * products - xs * ys, number * squares - xs * xs)
        if slope <= 0:
            return None
        end = number - 1 + self._reach // STEP
        return max(0, int(Fraction(ys, number) + slope * (end - Fraction(xs, number)) + Fraction(1, 2)))

    def _obstacle(self, levels: Levels, step: datetime) -> str:
        """Say why nothing can be foreseen."""
        if self.method is not Method.TREND:
            return f"nobody watched the demand at this time {_PERIODS[self.method][1]}"
        if peak(levels, step - max(2, steps_in(self.window)) * STEP, step) is None:
            return f"nobody has watched the demand for {format_duration(self.window)}"
        return f"the demand of the last {format_duration(self.window)} does not rise steadily"

    def _basis(self) -> str:
        """Say what the forecast goes by."""
        if self.method is Method.TREND:
            return f"by the trend of the last {format_duration(self.window)}"
        return f"as at this time {_PERIODS[self.method][1]}"

    def _record(self, levels: Levels, step: datetime) -> str:
        """Say how many of the last forecasts came true."""
        judged = list(islice(self._judged(levels, step), JUDGED))
        if not judged:
            return "none of its forecasts could be judged so far"
        last = f"of the last {count(len(judged), FORECAST)}" if len(judged) > 1 else "of the last forecast"
        return f"{last} {sum(judged)} came true within one replica"

    def _judged(self, levels: Levels, step: datetime) -> Iterator[bool]:
        """Yield whether each earlier forecast came true, the newest first; they do not overlap."""
        moment, first = step - self._reach, levels[0].at if levels else step
        while moment >= first:
            foreseen, came = self._foreseen(levels, moment), peak(levels, moment, moment + self._reach)
            if foreseen and came is not None:
                yield abs(foreseen - came) <= _CLOSE
            moment -= self._reach


def _has_jumped(counts: Sequence[int]) -> bool:
    """Return whether more than half of a rise came within one step."""
    return 2 * max(later - earlier for earlier, later in pairwise(counts)) > max(0, counts[-1] - counts[0])
