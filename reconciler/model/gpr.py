"""GPU provisioning requests (GPRs) of EGS: requested GPUs, terms and states.

The fields and the states are those that EGS documents and reports (docs/reference/egs.md, "GPUProvisioningRequest" and
R17).
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
"""A higher priority goes first. Low is 1 to 100, medium 101 to 200, high 201 to 300."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAsk:
    """Requested GPUs in the terms of EGS."""

    gpus: int
    """GPUs on each node."""
    nodes: int = 1
    memory: int = 0
    """GB of one GPU; 0 for any."""
    shape: str = ""
    """The model; empty for any."""
    instance_type: str = ""
    """Empty for any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GprTerms:
    """Terms of a GPR."""

    priority: int = DEFAULT_PRIORITY
    exit_duration: timedelta | None = None
    """Time after which the GPUs are given back."""
    idle: timedelta | None = None
    """Time without use after which they are given back, with `enforce_idle`."""
    enforce_idle: bool = False
    evictable: bool = False
    """Whether a GPR of higher priority may take the GPUs."""
    requeue: bool = False
    """Whether an evicted or failed GPR waits again."""
    dedicated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GprTemplate:
    """A GPRTemplate: the GPUs and terms that one cluster gives by default."""

    name: str
    cluster: ClusterName
    ask: GpuAsk
    terms: GprTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBinding:
    """The GPRTemplates of one cluster that a workspace may use."""

    cluster: ClusterName
    default: str
    """The template where a workload names none."""
    templates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GprBinding:
    """A GPRTemplateBinding of a workspace."""

    workspace: WorkspaceName
    auto: bool
    """Whether its workloads get GPRs automatically."""
    clusters: tuple[ClusterBinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    """Limits of one GPR."""

    shapes: tuple[str, ...] = ()
    """Allowed models; empty for any."""
    gpus: int | None = None
    """None for no limit."""
    memory: int | None = None
    """GB of one GPU; None for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLimits:
    """A WorkspacePolicy: limits of the GPRs of one workspace."""

    workspace: WorkspaceName
    lowest: int = 1
    """Lowest priority, inclusive."""
    highest: int = 100
    """Highest priority, inclusive."""
    most: int = 3
    longest: timedelta = timedelta(weeks=1)
    requeue: bool = True
    """Default for GPRs that do not state it."""
    evicts: bool = True
    """Whether its GPRs may evict others that are evictable."""
    limits: GpuLimits = GpuLimits()
    by_cluster: Mapping[ClusterName, GpuLimits] = field(default_factory=dict)


class GprState(StrEnum):
    """The state of a GPR.

    PENDING: not evaluated yet, or about to get capacity. QUEUED: without capacity. PROVISIONING: with capacity, while
    not all of its replicas have a node there. SUCCESSFUL: with a node for all of them. DRAINING: over, or claimed back,
    while its GPUs are not free yet. EARLY_RELEASED, COMPLETED and FAILED are ends.
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
    """Events in the life of a GPR."""

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
"""Transitions of a GPR; an end has none. A missing pair is a bug, not a no-op."""

_ALIASES: Mapping[str, GprState] = {
    **{state.value.lower(): state for state in GprState},
    "provisioned": GprState.SUCCESSFUL,
    "complete": GprState.COMPLETED,
    "error": GprState.FAILED,
}


def step(state: GprState, event: GprEvent) -> GprState:
    """Return the next state; a missing transition is a bug and raises KeyError."""
    return TRANSITIONS[state, event]


def read_state(text: str) -> GprState | str:
    """Parse a state under any of its names, in any case. An unknown state is returned as text; it is no final state."""
    return _ALIASES.get(text.strip().lower(), text)
