"""What is short is named, the rarest first: GPUs of any vendor, then what else nodes have few of."""

from __future__ import annotations

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.units import Resources, parse_quantity
from reconciler.text.wording import amounts, is_gpu, models_in_selector
from tests.builders.inputs import NOW
from tests.builders.waits import lack_of_room

GPUS = [
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-3g.40gb.shared",
    "amd.com/gpu",
    "amd.com/cpx_nps4",
    "amd.com/spx_nps1",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
    "deviceclass.resource.kubernetes.io/mig.nvidia.com",
]
OTHERS = ["rdma/hca_shared_devices_a", "gpu.intel.com/xe_monitoring", "hugepages-2Mi", "cpu", "example.com/cpx_nps4"]


@pytest.mark.parametrize("name", GPUS)
def test_gpus_of_every_vendor_are_gpus(name) -> None:
    assert is_gpu(name)
    assert lack_of_room(f"0/2 nodes are available: 1 Insufficient a.example.com/x, 1 Insufficient {name}.") == (
        f"insufficient {name}, a.example.com/x"
    )


@pytest.mark.parametrize("name", OTHERS)
def test_other_resources_are_none(name) -> None:
    assert not is_gpu(name)


def lacking(*names: str) -> str:
    """Say what is short where a node has none of these."""
    quantities = {name: parse_quantity("1") for name in (*names, "pods")}
    empty = Node(name="n", free=Resources(amounts={"pods": parse_quantity("10")}))
    pool = Pool(name="p", nodes=(empty,))
    room = ClusterCapacity(ClusterObservation(cluster=ClusterName("c"), observed_at=NOW, pools=(pool,)))
    return room.shortfall(ReplicaShape(requests=Resources(amounts=quantities)))


@pytest.mark.parametrize("name", GPUS[1:9])
def test_lack_of_a_gpu_is_named_before_any_other(name) -> None:
    told = "1 GPU" if name.endswith("/gpu") else f"1 {name}"
    assert lacking(*OTHERS, name) == f"needs {told} on one node; its only eligible node has none free"


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([{"pods": 0, "cpu": 9}], "1 node at the limit of pods, so that none takes another one"),
        (
            [{"pods": 0, "cpu": 1}, {"pods": 0, "cpu": 9}],
            "2 nodes at the limit of pods, so that none takes another one",
        ),
        (
            [{"pods": 0, "cpu": 9}, {"pods": 5, "cpu": 1}, {"pods": 0, "cpu": 1}],
            "none of 3 nodes has 2 cpu free together (too little cpu on 2 and pods on 2)",
        ),
        (
            [{"pods": 0, "cpu": 9, "hugepages-2Mi": 2}, {"pods": 5, "cpu": 9}],
            "none of 2 nodes has 2 cpu and 2 hugepages-2Mi free together (too little hugepages-2Mi on 1 and pods on 1)",
        ),
        (
            [{"cpu": 9}, {"example.com/a": 9}],
            "none of 2 nodes has 2 cpu and 2 example.com/a free together (too little example.com/a on 1 and cpu on 1)",
        ),
    ],
    ids=["pods", "pods and cpu", "mixed", "huge pages", "extended"],
)
def test_what_each_node_lacks_is_named_where_every_amount_is_free_somewhere(
    nodes: list[dict[str, int]], said: str
) -> None:
    free = [{name: parse_quantity(str(amount)) for name, amount in node.items()} for node in nodes]
    pool = Pool(name="p", nodes=tuple(Node(name=f"n{at}", free=Resources(amounts=one)) for at, one in enumerate(free)))
    room = ClusterCapacity(ClusterObservation(cluster=ClusterName("c"), observed_at=NOW, pools=(pool,)))
    wanted = {name: parse_quantity("2") for node in nodes for name in node if name != "pods"}
    assert room.count(ReplicaShape(requests=Resources(amounts=wanted)), 9) == 0
    assert room.shortfall(ReplicaShape(requests=Resources(amounts=wanted))) == said


def test_scarce_devices_are_named_before_what_every_node_has() -> None:
    assert lacking("cpu", "hugepages-2Mi", "rdma/hca_shared_devices_a").startswith("needs 1 rdma/hca_shared_devices_a")
    assert lacking("cpu", "hugepages-2Mi").startswith("needs 1 cpu")


def test_gpus_of_two_vendors_are_told_apart() -> None:
    both = Resources(amounts={name: parse_quantity("2") for name in ("nvidia.com/gpu", "amd.com/gpu", "cpu")})
    assert amounts(both) == ["2 amd.com/gpu", "2 nvidia.com/gpu", "2 cpu"]


@pytest.mark.parametrize(
    "label", ["nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator"]
)
def test_model_is_read_off_the_label_that_selects_it(label) -> None:
    assert models_in_selector([(label, "X100"), ("zone", "a")]) == ["X100"]
