"""Nodes: their resources, and whether they take pods."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from reconciler.core.pods.pod_requests import parse_amounts, shared_resources
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import Json

Label: TypeAlias = tuple[str, str]
_GPU, _HAMI = "nvidia.com/gpu", "hami.io/node-nvidia-register"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """The record of a node."""

    allocatable: Resources
    # Sorted; equal labels are the same object on all nodes.
    labels: tuple[Label, ...]
    taints: tuple[Taint, ...]
    ready: bool
    # Whether it takes pods; False unless it is ready.
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes of one kind, sorted by name."""

    names: tuple[str, ...]
    # The labels that they share.
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    # The labels of each alone, by name.
    own: Mapping[str, Mapping[str, str]]


def read_node(raw: Json) -> NodeRecord:
    """Read a node. It is open to pods if it is ready, not cordoned and not about to be removed."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in status.get("conditions") or ())
    taints = sorted(
        (item["key"], item.get("value") or "", item.get("effect") or "NoSchedule") for item in spec.get("taints") or ()
    )
    return NodeRecord(
        allocatable=shared_resources(_whole_gpus(parse_amounts(status.get("allocatable")), metadata)),
        labels=tuple(_label(key, value) for key, value in sorted((metadata.get("labels") or {}).items())),
        taints=_shared_taints(tuple(taints)),
        ready=ready,
        open=ready and not spec.get("unschedulable") and "deletionTimestamp" not in metadata,
    )


def _whole_gpus(amounts: dict[str, Quantity], metadata: Json) -> dict[str, Quantity]:
    """Count the GPUs of a node that HAMi gives out several times by their number, which its device plugin annotates.

    A pod that names no memory gets all of one, and each pod there may be on another of them: at least that many less
    the pods are free. Project-HAMi/HAMi 00160eb, pkg/device/nvidia.
    """
    registered = (metadata.get("annotations") or {}).get(_HAMI)
    if registered is None or _GPU not in amounts:
        return amounts
    return {**amounts, _GPU: min(amounts[_GPU], Quantity(_registered(registered) * ONE))}


@lru_cache(maxsize=4096)
def _registered(text: str) -> int:
    """Count the devices of an annotation of HAMi: a JSON list, or entries that end in a colon each; 0 for others."""
    if not text.startswith("["):
        return sum(entry.count(",") > 1 for entry in text.split(":"))
    try:
        return len(json.loads(text))
    except (ValueError, RecursionError):
        return 0


def group_nodes(nodes: Mapping[str, NodeRecord]) -> tuple[NodeGroup, ...]:
    """Group the open nodes by their labels and taints.

    Labels with a value of its own on nearly every node, such as the host name, are no part of the kind.
    """
    names = sorted(name for name, record in nodes.items() if record.open)
    single = _single([nodes[name].labels for name in names])
    groups: dict[tuple[object, ...], list[str]] = {}
    for name in names:
        record = nodes[name]
        kind = (tuple(label for label in record.labels if label[0] not in single), record.taints)
        groups.setdefault(kind, []).append(name)
    return tuple(
        NodeGroup(
            names=tuple(members),
            labels={key: value for key, value in nodes[members[0]].labels if key not in single},
            taints=nodes[members[0]].taints,
            own={name: {key: value for key, value in nodes[name].labels if key in single} for name in members},
        )
        for members in groups.values()
    )


def _single(labelled: Iterable[tuple[Label, ...]]) -> set[str]:
    """Return the keys with more values than half the nodes that have them, if at least two nodes do."""
    bearers: Counter[str] = Counter()
    values: dict[str, set[str]] = {}
    for labels in labelled:
        for key, value in labels:
            bearers[key] += 1
            values.setdefault(key, set()).add(value)
    return {
        key
        for key, nodes_with_value in values.items()
        if len(nodes_with_value) > 1 and 2 * len(nodes_with_value) > bearers[key]
    }


@lru_cache(maxsize=1 << 16)
def _label(key: str, value: str) -> Label:
    return (key, value)


@lru_cache(maxsize=1024)
def _shared_taints(taints: tuple[tuple[str, str, str], ...]) -> tuple[Taint, ...]:
    return tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in taints)
