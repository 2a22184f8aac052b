"""Which GPUs a node has is read from its labels and its devices, as each vendor writes them."""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from reconciler.core.capacity.gpu_models import NodeGpus, gpus_of_node, matches_model, same_model
from reconciler.model.capacity import DeviceKind, DeviceStock, Node, Pool, SliceKind
from reconciler.model.units import Resources, parse_quantity

Labels = Mapping[str, str]
INTEL_CARDS = {
    "gpu.intel.com/device-id.0380-0bd5.count": "2",
    "gpu.intel.com/device-id.0380-0bd5.present": "true",
    "gpu.intel.com/device.count": "2",
}
INTEL_ON_BOARD = {**INTEL_CARDS, "gpu.intel.com/device-id.0300-4680.count": "1"}


def seen(labels: Mapping[str, str], free: str = "3", /, **allocatable: str) -> tuple[NodeGpus, ...]:
    totals = {name.replace("__", "/").replace("_", "."): text for name, text in allocatable.items()}
    resources = Resources(amounts={name: parse_quantity(text) for name, text in totals.items()})
    left = Resources(amounts={name: parse_quantity(free) for name in totals})
    return gpus_of_node(Node(name="n", free=left, allocatable=resources), Pool(name="p", nodes=(), labels=labels))


@pytest.mark.parametrize(
    ("labels", "resource", "model", "memory"),
    [
        (
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"},
            "nvidia.com/gpu", "NVIDIA-H100-80GB-HBM3", 80,
        ),
        ({"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360"}, "nvidia.com/gpu", "Tesla-T4", 16),
        ({"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}, "nvidia.com/gpu", "NVIDIA-L4", 24),
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"},
            "amd.com/gpu", "AMD_Instinct_MI300X_OAM", 192,
        ),
        ({"amd.com/gpu.family": "AI", "amd.com/gpu.vram": "lots"}, "amd.com/gpu", "AI", 0),
        (
            {"gpu.intel.com/product": "Max_1550", "gpu.intel.com/memory.max": "1099511627776"},
            "gpu.intel.com/i915", "Max_1550", 137,
        ),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "nvidia.com/gpu", "nvidia-h100-80gb", 80),
        ({}, "nvidia.com/gpu", "", 0),
        ({"nvidia.com/gpu.product": "Tesla-T4"}, "amd.com/gpu", "", 0),
    ],
)  # fmt: skip # a table, a row a line
def test_model_and_memory_of_a_vendor(labels: dict[str, str], resource: str, model: str, memory: int) -> None:
    eight = Resources(amounts={resource: parse_quantity("8"), "cpu": parse_quantity("96")})
    three = Resources(amounts={resource: parse_quantity("3"), "cpu": parse_quantity("90")})
    (found,) = gpus_of_node(Node(name="n", free=three, allocatable=eight), Pool(name="p", nodes=(), labels=labels))
    assert (found.resource, found.model, found.memory, found.count, found.free) == (resource, model, memory, 8, 3)
    assert not found.part


def test_slices_of_a_gpu_are_told_with_their_own_memory() -> None:
    name = "nvidia.com/mig-1g.10gb"
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        f"{name}.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
        f"{name}.memory": "9856",
    }
    whole, sliced = gpus_of_node(
        Node(
            name="n",
            free=Resources(amounts={name: parse_quantity("5"), "nvidia.com/gpu": parse_quantity("1")}),
            allocatable=Resources(amounts={name: parse_quantity("7"), "nvidia.com/gpu": parse_quantity("4")}),
        ),
        Pool(name="p", nodes=(), labels=labels),
    )
    assert (whole.model, whole.memory, whole.part) == ("NVIDIA-H100-80GB-HBM3", 80, False)
    assert (sliced.model, sliced.memory, sliced.part) == ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", 10, True)
    assert (sliced.count, sliced.free) == (7, 5)


