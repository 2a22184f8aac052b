"""Requests for GPUs, translated into the pod requests of one cluster.

Clusters differ in how pods get GPUs: by the resource of a vendor's device plugin or by claim, each with its own labels
for the models. The translation therefore depends on the observed nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.gpu_models import INSTANCE_TYPE, NodeGpus, gpus_of_node, matches_model, same_model
from reconciler.model.capacity import ClusterObservation, DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.gpr import GpuAsk
from reconciler.model.kubernetes.requirements import Requirement, Requirements, equals
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.text.wording import count, join_names

NVIDIA = "nvidia.com/gpu"
"""The resource of GPUs where a cluster shows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuKind:
    """GPUs that a request may match, on nodes of one machine type; free counts do not matter."""

    gpus: NodeGpus
    instance_type: str
    nodes: tuple[str, ...] = ()
    """Names of the nodes."""


def gpu_shapes(ask: GpuAsk, seen: ClusterObservation, *, dedicated: bool = False) -> tuple[ReplicaShape, ...]:
    """Return the shapes by which one replica can get the requested GPUs in a cluster; none where no GPU matches.

    A replica is a pod on each of the nodes, no two on one. It tolerates the taint named as the resource, as Kubernetes'
    ExtendedResourceToleration does. Where nodes are `dedicated`, each pod takes all GPUs of its node. Slices of GPUs
    match only a request that names their model.
    """
    matching = [kind_of_node for kind_of_node in _GPU_KINDS.of(seen) if _matches(ask, kind_of_node)]
    nodes_by_shape: dict[tuple[str, int, str], list[_GpuKind]] = {}
    for kind_of_node in matching:
        needed = (kind_of_node.gpus.count or 0) if dedicated else ask.gpus
        if needed >= ask.gpus:
            claimed = kind_of_node.gpus.model if _class_of(kind_of_node.gpus) in seen.device_classes else ""
            nodes_by_shape.setdefault((kind_of_node.gpus.resource, needed, claimed), []).append(kind_of_node)
    return tuple(
        _claim_shape(ask, needed, nodes[0].gpus)
        if _class_of(nodes[0].gpus) in seen.device_classes
        else _resource_shape(ask, resource, needed, nodes)
        for (resource, needed, _), nodes in sorted(nodes_by_shape.items(), key=lambda entry: entry[0])
    )


def gpu_pod_shape(ask: GpuAsk, seen: ClusterObservation | None, *, dedicated: bool = False) -> ReplicaShape:
    """Return the shape of one of the pods of a request, each on its own node, in the terms of the cluster.

    Where several kinds of GPUs match, the one with room for most pods is used; where none matches, the shape has an
    obstacle.
    """
    if not ask.gpus:
        return ReplicaShape(requests=Resources())
    generic = ReplicaShape(requests=Resources(amounts={NVIDIA: Quantity(ask.gpus * ONE)}))
    if seen is None:
        return generic
    possible_shapes = gpu_shapes(replace(ask, nodes=1), seen, dedicated=dedicated)
    if not possible_shapes:
        return replace(generic, obstacle=missing_gpus(ask, seen))
    return (
        possible_shapes[0]
        if len(possible_shapes) == 1
        else max(possible_shapes, key=lambda shape: ClusterCapacity(seen).count(shape, ask.nodes))
    )


def may_have_gpus(ask: GpuAsk, seen: ClusterObservation) -> bool:
    """Return whether some GPUs of a cluster may be the requested ones; a label that no node has contradicts nothing."""
    kinds = _GPU_KINDS.of(seen)
    return not kinds or any(
        (
            not ask.shape
            or not kind.gpus.model
            or _words(ask.shape) <= _words(kind.gpus.model)
            or matches_model(ask.shape, kind.gpus.model, kind.gpus.memory)
        )
        and (not ask.instance_type or kind.instance_type in ("", ask.instance_type))
        and (not kind.gpus.memory or kind.gpus.memory >= ask.memory)
        for kind in kinds
    )


def _words(model: str) -> frozenset[str]:
    """Split the name of a model: ``NVIDIA-H100`` may be ``NVIDIA-H100-80GB-HBM3``."""
    return frozenset(re.split(r"[^a-z0-9]+", model.lower()))


def missing_gpus(ask: GpuAsk, seen: ClusterObservation) -> str:
    """Return why no node of a cluster matches a request, and the GPUs that it has, at most a few kinds."""
    models = sorted({kind_of_node.gpus.model or kind_of_node.gpus.resource for kind_of_node in _GPU_KINDS.of(seen)})
    if not models:
        return "no node has GPUs"
    memory, machine = (
        f" with {ask.memory} GB" if ask.memory else "",
        f" on {ask.instance_type}" * bool(ask.instance_type),
    )
    return f"no node has any {ask.shape or 'whole GPU'}{memory}{machine}; there is {join_names(models)}"


