"""The inventory of GPU nodes: the GPUs of each node, those that are free, and the placements on its cluster.

EGS keeps an inventory for this (docs/reference/egs.md, "Inventory and GPRs as answers"). The nodes of a placement's
pods are not observed, so that allocations are listed by cluster and never guessed by node. A node or placement that
meets an unforeseen exception is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import TypeVar

from reconciler.bulkhead import NoteBug, Seam, attempt
from reconciler.core.capacity.gpu_models import (
    INSTANCE_TYPE,
    REGION,
    ZONE,
    NodeGpus,
    closed_gpus,
    gpus_of_node,
    gpus_of_pod,
)
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.errors import Bug
from reconciler.model.capacity import ClosedNode, ClusterObservation, Node, Pool, SliceKind
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement

Row = TypeVar("Row")


class Health(StrEnum):
    """Whether a node takes pods, in EGS's words. Cordoned and leaving nodes are Unschedulable."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNSCHEDULABLE = "Unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryNode:
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
    # How GPUs are sliced there; None for whole ones.
    slices: SliceKind | None
    # The part of a GPU that each is.
    share: Fraction
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

    managed: tuple[InventoryNode, ...]
    unmanaged: tuple[InventoryNode, ...]
    allocations: tuple[GpuAllocation, ...]
    clusters: tuple[ClusterSighting, ...]


def build_inventory(
    inputs: PassInput, within: frozenset[WorkspaceName] | None = None, note_bug: NoteBug = lambda _: None
) -> GpuInventory:
    """List the GPU nodes by cluster and name.

    `within` are the workspaces whose clusters and placements are listed; unmanaged nodes are listed for None (all)
    only. `note_bug` gets the bug of each that is left out.
    """
    desired, observed = inputs.desired, inputs.observed
    workspaces = [
        workspace for name, workspace in sorted(desired.workspaces.items()) if within is None or name in within
    ]
    managed = {cluster for workspace in workspaces for cluster in workspace.everywhere}
    others = {*desired.clusters, *observed.clusters} - managed if within is None else set()
    return GpuInventory(
        managed=tuple(inventory_nodes(inputs, managed, note_bug)),
        unmanaged=tuple(inventory_nodes(inputs, others, note_bug)),
        allocations=tuple(
            _allocations(inputs, None if within is None else {workspace.name for workspace in workspaces}, note_bug)
        ),
        clusters=tuple(
            sighting
            for name in sorted(managed | others)
            for sighting in _read(f"cluster {name}", partial(_sight, inputs, name), note_bug)
        ),
    )


def inventory_nodes(
    inputs: PassInput, clusters: Collection[ClusterName], note_bug: NoteBug = lambda _: None
) -> Iterator[InventoryNode]:
    """Yield the GPU nodes of some clusters, by cluster and name."""
    for name in sorted(clusters):
        seen = inputs.observed.clusters.get(name)
        if seen is not None:
            yield from sorted(_rows(seen, note_bug), key=lambda row: (row.node, row.resource))


def _rows(seen: ClusterObservation, note_bug: NoteBug) -> Iterator[InventoryNode]:
    for pool in seen.pools:
        for node in pool.nodes:
            yield from _read(f"{seen.cluster}/{node.name}", partial(_open_node, seen.cluster, node, pool), note_bug)
    for closed in seen.closed:
        yield from _read(f"{seen.cluster}/{closed.name}", partial(_closed_node, seen.cluster, closed), note_bug)


def _read(item: str, call: Callable[[], list[Row]], note_bug: NoteBug) -> list[Row]:
    """Return the rows of an item; none where an unforeseen exception ends the work on it."""
    rows = attempt(Seam.STATUS, item, call)
    if isinstance(rows, Bug):
        note_bug(rows)
        return []
    return rows


def _open_node(cluster: ClusterName, node: Node, pool: Pool) -> list[InventoryNode]:
    labels = {**pool.labels, **node.labels}
    return [_row(cluster, node.name, node_gpus, labels, Health.HEALTHY) for node_gpus in gpus_of_node(node, pool)]


def _closed_node(cluster: ClusterName, closed: ClosedNode) -> list[InventoryNode]:
    health = Health.UNSCHEDULABLE if closed.ready else Health.UNHEALTHY
    return [_row(cluster, closed.name, node_gpus, closed.labels, health) for node_gpus in closed_gpus(closed)]


def _row(
    cluster: ClusterName, node: str, node_gpus: NodeGpus, labels: Mapping[str, str], health: Health
) -> InventoryNode:
    return InventoryNode(
        cluster=cluster,
        node=node,
        resource=node_gpus.resource,
        model=node_gpus.model,
        memory=node_gpus.memory,
        count=node_gpus.count,
        free=node_gpus.free,
        part=node_gpus.part,
        slices=node_gpus.kind,
        share=node_gpus.share,
        instance_type=labels.get(INSTANCE_TYPE, ""),
        region=labels.get(REGION, ""),
        zone=labels.get(ZONE, ""),
        health=health,
    )


def _allocations(inputs: PassInput, within: set[WorkspaceName] | None, note_bug: NoteBug) -> Iterator[GpuAllocation]:
    for path, placement in sorted(inputs.ledger.placements.items()):
        if within is None or placement.workload.workspace in within:
            yield from _read(path, partial(_allocation, inputs, placement), note_bug)


def _allocation(inputs: PassInput, placement: Placement) -> list[GpuAllocation]:
    bound = replica_count.bound_replicas(placement, inputs.observed.clusters.get(placement.cluster))
    return [
        GpuAllocation(
            cluster=placement.cluster,
            placement=placement.name,
            workload=placement.workload,
            gpus=bound * placement.shape.group_size * gpus_of_pod(placement.shape),
            replicas=placement.replicas,
            bound=bound,
            since=placement.created_at,
        )
    ]


def _sight(inputs: PassInput, name: ClusterName) -> list[ClusterSighting]:
    seen = inputs.observed.clusters.get(name)
    return [
        ClusterSighting(
            cluster=name,
            observed_at=seen.observed_at if seen else None,
            message=unseen(inputs.desired.fleet, inputs.observed, name, inputs.now),
        )
    ]
