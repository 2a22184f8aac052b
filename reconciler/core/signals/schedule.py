"""Planned bursts: the signal `schedule` of a BurstPolicy.

Starts are found as Debian's cron finds them: in the schedule's own time zone, with weekdays from Sunday. A start that
the clocks skip in spring comes as soon as they have; one that comes twice in autumn counts the first time. A window
lasts for its duration by a stop-watch, whatever the clocks do meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from reconciler.model.signal import DemandLevel, Foresight, ReplicaRequest
from reconciler.text.timestamps import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Replicas that are asked for from each start on, for so long (a `model.signal.Signal`)."""

    name: str
    start: str
    """The five fields of a crontab, weekdays 0 to 7, both ends Sunday."""
    duration: timedelta
    zone: str
    """IANA time zone that `start` is read in."""
    replicas: int

    @property
    def label(self) -> str:
        """Name of the signal in commits, tables and messages."""
        return f"schedule {self.name}"

    @property
    def source(self) -> str:
        """Empty: a schedule has no source but the time."""
        return ""

    def asks(self, now: datetime) -> tuple[ReplicaRequest, ...]:
        """Return the replicas of the window that is open at `now`."""
        start = self._start(now)
        if start is None or start > now:
            return ()
        cause = f"plans {self.replicas} from {format_time(start)} on"
        return (
            ReplicaRequest(
                signal=self.label, replicas=self.replicas, since=start, cause=cause, beyond=False, planned=True
            ),
        )

    @property
    def looks_back(self) -> timedelta:
        """Zero: nothing is foreseen."""
        return timedelta()

    def foresees(self, levels: tuple[DemandLevel, ...], missing: int, now: datetime) -> Foresight:
        """Foresee nothing."""
        del levels, missing, now
        return Foresight(request=None, statement="")

    def next_change(self, now: datetime) -> datetime | None:
        """Return when the open window ends or the next one begins; None when there is none for fifty years.

        Of windows that overlap the earliest counts, and its end is a moment to look again.
        """
        start = self._start(now)
        return start + self.duration if start is not None and start <= now else start

    def _start(self, now: datetime) -> datetime | None:
        """Return the start of the earliest window that is open at `now`, or else of the next."""
        return first_after(self.start, self.zone, now - self.duration)


def first_after(start: str, zone: str, moment: datetime) -> datetime | None:
    """Return the first start after a moment, in UTC; None when there is none within fifty years."""
    for at in CronSim(start, moment.astimezone(ZoneInfo(zone))):
        # Within the hour that comes twice, cron's local time alone cannot tell that a start has been.
        if at > moment:
            return at.astimezone(UTC)
    return None
