"""Answers of the management API in OpenAPI: fields of EGS, and our own (docs/reference/egs.md, "REST: answers").

Class names and docstrings are those of the OpenAPI components, so users see them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.core.explain.inventory import Health
from reconciler.errors import Severity
from reconciler.model.gpr import GprState
from reconciler.model.placement import Origin, Phase
from reconciler.model.plan import Reason
from reconciler.model.request import Provisioning
from reconciler.model.workload import DeletionPolicy, StepType

T = TypeVar("T")


class _CamelModel(BaseModel):
    """A model with camelCase names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _ExtensibleModel(BaseModel):
    """A model with camelCase names whose answers may hold more fields than are declared."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class Answered(_CamelModel, Generic[T]):
    """EGS's envelope around the data of an answer."""

    status_code: int = Field(examples=[200])
    status: Literal["OK"]
    message: str = Field(examples=["Success"])
    data: T


class StepDocument(_CamelModel):
    """A step of a deployment, in order."""

    name: str
    type: StepType


class Condition(_CamelModel):
    """A condition as Kubernetes writes them: its status, since when, and why."""

    type: str = Field(examples=["Available"])
    status: Literal["True", "False", "Unknown"]
    reason: str = Field(examples=["Healthy"])
    message: str
    last_transition_time: datetime


class Status(_CamelModel):
    """The state of the GPUs and, apart from it, the phase of the workload."""

    provisioning_status: Provisioning
    phase: Phase
    message: str
    conditions: list[Condition]
    last_updated: datetime


class PlacementDocument(_ExtensibleModel):
    """A workload placement: a request of a person, or a burst of demand (`origin`)."""

    name: str
    workspace_name: str
    clusters: list[str]
    burst_duration: str | None = Field(None, examples=["15m"])
    deletion_policy: DeletionPolicy
    helm_configs: list[dict[str, Any]]
    manifest_resources: list[dict[str, Any]]
    cmd_exec: list[dict[str, Any]]
    steps: list[StepDocument]
    status: Status
    created_at: datetime
    updated_at: datetime | None = None
    origin: Origin


class Following(_CamelModel):
    """The number of all entries, and the token of the next page; `continue` is empty on the last page."""

    total: int
    limit: int
    continue_: str = Field(alias="continue")


class PlacementList(Answered[list[PlacementDocument]]):
    """A page of a list."""

    metadata: Following


class Written(_CamelModel):
    """An object that was written, and the commit of the output branch that carries it. The commit has been pushed."""

    name: str
    workspace_name: str
    commit: str = Field(examples=["8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c"])
    warnings: list[str] = Field([], description="Defaults that were assumed for fields that are not set.")


class Onboarded(_CamelModel):
    """A namespace, and the clusters that it may be used in."""

    namespace: str
    clusters: list[str]


class WorkspaceEntry(_CamelModel):
    """A workspace with EGS's fields, and its primary cluster."""

    name: str
    overlay_network_deployment_mode: str
    max_clusters: int
    slice_description: str
    clusters: list[str]
    namespaces: list[Onboarded] | None
    primary_cluster: str


class Workspaces(_CamelModel):
    """The workspaces that the caller may read."""

    workspaces: list[WorkspaceEntry]


class Template(_ExtensibleModel):
    """A workload template, and its file in the source branch."""

    name: str
    workspace_name: str
    burst_duration: str | None = Field(None, examples=["10m"])
    deletion_policy: DeletionPolicy
    helm_configs: list[dict[str, Any]]
    manifest_resources: list[dict[str, Any]]
    cmd_exec: list[dict[str, Any]]
    steps: list[StepDocument]
    path: str = Field(examples=["templates/vllm.yaml"])
    line: int


class RefusedCluster(_ExtensibleModel):
    """A cluster that cannot be used now, with the reason and the remedy."""

    cluster: str
    subset: str
    reason: Reason
    message: str
    remedy: str


class HeldBack(_ExtensibleModel):
    """A change that demand asks for and that is not made: the reason and, if known, the next attempt."""

    reason: Reason
    message: str
    replicas: int
    until: datetime | None
    refusals: list[RefusedCluster]


class Assessed(_ExtensibleModel):
    """A cluster, or its part for a subset, assessed for a workload: the replicas that fit, or the refusal."""

    cluster: str
    subset: str
    rank: int | None
    placed: int
    fits: int
    limit: int | None
    refusal: RefusedCluster | None