@pytest.mark.parametrize("model", ["NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "Tesla-T4-SHARED"])
def test_a_resource_that_stands_for_parts_is_known_by_its_model(model: str) -> None:
    (found,) = seen({"nvidia.com/gpu.product": model}, nvidia_com__gpu="8")
    assert found.part
    assert found.memory == (5 if "MIG" in model else 0)


@pytest.mark.parametrize(
    ("resource", "label", "product", "told"),
    [
        ("nvidia.com/gpu.shared", "nvidia.com/gpu.product", "Tesla-T4", "Tesla-T4-SHARED"),
        (
            "nvidia.com/mig-1g.10gb.shared",
            "nvidia.com/mig-1g.10gb.product",
            "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
            "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED",
        ),
    ],
)
def test_a_renamed_resource_has_the_labels_of_the_one_that_it_shares(
    resource: str, label: str, product: str, told: str
) -> None:
    node = Node(name="n", free=Resources(), allocatable=Resources(amounts={resource: parse_quantity("8")}))
    labels = {"nvidia.com/gpu.product": "Tesla-T4", label: product}
    (found,) = gpus_of_node(node, Pool(name="p", nodes=(), labels=labels))
    assert (found.model, found.part, found.model_label, found.label_value) == (told, True, label, product)


@pytest.mark.parametrize(("strategy", "memory"), [("mps", 20), ("time-slicing", 80)])
def test_mps_divides_the_memory_of_a_gpu_and_time_slices_see_all_of_it(strategy: str, memory: int) -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.sharing-strategy": strategy,
    }
    (found,) = seen(labels, nvidia_com__gpu="8")
    assert found.memory == memory


H100, RTX = "NVIDIA-H100-80GB-HBM3", "NVIDIA-RTX-PRO-6000-Blackwell-96GB"
GKE = "cloud.google.com/gke"


def gfd(product: str, count: int, replicas: int = 1, strategy: str = "none", of: str = "nvidia.com/gpu") -> Labels:
    """Label as GPU feature discovery does."""
    facts = {"product": product, "count": count, "replicas": replicas, "sharing-strategy": strategy}
    return {f"{of}.{name}": str(fact) for name, fact in facts.items()}


@pytest.mark.parametrize(
    ("labels", "resource", "count", "kind", "share"),
    [
        (gfd(H100, 8), "nvidia.com/gpu", 8, None, "1"),
        (gfd(f"{H100}-SHARED", 2, 4, "time-slicing"), "nvidia.com/gpu", 8, SliceKind.TIME, "1/4"),
        (gfd(H100, 2, 4, "time-slicing"), "nvidia.com/gpu.shared", 8, SliceKind.TIME, "1/4"),
        (gfd(f"{H100}-SHARED", 1, 10, "mps"), "nvidia.com/gpu", 10, SliceKind.MPS, "1/10"),
        ({"nvidia.com/gpu.product": f"{H100}-SHARED"}, "nvidia.com/gpu", 8, SliceKind.TIME, "1"),
        (gfd(f"{H100}-MIG-1g.10gb", 7), "nvidia.com/gpu", 7, SliceKind.MIG, "1/7"),
        (gfd(f"{H100}-MIG-3g.40gb", 2), "nvidia.com/gpu", 2, SliceKind.MIG, "1/2"),
        (gfd(f"{H100}-MIG-1g.20gb", 4), "nvidia.com/gpu", 4, SliceKind.MIG, "1/4"),
        (gfd(f"{RTX}-MIG-2g.48gb", 2), "nvidia.com/gpu", 2, SliceKind.MIG, "1/2"),
        (gfd(f"{H100}-MIG-7g.80gb", 1), "nvidia.com/gpu", 1, SliceKind.MIG, "1"),
        (gfd(f"{H100}-MIG-1g.10gb-SHARED", 7, 2, "time-slicing"), "nvidia.com/gpu", 14, SliceKind.TIME, "1/14"),
        ({}, "nvidia.com/mig-2g.20gb", 3, SliceKind.MIG, "2/7"),
        # A plugin of somebody else gives each GPU out ten times, and leaves the labels as they are.
        (gfd(H100, 8), "nvidia.com/gpu", 80, SliceKind.OTHER, "1/10"),
        # Where MIG is mixed, the label counts the GPUs that are cut up as well.
        (gfd(H100, 8), "nvidia.com/gpu", 4, None, "1"),
        # Of a renamed resource the old name stays, with nothing in it.
        (gfd(H100, 2, 4, "time-slicing"), "nvidia.com/gpu", 2, None, "1"),
        (
            {f"{GKE}-gpu-sharing-strategy": "time-sharing", f"{GKE}-max-shared-clients-per-gpu": "5"},
            "nvidia.com/gpu", 10, SliceKind.TIME, "1/5",
        ),
        (
            {f"{GKE}-gpu-sharing-strategy": "mps", f"{GKE}-max-shared-clients-per-gpu": "2"},
            "nvidia.com/gpu", 2, SliceKind.MPS, "1/2",
        ),
        ({f"{GKE}-gpu-partition-size": "1g.5gb"}, "nvidia.com/gpu", 7, SliceKind.MIG, "1/7"),
        ({"amd.com/compute-memory-partition": "cpx_nps4"}, "amd.com/gpu", 64, SliceKind.PARTITION, "1/8"),
        ({"amd.com/compute-memory-partition": "spx_nps1"}, "amd.com/gpu", 8, None, "1"),
        ({}, "amd.com/dpx_nps2", 16, SliceKind.PARTITION, "1/2"),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300A"}, "amd.com/cpx_nps1", 24, SliceKind.PARTITION, "1/6"),
        ({}, "gpu.intel.com/i915", 8, None, "1"),
        # Intel's plugin with -shared-dev-num=5 on a node with a GPU on board and two cards.
        (INTEL_ON_BOARD, "gpu.intel.com/xe", 15, SliceKind.OTHER, "1/5"),
        (INTEL_ON_BOARD, "gpu.intel.com/xe", 3, None, "1"),
        (INTEL_CARDS, "gpu.intel.com/i915", 1, None, "1"),
        ({"beta.amd.com/gpu.device-id.74a1": "8"}, "amd.com/gpu", 8, None, "1"),
        ({"beta.amd.com/gpu.device-id.74a1": "8"}, "amd.com/gpu", 80, SliceKind.OTHER, "1/10"),
        (
            {"beta.amd.com/gpu.device-id.74a1": "64", "amd.com/compute-memory-partition": "cpx_nps4"},
            "amd.com/gpu", 64, SliceKind.PARTITION, "1/8",
        ),
    ],
)  # fmt: skip # a table, a row a line
def test_what_a_plugin_gives_out_is_told_as_what_it_is(
    labels: Labels, resource: str, count: int, kind: SliceKind | None, share: str
) -> None:
    amounts = Resources(amounts={resource: parse_quantity(str(count))})
    (found,) = gpus_of_node(Node(name="n", free=amounts, allocatable=amounts), Pool(name="p", nodes=(), labels=labels))
    assert (found.kind, found.share, found.part) == (kind, Fraction(share), kind is not None)


def test_pods_that_share_a_gpu_of_intel_see_all_of_its_memory() -> None:
    (gpus,) = seen({**INTEL_CARDS, "gpu.intel.com/memory.max": "274877906944"}, gpu_intel_com__i915="4")
    assert (gpus.share, gpus.memory) == (Fraction(1, 2), 137)


@pytest.mark.parametrize(("resource", "part"), [("cpx_nps1", True), ("cpx_nps4", True), ("spx_nps1", False)])
def test_a_partition_of_a_gpu_of_amd_is_a_part(resource: str, part: bool) -> None:
    name = f"amd.com/{resource}"
    node = Node(name="n", free=Resources(), allocatable=Resources(amounts={name: parse_quantity("8")}))
    (found,) = gpus_of_node(node, Pool(name="p", nodes=()))
    assert found.part is part


def test_claimed_devices_are_told_by_their_attributes_and_those_of_several_nodes_are_left_out() -> None:
    kind = DeviceKind(
        driver="gpu.nvidia.com",
        attributes=(("gpu.nvidia.com/productName", "NVIDIA B200"),),
        capacity=(("gpu.nvidia.com/memory", parse_quantity("183359Mi")),),
    )
    network = DeviceKind(driver="dra.net")
    stocks = (
        DeviceStock(kind=kind, free=2, total=8),
        DeviceStock(kind=kind, free=2, total=2, shared="rack"),
        DeviceStock(kind=network, free=1, total=1),
    )
    (found,) = gpus_of_node(Node(name="n", free=Resources(), devices=stocks), Pool(name="p", nodes=()))
    assert (found.model, found.memory, found.count, found.free) == ("NVIDIA B200", 192, 8, 2)


def mig_stock(slice_number: int) -> DeviceStock:
    """Make a MIG slice as NVIDIA's driver has it, which tells the memory slices that it takes."""
    kind = DeviceKind(
        driver="gpu.nvidia.com",
        attributes=(
            ("gpu.nvidia.com/productName", "NVIDIA H100 80GB HBM3"),
            ("gpu.nvidia.com/profile", "1g.10gb"),
            ("gpu.nvidia.com/type", "mig"),
        ),
        capacity=(
            ("gpu.nvidia.com/memory", parse_quantity("9984Mi")),
            (f"gpu.nvidia.com/memorySlice{slice_number}", parse_quantity("1")),
        ),
    )
    return DeviceStock(kind=kind, free=slice_number % 2, total=1)


def test_claimed_mig_slices_have_their_own_name_and_memory_and_are_told_together() -> None:
    stocks = tuple(mig_stock(number) for number in range(7))
    (found,) = gpus_of_node(Node(name="n", free=Resources(), devices=stocks), Pool(name="p", nodes=()))
    assert (found.model, found.memory, found.part) == ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10, True)
    assert (found.count, found.free) == (7, 3)


