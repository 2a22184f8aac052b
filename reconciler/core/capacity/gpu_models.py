"""GPUs in the terms of EGS: models by name, memory in GB, and a number on each of several nodes.

Models and memory are read from vendors' node labels: NVIDIA's GPU feature discovery, AMD's node labeller, Intel's NFD
rules; and, for claimed GPUs (DRA), from device attributes. Names of machine types are never interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from reconciler.core.capacity.devices import requests_with_devices
from reconciler.core.pods.gpu_parts import shares_gpu
from reconciler.model.capacity import (
    CLASS_PREFIX,
    WHOLE,
    ClosedNode,
    DeviceKind,
    DeviceStock,
    Node,
    Pool,
    ReplicaShape,
    SliceKind,
)
from reconciler.model.units import ONE, Quantity, parse_quantity
from reconciler.text.digits import whole_number
from reconciler.text.wording import is_gpu, is_gpu_model_label

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
_GB = 10**9
_MODELS = {
    "nvidia.com": ("nvidia.com/gpu.product",),
    "amd.com": ("amd.com/gpu.product-name", "amd.com/gpu.family"),
    "gpu.intel.com": ("gpu.intel.com/product", "gpu.intel.com/family"),
}
"""Labels with the model of a vendor's GPUs, the most specific first."""
_NOMINAL = re.compile(r"(?<![0-9])([0-9]{1,4})\s?GB(?![a-z])", re.IGNORECASE)
_SIZE = re.compile(r"[0-9]{1,4}gb")
"""A word of a normalized model that is its memory."""
_PARTITION = re.compile(r"(?!spx)([a-z]px)_nps[0-9]+")
"""Resources of AMD's partitions, but the mode in which a GPU is in one piece."""
_PARTITIONS = {"dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}
"""Partitions of a GPU by the compute mode; CPX makes one of each die, of which an MI300A has six.

The modes are those of the node labeller of https://github.com/ROCm/k8s-device-plugin (5e11262).
"""
_MIG = re.compile(r"mig[-.](?:[0-9c]+\.)?([0-9]+)g\.([0-9]+)gb.*", re.IGNORECASE)
_MIG_COMPUTE = 7
"""The compute slices of a GPU with MIG; one with four of them has as many memory slices, which then count."""
_SHARED = "-shared"
"""The end of a normalized model of a GPU that the device plugin gives to several pods at a time."""
_NAMES = ("productName", "product_name", "model", "deviceName")
"""Attributes with the model of a claimed device, without the driver's domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """GPUs of one kind on one node."""

    resource: str
    """The resource that pods request; the driver for claimed devices."""
    model: str
    """The model as the vendor writes it; empty where unknown. That of a time slice ends in ``-SHARED``,
    that of a MIG slice in its profile."""
    memory: int
    """GB of one GPU, or of one part of it; 0 where unknown."""
    count: int | None
    """None where unknown."""
    free: int
    kind: SliceKind | None = None
    """What kind of slices of GPUs these are; None for whole GPUs."""
    share: Fraction = WHOLE
    """The part of a GPU that one of these is: `WHOLE` for whole GPUs, and for slices of unknown size."""
    model_label: str = ""
    """The label, or the device attribute, that names the model."""
    label_value: str = ""
    """The value of `model_label`: the model, without the ending that tells parts that are not told there."""
    profile: str = ""
    """The MIG profile of slices that are claimed."""

    @property
    def part(self) -> bool:
        """Whether these are slices of GPUs."""
        return self.kind is not None


def gpus_of_node(node: Node, pool: Pool) -> tuple[NodeGpus, ...]:
    """List the kinds of GPUs on a node that pods can request or claim, by resource."""
    labels = {**pool.labels, **node.labels} if node.labels else pool.labels
    totals = node.allocatable.amounts
    kinds = []
    for resource in sorted({*totals, *node.free.amounts}):
        if not is_gpu(resource) or resource.startswith(CLASS_PREFIX):
            continue
        total = _count(totals[resource]) if resource in totals else None
        if total == 0:
            continue
        kinds.append(_requestable(resource, labels, total, _count(node.free.amounts.get(resource, Quantity(0)))))
    return (*kinds, *_claimable(node))


def closed_gpus(node: ClosedNode) -> tuple[NodeGpus, ...]:
    """List the GPUs of a node that takes no pods: none is free."""
    amounts = sorted(node.allocatable.amounts.items())
    return tuple(
        _requestable(resource, node.labels, _count(amount), 0)
        for resource, amount in amounts
        if is_gpu(resource) and amount
    )


def gpus_of_pod(shape: ReplicaShape) -> int:
    """Count the GPUs or slices of GPUs that one pod of a replica requests or claims."""
    counted = requests_with_devices(shape).amounts.items()
    return sum(amount for name, amount in counted if is_gpu(name) or name.startswith(CLASS_PREFIX)) // ONE


def gpus_paid(shape: ReplicaShape) -> int | Fraction:
    """Count the GPUs of one pod of a replica as they are paid for: a slice is its part of one."""
    gpus = gpus_of_pod(shape)
    return gpus if shape.gpu_share == WHOLE else gpus * shape.gpu_share


def plain_number(gpus: int | Fraction) -> int | float:
    """Write a number of GPUs that may have parts: whole where it is, else to four digits."""
    return int(gpus) if gpus == int(gpus) else round(float(gpus), 4)


def uses_gpus(shape: ReplicaShape) -> bool:
    """Return whether a pod of a replica requests or claims GPUs, slices of them, or parts that cannot be counted."""
    return gpus_of_pod(shape) > 0 or shares_gpu(shape)


def same_model(asked: str, model: str) -> bool:
    """Return whether two spellings name the same model.

    Labels cannot contain spaces, and device attributes do: ``NVIDIA H100 80GB HBM3`` is ``nvidia-h100-80gb-hbm3``. A
    time slice (``-SHARED``) or a MIG slice has another name than the whole GPU.
    """
    return _normalize(asked) == _normalize(model)


def matches_model(asked: str, model: str, memory: int = 0) -> bool:
    """Return whether a model is of a kind by its name or by words of it, as ``H100``; its time slices are too.

    Several words stand side by side in the model, as ``RTX-A6000``, but for the memory, as in ``A100-80GB``: that is
    anywhere in the model, or the `memory` of its GPUs in GB.
    """
    if same_model(asked, model):
        return True
    words = _normalize(model).removesuffix(_SHARED).split("-")
    wanted = _normalize(asked).split("-")
    sizes = [word for word in wanted if _SIZE.fullmatch(word)]
    named = [word for word in wanted if word not in sizes]
    if not named:
        return len(wanted) == 1 and wanted[0] in words
    others = [word for word in words if not _SIZE.fullmatch(word)]
    begins = range(len(others) - len(named) + 1)
    return any(others[begin : begin + len(named)] == named for begin in begins) and all(
        size in words or (len(others) == len(words) and size == f"{memory}gb") for size in sizes
    )


def _normalize(model: str) -> str:
    return re.sub(r"[\s_-]+", "-", model.strip().lower())


def _requestable(resource: str, labels: Mapping[str, str], total: int | None, free: int) -> NodeGpus:
    """Read the labels of a resource, which NVIDIA's plugin names without the ``.shared`` of a renamed one.

    https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/internal/lm/resource.go
    """
    vendor, _, name = resource.rpartition("/")
    labelled = resource.removesuffix(".shared")
    product_label = f"{labelled}.product"  # where GPUs are cut up differently, each kind of slice has labels of its own
    cloud_labels = (
        label for label in sorted(labels) if is_gpu_model_label(label) and not label.startswith(tuple(_MODELS))
    )
    keys = (product_label, *_MODELS.get(vendor, ()), *cloud_labels)
    key = next((key for key in keys if labels.get(key)), "")
    value = labels.get(key, "")
    renamed = labelled != resource
    mig = _MIG.fullmatch(name) or _MIG.search(value) or _MIG.fullmatch(f"mig-{_of_gke(labels, resource, 'size')}")
    cut, cut_share = _cut(name, value, mig, labels)
    clients, shared = _sharing(resource, value, labels, total)
    memory = int(mig[2]) if mig else _memory(value, resource, vendor, labels, total)
    return NodeGpus(
        resource=resource,
        model=f"{value}{_SHARED.upper()}" if value and renamed else value,
        # Time slices see all of the memory, MPS divides it.
        memory=memory // clients if shared is SliceKind.MPS else memory,
        count=total,
        free=free,
        kind=shared or cut,
        share=cut_share / clients,
        model_label=key,
        label_value=value,
    )


def _cut(
    name: str, model: str, mig: re.Match[str] | None, labels: Mapping[str, str]
) -> tuple[SliceKind | None, Fraction]:
    """Return how the hardware divides GPUs of a resource, and the part of a GPU that each piece is."""
    if mig or "-MIG-" in model:
        return SliceKind.MIG, _mig_share(mig, model) if mig else WHOLE
    partition = _PARTITION.fullmatch(name) or (
        _PARTITION.fullmatch(labels.get("amd.com/compute-memory-partition", "")) if name == "gpu" else None
    )
    if partition is None:
        return None, WHOLE
    dies = 6 if partition[1] == "cpx" and "MI300A" in model else _PARTITIONS.get(partition[1], 1)
    return SliceKind.PARTITION, Fraction(1, dies)


def mig_profile_share(profile: str) -> Fraction | None:
    """Return the part of a GPU that a slice of a MIG profile is, by its compute; None for no profile."""
    mig = _MIG.fullmatch(f"mig-{profile}")
    return _mig_share(mig, "") if mig else None


def tells_gpus(label: str) -> bool:
    """Return whether a label of nodes may tell which GPUs they have, or how these are cut up."""
    return "gpu" in label or "mig" in label or "partition" in label or is_gpu_model_label(label)


def _mig_share(mig: re.Match[str], model: str) -> Fraction:
    """Return the part of a GPU that a MIG slice keeps from others: of its compute or of its memory, the larger one."""
    named = _NOMINAL.search(model[: mig.start()] if mig.string is model else model)
    compute, memory = Fraction(int(mig[1]), _MIG_COMPUTE), int(mig[2])
    share = max(compute, Fraction(memory, int(named[1]))) if named and int(named[1]) > memory else compute
    return min(share, WHOLE)


def _sharing(resource: str, model: str, labels: Mapping[str, str], total: int | None) -> tuple[int, SliceKind | None]:
    """Return among how many pods a device is shared, 1 where that is unknown, and how; None where it is not.

    By the labels of NVIDIA's GPU feature discovery 0.17 (internal/lm/resource.go), of GKE, and where a plugin gives out
    more GPUs than the labels of its vendor count: Intel's plugin writes no label for its `-shared-dev-num`.
    """
    labelled = resource.removesuffix(".shared")
    counted = _counted(labelled, labels)
    surplus = total // counted if total and counted else 1
    clients = whole_number(labels.get(f"{labelled}.replicas", "")) or _clients_of_gke(labels, resource)
    shared = labelled != resource or model.endswith(_SHARED.upper())
    strategy = labels.get(f"{labelled}.sharing-strategy") or _of_gke(labels, resource, "strategy")
    if clients > 1 and surplus <= clients and (shared or surplus > 1 or not counted):
        return clients, SliceKind.MPS if strategy == "mps" else SliceKind.TIME
    if surplus > 1:
        return surplus, SliceKind.OTHER
    return 1, (SliceKind.MPS if strategy == "mps" else SliceKind.TIME) if shared else None


def _counted(resource: str, labels: Mapping[str, str]) -> int:
    """Return how many GPUs the labels of a node count, partitions of AMD's one by one; 0 where they count none.

    Intel's rules for NFD (intel-device-plugins-for-kubernetes 834f598, platform-labeling-rules.yaml) write one label
    for each PCI class. AMD's labeller (ROCm/k8s-device-plugin 5e11262) writes one for each device ID.
    """
    vendor = resource.partition("/")[0]
    if vendor not in _COUNTS:
        return whole_number(labels.get(f"{resource}.count", "")) or 0
    prefix, suffix = _COUNTS[vendor]
    counts = (value for key, value in labels.items() if key.startswith(prefix) and key.endswith(suffix))
    return sum(whole_number(value) or 0 for value in counts)


_COUNTS = {
    "amd.com": ("beta.amd.com/gpu.device-id.", ""),
    "gpu.intel.com": ("gpu.intel.com/device-id.", ".count"),
}
"""How the labels begin and end that count the GPUs of a vendor, but for NVIDIA's."""
_GKE = {
    "size": "cloud.google.com/gke-gpu-partition-size",
    "strategy": "cloud.google.com/gke-gpu-sharing-strategy",
    "clients": "cloud.google.com/gke-max-shared-clients-per-gpu",
}
"""Labels of GKE's nodes (https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus)."""


def _of_gke(labels: Mapping[str, str], resource: str, what: str) -> str:
    return labels.get(_GKE[what], "") if resource == "nvidia.com/gpu" else ""


def _clients_of_gke(labels: Mapping[str, str], resource: str) -> int:
    return whole_number(_of_gke(labels, resource, "clients")) or 1


def _memory(model: str, resource: str, vendor: str, labels: Mapping[str, str], total: int | None) -> int:
    """Return the GB of one GPU: by the model's name, which is how users request it, else by labels.

    A driver reports slightly more or less than the name, in units of 2**20 bytes.
    """
    named = _NOMINAL.search(model)
    if named:
        return int(named[1])
    mebibytes = whole_number(labels.get(f"{resource}.memory") or labels.get("nvidia.com/gpu.memory", ""))
    if vendor == "nvidia.com" and mebibytes is not None:
        return mebibytes * 2**20 // _GB
    if vendor == "amd.com":
        return _gigabytes(labels.get("amd.com/gpu.vram", ""))
    node_memory = whole_number(labels.get("gpu.intel.com/memory.max", ""))
    if vendor == "gpu.intel.com" and total and node_memory is not None:
        return node_memory // (_counted(resource, labels) or total) // _GB
    return 0


def _gigabytes(text: str) -> int:
    """Parse an amount such as ``192G``; 0 for anything else."""
    try:
        return parse_quantity(text) // ONE // _GB
    except ValueError:
        return 0


def _claimable(node: Node) -> Iterator[NodeGpus]:
    """Yield the GPUs among a node's own devices by model; devices shared by several nodes belong to none."""
    kinds: dict[NodeGpus, list[DeviceStock]] = {}
    for stock in node.devices:
        if not stock.shared and _is_gpu_driver(stock):
            kinds.setdefault(_claimed(stock.kind), []).append(stock)
    for gpus, stocks in kinds.items():
        yield replace(gpus, count=sum(stock.total for stock in stocks), free=sum(stock.free for stock in stocks))


def _claimed(kind: DeviceKind) -> NodeGpus:
    """Describe devices of a kind, without a number. A MIG slice has the model of its GPU, and a profile."""
    name, value = _model(kind)
    profile = next((str(value) for name, value in kind.attributes if name.rpartition("/")[2] == "profile"), "")
    mig = _MIG.fullmatch(f"mig-{profile}")
    return NodeGpus(
        resource=kind.driver,
        model=f"{value} MIG {profile}" if value and profile else value,
        memory=_device_memory(kind, "" if profile else value),
        count=None,
        free=0,
        kind=SliceKind.MIG if profile else None,
        share=_mig_share(mig, value) if mig else WHOLE,
        model_label=name,
        label_value=value,
        profile=profile,
    )


def _is_gpu_driver(stock: DeviceStock) -> bool:
    return stock.kind.driver.startswith("gpu.")


def _model(kind: DeviceKind) -> tuple[str, str]:
    """Return the attribute that names the model, and the model."""
    named = {name.rpartition("/")[2]: (name, str(value)) for name, value in kind.attributes}
    return next((named[name] for name in _NAMES if name in named), ("", ""))


def _device_memory(kind: DeviceKind, model: str) -> int:
    named = _NOMINAL.search(model)
    if named:
        return int(named[1])
    sizes = [size for name, size in kind.capacity if name.rpartition("/")[2] == "memory"]
    return sizes[0] // ONE // _GB if sizes else 0


def _count(quantity: Quantity) -> int:
    return quantity // ONE
