"""Devices that pods claim (DRA): what we say is free, kube-scheduler allocates, and nothing more."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.e2e.control_plane import Cluster, Json
from tests.e2e.scheduling import bound, decided, observed, ready, replicas_that_fit

MIXES, LIMIT = 30, 8
GROUP = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.example.com"
PRODUCT = f'device.attributes["{DRIVER}"].product'
CLASSES = {
    "gpu": f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "gpu"',
    "large": f'device.driver == "{DRIVER}" && device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0',
}


def exactly(count: int = 1, *expressions: str, of: str = "gpu", mode: str = "ExactCount") -> Json:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    asked = {"deviceClassName": of, "allocationMode": mode, "selectors": selectors}
    return asked | ({"count": count} if mode == "ExactCount" else {})


CLAIMS: tuple[list[Json], ...] = (
    [{"exactly": exactly()}],
    [{"exactly": exactly()}],
    [{"exactly": exactly(2)}],
    [{"exactly": exactly(of="large")}],
    [{"exactly": exactly(1, f'{PRODUCT} == "H100"')}],
    [{"exactly": exactly(1, f'{PRODUCT} in ["A100", "B200"] || {PRODUCT}.startsWith("H")')}],
    [{"exactly": exactly(2, f'!({PRODUCT} == "A100")')}],
    [{"exactly": exactly(mode="All")}],
    [{"firstAvailable": [{"name": "one", **exactly(of="large")}, {"name": "two", **exactly(2)}]}],
    [{"exactly": exactly(1, f'{PRODUCT} == "A100"')}, {"exactly": exactly(1, f'{PRODUCT} == "H100"')}],
    [{"exactly": exactly(1, 'device.attributes["none.example.com"].x == "y"')}],
    [{"exactly": exactly(1, f'{PRODUCT} == "quarter"')}],
    [{"exactly": exactly(1, f'{PRODUCT}.matches("^H")')}],
)
PARTITIONED, COUNTED_FOR_THE_WORSE = len(CLAIMS) - 2, len(CLAIMS) - 1
"""The claim for which GPUs are cut into parts, and the one that we know not to be able to count."""


class Mix:
    """Some nodes with devices, some of them held, and a claim: what it is is up to chance."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.name = f"mix-{number:02d}"
        self.claim = number % len(CLAIMS)
        self.nodes = [f"{self.name}-{index}" for index in range(chance.randint(1, 3))]
        self.held = chance.randint(0, 2)
        self.slices = [self._slice(node, chance) for node in self.nodes]
        if chance.random() < 0.3:
            self.slices.append(self._slice("", chance))
        if self.claim == PARTITIONED:
            self.slices = [one for node in self.nodes for one in self._partitions(node)]

    def _slice(self, node: str, chance: random.Random) -> Json:
        """Make the devices of one node, or such as every node of the mix can reach."""
        name = node or f"{self.name}-fabric"
        of_mix = {"matchExpressions": [{"key": "mix", "operator": "In", "values": [self.name]}]}
        where = {"nodeName": node} if node else {"nodeSelector": {"nodeSelectorTerms": [of_mix]}}
        spec = {"driver": DRIVER, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}
        devices = [self._device(f"gpu-{index}", chance) for index in range(chance.randint(1, 4))]
        return {"metadata": {"name": name}, "spec": {**spec, **where, "devices": devices}}

    def _partitions(self, node: str) -> list[Json]:
        """Make a GPU that may be had whole or in up to four quarters, of which it has more to choose from."""
        spec = {"driver": DRIVER, "pool": {"name": node, "generation": 2, "resourceSliceCount": 2}, "nodeName": node}
        memory = {"name": "gpu-0", "counters": {"memory": {"value": "8"}}}
        devices = [
            self._part("whole", "H100", "8"),
            *(self._part(f"part-{index}", "quarter", "2") for index in range(6)),
        ]
        return [
            {"metadata": {"name": f"{node}-counters"}, "spec": {**spec, "sharedCounters": [memory]}},
            {"metadata": {"name": f"{node}-parts"}, "spec": {**spec, "devices": devices}},
        ]

    def _part(self, name: str, product: str, memory: str) -> Json:
        consumed = {"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}
        attributes = {"type": {"string": "gpu"}, "product": {"string": product}}
        return {"name": name, "attributes": attributes, "consumesCounters": [consumed]}

    def _device(self, name: str, chance: random.Random) -> Json:
        attributes = {
            "type": {"string": "gpu"},
            "product": {"string": chance.choice(("H100", "H100", "A100"))},
            "uuid": {"string": f"{self.name}-{name}"},
        }
        taints = [{"key": "broken", "effect": "NoSchedule"}] if chance.random() < 0.15 else []
        memory = chance.choice(("40Gi", "80Gi"))
        return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, "taints": taints}

    def make(self, cluster: Cluster) -> None:
        """Make the nodes and devices, and pods that hold some."""
        for node in self.nodes:
            cluster.add_node(node, allocatable={"cpu": "64", "memory": "256Gi"}, labels={"mix": self.name})
        for one in self.slices:
            cluster.create(f"{GROUP}/resourceslices", one)
        cluster.create(f"{GROUP}/namespaces/devices/resourceclaimtemplates", self._template("held", CLAIMS[0]))
        cluster.create(
            f"{GROUP}/namespaces/devices/resourceclaimtemplates", self._template("asked", CLAIMS[self.claim])
        )
        cluster.create("/apis/apps/v1/namespaces/devices/deployments", self.deployment("held", self.held))

    def _template(self, what: str, requests: list[Json]) -> Json:
        named = [{"name": f"request-{index}", **request} for index, request in enumerate(requests)]
        return {"metadata": {"name": f"{self.name}-{what}"}, "spec": {"spec": {"devices": {"requests": named}}}}

    def deployment(self, what: str, replicas: int) -> Json:
        """Write a Deployment whose pods claim devices by a template."""
        labels = {"app": f"{self.name}-{what}"}
        pod = {
            "nodeSelector": {"mix": self.name},
            "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": f"{self.name}-{what}"}],
            "containers": [
                {
                    "name": "server",
                    "image": "registry.invalid/server:1",
                    "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "devices"}]},
                }
            ],
        }
        return {
            "metadata": {"name": f"{self.name}-{what}"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    return start_cluster("devices")


def test_devices_that_are_free_by_our_count_the_scheduler_allocates(cluster: Cluster) -> None:
    chance = random.Random(20261121)
    mixes = [Mix(number, chance) for number in range(MIXES)]
    cluster.ensure_namespace("devices")
    for name, expression in CLASSES.items():
        selectors = [{"cel": {"expression": expression}}]
        cluster.create(f"{GROUP}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": selectors}})
    for mix in mixes:
        mix.make(cluster)
    nodes = sum(len(mix.nodes) for mix in mixes)
    cluster.until(lambda: sum(ready(node) for node in cluster.items("/api/v1/nodes")) == nodes, "nodes are not ready")
    decided(cluster, "devices", sum(mix.held for mix in mixes), errors=True)
    for mix in mixes:
        cluster.create("/apis/apps/v1/namespaces/devices/deployments", mix.deployment("asked", 0))
    fitting = replicas_that_fit(observed(cluster, "devices", [f"{mix.name}-asked" for mix in mixes]), LIMIT)
    promised = {mix.name: fitting[f"{mix.name}-asked"] for mix in mixes}
    for mix in mixes:  # one more than fits, so that a count that is too low shows as well
        scale = {"spec": {"replicas": promised[mix.name] + 1}}
        path = f"/apis/apps/v1/namespaces/devices/deployments/{mix.name}-asked/scale"
        cluster.call("PUT", path, {**cluster.call("GET", path), **scale})
    total = sum(mix.held for mix in mixes) + sum(promised.values()) + MIXES
    pods = decided(cluster, "devices", total, errors=True)
    placed = {
        mix.name: sum(bound(pod) for pod in pods if pod["metadata"]["labels"]["app"] == f"{mix.name}-asked")
        for mix in mixes
    }
    assert {name: count for name, count in placed.items() if count < promised[name]} == {}, "left pending"
    unseen = {mix.claim for mix in mixes if min(placed[mix.name], LIMIT) > promised[mix.name]}
    assert unseen <= {COUNTED_FOR_THE_WORSE}, "there was room that we did not see"
    assert len(set(promised.values())) > 3, "the mixes are too much alike to prove anything"