def test_without_a_word_on_what_a_node_has_the_count_is_unknown() -> None:
    left = Resources(amounts={"nvidia.com/gpu": parse_quantity("3")})
    (found,) = gpus_of_node(Node(name="n", free=left), Pool(name="p", nodes=()))
    assert (found.count, found.free) == (None, 3)


@pytest.mark.parametrize(
    ("asked", "model", "same"),
    [
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3", True),
        ("tesla t4 shared", "Tesla-T4-SHARED", True),
        ("Tesla-T4", "Tesla-T4-SHARED", False),
        ("Tesla-T4-SHARED", "Tesla-T4", False),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", False),
        ("AMD_Instinct_MI300X", "AMD Instinct MI300X", True),
        ("NVIDIA-H100", "NVIDIA-H100-80GB-HBM3", False),
        ("Tesla-T4", "", False),
    ],
)
def test_a_model_is_the_same_however_it_is_spelt(asked: str, model: str, same: bool) -> None:
    assert same_model(asked, model) is same


@pytest.mark.parametrize(
    ("asked", "model", "named"),
    [
        ("H100", "NVIDIA-H100-80GB-HBM3", True),
        ("H100", "NVIDIA-H100-80GB-HBM3-SHARED", True),
        ("tesla-t4", "Tesla-T4-SHARED", True),
        ("Tesla-T4-SHARED", "Tesla-T4", False),
        ("H10", "NVIDIA-H100-80GB-HBM3", False),
    ],
)
def test_a_model_is_of_a_kind_by_its_name_or_a_word_of_it(asked: str, model: str, named: bool) -> None:
    assert matches_model(asked, model) is named


