"""Whoever says that replicas fit is judged by kube-scheduler, which has the last word."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from reconciler.core import observation, yamlio
from reconciler.core.fit import Room
from reconciler.core.kubernetes.shapes import replica_shape
from tests.e2e.control_plane import Cluster, Json

MIXES = 50
LIMIT = 12
SPOT = {"key": "capacity", "value": "spot", "effect": "NoSchedule"}
GPU = "nvidia.com/gpu"


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
    """Some nodes, partly taken, and one shape of replica: the same in an observation and in a cluster."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.name = f"mix-{number:02d}"
        self.nodes = [self._node(f"{self.name}-{index}", chance) for index in range(chance.randint(1, 5))]
        self.requests = {
            "cpu": chance.choice(("250m", "1", "2500m", "8")),
            "memory": chance.choice(("512Mi", "4Gi", "1500M", "64Gi")),
            GPU: chance.choice(("1", "1", "2", "3", "4", "8")),
        }
        self.selector = {"mix": self.name} | chance.choice(({}, {}, {"model": "h100"}, {"model": "a100"}))
        self.tolerations: list[dict[str, str]] = chance.choice(
            ([], [SPOT | {"operator": "Equal"}], [{"key": "capacity", "operator": "Exists"}], [{"operator": "Exists"}])
        )
        self.affinity: list[Json] = chance.choice([[], [], *AFFINITIES])

    def _node(self, name: str, chance: random.Random) -> dict[str, Json]:
        gpus = chance.choice((1, 2, 4, 8))
        return {
            "name": name,
            "labels": {"mix": self.name, "model": chance.choice(("h100", "h100", "a100"))}
            | chance.choice(({}, {"cores": "64"}, {"cores": "192", "old": ""})),
            "taints": [SPOT] if chance.random() < 0.25 else [],
            "cordoned": chance.random() < 0.15,
            "allocatable": {
                "cpu": chance.choice(("7910m", "16", "64")), "memory": chance.choice(("30Gi", "127000Mi", "512Gi")),
                GPU: str(gpus), "pods": str(chance.choice((3, 8, 110))),
            },
            "used": {"cpu": "1200m", "memory": "3Gi", GPU: str(chance.randint(0, gpus)), "pods": "1"},
        }  # fmt: skip

    def fitting(self) -> int:
        """Count the replicas that Overspill would send here, by the way that files take."""
        file = {
            "apiVersion": "overspill.dev/v1alpha1", "kind": "Observation", "cluster": "worker-2",
            "observedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "pools": [{"name": "all", "nodes": self.nodes}],
        }  # fmt: skip
        [seen] = observation.read(yamlio.emit(file).encode(), "observation.yaml")
        return Room(seen).count(replica_shape(self._pod()), LIMIT)

    def tolerates_cordons(self) -> bool:
        """Tell whether the scheduler may use a node here that we leave out."""
        return {"operator": "Exists"} in self.tolerations and any(node["cordoned"] for node in self.nodes)

    def make(self, cluster: Cluster) -> None:
        """Make the nodes, and take up on them what is used."""
        for node in self.nodes:
            cluster.add_node(
                node["name"], allocatable=node["allocatable"], labels=node["labels"], taints=node["taints"],
                cordoned=node["cordoned"],
            )  # fmt: skip
            used = {name: amount for name, amount in node["used"].items() if name != "pods" and amount != "0"}
            cluster.occupy(node["name"], used)

    def deployment(self, replicas: int) -> Json:
        """Write a Deployment of this shape."""
        labels = {"app": self.name}
        return {
            "metadata": {"name": self.name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": self._pod()},
            },
        }

    def _pod(self) -> Json:
        container = {
            "name": "server",
            "image": "registry.invalid/server:1",
            "resources": {"requests": self.requests, "limits": {GPU: self.requests[GPU]}},
        }
        pod = {"nodeSelector": self.selector, "tolerations": self.tolerations, "containers": [container]}
        if self.affinity:
            required = {"nodeSelectorTerms": self.affinity}
            pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return pod


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    return start_cluster("fit")


def test_what_fits_by_our_count_the_scheduler_places_and_not_one_replica_more(cluster: Cluster) -> None:
    chance = random.Random(20261120)
    mixes = [Mix(number, chance) for number in range(MIXES)]
    cluster.ensure_namespace("mixes")
    for mix in mixes:
        mix.make(cluster)
    nodes = sum(len(mix.nodes) for mix in mixes)
    cluster.until(lambda: sum(ready(node) for node in cluster.items("/api/v1/nodes")) == nodes, "nodes are not ready")
    promised = {mix.name: mix.fitting() for mix in mixes}
    for mix in mixes:  # one more than fits, so that a count that is too low shows as well
        cluster.create("/apis/apps/v1/namespaces/mixes/deployments", mix.deployment(promised[mix.name] + 1))
    total = sum(promised.values()) + MIXES
    pods: list[Json] = []

    def decided() -> bool:
        pods[:] = cluster.items("/api/v1/namespaces/mixes/pods")
        return len(pods) == total and all(bound(pod) or unschedulable(pod) for pod in pods)

    cluster.until(decided, "the scheduler has not decided on every pod")
    placed = {
        mix.name: sum(bound(pod) for pod in pods if pod["metadata"]["labels"]["app"] == mix.name) for mix in mixes
    }
    assert {name: count for name, count in placed.items() if count < promised[name]} == {}, "left pending"
    unseen = {mix.name for mix in mixes if min(placed[mix.name], LIMIT) > promised[mix.name]}
    # A pod that tolerates every taint may go to a cordoned node. We send nothing there: somebody means to empty it.
    assert unseen <= {mix.name for mix in mixes if mix.tolerates_cordons()}, "there was room that we did not see"
    assert len(set(promised.values())) > 4, "the mixes are too much alike to prove anything"


def ready(node: Json) -> bool:
    """Tell whether pods may go to a node, as far as its readiness goes."""
    taints = node["spec"].get("taints", [])
    return not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node["status"].get("conditions", ())
    )


def bound(pod: Json) -> bool:
    """Tell whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def unschedulable(pod: Json) -> bool:
    """Tell whether the scheduler has found no node for a pod."""
    return any(condition.get("reason") == "Unschedulable" for condition in pod.get("status", {}).get("conditions", []))
