"""GPUs as EGS speaks of them: models by name, memory in GB, so many on each of so many nodes.

Models and memory are read from the labels that vendors put on nodes: NVIDIA's GPU feature discovery, AMD's node
labeller, Intel's NFD rules; and, where GPUs are claimed (DRA), from the attributes of the devices. Nothing is guessed
from names of machine types.
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
_GB = 10**9
_MODELS = {
    "nvidia.com": ("nvidia.com/gpu.product",),
    "amd.com": ("amd.com/gpu.product-name", "amd.com/gpu.family"),
    "gpu.intel.com": ("gpu.intel.com/product", "gpu.intel.com/family"),
}
"""Which labels name the model of a vendor's GPUs, the most telling first."""
_NOMINAL = re.compile(r"(?<![0-9])(\d{1,4})\s?GB(?![a-z])", re.IGNORECASE)
_MIG = re.compile(r"mig[-.](?:[\dc]+\.)?\d+g\.(\d+)gb.*", re.IGNORECASE)
_NAMES = ("productName", "product_name", "model", "deviceName")
"""Attributes of a claimed device that name its model, by what is after the driver's domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """The GPUs of one kind on one node.

    `resource` is what pods request, the driver for devices that they claim. `model` is as its vendor writes it, empty
    where nobody says; `model_label` is the label with it, or the attribute of devices. `memory` is in GB for one GPU,
    0 where unknown. `count` is None where nobody says how many there are. A `part` is a slice of a GPU, no whole one.
    """

    resource: str
    model: str
    memory: int
    count: int | None
    free: int
    part: bool = False
    model_label: str = ""


def gpus_of_node(node: Node, pool: Pool) -> tuple[NodeGpus, ...]:
    """List what kinds of GPUs a node has that pods can request or claim, by resource."""
    labels = {**pool.labels, **node.labels} if node.labels else pool.labels
    totals = node.allocatable.amounts
    gpuses = []
    for resource in sorted({*totals, *node.free.amounts}):
        if not is_gpu(resource) or resource.startswith(CLASS_PREFIX):
            continue
        total = _count(totals[resource]) if resource in totals else None
        if total == 0:
            continue
        gpuses.append(_requestable(resource, labels, total, _count(node.free.amounts.get(resource, Quantity(0)))))
    return (*gpuses, *_claimable(node))


def closed_gpus(node: ClosedNode) -> tuple[NodeGpus, ...]:
    """List the GPUs of a node that takes no pods: none of them is free."""
    amounts = sorted(node.allocatable.amounts.items())
    return tuple(
        _requestable(resource, node.labels, _count(amount), 0)
        for resource, amount in amounts
        if is_gpu(resource) and amount
    )


def gpus_of_pod(shape: ReplicaShape) -> int:
    """Count the GPUs, or parts of GPUs, that one pod of a replica asks for, as a resource or by claim."""
    counted = requests_with_devices(shape).amounts.items()
    return sum(amount for name, amount in counted if is_gpu(name) or name.startswith(CLASS_PREFIX)) // ONE


def same_model(asked: str, model: str) -> bool:
    """Tell whether a model is the one that is asked for, whichever way the two are written.

    Labels cannot hold spaces, and devices' attributes do: ``NVIDIA H100 80GB HBM3`` is ``nvidia-h100-80gb-hbm3``. A
    GPU that time slices share is of its model too.
    """
    return _normalized(asked) == _normalized(model)


def matches_model(asked: str, model: str) -> bool:
    """Tell whether a model is what is asked for, by its name or by a word of it, as ``H100``."""
    return same_model(asked, model) or _normalized(asked) in _normalized(model).split("-")


def _normalized(model: str) -> str:
    return re.sub(r"[\s_-]+", "-", model.strip().lower()).removesuffix("-shared")


def _requestable(resource: str, labels: Mapping[str, str], total: int | None, free: int) -> NodeGpus:
    vendor = resource.rpartition("/")[0]
    sliced = _MIG.fullmatch(resource.rpartition("/")[2])
    own = f"{resource}.product"  # where GPUs are cut up differently, each kind of slice has labels of its own
    clouds = (label for label in sorted(labels) if is_gpu_model_label(label) and not label.startswith(tuple(_MODELS)))
    keys = (own, *_MODELS.get(vendor, ()), *clouds)
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
    """Say how many GB one GPU has: what its name says, which is how people ask for it, else what the label does.

    A driver tells of a little more or less than the name, in units of 2**20 bytes.
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
    together = labels.get("gpu.intel.com/memory.max", "")
    if vendor == "gpu.intel.com" and total and together.isdecimal():
        return int(together) // total // _GB
    return 0


def _gigabytes(text: str) -> int:
    """Read an amount such as ``192G``, 0 for what is none."""
    try:
        return parse_quantity(text) // ONE // _GB
    except ValueError:
        return 0


def _claimable(node: Node) -> Iterator[NodeGpus]:
    """Tell of the GPUs among the devices that are a node's own; those that several nodes share belong to none."""
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
    """Find the attribute that names the model, and the name."""
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