class Explained(_ExtensibleModel):
    """The explanation of a workload's placements, as `overspill explain -o json` prints it."""

    workload: str
    summary: str = Field(description="The state in one sentence; empty for a request.")
    primary: str
    policy: str
    distribution: str
    demand: dict[str, Any] | None
    placements: list[dict[str, Any]]
    notes: dict[str, list[str]]
    restraints: list[dict[str, Any]]
    assessments: list[Assessed]
    suppressed: list[HeldBack]
    conclusion: list[str]
    request: dict[str, Any] | None


class WorkloadRow(_ExtensibleModel):
    """A workload that may burst; the counts are null where its primary is unseen."""

    workload: str
    primary: str
    policy: str
    wanted: int | None
    running: int | None
    deficit: int | None = Field(description="Missing replicas.")
    placed: int
    spare: int = Field(description="Placed replicas that headroom or a forecast wants beforehand.")
    message: str
    suppressed: list[HeldBack]


class RequestRow(_ExtensibleModel):
    """A request: its author, its clusters and its status."""

    request: str
    asker: str
    author: str
    clusters: list[str]
    placed: list[str]
    provisioning_status: Provisioning
    phase: Phase
    message: str
    received_at: datetime
    began_at: datetime | None
    ends_at: datetime | None


class PlacementRow(_ExtensibleModel):
    """A placement with its record, its health and its remaining time."""

    placement: dict[str, Any]
    phase: Phase
    provisioning: Provisioning
    engine: str | None
    message: str
    unhealthy_since: datetime | None
    bound: int | None = Field(description="Replicas that have a node; null where the cluster is unseen.")
    left: str = Field(examples=["9m58s"])


class LeavingRow(_ExtensibleModel):
    """The remains of an ended placement in a cluster."""

    cluster: str
    name: str
    pods: int
    since: datetime | None
    message: str


class ClusterRow(_ExtensibleModel):
    """A cluster: its connection, and its last observation."""

    cluster: str
    engine: str | None
    connection: str
    observed_at: datetime | None
    reporting: bool
    message: str


class BudgetRow(_ExtensibleModel):
    """A budget in its present day or month, in dollars."""

    owner: str
    field: str
    period: str
    ends_at: datetime
    limit: float
    spent: float
    unpriced_gpu_hours: float


class ProblemDocument(_ExtensibleModel):
    """A problem at one place of a file, or of the fleet as a whole."""

    path: str
    line: int
    field: str
    message: str
    hint: str
    severity: Severity


class LogDocument(_CamelModel):
    """The last lines of a daemon's log."""

    lines: list[str] = Field(description="JSON objects, the oldest first.")


class FleetDocument(_ExtensibleModel):
    """The fleet at one moment, as `overspill status -o json` prints it."""

    now: datetime
    workloads: list[WorkloadRow]
    requests: list[RequestRow]
    placements: list[PlacementRow]
    leaving: list[LeavingRow]
    clusters: list[ClusterRow]
    budgets: list[BudgetRow]
    problems: list[ProblemDocument]
    wake_at: datetime | None


class BurstDocument(_ExtensibleModel):
    """A placement from its first commit to its end."""

    id: str = Field(examples=["llm/vllm-7f3a90c1"])
    workload: str
    cluster: str
    subset: str
    started_at: datetime | None
    expires_at: datetime | None
    steps: list[dict[str, Any]]
    ended_at: datetime | None
    why: str
    put_back: bool


class NextPage(_CamelModel):
    """The token of the next page; `continue` is empty on the last page."""

    limit: int
    continue_: str = Field(alias="continue")


class HistoryPage(Answered[list[BurstDocument]]):
    """A page of the history. How many entries there are in all is unknown: the log is read only as far as needed."""

    metadata: NextPage


class PlanRowDocument(_ExtensibleModel):
    """A change in a line."""

    action: str = Field(examples=["Place"])
    workload: str | None
    placement: str | None
    cluster: str | None
    replicas: int | str | None
    until: datetime | None
    why: str


class CommitAuthor(_ExtensibleModel):
    """The author of a commit."""

    name: str
    email: str


class PlannedCommitDocument(_ExtensibleModel):
    """A commit that a plan would make."""

    subject: str
    message: str
    author: CommitAuthor
    at: datetime
    removes: list[str]
    writes: dict[str, Any]
    change: dict[str, Any] | None
    notes: list[str]
    row: PlanRowDocument


class HeldBackRow(HeldBack):
    """A change that demand asks for and that is not made, with its workload."""

    workload: str


class RateDocument(_ExtensibleModel):
    """GPUs, and dollars an hour for those whose cluster has a price."""

    gpus: int | float
    dollars: float
    unpriced_gpus: int | float
    priced: bool


