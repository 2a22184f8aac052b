"""What a cluster runs by itself is known by its pods, on clusters that are no primary too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from reconciler.adapters.kube.targets import watch_targets
from reconciler.core.fleet.watched_workloads import placeable_workloads
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.watch import key_of
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import WorkloadRef
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, load, workspace
from tests.builders.kube_objects import Raw, pod

NAME = ClusterName("worker-2")
AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
VLLM = WorkloadRef(namespace="demo", name="vllm", kind="Deployment", group="apps")
SET = WorkloadRef(namespace="demo", name="db", kind="StatefulSet", group="apps")
OURS = {PLACEMENT_LABEL: "vllm-7f3a90c1"}
OF_VLLM = ("ReplicaSet", "vllm-6d4cf56db6")


def watching(*refs: WorkloadRef) -> ClusterState:
    return ClusterState(placeable=frozenset(refs))


def unplaced(state: ClusterState) -> set[WorkloadRef]:
    return set(state.observation(NAME, AT).unplaced)


@pytest.mark.parametrize(
    ("owner", "found"),
    [
        (OF_VLLM, {VLLM}),
        (("StatefulSet", "db"), {SET}),
        (("ReplicaSet", "vllm-canary"), set()),  # stands by itself: the hash of a pod template has no vowels
        (("ReplicaSet", "other-6d4cf56db6"), set()),
        (("StatefulSet", "vllm"), set()),
        (None, set()),
    ],
)
def test_workload_of_a_pod_without_the_label_is_found(owner: tuple[str, str] | None, found: set[WorkloadRef]) -> None:
    state = watching(VLLM, SET)
    state.apply(Resource.PODS, pod("a", "n1", owner=owner))
    assert unplaced(state) == found


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["metadata"].update(labels=OURS),
        lambda raw: raw["metadata"].update(deletionTimestamp="2026-11-20T10:04:00Z"),
        lambda raw: raw["status"].update(phase="Succeeded"),
        lambda raw: raw["metadata"].update(namespace="elsewhere"),
    ],
    ids=["placed", "leaving", "finished", "elsewhere"],
)
def test_pods_of_placements_and_those_that_go_are_nothing_of_the_cluster_itself(
    change: Callable[[Raw], None],
) -> None:
    state, raw = watching(VLLM), pod("a", "n1", owner=OF_VLLM)
    change(raw)
    state.apply(Resource.PODS, raw)
    assert unplaced(state) == set()


def test_workload_is_found_until_the_last_of_its_pods_is_gone() -> None:
    state, pods = watching(VLLM), [pod(name, "n1", owner=OF_VLLM) for name in "ab"]
    for raw in pods:
        state.apply(Resource.PODS, raw)
    state.remove(Resource.PODS, key_of(pods[0]))
    assert unplaced(state) == {VLLM}
    state.remove(Resource.PODS, key_of(pods[1]))
    assert unplaced(state) == set()


def test_workloads_that_a_new_commit_brings_are_found_among_pods_that_are_known() -> None:
    state = watching(SET)
    state.apply(Resource.PODS, pod("a", "n1", owner=OF_VLLM))
    assert unplaced(state) == set()
    state.follow(frozenset(), placeable=frozenset({VLLM}))
    assert unplaced(state) == {VLLM}
    state.follow(frozenset())
    assert unplaced(state) == set()


def test_clusters_are_watched_for_the_workloads_that_bursts_would_make_there() -> None:
    made = WorkloadRef(namespace="llm-demo", name="vllm", kind="Deployment", group="apps")
    assert placeable_workloads(load(FLEET)) == {"worker-2": {made}}
    named = TEMPLATE.replace("{name: vllm,", "{name: '{{ placement.name }}',")
    assert placeable_workloads(load({**FLEET, "templates/vllm.yaml": named})) == {}


CHARTED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {name: vllm, annotations: {overspill.dev/workload: Deployment/llm-demo/vllm}}
spec:
  workspaceName: llm
  burstDuration: 10m
  helmConfig:
    - {name: stack, chart: a/stack, repoName: a, repoURL: 'https://charts.example.com', version: 1.0.0,
       releaseName: vllm, releaseNamespace: llm-demo}
  steps: [{name: stack, type: helm}]
"""


@pytest.mark.parametrize(("engine", "is_watched"), [("manifests", True), ("flux", False)])
def test_cluster_is_watched_for_what_a_chart_makes_where_overspill_labels_its_pods(
    engine: str, is_watched: bool
) -> None:
    settings = f"apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: f}}\nspec: {{engine: {engine}}}\n"
    made = WorkloadRef(namespace="llm-demo", name="vllm", kind="Deployment", group="apps")
    fleet = load({**FLEET, "fleet.yaml": settings, "templates/vllm.yaml": CHARTED})
    assert placeable_workloads(fleet) == ({"worker-2": {made}} if is_watched else {})


@pytest.mark.parametrize(
    "described",
    [None, cluster("worker-2", "{engine: nonsense}"), cluster("worker-22")],
    ids=["absent", "broken", "misspelt"],
)
def test_cluster_that_no_file_describes_leaves_the_others_watched(described: str | None) -> None:
    """It raised KeyError, and no cluster was watched; the workspace that names it stays in force."""
    files = {path: text for path, text in FLEET.items() if path != "clusters/worker-2.yaml"}
    named = workspace().replace("worker-2]", "worker-2, worker-3]")
    files |= {"workspaces/llm.yaml": named, "clusters/worker-3.yaml": cluster("worker-3")}
    if described is not None:
        files["clusters/worker-2.yaml"] = described
    fleet = load(files)
    targets = watch_targets(fleet, frozenset(fleet.clusters), has_kubeconfig=True)
    assert "worker-2" in fleet.workspaces[WorkspaceName("llm")].clusters
    assert targets.clusters.keys() == fleet.clusters.keys() >= {"worker-1", "worker-3"}
    assert placeable_workloads(fleet).keys() == {"worker-3"}
