"""Devices in the shape of NVIDIA's DRA driver: what we count of GPUs, MIG slices and channels is allocated."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.nvidia_slices import CHANNEL, MIG, SMALLEST, claim, classes, dynamic, profile, static, whole
from tests.e2e.scheduling import bound, decided, observed, ready, replicas_that_fit

NAMESPACE = "devices"
GROUP = "/apis/resource.k8s.io/v1"
GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
LIMIT = 40

ASKED: tuple[tuple[list[Json], dict[str, int]], ...] = (
    ([claim()], {}),
    ([claim(2)], {}),
    ([claim(), claim()], {}),
    ([], {GPU: 1}),
    ([], {GPU: 3}),
    ([], {SLICE: 1}),
    ([], {SLICE: 3}),
    ([], {GPU: 1, SLICE: 1}),
    ([claim(of=MIG)], {}),
    ([claim(2, of=SMALLEST)], {}),
    ([profile("1g.10gb")], {}),
    ([profile("1g.20gb")], {}),
    ([profile("2g.20gb", 2)], {}),
    ([profile("3g.40gb")], {}),
    ([profile("7g.80gb")], {}),
    ([profile("3g.40gb"), profile("2g.20gb")], {}),
    ([claim(), profile("1g.10gb")], {}),
    ([claim(of=CHANNEL)], {}),
    ([claim(of=CHANNEL), claim(4)], {}),
    ([claim(of=CHANNEL)], {GPU: 2}),
)
COUNTED_FOR_THE_WORSE = (7, 15, 16)
"""Those of a pod for which GPUs are cut in several ways: which parts it leaves is the scheduler's choice."""
HELD: tuple[tuple[list[Json], dict[str, int]], ...] = (
    ([claim()], {}),
    ([], {GPU: 1}),
    ([profile("1g.10gb")], {}),
    ([profile("3g.40gb")], {}),
)


class Mix:
    """Nodes of different kinds, pods that hold some devices, and pods that ask for some."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.name = f"nvidia-{number:02d}"
        self.asked = ASKED[number % len(ASKED)]
        self.held, self.holders = chance.choice(HELD), chance.randint(0, 3)
        self.nodes = [f"{self.name}-{index}" for index in range(chance.randint(1, 3))]
        self.plugins = {node: chance.choice((0, 0, 0, 4)) for node in self.nodes}
        """GPUs that a device plugin has on a node beside the driver, as while one comes for the other."""
        kinds = {node: chance.choice((whole, static, dynamic, dynamic)) for node in self.nodes}
        self.slices = [one for node, made in kinds.items() for one in made(node, chance.randint(1, 4))]

    def make(self, cluster: Cluster) -> None:
        """Make the nodes and devices, and the pods that hold some."""
        for node in self.nodes:
            plugin = {GPU: str(self.plugins[node])} if self.plugins[node] else {}
            cluster.add_node(node, allocatable={"cpu": "192", "memory": "1Ti", **plugin}, labels={"mix": self.name})
        for one in self.slices:
            cluster.create(f"{GROUP}/resourceslices", one)
        self.deploy(cluster, "held", self.held, self.holders)

    def deploy(self, cluster: Cluster, what: str, asked: tuple[list[Json], dict[str, int]], replicas: int) -> None:
        """Create a Deployment whose pods claim devices by a template, and request extended resources."""
        requests, extended = asked
        name, labels = f"{self.name}-{what}", {"app": f"{self.name}-{what}"}
        pod: Json = {"nodeSelector": {"mix": self.name}}
        amounts = {"cpu": "1"} | {resource: str(count) for resource, count in extended.items()}
        resources: Json = {"requests": amounts, "limits": {key: value for key, value in amounts.items() if "/" in key}}
        if requests:
            named = [{"name": f"request-{index}", **one} for index, one in enumerate(requests)]
            template = {"metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": named}}}}
            cluster.create(f"{GROUP}/namespaces/{NAMESPACE}/resourceclaimtemplates", template)
            resources["claims"] = [{"name": "devices"}]
            pod["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": name}]
        pod["containers"] = [{"name": "server", "image": "registry.invalid/server:1", "resources": resources}]
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
        cluster.create(path, {"metadata": {"name": name}, "spec": spec})


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    made = start_cluster("nvidia")
    made.ensure_namespace(NAMESPACE)
    for one in classes():
        made.create(f"{GROUP}/deviceclasses", one)
    return made


def test_devices_of_nvidia_are_allocated_as_often_as_we_count(cluster: Cluster) -> None:
    chance = random.Random(20261129)
    mixes = [Mix(number, chance) for number in range(3 * len(ASKED))]
    for mix in mixes:
        mix.make(cluster)
    nodes = sum(len(mix.nodes) for mix in mixes)
    cluster.until(lambda: sum(ready(node) for node in cluster.items("/api/v1/nodes")) == nodes, "nodes are not ready")
    holders = sum(mix.holders for mix in mixes)
    decided(cluster, NAMESPACE, holders, errors=True)
    for mix in mixes:
        mix.deploy(cluster, "asked", mix.asked, 0)
    fitting = replicas_that_fit(observed(cluster, NAMESPACE, [f"{mix.name}-asked" for mix in mixes]), LIMIT)
    promised = {mix.name: fitting[f"{mix.name}-asked"] for mix in mixes}
    for mix in mixes:  # one more than fits, so that a count that is too low shows as well
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{mix.name}-asked/scale"
        cluster.call("PATCH", path, {"spec": {"replicas": promised[mix.name] + 1}})
    pods = decided(cluster, NAMESPACE, holders + sum(promised.values()) + len(mixes), errors=True)
    placed = {mix.name: sum(bound(pod) for pod in of(pods, f"{mix.name}-asked")) for mix in mixes}
    told = {
        f"{mix.name} {ASKED.index(mix.asked)}": f"{promised[mix.name]} counted, {placed[mix.name]} placed"
        for mix in mixes
        if placed[mix.name] < promised[mix.name]
        or (placed[mix.name] > promised[mix.name] and ASKED.index(mix.asked) not in COUNTED_FOR_THE_WORSE)
    }
    agreeing = sum(placed[mix.name] == promised[mix.name] for mix in mixes)
    print(f"{agreeing} of {len(mixes)} mixes agree on {sum(promised.values())} replicas")  # noqa: T201 - to be quoted (pytest -rP)
    assert told == {}
    assert len(set(promised.values())) > 5, "the mixes are too much alike to prove anything"


def of(pods: Iterable[Json], app: str) -> list[Json]:
    return [pod for pod in pods if pod["metadata"]["labels"]["app"] == app]
