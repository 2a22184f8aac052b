"""Objects that templates are made from, as a watched cluster and an observation file show them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.live_objects import observed_object
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource
from reconciler.core.observe.observation_file import read
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ObservedObject
from reconciler.model.ids import ClusterName
from reconciler.model.manifest_source import WorkloadSource
from reconciler.model.workload import WorkloadRef

AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
VLLM = WorkloadRef(namespace="demo", name="vllm", kind="Deployment", group="apps")
LIVE = frozenset({WorkloadSource(kind="Deployment", group="apps", namespace="demo", name="vllm")})


def deployment(name: str = "vllm", image: str = "vllm:1", version: str = "1", **metadata: object) -> dict:
    """Write a Deployment as a list has it: without apiVersion and kind."""
    return {
        "metadata": {"name": name, "namespace": "demo", "uid": "u", "resourceVersion": version, **metadata},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "server", "image": image, "imagePullPolicy": "IfNotPresent"}]},
            },
        },
        "status": {"readyReplicas": 3},
    }


def seen(state: ClusterState) -> tuple[ObservedObject, ...]:
    return state.observation(ClusterName("worker-1"), AT).objects


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState(frozenset({VLLM}), sources=LIVE)
    state.apply(Resource.DEPLOYMENTS, deployment(), "apps/v1")
    state.apply(Resource.DEPLOYMENTS, deployment("other"), "apps/v1")
    return state


def test_a_followed_object_is_kept_as_another_cluster_can_take_it(state: ClusterState) -> None:
    (kept,) = seen(state)
    assert (kept.manifest["apiVersion"], kept.manifest["kind"]) == ("apps/v1", "Deployment")
    assert kept.manifest["metadata"] == {"name": "vllm", "namespace": "demo"}
    assert "status" not in kept.manifest


def test_only_a_change_of_what_is_kept_changes_the_observation(state: ClusterState) -> None:
    before = seen(state)
    state.apply(Resource.DEPLOYMENTS, deployment(version="2", generation=7), "apps/v1")
    assert seen(state) is before
    bumped = state.apply(Resource.DEPLOYMENTS, deployment(image="vllm:2", version="3"), "apps/v1")
    assert bumped is ChangeEffect.DEMAND
    assert seen(state) != before


@pytest.mark.parametrize("gone", ["deleted", "left out of a list", "no longer followed"])
def test_an_object_that_is_gone_is_dropped(state: ClusterState, gone: str) -> None:
    match gone:
        case "deleted":
            state.remove(Resource.DEPLOYMENTS, "demo/vllm")
        case "left out of a list":
            state.retain(Resource.DEPLOYMENTS, {"demo/other"})
        case _:
            state.follow(frozenset({VLLM}))
    assert seen(state) == ()


def test_an_object_that_is_followed_from_now_on_is_listed_anew() -> None:
    state = ClusterState(frozenset({VLLM}))
    state.apply(Resource.DEPLOYMENTS, deployment(), "apps/v1")
    assert seen(state) == ()
    assert state.follow(frozenset({VLLM}), sources=LIVE) == {Resource.DEPLOYMENTS}
    assert state.follow(frozenset({VLLM}), sources=LIVE) == set()


def test_a_custom_object_has_the_version_that_is_served() -> None:
    ref = WorkloadRef(namespace="demo", name="chat", kind="LeaderWorkerSet", group="leaderworkerset.x-k8s.io")
    source = WorkloadSource(kind=ref.kind, group=ref.group, namespace=ref.namespace, name=ref.name)
    state = ClusterState(frozenset({ref}), sources=frozenset({source}))
    (resource,) = (each for each in state.customs if isinstance(each, CustomResource) and each.kind == ref.kind)
    state.apply(resource, {"metadata": {"name": "chat", "namespace": "demo"}, "spec": {}}, f"{ref.group}/v9")
    assert [kept.manifest["apiVersion"] for kept in seen(state)] == [f"{ref.group}/v9"]


def test_an_object_with_a_credential_is_known_by_its_name_alone() -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "demo", "uid": "u"}}
    kept = observed_object({**raw, "data": {"key": "AKIA" + "Q3ZK" * 4}})
    assert kept.manifest == {**raw, "metadata": {"name": "a", "namespace": "demo"}}
    assert kept.refused.startswith("data.key: this looks like ")


def test_an_observation_file_lists_objects() -> None:
    live = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment()}
    document = {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "Observation",
        "cluster": "worker-1",
        "observedAt": "2026-11-20T10:00:00Z",
        "objects": [live],
    }
    (observation,) = read(json.dumps(document).encode(), "worker-1.json")
    assert observation.objects == (observed_object(live),)
