"""The capacity side of placements, in EGS's words: what a GPR asks for, on which terms, and its states.

The fields and the states are those that EGS documents and reports (docs/egs.md, "GPUProvisioningRequest" and R17).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.model.ids import ClusterName, WorkspaceName

DEFAULT_PRIORITY = 101
"""EGS's default, the lowest of the medium band."""

PRIORITIES = range(1, 301)
"""Higher goes first. Low is 1 to 100, medium 101 to 200, high 201 to 300."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAsk:
    """GPUs as EGS asks for them: `gpus` on each of `nodes` nodes, of a model (`shape`) and with so much memory each.

    `memory` is in GB for one GPU, 0 for any. An empty `shape` or `instance_type` stands for any.
    """

    gpus: int
    nodes: int = 1
    memory: int = 0
    shape: str = ""
    instance_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GprTerms:
    """On which terms GPUs are asked for.

    After `exit_duration` they are given back; after `idle` without use they are, where `enforce_idle` says so.
    `evictable` lets a request of higher priority take them; `requeue` has what was evicted or failed wait again.
    """

    priority: int = DEFAULT_PRIORITY
    exit_duration: timedelta | None = None
    idle: timedelta | None = None
    enforce_idle: bool = False
    evictable: bool = False
    requeue: bool = False
    dedicated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GprTemplate:
    """A GPRTemplate: what one cluster gives by default, and on which terms."""

    name: str
    cluster: ClusterName
    ask: GpuAsk
    terms: GprTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBinding:
    """The GPRTemplates of one cluster that a workspace may use, and the one that holds where nothing else is said."""

    cluster: ClusterName
    default: str
    templates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GprBinding:
    """A GPRTemplateBinding: whether workloads of a workspace get GPRs by themselves, and which templates they use."""

    workspace: WorkspaceName
    auto: bool
    clusters: tuple[ClusterBinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    """What one GPR may ask for at most. No shapes stands for any, None for no limit; `memory` is in GB for one GPU."""

    shapes: tuple[str, ...] = ()
    gpus: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLimits:
    """A WorkspacePolicy: what GPRs of one workspace may ask for. Priorities are inclusive.

    `evicts` lets its GPRs take those of others that are evictable; `requeue` is what holds for GPRs that do not say.
    """

    workspace: WorkspaceName
    lowest: int = 1
    highest: int = 100
    most: int = 3
    longest: timedelta = timedelta(weeks=1)
    requeue: bool = True
    evicts: bool = True
    limits: GpuLimits = GpuLimits()
    by_cluster: Mapping[ClusterName, GpuLimits] = field(default_factory=dict)


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
