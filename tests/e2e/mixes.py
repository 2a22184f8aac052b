"""Mixes of nodes and replicas that say everything that fit understands: the same for our count and for a cluster."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.observe import observation_file
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.schema import yaml
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster

NAMESPACE = "mixes"
FAR = {"team": "far"}
"""The labels of the namespace `others`."""
LIMIT = 12
GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"
RUNTIME = {"cpu": "250m", "memory": "512Mi"}
"""What the RuntimeClass `heavy` adds to a pod; the API server refuses one that says otherwise."""
GIVEN = {"cpu": "500m", "memory": "2Gi"}
"""What the LimitRange of the namespace gives to a container that requests nothing."""
SPOT = {"key": "capacity", "value": "spot", "effect": "NoSchedule"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _labels(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


AFFINITIES: tuple[list[Json], ...] = (
    [_labels("model", "In", "h100")],
    [_labels("model", "In", "h100", "a100")],
    [_labels("model", "NotIn", "a100")],
    [_labels("cores", "Gt", "64")],
    [_labels("cores", "Lt", "65"), _labels("old", "Exists")],
    [_labels("cores", "DoesNotExist")],
    [_labels("cores", "Gt", "100"), _labels("model", "In", "a100"), {}],
    [{}],
)


class Mix:
    """Some nodes, partly taken, and one shape of replica: the same in an observation and in a cluster.

    Zones have a label of the mix's own, so that no spread reaches into another mix.
    """

    def __init__(self, batch: int, number: int, chance: random.Random) -> None:
        self.name = f"mix-{batch}-{number:02d}"
        self.labels = {"app": self.name, "role": "replica", "batch": str(batch)}
        self.zone = f"zone.overspill.dev/{self.name}"
        self.nodes = [self._node(f"{self.name}-{index}", chance) for index in range(chance.randint(2, 6))]
        self.group, self.apart = chance.choice(((1, False),) * 12 + ((2, False), (3, False), (2, True), (3, True)))
        requests = {
            "cpu": chance.choice(("250m", "250m", "1", "1", "2500m", "6")),
            "memory": chance.choice(("512Mi", "4Gi", "1500M", "1500M", "24Gi")),
            GPU: chance.choice(("1", "1", "1", "1", "2", "4")),
        }
        self.kind = ""
        self.spec: Json = {
            "nodeSelector": {"mix": self.name} | chance.choice(({}, {}, {}, {}, {"model": "h100"}, {"model": "a100"})),
            "tolerations": chance.choice(
                (
                    [],
                    [SPOT | {"operator": "Equal"}],
                    [{"key": "capacity", "operator": "Exists"}],
                    [{"operator": "Exists"}],
                )
            ),
            "containers": [self._container("server", chance, requests)],
            "affinity": {},
        }
        self._add_resources(chance)
        terms: list[Json] = chance.choice([[], *AFFINITIES] if chance.random() < 0.25 else [[]])
        if terms:
            self.spec["affinity"]["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
        if self.apart:
            self._be_apart(HOST)
        else:
            self._add_rules(chance)

    def fitting(self, seen: ClusterObservation | None = None) -> int:
        """Count the replicas that Overspill would send here, by the way that files take."""
        del seen
        file = {
            "apiVersion": "overspill.dev/v1alpha1",
            "kind": "Observation",
            "cluster": "worker-2",
            "observedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "pools": [{"name": "all", "nodes": self.nodes}],
            "runtimeClasses": [{"name": "heavy", "overhead": RUNTIME}],
            "limitRanges": [{"namespace": NAMESPACE, "defaultRequest": GIVEN}],
        }
        [seen] = observation_file.read(yaml.emit(file).encode(), "observation.yaml")
        return ClusterCapacity(seen).count(self._shape(), 1 if self.apart else LIMIT)

    def pods(self, replicas: int) -> int:
        """Count the pods of so many replicas; nodes of their own are asked of one group only."""
        return self.group if self.apart else replicas * self.group

    def is_estimate(self) -> bool:
        """Tell whether the scheduler may do better: it may choose well, and use nodes that we leave out.

        A pod that tolerates every taint may go to a cordoned node. We send nothing there: somebody means to empty it. A
        spread that heeds taints passes such a node over, but nobody tells us which taints it has.
        """
        spreads = self.spec.get("topologySpreadConstraints", [])
        heeded = any(one.get("nodeTaintsPolicy") == "Honor" for one in spreads)
        everywhere = {"operator": "Exists"} in self.spec["tolerations"]
        cordons = (everywhere or heeded) and any(node["cordoned"] for node in self.nodes)
        return cordons or self.kind in {"join", "mixed"} or any(self.zone not in node["labels"] for node in self.nodes)

    def make(self, cluster: Cluster) -> None:
        """Make the nodes, and take up on them what is used, by pods that rules may be about."""
        for node in self.nodes:
            cluster.add_node(
                node["name"],
                allocatable=node["allocatable"],
                labels=node["labels"],
                taints=node["taints"],
                cordoned=node["cordoned"],
            )
            used = {name: amount for name, amount in node["used"].items() if name != "pods" and amount != "0"}
            [there] = node["pods"]
            cluster.occupy(
                node["name"],
                used,
                namespace=there["namespace"],
                labels=there["labels"],
                ports=[port["hostPort"] for port in there["hostPorts"]],
            )

    def deployment(self, pods: int) -> Json:
        """Write a Deployment of this shape."""
        template = {"metadata": {"labels": self.labels}, "spec": self.spec}
        spec = {"replicas": pods, "selector": {"matchLabels": self.labels}, "template": template}
        return {"metadata": {"name": self.name}, "spec": spec}

    def _shape(self) -> ReplicaShape:
        metadata = {"namespace": NAMESPACE, "labels": self.labels}
        if not self.apart:
            return replace(replica_shape(self.spec, metadata), group_size=self.group)
        alone = {**self.spec, "affinity": {**self.spec["affinity"], "podAntiAffinity": {}}}
        return replace(replica_shape(alone, metadata), group_size=self.group, apart=True)

    def _node(self, name: str, chance: random.Random) -> dict[str, Json]:
        gpus = chance.choice((2, 4, 8, 8))
        zone = {self.zone: chance.choice("abc")} if chance.random() < 0.9 else {}
        there = {
            "namespace": NAMESPACE if chance.random() < 0.8 else "others",
            "labels": {"app": self.name} if chance.random() < 0.12 else {},
            "hostPorts": [{"hostPort": 8080}] if chance.random() < 0.1 else [],
        }
        return {
            "name": name,
            "labels": {"mix": self.name, "batch": self.labels["batch"], HOST: name}
            | {"model": chance.choice(("h100", "h100", "a100"))}
            | zone
            | chance.choice(({}, {"cores": "64"}, {"cores": "192", "old": ""})),
            "taints": [SPOT] if chance.random() < 0.15 else [],
            "cordoned": chance.random() < 0.12,
            "allocatable": {
                "cpu": chance.choice(("7910m", "16", "64", "64")),
                "memory": chance.choice(("30Gi", "127000Mi", "512Gi", "512Gi")),
                GPU: str(gpus),
                "pods": str(chance.choice((3, 8, 110))),
            },
            "used": {"cpu": "800m", "memory": "3Gi", GPU: str(chance.choice((0, 0, gpus // 2, gpus))), "pods": "1"},
            "pods": [there],
        }

    @staticmethod
    def _container(name: str, chance: random.Random, requests: dict[str, str], **fields: Any) -> Json:
        """Write a container that says what it needs by requests, or by limits alone."""
        gpus = {key: amount for key, amount in requests.items() if "/" in key}
        stated = {"limits": requests} if chance.random() < 0.3 else {"requests": requests, "limits": gpus}
        return {"name": name, "image": "registry.invalid/server:1", "resources": stated, **fields}

    def _add_resources(self, chance: random.Random) -> None:
        """Add what else counts: init containers, sidecars, what admission adds, requests of the pod as a whole."""
        extra: list[Json] = []
        if chance.random() < 0.2:
            extra.append(self._container("load", chance, {"cpu": "5", "memory": "6Gi"}))
        if chance.random() < 0.2:
            sidecar = self._container("proxy", chance, {"cpu": "500m", "memory": "1Gi"}, restartPolicy="Always")
            extra.insert(chance.randint(0, len(extra)), sidecar)
        if extra:
            self.spec["initContainers"] = extra
        if chance.random() < 0.2:
            self.spec |= {"runtimeClassName": "heavy"} | chance.choice(({}, {"overhead": RUNTIME}))
        if chance.random() < 0.25:
            self.spec["containers"].append({"name": "logs", "image": "registry.invalid/logs:1"})
        if chance.random() < 0.15:
            self.spec["resources"] = {"requests": {"cpu": "7", "memory": "26Gi"}}

    def _add_rules(self, chance: random.Random) -> None:
        """Add what the pods demand of one another."""
        kind = self.kind = chance.choice(
            ("", "", "", "host", "zone", "both", "join", "even", "even", "even host", "mixed", "port")
        )
        if kind in {"host", "both"}:
            self._be_apart(HOST)
        if kind in {"zone", "both"}:
            self._be_apart(self.zone)
        if kind == "join":
            term = {"topologyKey": self.zone, "labelSelector": {"matchLabels": {"app": self.name}}}
            self.spec["affinity"]["podAffinity"] = {REQUIRED: [term]}
        if kind == "mixed":
            self._be_apart(HOST)
        if kind in {"even", "mixed"}:
            self._spread(self.zone, chance)
        if kind == "even host":
            self._spread(HOST, chance)
        if kind == "port":
            self.spec["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
            if chance.random() < 0.5:
                self.spec["hostNetwork"] = True

    def _be_apart(self, key: str) -> None:
        labels = {"app": self.name} | ({"role": "replica"} if self.apart else {})
        term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
        self.spec["affinity"].setdefault("podAntiAffinity", {}).setdefault(REQUIRED, []).append(term)

    def _spread(self, key: str, chance: random.Random) -> None:
        constraint = {
            "topologyKey": key,
            "maxSkew": chance.choice((1, 1, 2)),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": self.name}},
        } | chance.choice(({}, {}, {"minDomains": 3}, {"nodeTaintsPolicy": "Honor"}))
        self.spec.setdefault("topologySpreadConstraints", []).append(constraint)


class NeighbourMix(Mix):
    """A mix whose replicas have rules about any pods, which are on its nodes: their own kind, others, leaving ones.

    A selector names its mix where pods of other mixes could decide something.
    """

    def fitting(self, seen: ClusterObservation | None = None) -> int:
        """Count the replicas that Overspill would send to a cluster, by what its API server lists."""
        assert seen is not None
        return ClusterCapacity(seen).count(self._shape(), 1 if self.apart else LIMIT)

    def make(self, cluster: Cluster) -> None:
        """Make the nodes, and the pods on them."""
        for node in self.nodes:
            cluster.add_node(
                node["name"],
                allocatable=node["allocatable"],
                labels=node["labels"],
                taints=node["taints"],
                cordoned=node["cordoned"],
            )
            for number, there in enumerate(node["pods"]):
                cluster.occupy(node["name"], {"cpu": "100m"}, name=f"busy-{node['name']}-{number}", **there)

    def _node(self, name: str, chance: random.Random) -> dict[str, Json]:
        node = super()._node(name, chance)
        node["pods"] = [self._neighbour(chance) for _ in range(chance.choice((0, 1, 1, 2)))]
        return node

    def _neighbour(self, chance: random.Random) -> dict[str, Any]:
        labels = {"mix": self.name, "part": chance.choice(("db", "db", "web"))}
        labels |= chance.choice(({}, {"team": "a"}, {"team": "b"}, {"app": self.name}))
        keeps = {"topologyKey": chance.choice((HOST, self.zone)), "labelSelector": {"matchLabels": {"app": self.name}}}
        keeps |= chance.choice(({"namespaces": [NAMESPACE]}, {"namespaceSelector": {}}))
        repels = chance.random() < 0.06
        return {
            "namespace": NAMESPACE if chance.random() < 0.8 else "others",
            "labels": labels,
            "affinity": {"podAntiAffinity": {REQUIRED: [keeps]}} if repels else None,
            "leaving": chance.random() < 0.12,
        }

    def _add_rules(self, chance: random.Random) -> None:
        """Add one rule or two."""
        self.group, self.kind = 1, "join"
        self.labels |= {"mix": self.name, "team": "a"}
        kinds = [chance.choice(("podAffinity", "podAntiAffinity", "spread")) for _ in range(chance.choice((1, 1, 2)))]
        for kind in kinds:
            key = chance.choice((HOST, self.zone, self.zone))
            if kind != "spread":
                self.spec["affinity"].setdefault(kind, {}).setdefault(REQUIRED, []).append(
                    {"topologyKey": key, **self._about(chance), **self._spaces(chance)}
                )
            elif key not in [one["topologyKey"] for one in self.spec.get("topologySpreadConstraints", [])]:
                self._spread(key, chance)
                self.spec["topologySpreadConstraints"][-1] |= self._about(chance, spread=True)

    def _about(self, chance: random.Random, *, spread: bool = False) -> dict[str, Json]:
        """Say which pods a rule is about."""
        own = {"mix": self.name}
        matched = chance.choice(({"part": "db"}, {"part": "db"}, {"part": "web"}, {"app": self.name}, {}))
        selector: Json = {"matchLabels": own | matched}
        if chance.random() < 0.2:
            selector["matchExpressions"] = [
                {"key": "part", **chance.choice(({"operator": "NotIn", "values": ["db"]}, {"operator": "Exists"}))}
            ]
        if chance.random() < 0.1:
            return {"labelSelector": chance.choice((None, {})) if spread else None}
        keys = chance.choice(({}, {}, {"matchLabelKeys": ["team"]}, {"mismatchLabelKeys": ["team"]}))
        return {"labelSelector": selector} | ({} if spread and "mismatchLabelKeys" in keys else keys)

    @staticmethod
    def _spaces(chance: random.Random) -> dict[str, Json]:
        """Say which namespaces a term is about."""
        others = {"matchLabels": {"kubernetes.io/metadata.name": "others"}}
        return chance.choice(
            (
                *({}, {}, {}),
                {"namespaces": ["others"]},
                {"namespaceSelector": {}},
                {"namespaceSelector": others},
                {"namespaceSelector": {"matchLabels": FAR}},
                {"namespaceSelector": {"matchLabels": FAR}, "namespaces": [NAMESPACE]},
            )
        )
