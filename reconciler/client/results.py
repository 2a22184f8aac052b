"""Answers of a daemon as values. Fields of newer daemons are kept in `document` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from pydantic.alias_generators import to_camel

from reconciler.errors import InvalidInput

T = TypeVar("T")
_SPELLING = ConfigDict(alias_generator=to_camel, extra="ignore")


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementState:
    """The status of a placement."""

    provisioning_status: str = ""
    """EGS's status of its GPUs."""
    phase: str = ""
    """EGS's phase of its workload."""
    message: str = ""
    last_updated: datetime | None = None


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementItem:
    """A placement: a request or a burst."""

    name: str
    workspace_name: str = ""
    clusters: tuple[str, ...] = ()
    burst_duration: str | None = None
    deletion_policy: str = ""
    origin: str = ""
    """Request or burst."""
    status: PlacementState = PlacementState()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole answer, with EGS's spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list of placements."""

    items: tuple[PlacementItem, ...]
    total: int
    """Placements on all pages."""
    following: str
    """The token of the next page; empty on the last one."""


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of a write."""

    name: str
    workspace_name: str = ""
    commit: str = ""
    """The pushed commit of the output branch; empty if an earlier try was carried out without an answer."""
    message: str = ""
    warnings: tuple[str, ...] = ()
    """Defaults that were assumed for missing fields."""


PLACEMENT = TypeAdapter(PlacementItem)
RECEIPT = TypeAdapter(Receipt)


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class GprStatus:
    """The status of a GPR, with its times; durations as ``9m58s``, waits as ``0h2m40s``."""

    provisioning_status: str = ""
    message: str = ""
    requested_at: datetime | None = None
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None
    expires_at: datetime | None = None
    remaining_duration: str | None = None
    estimated_start_time: datetime | None = None
    estimated_wait_time: str | None = None


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class Gpr:
    """GPUs that a placement has, or that a workload waits for, on each node. Memory is in GB of one GPU."""

    gpr_id: str
    gpr_name: str = ""
    workspace_name: str = ""
    cluster_name: str | None = None
    placement_name: str | None = None
    gpus: Annotated[int, Field(alias="numberOfGPUs")] = 0
    nodes: Annotated[int, Field(alias="numberOfGPUNodes")] = 0
    memory_per_gpu: int = 0
    gpu_shape: str = ""
    instance_type: str = ""
    priority: int = 0
    priority_band: str = ""
    enable_eviction: bool = False
    requeue_on_failure: bool = False
    evicted_by: str = ""
    status: GprStatus = GprStatus()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTime:
    """The estimated wait for GPUs on a cluster."""

    cluster_name: str
    estimated_wait_time: str | None = None
    """None where no known event frees the GPUs."""
    estimated_start_time: datetime | None = None
    ahead: tuple[str, ...] = ()
    """The workloads that are ahead in the queue of the cluster."""
    reasons: tuple[str, ...] = ()


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """The GPUs of one model on a node."""

    gpu_node_name: str
    cluster_name: str
    gpu_model_name: str = ""
    instance_type: str = ""
    memory: int = 0
    """Memory of a GPU in GB; 0 where unknown."""
    gpu_count: int | None = None
    available_gpus: Annotated[int, Field(alias="availableGPUs")] = 0
    region: str = ""
    zone: str = ""
    node_health: str = ""
    resource_name: str = ""
    slice_kind: str = ""
    """How GPUs are sliced there, as ``time slice``; empty for whole ones."""
    gpu_share: str = "1"
    """The part of a GPU that each is, as ``1/4``."""


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """GPUs that a placement has on a cluster."""

    cluster_name: str
    placement_name: str
    workload: str = ""
    gpus: Annotated[int, Field(alias="totalGPUsAllocated")] = 0
    replicas: int = 0
    bound_replicas: int = 0
    allocation_time_stamp: datetime | None = None


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The last observation of a cluster, and the reason if the cluster counts as unseen."""

    cluster_name: str
    observed_at: datetime | None = None
    message: str = ""


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The GPU nodes of clusters in a workspace and of other clusters, and the GPUs of placements."""

    managed_nodes: tuple[GpuNode, ...] = ()
    unmanaged_nodes: tuple[GpuNode, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    clusters: tuple[Sight, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPlacements:
    """Past and present placements, newest first, as ``overspill history -o json`` prints them."""

    placements: tuple[Mapping[str, Any], ...]
    more: bool
    """Whether more exist than were asked for."""


@with_config(_SPELLING)
@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The owner of a token, and its role in each workspace; ``*`` stands for all workspaces."""

    name: str
    email: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)


GPR = TypeAdapter(Gpr)
WAITS = TypeAdapter(tuple[WaitTime, ...])
INVENTORY = TypeAdapter(Inventory)
BEARER = TypeAdapter(Bearer)


def read(kind: TypeAdapter[T], value: object, *, where: str) -> T:
    """Validate the answer of the call `where`. Raises InvalidInput."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        field_path = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"reading the answer of {where}: {field_path}: {first['msg']} (is it Overspill?)") from error


def rows(answer: Mapping[str, Any]) -> list[object]:
    """Return the entries of a list answer."""
    data = answer.get("data")
    return data if isinstance(data, list) else []
