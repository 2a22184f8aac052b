"""GPUs in the terms of EGS: models by name, memory in GB, and a number on each of several nodes.

Models and memory are read from vendors' node labels: NVIDIA's GPU feature discovery, AMD's node labeller, Intel's NFD
rules; and, for claimed GPUs (DRA), from device attributes. Names of machine types are never interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.capacity.devices import requests_with_devices
from reconciler.model.capacity import CLASS_PREFIX, ClosedNode, DeviceKind, DeviceStock, Node, Pool, ReplicaShape
from reconciler.model.units import ONE, Quantity, parse_quantity
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
_NOMINAL = re.compile(r"(?<![0-9])(\d{1,4})\s?GB(?![a-z])", re.IGNORECASE)
_MIG = re.compile(r"mig[-.](?:[\dc]+\.)?\d+g\.(\d+)gb.*", re.IGNORECASE)
_NAMES = ("productName", "product_name", "model", "deviceName")
"""Attributes with the model of a claimed device, without the driver's domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """GPUs of one kind on one node."""

    resource: str
    """The resource that pods request; the driver for claimed devices."""
    model: str
    """The model as the vendor writes it; empty where unknown."""
    memory: int
    """GB of one GPU; 0 where unknown."""
    count: int | None
    """None where unknown."""
    free: int
    part: bool = False
    """Whether these are slices of GPUs."""
    model_label: str = ""
    """The label, or the device attribute, that names the model."""


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


def same_model(asked: str, model: str) -> bool:
    """Tell whether two spellings name the same model.

    Labels cannot contain spaces, and device attributes do: ``NVIDIA H100 80GB HBM3`` is ``nvidia-h100-80gb-hbm3``. A
    time-sliced GPU is of its model too.
    """
    return _normalize(asked) == _normalize(model)


def matches_model(asked: str, model: str) -> bool:
    """Tell whether a model matches a request by its name or by a word of it, as ``H100``."""
    return same_model(asked, model) or _normalize(asked) in _normalize(model).split("-")


def _normalize(model: str) -> str:
    return re.sub(r"[\s_-]+", "-", model.strip().lower()).removesuffix("-shared")


def _requestable(resource: str, labels: Mapping[str, str], total: int | None, free: int) -> NodeGpus:
    vendor = resource.rpartition("/")[0]
    sliced = _MIG.fullmatch(resource.rpartition("/")[2])
    product_label = f"{resource}.product"  # where GPUs are cut up differently, each kind of slice has labels of its own
    cloud_labels = (
        label for label in sorted(labels) if is_gpu_model_label(label) and not label.startswith(tuple(_MODELS))
    )
    keys = (product_label, *_MODELS.get(vendor, ()), *cloud_labels)
    key = next((key for key in keys if labels.get(key)), "")
    model = labels.get(key, "")
    return NodeGpus(
        resource=resource,
        model=model,
        memory=int(sliced[1]) if sliced else _memory(model, resource, vendor, labels, total),
        count=total,
        free=free,
        part=bool(sliced) or "-MIG-" in model or model.endswith("-SHARED") or resource.endswith((".shared", "nps4")),
        model_label=key,
    )


def _memory(model: str, resource: str, vendor: str, labels: Mapping[str, str], total: int | None) -> int:
    """Return the GB of one GPU: by the model's name, which is how users request it, else by labels.

    A driver reports slightly more or less than the name, in units of 2**20 bytes.
    """
    sliced = _MIG.search(model)
    named = sliced or _NOMINAL.search(model)
    if named:
        return int(named[1])
    mebibytes = labels.get(f"{resource}.memory") or labels.get("nvidia.com/gpu.memory")
    if vendor == "nvidia.com" and mebibytes and mebibytes.isdecimal():
        return int(mebibytes) * 2**20 // _GB
    if vendor == "amd.com":
        return _gigabytes(labels.get("amd.com/gpu.vram", ""))
    node_memory = labels.get("gpu.intel.com/memory.max", "")
    if vendor == "gpu.intel.com" and total and node_memory.isdecimal():
        return int(node_memory) // total // _GB
    return 0


def _gigabytes(text: str) -> int:
    """Parse an amount such as ``192G``; 0 for anything else."""
    try:
        return parse_quantity(text) // ONE // _GB
    except ValueError:
        return 0


def _claimable(node: Node) -> Iterator[NodeGpus]:
    """Yield the GPUs among a node's own devices; devices shared by several nodes belong to none."""
    for stock in node.devices:
        if not stock.shared and _is_gpu_driver(stock):
            name, model = _model(stock.kind)
            yield NodeGpus(
                resource=stock.kind.driver,
                model=model,
                memory=_device_memory(stock.kind, model),
                count=stock.total,
                free=stock.free,
                part=any(name.rpartition("/")[2] == "profile" for name, _ in stock.kind.attributes),
                model_label=name,
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
