"""One workload on one cluster for a while, and what must outlive it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, CommitId, PlacementName, WorkloadId
from reconciler.model.policy import EngineName
from reconciler.model.workload import DeletionPolicy

PLACEMENT_LABEL = "overspill.dev/placement"
"""The label of all that we deploy, with the name of its placement."""


ClusterSubset = tuple[ClusterName, str]
"""A cluster, and the subset of a WorkloadSpread that it is used for; empty for none."""


def place_name(cluster: ClusterName, subset: str) -> str:
    """Name a cluster, or a subset's part of it."""
    return f"{cluster}/{subset}" if subset else cluster


class Origin(StrEnum):
    """Who asked for a placement: demand, or a person."""

    BURST = "burst"
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A placement as its ``placement.yaml`` records it, without the spec (that stays in git until it is needed).

    `changed_at` is when its replicas were last set: what is in flight counts from there. `expires_at` is absolute, so
    that nobody has to remember. `template_version` names the version of the template's file that is deployed, empty
    when it is not known. `digest` covers every file of the placement. `subset` is the one of its WorkloadSpread that
    it was placed for, empty without one; a cluster may have a placement for each of several. Of the pods of a
    StatefulSet that a WorkloadSpread numbers `first_ordinal` is the first, and stays so whatever becomes of the spread.
    """

    name: PlacementName
    cluster: ClusterName
    workload: WorkloadId
    replicas: int
    created_at: datetime
    changed_at: datetime
    expires_at: datetime
    engine: EngineName
    policy: str
    deletion_policy: DeletionPolicy
    source_commit: CommitId
    namespace: str
    target_namespace: str
    shape: ReplicaShape
    origin: Origin = Origin.BURST
    template_version: str = ""
    digest: str = ""
    subset: str = ""
    first_ordinal: int | None = None

    @property
    def where(self) -> str:
        """The cluster, and the subset that it is for: ``worker-2`` or ``worker-2/h100``."""
        return place_name(self.cluster, self.subset)

    @property
    def path(self) -> str:
        """The directory of this placement, by which everything knows it."""
        return f"clusters/{self.cluster}/{self.name}"

    @property
    def id(self) -> str:
        """How trailers name it: ``llm/vllm-7f3a90c1``."""
        return f"{self.workload.workspace}/{self.name}"


class RestraintKind(StrEnum):
    """Why a workload may not burst for a while."""

    COOL_DOWN = "coolDown"
    HOLD = "hold"
    UNSCHEDULABLE = "unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restraint:
    """A workload held back, on one cluster or (cluster None) on all, until a moment; with a `subset` only as that one.

    A hold also ends when the demand has gone once; what else there is does not. What is unschedulable is one subset's
    part of a cluster, where replicas have found no node.
    """

    kind: RestraintKind
    cluster: ClusterName | None
    since: datetime
    until: datetime
    reason: str
    placement: PlacementName
    subset: str = ""


class Phase(StrEnum):
    """The workload axis of a placement's state (`Provisioning` is the other; the two never mix)."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    COMPLETED = "Completed"


class LifecycleEvent(StrEnum):
    """What can happen to a placement."""

    HEALTHY = "healthy"
    RESIZED = "resized"
    MOVED = "moved"
    EXPIRED = "expired"
    DEMAND_GONE = "demand gone"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


TRANSITIONS: Mapping[tuple[Phase, LifecycleEvent], Phase] = {
    (Phase.PENDING, LifecycleEvent.HEALTHY): Phase.RUNNING,
    (Phase.PENDING, LifecycleEvent.RESIZED): Phase.PENDING,
    (Phase.PENDING, LifecycleEvent.MOVED): Phase.PENDING,
    (Phase.PENDING, LifecycleEvent.EXPIRED): Phase.COMPLETED,
    (Phase.PENDING, LifecycleEvent.DEMAND_GONE): Phase.COMPLETED,
    (Phase.PENDING, LifecycleEvent.FAILED): Phase.FAILED,
    (Phase.PENDING, LifecycleEvent.WITHDRAWN): Phase.COMPLETED,
    (Phase.RUNNING, LifecycleEvent.HEALTHY): Phase.RUNNING,
    (Phase.RUNNING, LifecycleEvent.RESIZED): Phase.PENDING,
    (Phase.RUNNING, LifecycleEvent.MOVED): Phase.PENDING,
    (Phase.RUNNING, LifecycleEvent.EXPIRED): Phase.COMPLETED,
    (Phase.RUNNING, LifecycleEvent.DEMAND_GONE): Phase.COMPLETED,
    (Phase.RUNNING, LifecycleEvent.FAILED): Phase.FAILED,
    (Phase.RUNNING, LifecycleEvent.WITHDRAWN): Phase.COMPLETED,
}
"""Every step a placement can take. A pair that is not here is a bug, not a no-op."""