def describe_gpus(ask: GpuAsk) -> str:
    """Write a request for people: ``2 nodes with 8 GPUs each, H100, 80 GB``."""
    each = f"{count(ask.nodes, 'node')} with {count(ask.gpus, 'GPU')}{' each' if ask.nodes > 1 else ''}"
    facts = [ask.shape, ask.instance_type, f"{ask.memory} GB" if ask.memory else ""]
    return ", ".join([each, *(fact for fact in facts if fact)])


def _gpu_kinds(seen: ClusterObservation) -> tuple[_GpuKind, ...]:
    nodes: dict[_GpuKind, list[str]] = {}
    for pool in seen.pools:
        for node in pool.nodes:
            machine = node.labels.get(INSTANCE_TYPE) or pool.labels.get(INSTANCE_TYPE, "")
            for node_gpus in gpus_of_node(node, pool):
                nodes.setdefault(_GpuKind(gpus=replace(node_gpus, free=0), instance_type=machine), []).append(node.name)
    return tuple(replace(kind, nodes=tuple(names)) for kind, names in nodes.items())


_GPU_KINDS = ClusterCache(_gpu_kinds)


def _matches(ask: GpuAsk, kind_of_node: _GpuKind) -> bool:
    gpus = kind_of_node.gpus
    named = bool(ask.shape) and (
        same_model(ask.shape, gpus.model) if gpus.part else matches_model(ask.shape, gpus.model, gpus.memory)
    )
    return (
        (named or not (ask.shape or kind_of_node.gpus.part))
        and (not ask.instance_type or ask.instance_type == kind_of_node.instance_type)
        and kind_of_node.gpus.memory >= ask.memory
    )


def _resource_shape(ask: GpuAsk, resource: str, needed: int, node_kinds: list[_GpuKind]) -> ReplicaShape:
    return ReplicaShape(
        requests=Resources(amounts={resource: Quantity(needed * ONE)}),
        node_terms=_terms(ask, node_kinds),
        tolerations=(Toleration(key=resource, operator="Exists"),),
        group_size=ask.nodes,
        apart=ask.nodes > 1,
    )


def _claim_shape(ask: GpuAsk, needed: int, node_gpus: NodeGpus) -> ReplicaShape:
    """Claim devices of the DeviceClass of a vendor, of the model and the MIG profile that a request names."""
    domain, _, name = node_gpus.model_label.rpartition("/")
    wanted = {name: node_gpus.label_value} if name and (ask.shape or ask.memory) else {}
    if node_gpus.profile:
        wanted["profile"] = node_gpus.profile
    selectors = tuple(f'device.attributes["{domain}"].{key} == "{value}"' for key, value in wanted.items())
    option = DeviceOption(device_class=_class_of(node_gpus), selectors=selectors, count=needed)
    return ReplicaShape(
        requests=Resources(),
        devices=(DeviceRequest(options=(option,)),),
        tolerations=(Toleration(operator="Exists"),),
        group_size=ask.nodes,
        apart=ask.nodes > 1,
    )


def _class_of(node_gpus: NodeGpus) -> str:
    """Name the DeviceClass of claimed GPUs as vendors do: as the driver, and for MIG slices ``mig`` for ``gpu``."""
    return node_gpus.resource.replace("gpu.", "mig.", 1) if node_gpus.profile else node_gpus.resource


def _terms(ask: GpuAsk, node_kinds: list[_GpuKind]) -> tuple[Requirements, ...]:
    """Restrict a replica to matching nodes: by model and machine type, or by name where no label tells the model."""
    if not (ask.shape or ask.memory or ask.instance_type):
        return ()
    terms = {
        Requirements(
            labels=(
                *_label_requirement(
                    node_kind.gpus.model_label if ask.shape or ask.memory else "", node_kind.gpus.label_value
                ),
                *_label_requirement(INSTANCE_TYPE if ask.instance_type else "", ask.instance_type),
            )
        )
        for node_kind in node_kinds
        if node_kind.gpus.model_label or not (ask.shape or ask.memory)
    }
    unnamed = (node_kind for node_kind in node_kinds if not node_kind.gpus.model_label and (ask.shape or ask.memory))
    names = tuple(sorted(name for node_kind in unnamed for name in node_kind.nodes))
    if names:
        terms.add(Requirements(fields=(Requirement(key="metadata.name", operator="In", values=names),)))
    return tuple(sorted(terms, key=repr))


def _label_requirement(key: str, value: str) -> tuple[Requirement, ...]:
    return (equals(key, value),) if key else ()
