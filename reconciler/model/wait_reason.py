"""Why a pod waits: for room, which a burst may find elsewhere, or for something that no burst helps."""

from __future__ import annotations

from enum import StrEnum


class WaitReason(StrEnum):
    """The class of what a component says of a pod that waits.

    A lack of room is demand. Everything else bursts nothing, and is told.
    """

    # A node, or a part of one, is free for it nowhere.
    CAPACITY = "Capacity"
    # A quota is used up.
    QUOTA = "Quota"
    # The rest of its group finds no room; without any pod of the group that does, it waits for what those wait for.
    GANG = "Gang"
    VOLUME = "Volume"
    RESOURCE_CLAIM = "ResourceClaim"
    # Pods make way for it, on a node that is its own then.
    PREEMPTION = "Preemption"
    # It refers to an object that does not exist.
    MISSING_OBJECT = "MissingObject"
    # A rule of its cluster or namespace refuses it: Pod Security, a LimitRange, an admission policy, a validation.
    POLICY = "Policy"
    WEBHOOK = "Webhook"
    # Its queue is missing, stopped, or does not take it.
    QUEUE = "Queue"
    # It was ended, and is tried again after a time.
    BACKOFF = "Backoff"
    ADMISSION_CHECK = "AdmissionCheck"
    DEACTIVATED = "Deactivated"
    # A scheduling gate that its own controller lifts.
    GATE = "Gate"
    # A component failed, and tries again.
    ERROR = "Error"
    # Nobody has decided on it yet.
    UNDECIDED = "Undecided"

    @property
    def lacks_room(self) -> bool:
        """Return whether room elsewhere would help."""
        return self in _ROOM


_ROOM = frozenset({WaitReason.CAPACITY, WaitReason.QUOTA, WaitReason.GANG})
