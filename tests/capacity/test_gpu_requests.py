"""An ask for GPUs fits where so many different nodes have so many GPUs of that kind free, and nowhere else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.gpu_requests import gpu_shapes, missing_gpus
from reconciler.model.capacity import ClusterObservation, DeviceKind, DeviceStock, Node, Pool
from reconciler.model.gpr import GpuAsk
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.units import Resources, parse_quantity
from tests.builders.gpu_nodes import H100, L40S, cluster_of, h100, nodes
from tests.builders.inputs import shape


def fits(ask: GpuAsk, seen: ClusterObservation, *, dedicated: bool = False) -> bool:
    return any(ClusterCapacity(seen).count(one, 1) for one in gpu_shapes(ask, seen, dedicated=dedicated))


def test_gpus_for_one_node_have_to_be_on_one_node() -> None:
    seen = cluster_of(nodes(4, 4))
    assert fits(GpuAsk(gpus=4), seen)
    assert not fits(GpuAsk(gpus=8), seen)


def test_two_nodes_are_two_different_nodes() -> None:
    assert not fits(GpuAsk(gpus=4, nodes=2), cluster_of(nodes(8, 3)))
    assert fits(GpuAsk(gpus=4, nodes=2), cluster_of(nodes(4, 3, 4)))


def test_why_nodes_do_not_suffice_is_told_with_numbers() -> None:
    seen = cluster_of(nodes(8, 3, 1))
    (wanted,) = gpu_shapes(GpuAsk(gpus=8, nodes=2), seen)
    assert ClusterCapacity(seen).shortfall(wanted) == "needs 8 GPUs free on each of 2 nodes, 1 of 3 has that"


@pytest.mark.parametrize(("free", "fitting"), [((8, 7), True), ((7, 7), False), ((2, 2), False)])
def test_a_dedicated_node_has_to_be_empty(free: tuple[int, ...], fitting: bool) -> None:
    assert fits(GpuAsk(gpus=2), cluster_of(nodes(*free)), dedicated=True) is fitting


def test_dedicated_nodes_of_different_sizes_all_do() -> None:
    seen = cluster_of(nodes(3, of=8, prefix="large"), nodes(4, of=4, prefix="small"))
    assert fits(GpuAsk(gpus=2), seen, dedicated=True)
    assert not fits(GpuAsk(gpus=6), seen, dedicated=True)


@pytest.mark.parametrize(
    ("ask", "fitting"),
    [
        (GpuAsk(gpus=1, shape=H100), False),
        (GpuAsk(gpus=1, shape=L40S), True),
        (GpuAsk(gpus=1, shape="nvidia l40s"), True),
        (GpuAsk(gpus=1, shape="L40S"), True),
        (GpuAsk(gpus=1, shape="L40"), False),
        (GpuAsk(gpus=1, shape="L40S-48GB"), True),
        (GpuAsk(gpus=1, shape="L40S-80GB"), False),
        (GpuAsk(gpus=1, memory=48), True),
        (GpuAsk(gpus=1, memory=80), False),
        (GpuAsk(gpus=1, instance_type="g6e.12xlarge"), True),
        (GpuAsk(gpus=1, instance_type="p5.48xlarge"), False),
        (GpuAsk(gpus=1, shape=L40S, instance_type="g6e.12xlarge", memory=24), True),
    ],
)
def test_only_gpus_of_the_kind_that_is_asked_for_count(ask: GpuAsk, fitting: bool) -> None:
    busy = nodes(0, labels=h100(**{"node.kubernetes.io/instance-type": "p5.48xlarge"}), prefix="busy")
    labels = {
        "nvidia.com/gpu.product": L40S,
        "nvidia.com/gpu.memory": "46068",
        "node.kubernetes.io/instance-type": "g6e.12xlarge",
    }
    assert fits(ask, cluster_of(busy, nodes(4, of=4, labels=labels, prefix="free"))) is fitting


def test_a_cluster_without_such_gpus_says_what_it_has() -> None:
    ask = GpuAsk(gpus=8, nodes=2, shape="NVIDIA-B200", memory=180)
    assert missing_gpus(ask, cluster_of(nodes(8))) == f"no node has any NVIDIA-B200 with 180 GB; there is {H100}"
    assert missing_gpus(ask, cluster_of()) == "no node has GPUs"


def test_parts_of_gpus_are_given_to_who_names_them_only() -> None:
    model = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    seen = cluster_of(nodes(7, of=7, labels={"nvidia.com/gpu.product": model}))
    assert not fits(GpuAsk(gpus=1), seen)
    assert not fits(GpuAsk(gpus=1, shape="A100"), seen)
    assert fits(GpuAsk(gpus=1, shape=model), seen)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
def test_a_time_slice_is_not_given_to_who_asks_for_the_whole_gpu(resource: str) -> None:
    label = {"nvidia.com/gpu.product": f"{H100}-SHARED" if resource == "nvidia.com/gpu" else H100}
    slices = Resources(amounts={resource: parse_quantity("8")})
    sliced = Pool(name="p", nodes=(Node(name="n", free=slices, allocatable=slices),), labels=label)
    seen = cluster_of(sliced)
    assert not fits(GpuAsk(gpus=8, shape=H100), seen)
    assert fits(GpuAsk(gpus=1, shape=f"{H100}-SHARED"), seen)


def test_the_taint_of_the_resource_is_tolerated_and_no_other() -> None:
    tainted = replace(nodes(8), taints=(Taint(key="nvidia.com/gpu"),))
    assert fits(GpuAsk(gpus=1), cluster_of(tainted))
    assert not fits(GpuAsk(gpus=1), cluster_of(replace(tainted, taints=(Taint(key="team", value="a"),))))


def test_claimed_devices_are_asked_for_by_the_class_of_their_driver() -> None:
    kinds = [
        DeviceKind(driver="gpu.nvidia.com", attributes=(("gpu.nvidia.com/productName", name),))
        for name in ("NVIDIA H100 80GB HBM3", "NVIDIA L40S")
    ]
    made = tuple(
        Node(name=f"n{index}", free=Resources(), devices=(DeviceStock(kind=kind, free=2, total=8),))
        for index, kind in enumerate(kinds)
    )
    classes = {"gpu.nvidia.com": ('device.driver == "gpu.nvidia.com"',)}
    seen = cluster_of(Pool(name="p", nodes=made), device_classes=classes)
    assert fits(GpuAsk(gpus=2, shape=H100), seen)
    assert not fits(GpuAsk(gpus=2, nodes=2, shape=H100), seen)
    assert not fits(GpuAsk(gpus=3), seen)


def test_claimed_mig_slices_are_asked_for_by_their_class_and_profile() -> None:
    """The classes are those of NVIDIA's driver."""
    product, type_ = "NVIDIA H100 80GB HBM3", 'device.attributes["gpu.nvidia.com"].type'
    attributes = (("gpu.nvidia.com/productName", product), ("gpu.nvidia.com/type", "gpu"))
    profile = (("gpu.nvidia.com/profile", "1g.10gb"), ("gpu.nvidia.com/type", "mig"))
    whole = DeviceKind(driver="gpu.nvidia.com", attributes=attributes)
    part = DeviceKind(driver="gpu.nvidia.com", attributes=(attributes[0], *profile))
    stocks = (DeviceStock(kind=whole, free=1, total=1), DeviceStock(kind=part, free=3, total=7))
    classes = {"gpu.nvidia.com": (f'{type_} == "gpu"',), "mig.nvidia.com": (f'{type_} == "mig"',)}
    made = Pool(name="p", nodes=(Node(name="n", free=Resources(), devices=stocks),))
    seen = cluster_of(made, device_classes=classes)
    assert fits(GpuAsk(gpus=1, shape=H100), seen)
    assert not fits(GpuAsk(gpus=2, shape=H100), seen)
    assert fits(GpuAsk(gpus=3, shape=f"{H100}-MIG-1g.10gb"), seen)
    assert not fits(GpuAsk(gpus=4, shape=f"{H100}-MIG-1g.10gb"), seen)


@given(
    free=st.lists(st.integers(0, 8), max_size=6),
    gpus=st.integers(1, 8),
    wanted=st.integers(1, 4),
    limit=st.integers(1, 5),
)
def test_groups_of_pods_on_nodes_of_their_own_are_counted_as_they_can_be_taken(
    free: list[int], gpus: int, wanted: int, limit: int
) -> None:
    seen = cluster_of(nodes(*free))
    group = shape(gpus, group_size=wanted, apart=True)
    room = ClusterCapacity(seen)
    fitting = room.count(group, limit)
    # One group after the other, each from the nodes with the most left, is the best that anybody could do.
    left, best = list(free), 0
    while best < limit and sum(one >= gpus for one in left) >= wanted:
        left.sort(reverse=True)
        left[:wanted] = [one - gpus for one in left[:wanted]]
        best += 1
    assert fitting == best
    room.take(group, fitting)
    taken = sum(free) - sum(amount // 10**9 for amount in room.free(group).amounts.values())
    assert taken == fitting * wanted * gpus
