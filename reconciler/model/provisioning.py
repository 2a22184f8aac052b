"""The states of a GPR and which step leads from which to which.

The states are those that EGS is known to report (the EGS reference, section 4), read under all their names (rule R17).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class GprState(StrEnum):
    """How far a GPR is with its GPUs.

    PENDING: nobody has looked for room yet, or it is about to be taken. QUEUED: there is none. PROVISIONING: it has
    room, and not all of its replicas have a node there. SUCCESSFUL: they do. DRAINING: its time is over, or somebody
    wants its GPUs back. EARLY_RELEASED, COMPLETED and FAILED are ends.
    """

    PENDING = "Pending"
    QUEUED = "Queued"
    PROVISIONING = "Provisioning"
    SUCCESSFUL = "Successful"
    DRAINING = "Draining"
    EARLY_RELEASED = "EarlyReleased"
    COMPLETED = "Completed"
    FAILED = "Failed"


class GprEvent(StrEnum):
    """What can happen to a GPR."""

    REFUSED = "no room"
    GRANTED = "room"
    BOUND = "bound"
    LOST = "a node lost"
    EVICTED = "evicted"
    RELEASED = "released"
    OVER = "time over"
    GONE = "GPUs free again"
    GIVEN_BACK = "GPUs free before their time"
    FAILED = "failed"


_S, _E = GprState, GprEvent
TRANSITIONS: Mapping[tuple[GprState, GprEvent], GprState] = {
    (_S.PENDING, _E.REFUSED): _S.QUEUED,
    (_S.PENDING, _E.GRANTED): _S.PROVISIONING,
    (_S.PENDING, _E.RELEASED): _S.EARLY_RELEASED,
    (_S.PENDING, _E.FAILED): _S.FAILED,
    (_S.QUEUED, _E.REFUSED): _S.QUEUED,
    (_S.QUEUED, _E.GRANTED): _S.PROVISIONING,
    (_S.QUEUED, _E.RELEASED): _S.EARLY_RELEASED,
    (_S.QUEUED, _E.FAILED): _S.FAILED,
    (_S.PROVISIONING, _E.BOUND): _S.SUCCESSFUL,
    (_S.PROVISIONING, _E.EVICTED): _S.QUEUED,
    (_S.PROVISIONING, _E.RELEASED): _S.DRAINING,
    (_S.PROVISIONING, _E.OVER): _S.DRAINING,
    (_S.PROVISIONING, _E.FAILED): _S.FAILED,
    (_S.SUCCESSFUL, _E.BOUND): _S.SUCCESSFUL,
    (_S.SUCCESSFUL, _E.LOST): _S.PROVISIONING,
    (_S.SUCCESSFUL, _E.EVICTED): _S.QUEUED,
    (_S.SUCCESSFUL, _E.RELEASED): _S.DRAINING,
    (_S.SUCCESSFUL, _E.OVER): _S.DRAINING,
    (_S.SUCCESSFUL, _E.FAILED): _S.FAILED,
    (_S.DRAINING, _E.GONE): _S.COMPLETED,
    (_S.DRAINING, _E.GIVEN_BACK): _S.EARLY_RELEASED,
    (_S.DRAINING, _E.FAILED): _S.FAILED,
}
"""Every step a GPR can take; nothing leads out of an end. A pair that is not here is a bug, not a no-op."""

_ALIASES: Mapping[str, GprState] = {
    **{state.value.lower(): state for state in GprState},
    "provisioned": GprState.SUCCESSFUL,
    "complete": GprState.COMPLETED,
    "error": GprState.FAILED,
}


def step(state: GprState, event: GprEvent) -> GprState:
    """Follow the table; a pair that is not in it is a bug, and says so as a KeyError."""
    return TRANSITIONS[state, event]


def read_state(text: str) -> GprState | str:
    """Read a state under any of its names, in any case. One that nobody knows stays as it is written: it is no end."""
    return _ALIASES.get(text.strip().lower(), text)
