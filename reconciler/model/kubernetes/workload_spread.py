"""OpenKruise WorkloadSpreads: subsets in order, and the replicas that each may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.workload import Json, WorkloadRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A number of replicas, or a percentage of the workload's total, rounded up as Kruise does."""

    number: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return the bound in replicas."""
        return -(-self.number * total // 100) if self.percent else self.number

    def __str__(self) -> str:
        """Write it as a WorkloadSpread does."""
        return f"{self.number}%" if self.percent else str(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredTerm:
    """A preferred node selector term with a weight from 1 to 100."""

    weight: int
    term: Requirements


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """An ordered target of a WorkloadSpread."""

    name: str
    required: Requirements | None = None
    """Selects clusters, and nodes in them; None selects all. Requirements on labels of a Cluster are evaluated on the
    Cluster; any others select its nodes and are written into the pod template."""
    preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    most: Bound | None = None
    """Bound of the sum over its clusters; None for no bound."""
    least: int = 0
    """Replicas that it gets before later subsets get more."""
    patch: Mapping[str, Json] = field(default_factory=dict)
    """A strategic merge patch of the pod template, with a Pod as root; applied last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSpread:
    """How the replicas of one workload object are spread."""

    name: str
    namespace: str
    group: str
    """API group of the target; its version does not matter."""
    target: WorkloadRef
    subsets: tuple[Subset, ...]
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods that are changed; empty for all."""
    selector_expressions: tuple[Requirement, ...] = ()
    """Further conditions on these labels (In, NotIn, Exists, DoesNotExist)."""
    replicas_paths: tuple[str, ...] = ()
    """Fields of the replicas of the changed pods, where their labels do not select them."""
    reschedule: timedelta | None = None
    """Set for Adaptive: a replica without a node for so long makes its subset unschedulable for `recovery`."""
    recovery: timedelta = timedelta(seconds=300)
    path: str = ""
    line: int = 0

    @property
    def id(self) -> str:
        """The name in messages: ``demo/gpu-pools``."""
        return f"{self.namespace}/{self.name}"

    def gives_up(self, subset: str) -> bool:
        """Return whether a subset may become unschedulable: only with `reschedule`, and never the last."""
        return self.reschedule is not None and subset not in ("", self.subsets[-1].name)
