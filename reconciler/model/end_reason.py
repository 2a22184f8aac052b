"""Why placements end, and what follows from each reason: a new one is a row of `ENDS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.gpr import GprEvent
from reconciler.model.placement import LifecycleEvent


class EndReason(StrEnum):
    """Why a placement ends."""

    EXPIRED = "expired"
    DEMAND_GONE = "demand-gone"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    PREEMPTED = "preempted"
    IDLE = "idle"
    FAIR_SHARE = "fair-share"
    CLUSTER_LOST = "cluster-lost"
    POLICY = "policy"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTraits:
    """What follows from the reason of an end."""

    words: str
    """The first words of the message of the commit."""
    event: LifecycleEvent = LifecycleEvent.WITHDRAWN
    """What happens to the placement."""
    gpr_event: GprEvent = GprEvent.RELEASED
    """What happens to the GPR of the placement."""
    cools_cluster: bool | None = None
    """Whether the cool-down that follows is for the cluster of the placement alone; None where none follows."""
    over: str = ""
    """What is said of a run that has ended so, and is over; empty where it may begin again elsewhere."""
    is_unwanted: bool = False
    """Whether somebody may have to look into it."""


ENDS: Mapping[EndReason, EndTraits] = {
    EndReason.EXPIRED: EndTraits(
        words="Expired",
        event=LifecycleEvent.EXPIRED,
        gpr_event=GprEvent.OVER,
        over="was cut off by its time, and would begin again from its start",
    ),
    EndReason.DEMAND_GONE: EndTraits(words="The demand has gone", event=LifecycleEvent.DEMAND_GONE),
    EndReason.FAILED: EndTraits(
        words="Failed",
        event=LifecycleEvent.FAILED,
        gpr_event=GprEvent.FAILED,
        cools_cluster=True,
        over="has failed, and would run again",
    ),
    EndReason.SUCCEEDED: EndTraits(
        words="Succeeded",
        event=LifecycleEvent.SUCCEEDED,
        gpr_event=GprEvent.OVER,
        over="has succeeded, and would run again",
    ),
    EndReason.PREEMPTED: EndTraits(words="Preempted", gpr_event=GprEvent.EVICTED, cools_cluster=True, is_unwanted=True),
    EndReason.IDLE: EndTraits(
        words="Idle",
        gpr_event=GprEvent.OVER,
        cools_cluster=False,
        over="left its GPUs idle, and would begin again from its start",
    ),
    EndReason.FAIR_SHARE: EndTraits(words="Its room is shared"),
    EndReason.CLUSTER_LOST: EndTraits(words="Its cluster is lost", is_unwanted=True),
    EndReason.POLICY: EndTraits(words="By policy", cools_cluster=True, is_unwanted=True),
    EndReason.REQUESTED: EndTraits(words="Requested"),
}
