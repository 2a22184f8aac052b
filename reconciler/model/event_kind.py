"""The kinds of events."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """Kinds of events of a workload, a request or a placement."""

    PLACED = "placed"
    RESIZED = "resized"
    EXTENDED = "extended"
    MOVED = "moved"
    ENDED = "ended"
    FAILED = "failed"  # ended too, since it did not work there
    RESTORED = "restored"  # its files, which a person had edited
    DELETED = "deleted"  # by a person; the workload is held on that cluster from here on
    RELEASED = "released"  # from the holds that such deletions began
    REQUEST_RECEIVED = "request received"
    REQUEST_CHANGED = "request changed"
    REQUEST_CLOSED = "request closed"
    REQUEST_FORGOTTEN = "request forgotten"
    BRANCHES_FOLLOWED = "branches followed"  # branches of clusters that a person had moved or left behind
    HELD_BACK = "held back"
    NO_LONGER_HELD_BACK = "no longer held back"
    TEST = "test"  # of a receiver, by a person