@pytest.mark.parametrize(
    ("asked", "model", "memory", "named"),
    [
        ("A100-80GB", "NVIDIA-A100-SXM4-80GB", 80, True),
        ("A100-80GB", "NVIDIA-A100-80GB-PCIe", 80, True),
        ("A100 80GB", "NVIDIA-A100-SXM4-40GB", 40, False),
        ("A100-40GB", "NVIDIA-A100-SXM4-80GB", 40, False),  # the model says its own
        ("A100-PCIe-80GB", "NVIDIA-A100-80GB-PCIe", 80, True),
        ("A100-SXM4", "NVIDIA-A100-80GB-PCIe", 80, False),
        ("H100-HBM3", "NVIDIA-H100-80GB-HBM3", 80, True),
        ("RTX-A6000", "NVIDIA-RTX-A6000", 48, True),
        ("rtx_a6000", "NVIDIA-RTX-A6000", 48, True),
        ("RTX-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 96, False),
        ("RTX-PRO-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 96, True),
        ("RTX-6000", "NVIDIA-RTX-A6000", 48, False),
        ("A6000-RTX", "NVIDIA-RTX-A6000", 48, False),
        ("A10-24GB", "NVIDIA-A10", 24, True),
        ("A10-24GB", "NVIDIA-A10", 0, False),
        ("A10-24GB", "NVIDIA-A10G", 24, False),
        ("L40-48GB", "NVIDIA-L40S", 48, False),
        ("MI300X-192GB", "AMD_Instinct_MI300X_OAM", 192, True),
        ("Instinct MI300X", "AMD_Instinct_MI300X_OAM", 192, True),
        ("80GB", "NVIDIA-A100-SXM4-80GB", 80, True),
        ("80GB-80GB", "NVIDIA-A100-SXM4-80GB", 80, False),
        ("A100-80GB", "NVIDIA-A100-SXM4-80GB-SHARED", 80, True),
        ("", "NVIDIA-A100-SXM4-80GB", 80, False),
    ],
)  # fmt: skip # a table, a row a line
def test_several_words_of_a_model_name_it_in_their_order(asked: str, model: str, memory: int, named: bool) -> None:
    assert matches_model(asked, model, memory) is named
