"""What an OpenKruise WorkloadSpread says of a workload: subsets in order, and what each may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.model.scheduling import NodeRequirement, NodeTerm, Toleration
from reconciler.model.workload import Json, WorkloadRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A number of replicas, or (`percent`) so many hundredths of the workload's total, rounded up as Kruise does."""

    number: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return the replicas that it comes to."""
        return -(-self.number * total // 100) if self.percent else self.number

    def __str__(self) -> str:
        """Write it as a WorkloadSpread does."""
        return f"{self.number}%" if self.percent else str(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredTerm:
    """A term that speaks for a place with a weight of 1 to 100."""

    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """One ordered target: the clusters, and the nodes in them, that the required term selects; None selects all.

    A requirement whose key is a label of a Cluster is decided by the cluster; any other is one of its nodes, and goes
    into the pod template. `most` bounds the sum over its clusters, None does not; `least` comes before later subsets
    get more. `patch` is a strategic merge on the pod template, root a Pod, and is applied last.
    """

    name: str
    required: NodeTerm | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    most: Bound | None = None
    least: int = 0
    patch: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSpread:
    """How the replicas of one workload object are spread.

    `group` and the kind of `target` name the object's kind; its version does not count. `selector` names the pods that
    are changed, where it is not empty, and so do `selector_expressions` (In, NotIn, Exists, DoesNotExist), or else
    `replicas_paths`, where their replicas are. `reschedule` is set when it is Adaptive: a replica that has had no node
    for so long makes its subset unschedulable for `recovery`.
    """

    name: str
    namespace: str
    group: str
    target: WorkloadRef
    subsets: tuple[Subset, ...]
    selector: Mapping[str, str] = field(default_factory=dict)
    selector_expressions: tuple[NodeRequirement, ...] = ()
    replicas_paths: tuple[str, ...] = ()
    reschedule: timedelta | None = None
    recovery: timedelta = timedelta(seconds=300)
    path: str = ""
    line: int = 0

    @property
    def id(self) -> str:
        """How it is told: ``demo/gpu-pools``."""
        return f"{self.namespace}/{self.name}"

    def gives_up(self, subset: str) -> bool:
        """Tell whether a subset may count as unschedulable: none where nothing adapts, and never the last."""
        return self.reschedule is not None and subset not in ("", self.subsets[-1].name)