class PlanDocument(_ExtensibleModel):
    """A plan, as `overspill plan -o json` prints it."""

    supposed: list[str]
    at: datetime
    source: str | None
    output: str | None
    commits: list[PlannedCommitDocument]
    suppressed: list[HeldBackRow]
    cost: RateDocument = Field(description="How much more all placements would cost than they do.")
    problems: list[ProblemDocument]
    wake_at: datetime | None
    patch: Any = Field(None, description="The commits as a patch, where that is asked for.")


class SteeredDocument(_ExtensibleModel):
    """The commits of a revert, an extension or an answer to a proposal, as the commands print them.

    Those of a dry run come without what was pushed.
    """

    at: datetime
    source: str | None
    output: str | None
    commits: list[PlannedCommitDocument]
    suppressed: list[HeldBackRow]
    cost: RateDocument
    problems: list[ProblemDocument]
    wake_at: datetime | None
    pushed: list[str] = Field([], description="The ids of the commits.")
    branches: dict[str, str] = Field({}, description="The branches of clusters that moved with them.")
    lines: list[str] = Field([], description="Each change in a line.")
    output_branch: str = Field("", description="The branch that was pushed to.")


class GprStatusDocument(_CamelModel):
    """The state of a GPR, with its times."""

    provisioning_status: GprState
    message: str
    requested_at: datetime | None
    start_timestamp: datetime | None
    completion_timestamp: datetime | None
    expires_at: datetime | None
    remaining_duration: str | None = Field(examples=["9m58s"])
    estimated_start_time: datetime | None = Field(description="When one that waits gets room, by what is known.")
    estimated_wait_time: str | None = Field(examples=["0h2m40s"])


class GprDocument(_CamelModel):
    """A GPR: GPUs that a placement has, or that a workload waits for."""

    gpr_id: str = Field(examples=["gpr-72b2aba0"])
    gpr_name: str
    workspace_name: str
    cluster_name: str | None
    placement_name: str | None
    number_of_gpus: int = Field(alias="numberOfGPUs", description="On each node.")
    number_of_gpu_nodes: int = Field(alias="numberOfGPUNodes")
    memory_per_gpu: int = Field(description="In GB; 0 for any.")
    gpu_shape: str
    instance_type: str
    priority: int
    priority_band: str
    enable_eviction: bool
    requeue_on_failure: bool
    evicted_by: str
    status: GprStatusDocument


class GprList(Answered[list[GprDocument]]):
    """A page of a list."""

    metadata: Following


class WaitDocument(_CamelModel):
    """The estimated wait for GPUs on a cluster; null where no known event frees them."""

    cluster_name: str
    estimated_wait_time: str | None = Field(examples=["0h2m40s"])
    estimated_start_time: datetime | None
    ahead: list[str] = Field(description="The workloads that are ahead in the queue of the cluster.")
    reasons: list[str]


class GpuNodeDocument(_CamelModel):
    """The GPUs of one model on a node."""

    gpu_node_name: str
    cluster_name: str
    gpu_shape: str
    gpu_model_name: str
    instance_type: str
    memory: int = Field(description="Memory of a GPU in GB; 0 where unknown.")
    gpu_count: int | None
    available_gpus: int = Field(alias="availableGPUs")
    region: str
    zone: str
    node_health: Health
    gpu_node_state: Literal["NODE_AVAILABLE", "NODE_RESERVED"]
    resource_name: str
    is_slice: bool
    slice_kind: str = Field(description="How GPUs are sliced there, as `time slice`; empty for whole ones.")
    gpu_share: str = Field(description="The part of a GPU that each is, as `1/4`; `1` where that is unknown.")


class AllocationDocument(_CamelModel):
    """GPUs that a placement has on a cluster. Their nodes are not observed."""

    cluster_name: str
    placement_name: str
    workspace_name: str
    workload: str
    total_gpus_allocated: int = Field(alias="totalGPUsAllocated")
    replicas: int
    bound_replicas: int
    allocation_time_stamp: datetime


class SightDocument(_CamelModel):
    """The last observation of a cluster, and the reason if the cluster counts as unseen."""

    cluster_name: str
    observed_at: datetime | None
    message: str


class InventoryDocument(_CamelModel):
    """The GPU nodes of clusters in a workspace and of other clusters, and the GPUs of placements."""

    managed_nodes: list[GpuNodeDocument]
    unmanaged_nodes: list[GpuNodeDocument]
    allocations: list[AllocationDocument]
    clusters: list[SightDocument]
