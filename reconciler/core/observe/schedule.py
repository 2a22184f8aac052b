"""Planned bursts: from a schedule and the time to what is asked for now, and when that changes.

A start is found as cron finds it (Debian's, which is what people know): in the schedule's own time zone, weekdays from
Sunday, a start that the clocks skip in spring as soon as they have, one that comes twice in autumn at the first. A
window lasts as long as it says by a stop-watch, whatever the clocks do meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim

from reconciler.model.capacity import ReplicaRequest
from reconciler.model.policy import BurstPolicy, Schedule
from reconciler.text.timestamps import format_time


class _Spell(NamedTuple):
    """How a schedule stands: within a window since when, or in none (None), and when to ask again."""

    since: datetime | None
    until: datetime | None


def planned(policy: BurstPolicy, now: datetime) -> tuple[ReplicaRequest, ...]:
    """Give what a policy's schedules ask for now, of each workload that it governs."""
    asks = []
    for schedule in policy.schedules:
        since = _spell(schedule, now).since
        if since is not None:
            cause = f"plans {schedule.replicas} from {format_time(since)} on"
            asks.append(
                ReplicaRequest(
                    signal=schedule.signal, replicas=schedule.replicas, since=since, cause=cause, beyond=False
                )
            )
    return tuple(asks)


def next_turn(policies: Iterable[BurstPolicy], now: datetime) -> datetime | None:
    """Tell when a window of any of these policies begins or ends next; None when there is none for fifty years."""
    turns = (_spell(schedule, now).until for policy in policies for schedule in policy.schedules)
    return min((turn for turn in turns if turn is not None), default=None)


def first_after(start: str, zone: str, moment: datetime) -> datetime | None:
    """Find the first start after a moment, in UTC; None when there is none within fifty years."""
    for at in CronSim(start, moment.astimezone(ZoneInfo(zone))):
        # Within the hour that comes twice, cron's local time alone cannot tell that a start has been.
        if at > moment:
            return at.astimezone(UTC)
    return None


def _spell(schedule: Schedule, now: datetime) -> _Spell:
    """Tell how a schedule stands. Of windows that overlap the earliest counts: its end is a moment to ask again."""
    start = first_after(schedule.start, schedule.zone, now - schedule.duration)
    if start is None or start > now:
        return _Spell(since=None, until=start)
    return _Spell(since=start, until=start + schedule.duration)
