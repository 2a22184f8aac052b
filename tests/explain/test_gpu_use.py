"""GPUs of a cluster are counted once each: bursts, replicas that start, workloads at home, others, free ones."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.explain.gpu_use import gpu_uses
from reconciler.model.capacity import Node
from reconciler.model.ids import ClusterName
from reconciler.text.gpu_cells import GpuUse
from tests.builders.inputs import cluster, desired, free, gpus, inputs, ledger, placement, short


def test_each_gpu_has_one_use() -> None:
    there = ledger(placement("worker-2", 3))
    name = next(iter(there.placements.values())).name
    seen = free("worker-2", 4, bound={name: 2})
    (pool,) = seen.pools
    node = Node(name="node-0", free=gpus(4), allocatable=gpus(8))
    seen = replace(seen, pools=(replace(pool, nodes=(node,)),))
    uses = gpu_uses(inputs(short(1), seen, there=there))[ClusterName("worker-2")]
    assert uses == {GpuUse.BURST: 2, GpuUse.STARTING: 1, GpuUse.HOME: 0, GpuUse.OTHER: 2, GpuUse.FREE: 3}


def test_workloads_are_at_home_on_their_primary_alone() -> None:
    home = replace(short(1, running=5), pools=free("worker-1", 0).pools)
    (pool,) = home.pools
    node = Node(name="node-0", free=gpus(0), allocatable=gpus(8))
    home = replace(home, pools=(replace(pool, nodes=(node,)),))
    situation = inputs(home, free("worker-2", 8))
    assert gpu_uses(situation)[ClusterName("worker-1")][GpuUse.HOME] == 5
    assert gpu_uses(situation)[ClusterName("worker-1")][GpuUse.OTHER] == 3
    assert gpu_uses(situation)[ClusterName("worker-2")][GpuUse.HOME] == 0


def test_a_cluster_that_was_never_seen_has_none() -> None:
    clusters = desired(clusters=(cluster("worker-1"), cluster("worker-9")))
    assert sum(gpu_uses(inputs(short(0), wanted=clusters))[ClusterName("worker-9")].values()) == 0
