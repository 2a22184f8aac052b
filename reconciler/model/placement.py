"""A placement of one workload on one cluster, and restraints that outlive it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, CommitId, PlacementName, WorkloadId
from reconciler.model.manifest_source import MadeFrom
from reconciler.model.policy import EngineName
from reconciler.model.workload import DeletionPolicy

PLACEMENT_LABEL = "overspill.dev/placement"
"""The label with the name of the placement on every deployed object."""


ClusterSubset = tuple[ClusterName, str]
"""A cluster, and the WorkloadSpread subset that it is used for; empty for none."""


def place_name(cluster: ClusterName, subset: str) -> str:
    """Return the name of a cluster, or of its part for a subset."""
    return f"{cluster}/{subset}" if subset else cluster


def placement_path(cluster: ClusterName, name: PlacementName) -> str:
    """Return the directory of a placement on the output branch."""
    return f"clusters/{cluster}/{name}"


class Origin(StrEnum):
    """The origin of a placement: demand, or a person's request."""

    BURST = "burst"
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A placement as its ``placement.yaml`` records it, without the spec, which stays in git until it is needed."""

    name: PlacementName
    cluster: ClusterName
    workload: WorkloadId
    replicas: int
    created_at: datetime
    changed_at: datetime
    """When its replicas were last set; the time in flight starts there."""
    expires_at: datetime
    """Absolute, so that the expiry survives a restart."""
    engine: EngineName
    policy: str
    deletion_policy: DeletionPolicy
    source_commit: CommitId
    namespace: str
    target_namespace: str
    """The namespace of the rendered spec as a whole; empty until it has been rendered once."""
    shape: ReplicaShape
    origin: Origin = Origin.BURST
    template_version: str = ""
    """Version of the deployed template's file; empty where unknown."""
    digest: str = ""
    """Digest of all files of the placement; empty until they have been rendered."""
    subset: str = ""
    """The WorkloadSpread subset that it was placed for; empty without one. A cluster may have a placement for each of
    several."""
    fixed_end: bool = False
    """Whether a person set its end, which no renewal moves."""
    runs_once: bool = False
    """Whether its workload runs once, by the template that it was deployed from."""
    made_from: MadeFrom | None = None
    """What its objects were read from; None where its template holds them all."""
    first_ordinal: int | None = None
    """First pod ordinal of a StatefulSet that a WorkloadSpread numbers; it outlives changes of the spread."""
    kept: str = ""
    """What stays as it was placed although the template has changed it, since nobody can change it; empty for
    nothing. A clause for people."""

    def rendered(self, *, target_namespace: str, digest: str, kept: str = "") -> Placement:
        """Return the placement with the fields that its rendered files alone determine; all others are decided."""
        return replace(self, target_namespace=target_namespace, digest=digest, kept=kept)

    @property
    def where(self) -> str:
        """The cluster and the subset: ``worker-2`` or ``worker-2/h100``."""
        return place_name(self.cluster, self.subset)

    @property
    def path(self) -> str:
        """The directory of the placement, its unique key."""
        return placement_path(self.cluster, self.name)

    @property
    def id(self) -> str:
        """The id in trailers: ``llm/vllm-7f3a90c1``."""
        return f"{self.workload.workspace}/{self.name}"

    @property
    def source_digest(self) -> str:
        """The digest of what its objects were read from; empty where its template holds them all."""
        return "" if self.made_from is None else self.made_from.digest

    def is_called(self, text: str) -> bool:
        """Return whether a person means it: by its name, its id, or its path as a shell completes it."""
        return text.rstrip("/") in (self.name, self.id, self.path)


class RestraintKind(StrEnum):
    """Why a workload may not burst for a while."""

    COOL_DOWN = "coolDown"
    HOLD = "hold"
    UNSCHEDULABLE = "unschedulable"
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restraint:
    """A workload held back until a moment.

    A hold also ends when the demand has gone once; other kinds do not. A turn holds nothing back: its `until`, which
    may have passed, is since when the workload counts as waiting for room. Unschedulable restrains one subset on one
    cluster, where replicas have found no node.
    """

    kind: RestraintKind
    cluster: ClusterName | None
    """None for all clusters."""
    since: datetime
    until: datetime
    reason: str
    placement: PlacementName
    subset: str = ""
    """The only subset that is restrained; empty for all."""
    move: bool = False
    """Whether replicas moved away from the cluster. The ledger keeps it for the workload's budget of moves, also after
    its end."""


class Phase(StrEnum):
    """The workload axis of a placement's state (`Provisioning` is the other; the two never mix)."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    COMPLETED = "Completed"


class LifecycleEvent(StrEnum):
    """Events in the life of a placement."""

    HEALTHY = "healthy"
    RESIZED = "resized"
    MOVED = "moved"
    EXPIRED = "expired"
    DEMAND_GONE = "demand gone"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    WITHDRAWN = "withdrawn"


TRANSITIONS: Mapping[tuple[Phase, LifecycleEvent], Phase] = {
    (Phase.PENDING, LifecycleEvent.HEALTHY): Phase.RUNNING,
    (Phase.PENDING, LifecycleEvent.RESIZED): Phase.PENDING,
    (Phase.PENDING, LifecycleEvent.MOVED): Phase.PENDING,
    (Phase.PENDING, LifecycleEvent.EXPIRED): Phase.COMPLETED,
    (Phase.PENDING, LifecycleEvent.DEMAND_GONE): Phase.COMPLETED,
    (Phase.PENDING, LifecycleEvent.FAILED): Phase.FAILED,
    (Phase.PENDING, LifecycleEvent.SUCCEEDED): Phase.SUCCEEDED,
    (Phase.PENDING, LifecycleEvent.WITHDRAWN): Phase.COMPLETED,
    (Phase.RUNNING, LifecycleEvent.HEALTHY): Phase.RUNNING,
    (Phase.RUNNING, LifecycleEvent.RESIZED): Phase.PENDING,
    (Phase.RUNNING, LifecycleEvent.MOVED): Phase.PENDING,
    (Phase.RUNNING, LifecycleEvent.EXPIRED): Phase.COMPLETED,
    (Phase.RUNNING, LifecycleEvent.DEMAND_GONE): Phase.COMPLETED,
    (Phase.RUNNING, LifecycleEvent.FAILED): Phase.FAILED,
    (Phase.RUNNING, LifecycleEvent.SUCCEEDED): Phase.SUCCEEDED,
    (Phase.RUNNING, LifecycleEvent.WITHDRAWN): Phase.COMPLETED,
}
"""Transitions of a placement. A missing pair is a bug, not a no-op."""
