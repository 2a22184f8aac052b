"""Nodes whose GPUs NVIDIA's device plugin cuts up or shares, with the labels of GPU feature discovery.

What the plugin advertises and how its nodes are labelled is as in its version 0.20.0
(https://github.com/NVIDIA/k8s-device-plugin): its docs/gpu-feature-discovery, internal/lm and the README's chapters on
MIG strategies and on sharing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster

GPU = "nvidia.com/gpu"
SHARED_SUFFIX = "-SHARED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model of GPU: its product label, MiB, GB, and the ways in which MIG may divide one."""

    product: str
    mebibytes: int
    gigabytes: int
    layouts: tuple[tuple[str, ...], ...]


MODELS = (
    Model(
        product="NVIDIA-H100-80GB-HBM3",
        mebibytes=81559,
        gigabytes=80,
        layouts=(
            ("1g.10gb",) * 7,
            ("2g.20gb",) * 3,
            ("3g.40gb", "3g.40gb"),
            ("1g.20gb",) * 4,
            ("3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"),
        ),
    ),
    Model(
        product="NVIDIA-A100-SXM4-40GB",
        mebibytes=40960,
        gigabytes=40,
        layouts=(("1g.5gb",) * 7, ("2g.10gb",) * 3, ("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb")),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """GPUs, or parts of some, that pods request by one resource of a node."""

    resource: str
    model: str
    gigabytes: int
    count: int
    share: Fraction
    """The part of a GPU that one is."""

    @property
    def part(self) -> bool:
        """Whether pods get parts of GPUs by it."""
        return self.share < 1


SHARES = {
    "1g.5gb": Fraction(1, 7),
    "2g.10gb": Fraction(2, 7),
    "3g.20gb": Fraction(1, 2),
    "1g.10gb": Fraction(1, 7),
    "1g.20gb": Fraction(1, 4),
    "2g.20gb": Fraction(2, 7),
    "3g.40gb": Fraction(1, 2),
}
"""The part of its GPU that a MIG slice keeps from others: of its seven compute slices or of its memory."""


class GpuNode:
    """A node with its labels, what it advertises, and how many of each others' pods have taken."""

    def __init__(self, name: str, mix: str, chance: random.Random) -> None:
        self.name = name
        self.model = chance.choice(MODELS)
        self.labels = {"mix": mix, "nvidia.com/gpu.memory": str(self.model.mebibytes)}
        self.rows: list[Row] = []
        chance.choice((self._whole, self._single, self._mixed, self._shared, self._renamed, self._mixed_shared))(chance)
        self.used = {row.resource: chance.choice((0, 0, 1, row.count // 2, row.count)) for row in self.rows}

    def make(self, cluster: Cluster) -> None:
        """Add the node, and a pod of others that has what is used of it."""
        advertised = {GPU: "0"} | {row.resource: str(row.count) for row in self.rows}
        cluster.add_node(self.name, allocatable={"cpu": "128", "memory": "1Ti", **advertised}, labels=self.labels)
        used = {resource: str(count) for resource, count in self.used.items() if count}
        cluster.occupy(self.name, {"cpu": "1", **used})

    def free(self, resource: str) -> int:
        """Count what is free of a resource."""
        return sum(row.count - self.used[row.resource] for row in self.rows if row.resource == resource)

    def _whole(self, chance: random.Random) -> None:
        """Give out GPUs whole."""
        self._label(GPU, self.model.product, chance.choice((1, 2, 4, 8)))
        self._row(GPU, self.model.product, self.model.gigabytes, self._count(GPU))

    def _single(self, chance: random.Random) -> None:
        """Cut all GPUs into slices of one profile, which have the name of GPUs (MIG strategy single)."""
        layout = chance.choice([one for one in self.model.layouts if len({*one}) == 1])
        self.labels["nvidia.com/mig.strategy"] = "single"
        slices = len(layout) * chance.choice((1, 2))
        replicas = chance.choice((1, 1, 3))
        product = f"{self.model.product}-MIG-{layout[0]}" + (SHARED_SUFFIX if replicas > 1 else "")
        self._label(GPU, product, slices, replicas, "time-slicing" if replicas > 1 else "none")
        self._row(GPU, product, _gigabytes(layout[0]), slices * replicas, SHARES[layout[0]] / replicas)

    def _mixed(self, chance: random.Random) -> None:
        """Cut some GPUs into slices, each profile with a resource of its own (MIG strategy mixed)."""
        self._mig(chance, chance.choice((0, 1, 4)))

    def _mixed_shared(self, chance: random.Random) -> None:
        """Cut some GPUs into slices that several pods have at a time, by a resource of another name."""
        self._mig(chance, chance.choice((0, 2)), replicas=2)

    def _shared(self, chance: random.Random) -> None:
        """Give each GPU to several pods, in turns or by MPS, under the name of GPUs."""
        gpus, replicas, strategy = chance.choice((1, 2)), chance.choice((2, 4)), chance.choice(("time-slicing", "mps"))
        product = self.model.product + SHARED_SUFFIX
        self._label(GPU, product, gpus, replicas, strategy)
        gigabytes = self.model.gigabytes // (replicas if strategy == "mps" else 1)
        self._row(GPU, product, gigabytes, gpus * replicas, Fraction(1, replicas))

    def _renamed(self, chance: random.Random) -> None:
        """Give each GPU to several pods under another name (`renameByDefault`), of which the label says nothing."""
        gpus, replicas, strategy = chance.choice((1, 2)), chance.choice((2, 4)), chance.choice(("time-slicing", "mps"))
        self._label(GPU, self.model.product, gpus, replicas, strategy)
        gigabytes = self.model.gigabytes // (replicas if strategy == "mps" else 1)
        model = self.model.product + SHARED_SUFFIX
        self._row(f"{GPU}.shared", model, gigabytes, gpus * replicas, Fraction(1, replicas))

    def _mig(self, chance: random.Random, whole: int, replicas: int = 1) -> None:
        self.labels["nvidia.com/mig.strategy"] = "mixed"
        profiles = Counter[str]()
        for _ in range(chance.choice((1, 2))):
            profiles.update(chance.choice(self.model.layouts))
        self._label(GPU, self.model.product, whole or 1, 1 if whole else 0)
        if whole:
            self._row(GPU, self.model.product, self.model.gigabytes, whole)
        for profile, slices in sorted(profiles.items()):
            resource, product = f"nvidia.com/mig-{profile}", f"{self.model.product}-MIG-{profile}"
            self._label(resource, product, slices, replicas, "time-slicing" if replicas > 1 else "none")
            if replicas > 1:
                resource, product = f"{resource}.shared", product + SHARED_SUFFIX
            self._row(resource, product, _gigabytes(profile), slices * replicas, SHARES[profile] / replicas)

    def _label(self, resource: str, product: str, count: int, replicas: int = 1, strategy: str = "none") -> None:
        facts = {"product": product, "count": count, "replicas": replicas, "sharing-strategy": strategy}
        self.labels |= {f"{resource}.{name}": str(fact) for name, fact in facts.items()}

    def _count(self, resource: str) -> int:
        return int(self.labels[f"{resource}.count"])

    def _row(self, resource: str, model: str, gigabytes: int, count: int, share: Fraction = Fraction(1)) -> None:
        self.rows.append(Row(resource=resource, model=model, gigabytes=gigabytes, count=count, share=share))


class GpuMix:
    """Nodes of different kinds, and pods for some of what they advertise: which is up to chance."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.name = f"parts-{number:02d}"
        self.nodes = [GpuNode(f"{self.name}-{index}", self.name, chance) for index in range(chance.randint(2, 4))]
        [self.row] = chance.sample([row for node in self.nodes for row in node.rows], 1)
        requests = {self.row.resource: chance.choice((1, 1, 2, 3))}
        if chance.random() < 0.2:
            [other] = chance.sample([row for node in self.nodes for row in node.rows], 1)
            requests[other.resource] = 1
        self.requests = requests
        self.kept = self._terms(chance)
        self.asked = chance.choice((1, 1, 2))
        """GPUs of the model of `row` that a request for GPUs asks for on a node."""

    def deployment(self, what: str, spec: Json, replicas: int) -> Json:
        """Write a Deployment of pods that are kept to the nodes of this mix."""
        labels = {"app": f"{self.name}-{what}", "mix": self.name}
        kept = {**spec, "nodeSelector": {**spec.get("nodeSelector", {}), "mix": self.name}}
        template = {"metadata": {"labels": labels}, "spec": kept}
        metadata = {"name": f"{self.name}-{what}"}
        return {
            "metadata": metadata,
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        }

    def spec(self) -> Json:
        """Write pods that request resources by name, and labels of nodes or none."""
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [self.kept]}}
        return containers(self.requests) | ({"affinity": {"nodeAffinity": affinity}} if self.kept else {})

    def whole_or_part(self, model: str) -> list[tuple[GpuNode, Row]]:
        """List what the nodes have of a model by its whole name."""
        return [(node, row) for node in self.nodes for row in node.rows if row.model == model]

    @staticmethod
    def _terms(chance: random.Random) -> Json:
        """Choose nodes by what GPU feature discovery says of them, as people do."""
        expressions: list[list[Json]] = [
            [],
            [],
            [],
            [{"key": "nvidia.com/mig.strategy", "operator": "Exists"}],
            [{"key": "nvidia.com/mig.strategy", "operator": "NotIn", "values": ["single"]}],
            [{"key": f"{GPU}.sharing-strategy", "operator": "In", "values": ["none", "mps"]}],
            [{"key": f"{GPU}.replicas", "operator": "Lt", "values": ["3"]}],
            [{"key": f"{GPU}.product", "operator": "In", "values": [model.product for model in MODELS]}],
        ]
        chosen = chance.choice(expressions)
        return {"matchExpressions": chosen} if chosen else {}


def containers(requests: Mapping[str, int]) -> Json:
    """Write the containers of a pod with extended resources, each in a container of its own."""
    return {
        "containers": [
            {
                "name": f"server-{index}",
                "image": "registry.invalid/server:1",
                "resources": {"limits": {resource: str(count)}, "requests": {resource: str(count)}},
            }
            for index, (resource, count) in enumerate(sorted(requests.items()))
        ]
    }


def _gigabytes(profile: str) -> int:
    return int(profile.partition(".")[2].removesuffix("gb"))
