"""Pods that wait, each since a moment and for a cause, and what of them is a lack of room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.core.observe.kubernetes.words.sayings import PodWait
from reconciler.model.capacity import BlockedReplicas, MissingReplicas
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscheduled:
    """A pod, or one that cannot be created, is unscheduled since a moment, for a cause."""

    since: datetime
    cause: str
    reason: WaitReason = WaitReason.CAPACITY
    way_out: str = ""
    # When the condition that says so was written last, which may be later than its transition; None where unknown.
    written: datetime | None = field(default=None, compare=False)
    # When the condition became what it is; `since` may be later, if what it says has changed.
    transition: datetime | None = None

    @property
    def lacks_room(self) -> bool:
        """Return whether room elsewhere would help."""
        return self.reason.lacks_room


def unscheduled(wait: PodWait, since: datetime, written: datetime | None = None) -> Unscheduled:
    """Return that something waits since a transition of its condition."""
    return Unscheduled(
        since=since, cause=wait.cause, reason=wait.reason, way_out=wait.way_out, written=written, transition=since
    )


def with_kept_since(before: Unscheduled | None, now: Unscheduled) -> Unscheduled:
    """Return a wait with the moment since which it is a lack of room, or something else; `before` is it until now.

    A condition keeps its time while its reason and message change: a pod that has waited for a claim for an hour does
    not lack a GPU for that long.
    """
    if before is None or before.transition != now.transition:
        return now
    if before.lacks_room is now.lacks_room:
        return replace(now, since=before.since)
    return now if now.written is None else replace(now, since=max(now.since, now.written))


def written_at(metadata: Json, condition: str) -> datetime | None:
    """Return when a condition in an object's status was written last by its `managedFields`; None where they lack it.

    The API server renews the time of an entry when its manager changes the value of a field.
    """
    key = f'k:{{"type":"{condition}"}}'
    moments = [
        read_moment(entry["time"])
        for entry in metadata.get("managedFields") or ()
        if entry.get("subresource") == "status"
        and entry.get("time")
        and key in (((entry.get("fieldsV1") or {}).get("f:status") or {}).get("f:conditions") or ())
    ]
    return max(moments, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingReplicas:
    """Replicas of a workload that wait for one thing; `group` is that of their pods by their labels."""

    replicas: int
    wait: Unscheduled
    group: str = ""


def split_by_room(
    waits: Iterable[WaitingReplicas],
) -> tuple[tuple[MissingReplicas, ...], tuple[BlockedReplicas, ...]]:
    """Sum up the replicas that lack room, and those that wait for something else, each by their times.

    Pods that wait for the rest of their group lack room if any of the others does, or nothing is known of them.
    """
    waits = list(waits)
    others = [each.wait for each in waits if each.wait.reason is not WaitReason.GANG]
    blocking = next((wait for wait in others if not wait.lacks_room), None)
    gang_is_blocked = blocking is not None and not any(wait.lacks_room for wait in others)
    missing = Counter[tuple[datetime, str, str]]()
    blocked = Counter[tuple[datetime, WaitReason, str, str]]()
    for each in waits:
        wait = each.wait
        if not wait.lacks_room:
            blocked[wait.since, wait.reason, wait.cause, wait.way_out] += each.replicas
        elif wait.reason is WaitReason.GANG and gang_is_blocked:
            blocked[wait.since, wait.reason, wait.cause, ""] += each.replicas
        else:
            missing[wait.since, wait.cause, each.group] += each.replicas
    return (
        tuple(
            MissingReplicas(replicas=n, since=since, cause=cause, group=group)
            for (since, cause, group), n in sorted(missing.items())
            if n
        ),
        tuple(
            BlockedReplicas(replicas=n, since=since, reason=reason, cause=cause, way_out=way_out)
            for (since, reason, cause, way_out), n in sorted(blocked.items())
            if n
        ),
    )
