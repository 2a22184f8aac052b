"""Clusters, as the contexts of a kubeconfig show them: their nodes, GPUs, labels and engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.bulkhead import NoteBug, Seam, attempt
from reconciler.core.capacity.gpu_models import INSTANCE_TYPE, REGION, ZONE, NodeGpus, closed_gpus
from reconciler.core.observe.kubernetes.capacity.nodes import read_node
from reconciler.core.onboarding.cluster_names import cluster_names
from reconciler.core.onboarding.context_reading import ContextReading, EngineSighting
from reconciler.errors import Bug
from reconciler.model.capacity import ClosedNode
from reconciler.model.ids import ClusterName
from reconciler.model.policy import EngineName
from reconciler.model.workload import Json
from reconciler.text.wording import join_names

_CAPACITY = (
    ("karpenter.sh/capacity-type", {"spot": "spot", "on-demand": "on-demand", "reserved": "reserved"}),
    ("eks.amazonaws.com/capacityType", {"SPOT": "spot", "ON_DEMAND": "on-demand", "CAPACITY_BLOCK": "reserved"}),
    ("cloud.google.com/gke-spot", {"true": "spot"}),
    ("cloud.google.com/gke-preemptible", {"true": "spot"}),
    ("kubernetes.azure.com/scalesetpriority", {"spot": "spot"}),
)
"""Node labels by which providers mark nodes that they may take back, and their values in the words of our policies."""


NO_NAMES: Mapping[str, ClusterName] = {}
"""For clusters that are all named after their contexts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabel:
    """A fact that labels of nodes tell of a cluster."""

    name: str
    """The label of the Cluster."""
    source: str
    """The label of the nodes that it is read from."""
    values: tuple[tuple[str, int], ...]
    """Its values, and how many nodes have each; the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredCluster:
    """A cluster with all that is known of it."""

    name: ClusterName
    context: str
    """The context that the daemon is to use."""
    others: tuple[str, ...] = ()
    """Other contexts for the same API server."""
    current: bool = False
    """Whether kubectl uses one of its contexts by itself."""
    trouble: str = ""
    """Why it does not answer; empty if it does."""
    version: str = ""
    unlisted: str = ""
    """Why its nodes are not known although it answers."""
    nodes: int = 0
    gpu_nodes: int = 0
    gpus: tuple[tuple[str, int], ...] = ()
    """The models of its GPUs, and how many there are of each, the most first; a model is the resource if unknown."""
    labels: tuple[NodeLabel, ...] = ()
    engines: Mapping[EngineName, EngineSighting] = field(default_factory=dict)
    host: str = ""
    """The host of its API server."""
    hidden: tuple[str, ...] = ()
    """Its contexts that lead elsewhere than their files say, each with the way out."""

    @property
    def gpu_summary(self) -> str:
        """List the GPUs: ``16 NVIDIA-H100-80GB-HBM3 and 4 NVIDIA-L40S``; empty without any."""
        return join_names(f"{number} {model}" for model, number in self.gpus)

    def label(self, name: str) -> str:
        """Return the value of a label that all of its nodes share; empty otherwise."""
        return next((label.values[0][0] for label in self.labels if label.name == name and len(label.values) == 1), "")


def discovered_clusters(
    readings: Sequence[ContextReading], note_bug: NoteBug, names: Mapping[str, ClusterName] = NO_NAMES
) -> tuple[DiscoveredCluster, ...]:
    """Return the clusters of contexts, in the order of their first context.

    Contexts that lead to the same API server, or to one cluster by different addresses, are one cluster. Its context is
    one that answers, if any does; of several, that which kubectl uses by itself, else the first. `names` are those that
    a person gives, by context; of the others each is made of its context's. `note_bug` gets the bug of a cluster whose
    nodes cannot be read.
    """
    groups: list[list[ContextReading]] = []
    for reading in readings:
        same = [group for group in groups if any(_same_cluster(reading, other) for other in group)]
        groups = [group for group in groups if group not in same]
        groups.append([*(member for group in same for member in group), reading])
    position = {reading.context.name: index for index, reading in enumerate(readings)}
    groups.sort(key=lambda group: position[group[0].context.name])
    taken = [min(group, key=lambda reading: (bool(reading.trouble), not reading.context.current)) for group in groups]
    named = {
        reading.context.name: names[member.context.name]
        for reading, group in zip(taken, groups, strict=True)
        for member in group
        if member.context.name in names
    }
    made = cluster_names([reading.context.name for reading in taken], named)
    clusters = []
    for reading, group in zip(taken, groups, strict=True):
        name = made[reading.context.name]
        cluster = attempt(Seam.CLUSTER, f"cluster {name}", partial(_cluster, name, reading, group))
        if isinstance(cluster, Bug):
            note_bug(cluster)
            bare = replace(reading, nodes=(), unlisted=cluster.error)
            cluster = _cluster(name, bare, group)
        clusters.append(cluster)
    return tuple(clusters)


def _same_cluster(reading: ContextReading, other: ContextReading) -> bool:
    """Return whether two contexts lead to one cluster."""
    if reading.uid and other.uid:
        return reading.uid == other.uid
    return bool(reading.context.server) and reading.context.server == other.context.server


def _cluster(name: ClusterName, reading: ContextReading, group: Sequence[ContextReading]) -> DiscoveredCluster:
    nodes = [_node(raw) for raw in reading.nodes]
    gpus_by_node = [closed_gpus(node) for node in nodes]
    with_gpus = [node for node, gpus in zip(nodes, gpus_by_node, strict=True) if gpus]
    models: Counter[str] = Counter()
    for gpus in gpus_by_node:
        for kind in gpus:
            models[kind.model or kind.resource] += kind.count or 0
    return DiscoveredCluster(
        name=name,
        context=reading.context.name,
        others=tuple(other.context.name for other in group if other is not reading),
        current=any(other.context.current for other in group),
        trouble=reading.trouble,
        version=reading.version,
        unlisted=reading.unlisted,
        nodes=len(nodes),
        gpu_nodes=len(with_gpus),
        gpus=_by_frequency(models),
        labels=tuple(_labels(nodes, with_gpus or nodes, [kind for gpus in gpus_by_node for kind in gpus])),
        engines=reading.engines,
        host=reading.context.host,
        hidden=tuple(member.context.hidden for member in group if member.context.hidden),
    )


def _node(raw: Json) -> ClosedNode:
    """Read a node; whether it takes pods at the moment does not matter here."""
    record = read_node(raw)
    return ClosedNode(
        name=str(raw["metadata"]["name"]),
        allocatable=record.allocatable,
        ready=record.ready,
        labels=dict(record.labels),
    )


def _labels(nodes: list[ClosedNode], with_gpus: list[ClosedNode], gpus: list[NodeGpus]) -> list[NodeLabel]:
    """List the labels of a cluster: where all of its nodes are, and which GPUs and machines those with GPUs have."""
    labels = [_of_label("region", REGION, nodes), _of_label("zone", ZONE, nodes)]
    sources = Counter(kind.model_label for kind in gpus if kind.model_label)
    if sources:
        models = Counter(kind.model for kind in gpus if kind.model)
        labels.append(NodeLabel(name="gpu", source=sources.most_common(1)[0][0], values=_by_frequency(models)))
    labels += [_of_label("instance-type", INSTANCE_TYPE, with_gpus), *_capacity(with_gpus)]
    return [label for label in labels if label.values]


def _of_label(name: str, source: str, nodes: Iterable[ClosedNode]) -> NodeLabel:
    values = Counter(node.labels[source] for node in nodes if node.labels.get(source))
    return NodeLabel(name=name, source=source, values=_by_frequency(values))


def _capacity(nodes: Iterable[ClosedNode]) -> list[NodeLabel]:
    """Return whether the provider may take nodes back, by the first of its labels that any node has."""
    nodes = tuple(nodes)
    for source, words in _CAPACITY:
        values = Counter(words.get(node.labels[source], "") for node in nodes if source in node.labels)
        values.pop("", None)
        if values and len(words) == 1 and (others := len(nodes) - values.total()):
            values["on-demand"] = others  # such a label is on spot nodes alone
        if values:
            return [NodeLabel(name="capacity", source=source, values=_by_frequency(values))]
    return []


def _by_frequency(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(values.items(), key=lambda entry: (-entry[1], entry[0])))
