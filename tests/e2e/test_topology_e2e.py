"""Groups that share a topology domain: where we count one, kube-scheduler finds room for all of it in that domain."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.capacity.shared_topology import DomainShortage, assign_shared_domains
from reconciler.core.observe import observation_file
from reconciler.core.schema import yaml
from tests.builders.requests import manifests, request
from tests.e2e.control_plane import Cluster, Json
from tests.e2e.mixes import GPU, HOST, REQUIRED
from tests.e2e.scheduling import bound, decided, ready

MIXES, NAMESPACE = 30, "topology"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


class Mix:
    """Some nodes in racks, partly taken, and a group of equal pods: what they are is up to chance.

    Racks have a label of the mix's own, so that no group may join pods of another mix.
    """

    def __init__(self, number: int, chance: random.Random) -> None:
        self.name = f"mix-{number:02d}"
        self.key = f"rack.overspill.dev/{self.name}"
        self.racks = {} if number % 10 == 9 else {name: f"{self.name}-{name}" for name in "abc"}
        self.nodes = [self._node(f"{self.name}-{index}", chance) for index in range(chance.randint(2, 7))]
        self.size = chance.randint(2, 5)
        requests = {GPU: chance.choice(("1", "1", "2", "4")), "cpu": chance.choice(("1", "1", "6"))}
        resources = {"requests": requests, "limits": {GPU: requests[GPU]}}
        self.container = {"name": "main", "image": "registry.invalid/train:1", "resources": resources}

    def _node(self, name: str, chance: random.Random) -> dict[str, Json]:
        rack = chance.choice([*self.racks, *self.racks, None]) if self.racks else None
        return {
            "name": name,
            "labels": {"mix": self.name, HOST: name} | ({self.key: self.racks[rack]} if rack else {}),
            "allocatable": {"cpu": chance.choice(("8", "64")), GPU: chance.choice(("2", "4", "8")), "pods": "110"},
            "used": {"cpu": "500m", GPU: chance.choice(("0", "0", "1", "2")), "pods": "1"},
        }

    def make(self, cluster: Cluster) -> None:
        """Make the nodes, and take up on them what is used."""
        for node in self.nodes:
            cluster.add_node(node["name"], allocatable=node["allocatable"], labels=node["labels"])
            used = {name: amount for name, amount in node["used"].items() if name != "pods" and amount != "0"}
            cluster.occupy(node["name"], used)

    def groups(self) -> list[str]:
        """Count the groups that fit as Overspill counts a Job of Kueue, and name the rack of each."""
        template = {
            "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": self.key}},
            "spec": {"containers": [self.container], "nodeSelector": {"mix": self.name}},
        }
        spec = {"parallelism": self.size, "completions": self.size, "template": template}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": self.name}, "spec": spec}
        (unit,) = pods_of_request(request(spec=manifests(job))).shared
        file = {
            "apiVersion": "overspill.dev/v1alpha1",
            "kind": "Observation",
            "cluster": "worker-2",
            "observedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "pools": [{"name": "all", "nodes": self.nodes}],
        }
        [seen] = observation_file.read(yaml.emit(file).encode(), "observation.yaml")
        racks: list[str] = []
        while True:
            wanted = [unit] * (len(racks) + 1)
            parts = [(shape, number * len(wanted)) for shape, number in unit.pods]
            answer = assign_shared_domains(ClusterCapacity(seen), wanted, parts)
            if isinstance(answer, DomainShortage):
                return racks
            racks = [shape.node_selector[self.key] for shape, _ in answer]

    def deployment(self, name: str, rack: str = "") -> Json:
        """Write a group whose pods have to be beside each other in one rack, as kube-scheduler knows it."""
        labels = {"app": f"{self.name}-{name}", "mix": self.name}
        term = {"topologyKey": self.key, "labelSelector": {"matchLabels": labels}}
        pod = {
            "containers": [self.container],
            "nodeSelector": {"mix": self.name} | ({self.key: rack} if rack else {}),
            "affinity": {"podAffinity": {REQUIRED: [term]}},
        }
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": self.size, "selector": {"matchLabels": labels}, "template": template}
        return {"metadata": {"name": labels["app"]}, "spec": spec}


def settle(cluster: Cluster, pods: int) -> Counter[str]:
    """Wait until the scheduler has decided on so many pods, and count those that it has placed, by group."""
    made = decided(cluster, NAMESPACE, pods, labels="mix")
    return Counter(pod["metadata"]["labels"]["app"] for pod in made if bound(pod))


def test_groups_that_we_count_the_scheduler_places_in_one_domain_each_and_no_more(
    start_cluster: Callable[[str], Cluster],
) -> None:
    cluster = start_cluster("topology")
    cluster.ensure_namespace(NAMESPACE)
    chance = random.Random(20261128)
    mixes = [Mix(number, chance) for number in range(MIXES)]
    for mix in mixes:
        mix.make(cluster)
    cluster.until(lambda: all(ready(node) for node in cluster.items("/api/v1/nodes", "mix")), "nodes are not ready")
    promised = {mix.name: mix.groups() for mix in mixes}
    # 1. All groups that we count have room beside each other.
    pods = 0
    for mix in mixes:
        for number, rack in enumerate(promised[mix.name]):
            cluster.create(DEPLOYMENTS, mix.deployment(f"group-{number}", rack))
            pods += mix.size
    placed = settle(cluster, pods)
    assert placed.total() == pods
    # 2. No other group has room, in whatever rack it begins; without racks in none.
    for mix in mixes:
        for rack in mix.racks.values() or ("",):
            cluster.create(DEPLOYMENTS, mix.deployment(f"more-{rack or 'any'}", rack))
            pods += mix.size
    placed = settle(cluster, pods)
    whole = {mix.name for mix in mixes for name, number in placed.items() if _is_more(mix, name, number)}
    assert whole == set(), "there was room for a group that we did not see"
    numbers = {len(racks) for racks in promised.values()}
    print(f"{MIXES} mixes, {sum(map(len, promised.values()))} groups fit, none was left pending")  # noqa: T201 - to be quoted (pytest -rP)
    assert {0, 1} < numbers, "the mixes are too much alike to prove anything"


def _is_more(mix: Mix, name: str, number: int) -> bool:
    """Tell whether a group beyond those that were counted is whole."""
    return name.startswith(f"{mix.name}-more-") and number == mix.size
