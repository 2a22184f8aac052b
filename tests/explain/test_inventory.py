"""The inventory has a row for each kind of GPUs on each node, and says what is not known instead of guessing."""

from dataclasses import replace
from datetime import timedelta

from reconciler.api.gpr_document import inventory_document
from reconciler.core.explain.inventory import GpuInventory, Health, build_inventory
from reconciler.core.observe.observation_file import read
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import WorkspaceName
from tests.builders.gpu_nodes import H100, cluster_of, h100, nodes
from tests.builders.inputs import NOW, cluster, desired, inputs, ledger, placement, shape

PLACES = {
    "node.kubernetes.io/instance-type": "p5.48xlarge",
    "topology.kubernetes.io/region": "eu-central-1",
    "topology.kubernetes.io/zone": "eu-central-1a",
}


def stock(*seen: ClusterObservation, **fields: object) -> GpuInventory:
    return build_inventory(inputs(*seen, **fields))


def test_a_node_is_told_with_what_it_has_and_where_it_is() -> None:
    (row,) = stock(cluster_of(nodes(3, labels=h100(**PLACES)))).managed
    assert (row.cluster, row.node, row.resource) == ("worker-2", "gpu-0", "nvidia.com/gpu")
    assert (row.model, row.memory, row.count, row.free) == (H100, 80, 8, 3)
    assert (row.instance_type, row.region, row.zone) == ("p5.48xlarge", "eu-central-1", "eu-central-1a")
    assert row.health is Health.HEALTHY


def test_nodes_that_take_no_pods_are_told_with_why() -> None:
    text = b"""
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-2
observedAt: "2026-11-20T10:05:00Z"
pools:
  - name: a
    labels: {nvidia.com/gpu.product: Tesla-T4}
    allocatable: {nvidia.com/gpu: 4, cpu: 32}
    nodes:
      - {name: good, used: {nvidia.com/gpu: 1}}
      - {name: broken, ready: false}
      - {name: resting, cordoned: true, allocatable: {nvidia.com/gpu: 2}}
      - {name: cpu-only, allocatable: {nvidia.com/gpu: 0}}
"""
    rows = stock(*read(text, "seen.yaml")).managed
    assert [(row.node, row.count, row.free, row.health) for row in rows] == [
        ("broken", 4, 0, Health.UNHEALTHY),
        ("good", 4, 3, Health.HEALTHY),
        ("resting", 2, 0, Health.UNSCHEDULABLE),
    ]
    assert {row.model for row in rows} == {"Tesla-T4"}


def test_a_node_is_available_in_egs_words_while_one_of_its_gpus_is_free() -> None:
    told = inventory_document(stock(cluster_of(nodes(0, 3))))["managedNodes"]
    assert [one["gpuNodeState"] for one in told] == ["NODE_RESERVED", "NODE_AVAILABLE"]


def test_clusters_that_no_workspace_has_are_unmanaged() -> None:
    wanted = desired(clusters=(cluster("worker-1"), cluster("worker-2")))
    wanted = replace(wanted, clusters={**wanted.clusters, "spare": cluster("spare")})
    found = stock(cluster_of(nodes(8)), cluster_of(nodes(8), name="spare"), wanted=wanted)
    assert {row.cluster for row in found.managed} == {"worker-2"}
    assert {row.cluster for row in found.unmanaged} == {"spare"}


def test_who_may_see_one_workspace_sees_nothing_of_others() -> None:
    seen = inputs(
        cluster_of(nodes(8)),
        cluster_of(nodes(8), name="spare"),
        there=ledger(placement()),
    )
    mine, others = build_inventory(seen, frozenset({WorkspaceName("llm")})), build_inventory(seen, frozenset())
    assert {row.cluster for row in mine.managed} == {"worker-2"}
    assert mine.unmanaged == ()
    assert others == GpuInventory(managed=(), unmanaged=(), allocations=(), clusters=())


def test_what_placements_have_is_told_by_cluster() -> None:
    there = placement(replicas=3, shape=shape(2, group_size=2))
    (one,) = stock(cluster_of(nodes(8), bound={there.name: 4}), there=ledger(there)).allocations
    assert (one.cluster, one.placement, one.bound, one.replicas, one.gpus) == ("worker-2", there.name, 2, 3, 8)
    assert one.since == there.created_at


def test_a_cluster_that_is_out_of_sight_keeps_its_rows_and_says_how_old_they_are() -> None:
    found = stock(cluster_of(nodes(8), at=NOW - timedelta(minutes=5)))
    assert len(found.managed) == 1
    notes = {one.cluster: one.message for one in found.clusters}
    assert notes["worker-2"] == "worker-2 was last observed 5m ago, more than 2m"
    assert notes["worker-3"] == "worker-3 has not been observed"
