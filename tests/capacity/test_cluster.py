"""Fit counts nodes, not clusters."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.units import Resources, parse_quantity
from tests.builders.inputs import GPU, NOW, free, gpus, shape


def resources(**amounts: str) -> Resources:
    return Resources(amounts={name: parse_quantity(text) for name, text in amounts.items()})


def room(*nodes: Node, **pool: object) -> ClusterCapacity:
    pools = (Pool(name="p", nodes=nodes, **pool),)
    return ClusterCapacity(ClusterObservation(cluster=ClusterName("c"), observed_at=NOW, pools=pools))


def test_eight_nodes_with_one_free_gpu_hold_no_replica_of_eight() -> None:
    assert ClusterCapacity(free("c", *[1] * 8)).count(shape(8), 10) == 0
    assert ClusterCapacity(free("c", 0, 8, 1)).count(shape(8), 10) == 1


def test_every_resource_has_to_fit_on_the_same_node() -> None:
    nodes = (
        Node(name="gpus", free=Resources(amounts={**gpus(8).amounts, **resources(memory="4Gi").amounts})),
        Node(name="memory", free=resources(memory="512Gi")),
    )
    wanted = ReplicaShape(requests=Resources(amounts={**gpus(1).amounts, **resources(memory="8Gi").amounts}))
    assert room(*nodes).count(wanted, 5) == 0
    assert room(*nodes).shortfall(wanted) == (
        "none of 2 nodes has 1 GPU and 8Gi memory free together (too little nvidia.com/gpu on 1 and memory on 1)"
    )


def test_a_node_that_counts_pods_holds_no_more_of_them() -> None:
    node = Node(name="n", free=Resources(amounts={**gpus(8).amounts, **resources(pods="2").amounts}))
    assert room(node).count(shape(1), 8) == 2


def test_a_group_fits_whole_or_not_at_all() -> None:
    assert ClusterCapacity(free("c", 2, 1)).count(shape(1, group_size=2), 5) == 1


def test_node_selector_reads_labels_of_pool_and_node() -> None:
    nodes = (Node(name="a", free=gpus(4), labels={"zone": "a"}), Node(name="b", free=gpus(4), labels={"zone": "b"}))
    wanted = shape(1, node_selector={"zone": "b", "model": "H100"})
    assert room(*nodes, labels={"model": "H100"}).count(wanted, 10) == 4
    assert room(*nodes, labels={"model": "A100"}).shortfall(wanted) == "no node has model=H100, zone=b"


def test_tainted_nodes_take_only_what_tolerates_them() -> None:
    taint = Taint(key="gpu", value="yes")
    tolerant = shape(1, tolerations=(Toleration(key="gpu", operator="Exists"),))
    tainted = free("c", 4, taints=(taint,))
    assert ClusterCapacity(tainted).count(shape(1), 9) == 0
    assert ClusterCapacity(tainted).count(tolerant, 9) == 4
    assert "tainted gpu=yes:NoSchedule" in ClusterCapacity(tainted).shortfall(shape(1))
    assert ClusterCapacity(tainted).remedy(shape(1)) == "tolerate the taint in its pods, or add nodes without it there"
    assert ClusterCapacity(free("c", 0)).remedy(tolerant) == "free or add nodes there"


def test_a_taint_by_the_state_of_a_node_is_nothing_to_tolerate() -> None:
    pressed = Node(name="a", free=gpus(4), taints=(Taint(key="node.kubernetes.io/disk-pressure"),))
    capacity = room(pressed)
    assert capacity.shortfall(shape(1)).endswith("NoSchedule, which Kubernetes sets by the state of a node")
    assert capacity.remedy(shape(1)) == "see the conditions of its nodes (kubectl describe nodes), or add nodes there"
    other = Node(name="b", free=gpus(4), taints=(Taint(key="gpu", value="yes"),))
    assert room(pressed, other).remedy(shape(1)).startswith("tolerate the taint in its pods")


def test_prefer_no_schedule_keeps_nobody_away() -> None:
    assert untolerated_taint((), [Taint(key="gpu", effect="PreferNoSchedule")]) is None


def test_an_empty_key_with_exists_tolerates_everything() -> None:
    assert untolerated_taint((Toleration(operator="Exists"),), [Taint(key="a", effect="NoExecute")]) is None


def test_a_toleration_of_some_future_kubernetes_tolerates_nothing() -> None:
    greater = Toleration(key="cores", operator="Gt", value="8")
    assert untolerated_taint((greater,), [Taint(key="cores", value="8")]) == Taint(key="cores", value="8")


def test_a_shortfall_tells_what_is_needed_and_what_the_best_node_has() -> None:
    assert ClusterCapacity(free("c", 3, 2, 3)).shortfall(shape(8)) == (
        "needs 8 GPUs on one node, largest has 3 GPUs free (8 GPUs over 3 nodes)"
    )


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 4), st.integers(0, 20))
def test_what_was_taken_is_gone_and_nothing_more(nodes: list[int], size: int, taken: int) -> None:
    fits = ClusterCapacity(free("c", *nodes)).count(shape(size), 10**6)
    assert fits == sum(node // size for node in nodes)
    after = ClusterCapacity(free("c", *nodes))
    after.take(shape(size), taken)
    assert after.count(shape(size), 10**6) == max(0, fits - taken)
    assert after.free(shape(size)).amounts[GPU] == (sum(nodes) - size * min(taken, fits)) * 10**9
