"""A DRA driver publishes the devices, Overspill counts claims of them, and kube-scheduler allocates as many."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.gpu_models import gpus_of_node
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.dra_driver import DRIVER, DraDriver, demo, missing
from tests.e2e.scheduling import bound, decided, observed, ready

DEVICES = {"node-0": 8, "node-1": 5, "node-2": 2}
GROUP = "/apis/resource.k8s.io/v1"
LIMIT = 40
ATTRIBUTES, CAPACITIES = f"device.attributes['{DRIVER}']", f"device.capacity['{DRIVER}']"


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    made = start_cluster("dra")
    for node in DEVICES:
        made.add_node(node, allocatable={"cpu": "64", "memory": "256Gi"})
    made.until(lambda: all(ready(node) for node in made.items("/api/v1/nodes")), "nodes are not ready")
    driver = DraDriver(made, DEVICES)
    yield made
    driver.stop()


def test_devices_of_a_driver_are_told_as_it_publishes_them(cluster: Cluster) -> None:
    seen = observed(cluster)
    told = {
        node.name: [(gpus.model, gpus.memory, gpus.count, gpus.free, gpus.part) for gpus in gpus_of_node(node, pool)]
        for pool in seen.pools
        for node in pool.nodes
    }
    assert told == {
        node: [("LATEST-GPU-MODEL", 80 * 2**30 // 10**9, number, number, False)] for node, number in DEVICES.items()
    }


@pytest.mark.parametrize(("number", "fitting"), [(1, 15), (2, 4 + 2 + 1), (3, 15), (5, 4 + 2 + 1), (6, 15)])
def test_demo_of_the_driver_runs_as_often_as_we_count(cluster: Cluster, number: int, fitting: int) -> None:
    objects = demo(number)
    namespace = f"gpu-test{number}"
    [template] = [one for one in objects if one["kind"] == "ResourceClaimTemplate"]
    pod = next(one for one in objects if one["kind"] == "Pod")
    counted, placed = judged(cluster, namespace, template, pod["spec"])
    assert counted == placed == fitting


def request(count: int = 1, *expressions: str, mode: str = "ExactCount") -> Json:
    asked = {"deviceClassName": DRIVER, "selectors": [{"cel": {"expression": one}} for one in expressions]}
    return {"exactly": asked | ({"allocationMode": mode} if mode == "All" else {"count": count})}


@pytest.mark.parametrize(
    ("requests", "fitting"),
    [
        ([request(3)], 2 + 1),
        ([request(2), request(1)], 2 + 1),
        ([request(mode="All")], 3),
        ([request(1, f"{ATTRIBUTES}.model == 'LATEST-GPU-MODEL'")], 15),
        ([request(1, f"{ATTRIBUTES}.model == 'OLDEST-GPU-MODEL'")], 0),
        ([request(1, f"{CAPACITIES}.memory.isGreaterThan(quantity('79Gi'))")], 15),
        ([request(1, f"{CAPACITIES}.memory.compareTo(quantity('81Gi')) >= 0")], 0),
        ([request(1, f"{ATTRIBUTES}.index == 0 || {ATTRIBUTES}.index == 4")], 2 + 2 + 1),
        ([request(1, f"{ATTRIBUTES}.index >= 5")], 3),
        ([request(1, f"{ATTRIBUTES}.index == 1"), request(1)], 3),
        ([request(mode="All"), request(1)], 0),
        ([{"firstAvailable": [{"name": f"of-{count}", **request(count)["exactly"]} for count in (4, 2)]}], 4),
    ],
)
def test_claims_are_met_as_often_as_we_count(cluster: Cluster, requests: list[Json], fitting: int) -> None:
    named = [{"name": f"request-{index}", **one} for index, one in enumerate(requests)]
    template = {"metadata": {"name": "devices"}, "spec": {"spec": {"devices": {"requests": named}}}}
    pod = {
        "containers": [
            {"name": "server", "image": "registry.invalid/server:1", "resources": {"claims": [{"name": "devices"}]}}
        ],
        "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": "devices"}],
    }
    counted, placed = judged(cluster, "claims", template, pod)
    assert counted == placed == fitting


def test_claim_that_pods_share_is_told_as_one_that_nobody_counts(cluster: Cluster) -> None:
    """The demo shares one device among all its pods: we send none of them anywhere, and its device is not free."""
    objects = demo(4)
    cluster.ensure_namespace("gpu-test4")
    [claim] = [one for one in objects if one["kind"] == "ResourceClaim"]
    pods = [one for one in objects if one["kind"] == "Pod"]
    cluster.create(f"{GROUP}/namespaces/gpu-test4/resourceclaims", claim)
    deploy(cluster, "gpu-test4", pods[0]["spec"], len(pods))
    # A pod that comes while the claim is being allocated for the other one is tried again.
    cluster.until(lambda: all(map(bound, decided(cluster, "gpu-test4", len(pods)))), "pods that share are not bound")
    seen = observed(cluster, "gpu-test4", ["demo"])
    shape = shape_of(seen)
    assert shape.obstacle == "shares the ResourceClaim single-gpu between its pods"
    assert ClusterCapacity(seen).count(shape, LIMIT) == 0
    free = sum(stock.free for pool in seen.pools for node in pool.nodes for stock in node.devices)
    assert free == sum(DEVICES.values()) - 1
    clear(cluster, "gpu-test4")


def judged(cluster: Cluster, namespace: str, template: Json, pod: Json) -> tuple[int, int]:
    """Count the pods that fit, create one more, and return the count and how many of them the scheduler bound."""
    cluster.ensure_namespace(namespace)
    cluster.create(f"{GROUP}/namespaces/{namespace}/resourceclaimtemplates", template)
    deploy(cluster, namespace, pod, 0)
    seen = observed(cluster, namespace, ["demo"])
    shape = shape_of(seen)
    assert not shape.obstacle
    counted = ClusterCapacity(seen).count(shape, LIMIT)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/demo/scale"
    cluster.call("PATCH", path, {"spec": {"replicas": counted + 1}})
    placed = sum(map(bound, decided(cluster, namespace, counted + 1)))
    clear(cluster, namespace)
    return counted, placed


def deploy(cluster: Cluster, namespace: str, pod: Json, replicas: int) -> None:
    """Create a Deployment of pods of this spec."""
    labels = {"app": "demo"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    cluster.create(path, {"metadata": {"name": "demo"}, "spec": spec})


def shape_of(seen: ClusterObservation) -> ReplicaShape:
    """Return the shape of the followed workload."""
    [workload] = seen.workloads
    assert workload.shape is not None
    return workload.shape


def clear(cluster: Cluster, namespace: str) -> None:
    """Delete what a namespace has, and wait until no device is claimed."""
    cluster.call("DELETE", f"/apis/apps/v1/namespaces/{namespace}/deployments/demo?propagationPolicy=Foreground")
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    cluster.until(lambda: not cluster.items(path), "the Deployment does not go")
    cluster.until(lambda: not cluster.items(f"/api/v1/namespaces/{namespace}/pods"), "pods do not go")
    cluster.call("DELETE", f"{GROUP}/namespaces/{namespace}/resourceclaims")
    cluster.call("DELETE", f"{GROUP}/namespaces/{namespace}/resourceclaimtemplates")
    cluster.until(lambda: not cluster.items(f"{GROUP}/namespaces/{namespace}/resourceclaims"), "claims do not go")
