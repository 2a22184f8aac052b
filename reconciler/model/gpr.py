"""The capacity side of placements, in EGS's words: what a GPR asks for, on which terms, and what a workspace may ask.

Field facts are those of the EGS reference, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

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
