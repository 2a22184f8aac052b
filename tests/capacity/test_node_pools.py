"""Nodes to come are bounded by what their NodePool leaves, beside what the Cluster declares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.capacity.scalable_nodes import addable_nodes, growth_of, with_added_nodes
from reconciler.model.capacity import ClosedNode, ClusterObservation, Node, NodePool, Pool
from reconciler.model.cluster import NODE_POOL_LABEL, ScalableNodes
from reconciler.model.policy import Cluster
from reconciler.model.units import Resources
from tests.builders.inputs import cluster, free
from tests.builders.node_pools import amounts, declared, pool

BIG = amounts(cpu="15", memory="60Gi", gpu="8")


def seen(*nodes: Resources, of: str = "gpu", **pools: NodePool) -> ClusterObservation:
    """Observe a cluster with these nodes of a NodePool, and its NodePools."""
    made = tuple(Node(name=f"node-{index}", free=each, allocatable=each) for index, each in enumerate(nodes))
    there = Pool(name="there", nodes=made, labels={NODE_POOL_LABEL: of})
    return replace(free("worker-2"), pools=(there,), node_pools=pools)


def growing(*nodes: ScalableNodes) -> Cluster:
    return cluster("worker-2", autoscaling=nodes)


def counts(observed: ClusterObservation, *nodes: ScalableNodes) -> list[int]:
    return [growth.count for growth in growth_of(growing(*nodes), observed)]


def held(observed: ClusterObservation, *nodes: ScalableNodes) -> list[str]:
    return [growth.held for growth in growth_of(growing(*nodes), observed)]


@pytest.mark.parametrize(
    ("limits", "used", "left"),
    [
        (amounts(), amounts(), 10),
        (amounts(gpu="64"), amounts(), 8),
        (amounts(gpu="64"), amounts(gpu="48"), 2),
        (amounts(gpu="64"), amounts(gpu="60"), 0),
        (amounts(gpu="64"), amounts(gpu="72"), 0),
        (amounts(cpu="100"), amounts(cpu="32"), 4),
        (amounts(memory="200Gi"), amounts(memory="64Gi"), 2),
        (amounts(nodes="3"), amounts(nodes="0"), 3),
        (amounts(gpu="64", cpu="100", nodes="3"), amounts(gpu="8", cpu="16"), 3),
        (amounts(cpu="0"), amounts(), 0),
    ],
    ids=["none", "gpus", "rest", "part of a node", "beyond", "cpu", "memory", "nodes", "tightest", "nothing allowed"],
)
def test_limits_less_what_is_used_bound_the_nodes(limits: Resources, used: Resources, left: int) -> None:
    assert counts(seen(gpu=pool(limits, used)), declared(each=BIG)) == [left]


def test_the_cluster_bounds_them_too() -> None:
    assert counts(seen(gpu=pool(amounts(gpu="64"))), declared(most=3, each=BIG)) == [3]
    assert held(seen(gpu=pool(amounts(gpu="64"))), declared(most=3, each=BIG)) == [""]


def test_a_limit_of_what_the_nodes_lack_holds_back_once_it_is_exceeded() -> None:
    limits = amounts(**{"amd.com/gpu": "8"})
    assert counts(seen(gpu=pool(limits, amounts(**{"amd.com/gpu": "8"}))), declared()) == [10]
    assert counts(seen(gpu=pool(limits, amounts(**{"amd.com/gpu": "9"}))), declared()) == [0]


def test_nodes_that_have_just_come_are_used_before_the_status_says_so() -> None:
    late = pool(amounts(gpu="3"), amounts(gpu="0", nodes="0"))
    assert counts(seen(*[amounts(gpu="1")] * 2, gpu=late), declared()) == [1]


def test_nodes_that_take_no_pods_are_used_too() -> None:
    closed = ClosedNode(name="new", allocatable=amounts(gpu="1"), ready=False, labels={NODE_POOL_LABEL: "gpu"})
    observed = replace(seen(gpu=pool(amounts(gpu="3"))), closed=(closed,))
    assert counts(observed, declared()) == [2]


def test_nodes_count_by_the_labels_that_their_pool_gives_them() -> None:
    nodes = replace(declared(most=2), labels={NODE_POOL_LABEL: "gpu", "size": "large"})
    observed = seen(BIG, BIG, gpu=replace(pool(), labels={"size": "small"}))
    (there,) = observed.pools
    observed = replace(observed, pools=(replace(there, labels={**there.labels, "size": "small"}),))
    assert counts(observed, nodes) == [0]
    assert counts(observed, replace(nodes, most=3)) == [1]


def test_nodes_of_another_pool_are_not_used() -> None:
    observed = seen(*[amounts(gpu="1")] * 2, of="other", gpu=pool(amounts(gpu="3")))
    assert counts(observed, declared()) == [3]


def test_nodes_that_are_launched_and_no_nodes_yet_are_still_to_come() -> None:
    launched = pool(amounts(gpu="3"), amounts(gpu="2", nodes="2"))
    assert counts(seen(gpu=launched), declared()) == [3]
    assert counts(seen(amounts(gpu="1"), gpu=launched), declared()) == [2]
    assert counts(seen(*[amounts(gpu="1")] * 2, gpu=launched), declared()) == [1]


def test_no_more_are_to_come_than_the_cluster_declares() -> None:
    assert counts(seen(gpu=pool(used=amounts(nodes="5"))), declared(most=2)) == [2]


def test_a_pool_at_its_limit_is_told_with_its_numbers() -> None:
    full = seen(gpu=pool(amounts(gpu="16"), amounts(gpu="16")))
    assert held(full, declared(each=BIG)) == ["NodePool gpu: limit nvidia.com/gpu 16 of 16 used"]
    (growth,) = growth_of(growing(declared(each=BIG)), full)
    assert growth.remedy == "raise limit nvidia.com/gpu of NodePool gpu"


def test_the_nodes_that_a_limit_leaves_are_told() -> None:
    observed = seen(gpu=pool(amounts(gpu="32", cpu="1k"), amounts(gpu="16")))
    assert held(observed, declared(each=BIG)) == ["NodePool gpu: limit nvidia.com/gpu 16 of 32 used, 2 nodes to come"]


def test_a_pool_that_is_not_ready_adds_no_node() -> None:
    observed = seen(gpu=pool(obstacle="is not Ready: NodeClassReadyFailed"))
    assert counts(observed, declared()) == [0]
    assert held(observed, declared()) == ["NodePool gpu is not Ready: NodeClassReadyFailed"]


def test_what_it_has_launched_before_comes_all_the_same() -> None:
    observed = seen(gpu=pool(used=amounts(nodes="2"), obstacle="is not Ready"))
    assert counts(observed, declared()) == [2]


def test_a_pool_that_is_not_there_adds_no_node() -> None:
    assert counts(seen(other=pool()), declared()) == [0]
    assert held(seen(other=pool()), declared()) == ["there is no NodePool gpu"]


def test_unknown_pools_leave_it_at_what_is_declared() -> None:
    observed = replace(seen(), node_pools=None)
    assert (counts(observed, declared(most=4)), held(observed, declared(most=4))) == ([4], [""])


def test_other_autoscalers_are_bounded_by_no_pool() -> None:
    nodes = replace(declared(most=4), labels={"eks.amazonaws.com/nodegroup": "gpu"})
    assert counts(seen(gpu=pool(amounts(gpu="1"))), nodes) == [4]


def test_kinds_of_nodes_share_the_limits_of_their_pool() -> None:
    small, large = declared(most=2), replace(declared(each=BIG), labels={NODE_POOL_LABEL: "gpu", "size": "large"})
    observed = seen(gpu=pool(amounts(gpu="20")))
    assert counts(observed, small, large) == [2, 2]
    assert counts(observed, large, small) == [2, 2]
    none_left = seen(gpu=pool(amounts(gpu="2")))
    assert counts(none_left, small, large) == [2, 0]
    assert held(none_left, small, large) == ["", "NodePool gpu: limit nvidia.com/gpu 2 of 2 used or to come"]


def test_pools_have_limits_of_their_own() -> None:
    observed = seen(one=pool(amounts(gpu="1")), two=pool(amounts(gpu="2")))
    assert counts(observed, declared("one"), declared("two")) == [1, 2]


def test_nodes_added_in_a_simulation_are_used() -> None:
    described, observed = growing(declared()), seen(gpu=pool(amounts(gpu="3"), amounts(gpu="1", nodes="1")))
    later = with_added_nodes(described, observed, declared().delay)
    assert [count for _, count in addable_nodes(described, observed)] == [3]
    assert list(addable_nodes(described, later)) == []
