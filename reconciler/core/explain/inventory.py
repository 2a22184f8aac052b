"""The inventory of GPU nodes: the GPUs of each node, those that are free, and the placements on its cluster.

EGS keeps an inventory for this (docs/egs.md, "Inventory and GPRs as answers"). The nodes of a placement's pods are not
observed, so that allocations are listed by cluster and never guessed by node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.core.capacity.gpu_models import INSTANCE_TYPE, NodeGpus, closed_gpus, gpus_of_node, gpus_of_pod
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId, WorkspaceName

_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


class Health(StrEnum):
    """Whether a node takes pods, in EGS's words. Cordoned and leaving nodes are Unschedulable."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNSCHEDULABLE = "Unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """The GPUs of one kind on one node; a node with several kinds has a row for each."""

    cluster: ClusterName
    node: str
    resource: str
    # As its vendor writes it; empty if unknown.
    model: str
    # In GB for one GPU, 0 if unknown.
    memory: int
    # None if the observation has no total.
    count: int | None
    free: int
    # Whether it is a slice of a GPU.
    part: bool
    instance_type: str
    region: str
    zone: str
    health: Health


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAllocation:
    """The GPUs of a placement on a cluster."""

    cluster: ClusterName
    placement: PlacementName
    workload: WorkloadId
    gpus: int
    replicas: int
    # The replicas with a node.
    bound: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSighting:
    """The last observation of a cluster, and the reason if it counts as unseen: its rows are as old."""

    cluster: ClusterName
    observed_at: datetime | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInventory:
    """All observed GPU nodes. Nodes of clusters in a workspace are managed, the others are not."""

    managed: tuple[GpuNode, ...]
    unmanaged: tuple[GpuNode, ...]
    allocations: tuple[GpuAllocation, ...]
    clusters: tuple[ClusterSighting, ...]


def build_inventory(inputs: PassInput, within: frozenset[WorkspaceName] | None = None) -> GpuInventory:
    """List the GPU nodes by cluster and name.

    `within` are the workspaces whose clusters and placements are listed; unmanaged nodes are listed for None (all)
    only.
    """
    desired, observed = inputs.desired, inputs.observed
    workspaces = [
        workspace for name, workspace in sorted(desired.workspaces.items()) if within is None or name in within
    ]
    managed = {cluster for workspace in workspaces for cluster in workspace.everywhere}
    others = {*desired.clusters, *observed.clusters} - managed if within is None else set()
    return GpuInventory(
        managed=tuple(_nodes(inputs, managed)),
        unmanaged=tuple(_nodes(inputs, others)),
        allocations=tuple(
            _allocations(inputs, {workspace.name for workspace in workspaces} if within is not None else None)
        ),
        clusters=tuple(_sight(inputs, name) for name in sorted(managed | others)),
    )


def _nodes(inputs: PassInput, clusters: set[ClusterName]) -> Iterator[GpuNode]:
    for name in sorted(clusters):
        seen = inputs.observed.clusters.get(name)
        if seen is not None:
            yield from sorted(_rows(seen), key=lambda row: (row.node, row.resource))


def _rows(seen: ClusterObservation) -> Iterator[GpuNode]:
    for pool in seen.pools:
        for node in pool.nodes:
            for node_gpus in gpus_of_node(node, pool):
                yield _row(seen.cluster, node.name, node_gpus, {**pool.labels, **node.labels}, Health.HEALTHY)
    for closed in seen.closed:
        for node_gpus in closed_gpus(closed):
            health = Health.UNSCHEDULABLE if closed.ready else Health.UNHEALTHY
            yield _row(seen.cluster, closed.name, node_gpus, closed.labels, health)


def _row(cluster: ClusterName, node: str, node_gpus: NodeGpus, labels: Mapping[str, str], health: Health) -> GpuNode:
    return GpuNode(
        cluster=cluster,
        node=node,
        resource=node_gpus.resource,
        model=node_gpus.model,
        memory=node_gpus.memory,
        count=node_gpus.count,
        free=node_gpus.free,
        part=node_gpus.part,
        instance_type=labels.get(INSTANCE_TYPE, ""),
        region=labels.get(_REGION, ""),
        zone=labels.get(_ZONE, ""),
        health=health,
    )


def _allocations(inputs: PassInput, within: set[WorkspaceName] | None) -> Iterator[GpuAllocation]:
    for _, placement in sorted(inputs.ledger.placements.items()):
        if within is not None and placement.workload.workspace not in within:
            continue
        bound = replica_count.bound_replicas(placement, inputs.observed.clusters.get(placement.cluster))
        yield GpuAllocation(
            cluster=placement.cluster,
            placement=placement.name,
            workload=placement.workload,
            gpus=bound * placement.shape.group_size * gpus_of_pod(placement.shape),
            replicas=placement.replicas,
            bound=bound,
            since=placement.created_at,
        )


def _sight(inputs: PassInput, name: ClusterName) -> ClusterSighting:
    seen = inputs.observed.clusters.get(name)
    return ClusterSighting(
        cluster=name,
        observed_at=seen.observed_at if seen else None,
        message=unseen(inputs.desired.fleet, inputs.observed, name, inputs.now),
    )
