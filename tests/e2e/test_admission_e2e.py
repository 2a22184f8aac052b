"""What admission adds to pods: what we count for them is what the API server makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from reconciler.core.capacity.admission_defaults import with_admission_defaults, without_admission_defaults
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.pods.pod_requests import pod_requests
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster

NAMESPACE = "given"
LIMITS: tuple[Json, ...] = (
    {"type": "Container", "default": {"cpu": "2"}, "max": {"memory": "64Gi"}, "min": {"ephemeral-storage": "1Gi"}},
    {"type": "Pod", "max": {"cpu": "64"}},
)
"""A LimitRange that names no `defaultRequest`: the API server makes one of what it does name."""
CLASSES: tuple[Json, ...] = (
    {"metadata": {"name": "plain"}, "handler": "runc"},
    {
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    },
)
PODS = 60


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    made = start_cluster("admission")
    made.ensure_namespace(NAMESPACE)
    limits = {"metadata": {"name": "given"}, "spec": {"limits": list(LIMITS)}}
    made.create(f"/api/v1/namespaces/{NAMESPACE}/limitranges", limits)
    for one in CLASSES:
        made.create("/apis/node.k8s.io/v1/runtimeclasses", one)
    return made


@pytest.fixture(scope="module")
def seen(cluster: Cluster) -> ClusterObservation:
    """What a watch of that cluster comes to."""
    state = ClusterState()
    for resource in (Resource.LIMIT_RANGES, Resource.RUNTIME_CLASSES):
        for raw in cluster.items(resource.paths()[0]):
            state.apply(resource, raw)
    return state.observation(ClusterName("admission"), datetime.now(UTC))


def container(name: str, chance: random.Random, **fields: Json) -> Json:
    stated = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "3Gi"}
    requests = {resource: amount for resource, amount in stated.items() if chance.random() < 0.5}
    kind = chance.choice(("requests", "limits"))
    return {"name": name, "image": "registry.invalid/server:1", "resources": {kind: requests}, **fields}


def spec_of(chance: random.Random) -> Json:
    always = {"restartPolicy": "Always"}
    early = [
        container(f"early-{at}", chance, **chance.choice((always, {}))) for at in range(chance.choice((0, 0, 1, 2)))
    ]
    spec: Json = {
        "initContainers": early,
        "containers": [container(f"server-{at}", chance) for at in range(chance.choice((1, 1, 2, 3)))],
        "nodeSelector": chance.choice(({}, {"pool": "a"}, {"kata": "no"})),
    }
    if chance.random() < 0.6:
        spec["runtimeClassName"] = chance.choice(("plain", "kata", "kata"))
    if chance.random() < 0.3:
        spec["resources"] = {"requests": {"cpu": chance.choice(("2", "4", "9")), "memory": "192Gi"}}
    return spec


def made(cluster: Cluster, pod: Json) -> Json:
    """Have the API server make a pod; what it says where it refuses."""
    try:
        return cluster.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
    except Refused as error:
        return str(error)


def test_what_is_counted_is_what_the_api_server_makes_of_a_pod(cluster: Cluster, seen: ClusterObservation) -> None:
    """Init containers that request nothing are an estimate: there may be less than is counted, and never more."""
    chance, exact, refused = random.Random(20261122), 0, 0
    for number in range(PODS):
        spec, labels = spec_of(chance), {"app": f"pod-{number}"}
        written = replica_shape(spec, {"namespace": NAMESPACE, "labels": labels})
        counted = with_admission_defaults(written, seen)
        pod = made(cluster, {"metadata": {"name": f"pod-{number}", "labels": labels}, "spec": spec})
        estimated = any("restartPolicy" not in one for one in spec["initContainers"])
        if isinstance(pod, str):
            assert counted.obstacle, f"the API server refuses what we would count: {spec}: {pod}"
            refused += 1
            continue
        if counted.obstacle:
            assert estimated, f"the API server takes what we say it refuses: {spec}: {counted.obstacle}"
            continue
        truth, there = pod_requests(pod["spec"]), replica_shape(pod["spec"], pod["metadata"])
        for one in (counted, with_admission_defaults(there, seen)):
            assert truth.minus(one.requests).amounts == dict.fromkeys(truth.amounts, 0), f"we count too little: {spec}"
            assert estimated or one.requests == truth, f"we count too much: {spec}"
            assert one.node_selector == pod["spec"].get("nodeSelector", {})
        shown = without_admission_defaults(there)
        assert estimated or (shown.requests, shown.unstated) == (written.requests, written.unstated), spec
        exact += truth == counted.requests
    print(f"{exact} of {PODS} exactly, {refused} refused by both")  # noqa: T201 - to be quoted (pytest -rP)
    assert exact >= PODS // 2
    assert refused
