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
    PROPOSED = "proposed"  # a burst that waits for an approval
    APPROVED = "approved"
    PROPOSAL_ENDED = "proposal ended"
    DISCARDED = "discarded"  # files that were merged with an approval and not proposed
    BRANCHES_FOLLOWED = "branches followed"  # branches of clusters that a person had moved or left behind
    HELD_BACK = "held back"
    NO_LONGER_HELD_BACK = "no longer held back"
    CLUSTER_LOST = "cluster lost"
    CLUSTER_BACK = "cluster back"
    BUDGET_NEARLY_SPENT = "budget nearly spent"
    BUDGET_SPENT = "budget spent"
    TEST = "test"  # of a receiver, by a person


OF_NOTIFICATIONS = frozenset({
    EventKind.CLUSTER_LOST, EventKind.CLUSTER_BACK, EventKind.BUDGET_NEARLY_SPENT, EventKind.BUDGET_SPENT,
    EventKind.TEST,
})  # fmt: skip # a list of words
"""Kinds that receivers of Notifications alone are told of: the log has its own lines for what they tell."""
