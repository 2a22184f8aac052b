"""How the GPUs of each cluster are used: by bursts, by workloads at home, by others, or by nobody.

Called by live views. The nodes of a burst's pods are not observed, so that uses are counted by cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.inventory import Health, InventoryNode, inventory_nodes
from reconciler.core.workloads import replica_count
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName
from reconciler.text.gpu_cells import GpuUse


def gpu_uses(inputs: PassInput) -> Mapping[ClusterName, Mapping[GpuUse, int]]:
    """Count the GPUs of every cluster of the fleet by use; none for a cluster that was never seen.

    Slices of GPUs count where a cluster has nothing else. Nodes that take no pods are left out.
    """
    home = home_gpus(inputs)
    names = sorted({*inputs.desired.clusters, *inputs.observed.clusters})
    return {name: gpu_use(inputs, name, home.get(name, 0)) for name in names}


def gpu_use(
    inputs: PassInput, cluster: ClusterName, home: int, nodes: Iterable[InventoryNode] | None = None
) -> Mapping[GpuUse, int]:
    """Count the GPUs of one cluster by use; `home` is its part of `home_gpus`, `nodes` are those of the inventory."""
    rows = inventory_nodes(inputs, (cluster,)) if nodes is None else nodes
    healthy = [row for row in rows if row.health is Health.HEALTHY]
    whole = [row for row in healthy if not row.part] or healthy
    free = sum(row.free for row in whole)
    used = sum(max(0, row.count - row.free) for row in whole if row.count is not None)
    burst, starting = _bursts(inputs, cluster)
    burst = min(burst, used)
    home = min(home, used - burst)
    starting = min(starting, free)
    return {
        GpuUse.BURST: burst,
        GpuUse.STARTING: starting,
        GpuUse.HOME: home,
        GpuUse.OTHER: used - burst - home,
        GpuUse.FREE: free - starting,
    }


def home_gpus(inputs: PassInput) -> Mapping[ClusterName, int]:
    """Count the GPUs of the fleet's workloads on their primaries."""
    gpus: Counter[ClusterName] = Counter()
    for demand in inputs.demands.values():
        if isinstance(demand, Demand) and demand.shape is not None:
            gpus[demand.primary] += demand.running * demand.shape.group_size * gpus_of_pod(demand.shape)
    return gpus


def _bursts(inputs: PassInput, cluster: ClusterName) -> tuple[int, int]:
    """Count the GPUs of placed replicas with a node, and of those without."""
    seen, bound, unbound = inputs.observed.clusters.get(cluster), 0, 0
    for placement in inputs.ledger.placements.on(cluster).placements:
        size = placement.shape.group_size * gpus_of_pod(placement.shape)
        running = min(placement.replicas, replica_count.bound_replicas(placement, seen))
        bound += running * size
        unbound += (placement.replicas - running) * size
    return bound, unbound
