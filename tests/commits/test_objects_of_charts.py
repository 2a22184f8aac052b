"""Two charts that make one object are never on one cluster: what they make is known once they are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.core.engines.made_objects import new_objects, shared_object
from reconciler.core.schema.yaml import emit
from reconciler.daemon.reconcile import World
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.plan import Reason
from reconciler.model.workload import HelmConfig, Json, WorkloadRef
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

CHARTED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata:
  name: NAME
  annotations: {overspill.dev/workload: Deployment/demo/NAME}
spec:
  workspaceName: llm
  burstDuration: 10m
  helmConfig:
    - name: stack
      chart: a/stack
      repoName: a
      repoURL: https://charts.example.com
      version: 1.0.0
      releaseName: NAME
      releaseNamespace: demo
      values: {replicas: "{{ replicas }}"}
  steps: [{name: stack, type: helm}]
"""


class Kitchen:
    """Renders each release as a Deployment of its name, and the objects that all charts have in common."""

    def __init__(self, *common: Json) -> None:
        self.common = common

    def available(self) -> bool:
        return True

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[Mapping[str, Json], ...]:
        name = chart.release_name
        pod = {"containers": [{"name": "server", "image": "registry.example.com/vllm:1.0"}]}
        template = {"metadata": {"labels": {"app": name}}, "spec": pod}
        spec = {
            "replicas": chart.values["replicas"],
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        }
        metadata = {"name": name, "namespace": "demo"}
        return ({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}, *self.common)


class Charted(Passes):
    """Passes over two workloads of a chart each."""

    def __init__(self, *common: Json, **files: str) -> None:
        self.kitchen = Kitchen(*common)
        source = {name: text for name, text in SOURCE_FILES.items() if name != "template.yaml"}
        charts = {f"{name}.yaml": CHARTED.replace("NAME", name) for name in ("one", "two")}
        super().__init__(MemoryRepository({**source, **charts, **files}))
        self.names = ("one", "two")

    def observe(self) -> Observed:
        return replace(super().observe(), helm=True)

    def world(self) -> World:
        return replace(super().world(), charts=self.kitchen)


def config(namespace: str = "demo") -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "common", "namespace": namespace}}


def test_of_two_charts_that_make_one_object_the_second_goes_to_another_cluster_in_the_same_pass() -> None:
    passes = Charted(config())
    passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2", "two": "worker-3"}


def test_chart_without_another_cluster_waits_and_is_told_whose_object_it_is() -> None:
    passes = Charted(config())
    passes.free = {"worker-2": 8}
    passes.burst("one")
    passes.advance(5)
    refusals = passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2"}
    (refusal,) = (each for each in refusals if each.reason is Reason.TAKEN)
    assert (refusal.cluster, refusal.message) == (
        "worker-2",
        "ConfigMap demo/common is there already, and belongs to llm/one",
    )


def test_charts_whose_objects_differ_share_a_cluster() -> None:
    passes = Charted()
    passes.free = {"worker-2": 8}
    passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2", "two": "worker-2"}


def test_what_outlives_placements_is_shared_by_charts() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    allowing = SOURCE_FILES["workspaces.yaml"].replace(
        "namespaces: [demo]", "namespaces: [demo], allowedKinds: [/Namespace]"
    )
    passes = Charted(namespace, **{"workspaces.yaml": allowing})
    passes.free = {"worker-2": 8}
    passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2", "two": "worker-2"}


CONFIG_STEP = """\
    - name: common
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: common, namespace: demo}, data: {a: b}}
  steps: [{name: server, type: manifest}, {name: common, type: manifest}]
"""
WITH_CONFIG = SOURCE_FILES["template.yaml"].replace("  steps: [{name: server, type: manifest}]\n", CONFIG_STEP)


@pytest.mark.parametrize("first", [("one",), ("one", "vllm")], ids=["before", "in the same pass"])
def test_manifest_of_an_object_that_a_chart_has_made_waits_or_goes_elsewhere(first: tuple[str, ...]) -> None:
    passes = Charted(config(), **{"template.yaml": WITH_CONFIG})
    passes.free = {"worker-2": 8}
    passes.burst(*first)
    passes.advance(5)
    refusals = passes.burst("one", "vllm")
    assert passes.where() == {"one": "worker-2"}
    assert [each.message for each in refusals if each.reason is Reason.TAKEN] == [
        "ConfigMap demo/common is there already, and belongs to llm/one"
    ]
    passes.free = {"worker-2": 8, "worker-3": 8}
    passes.burst("one", "vllm")
    assert passes.where() == {"one": "worker-2", "vllm": "worker-3"}


def test_manifests_and_charts_whose_objects_differ_share_a_cluster() -> None:
    both = SOURCE_FILES["workspaces.yaml"].replace("namespaces: [demo]", "namespaces: [demo, other]")
    passes = Charted(config(namespace="other"), **{"template.yaml": WITH_CONFIG, "workspaces.yaml": both})
    passes.free = {"worker-2": 8}
    passes.burst("one", "vllm")
    assert passes.where() == {"one": "worker-2", "vllm": "worker-2"}


NEIGHBOUR = """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {name: abc}
spec: {primaryCluster: worker-2, clusters: [worker-2], namespaces: [demo]}
"""


def test_chart_stays_away_from_a_primary_where_another_workspace_has_its_object() -> None:
    theirs = WITH_CONFIG.replace("workspaceName: llm", "workspaceName: abc").replace("name: vllm,", "name: theirs,")
    passes = Charted(config(), **{"workspaces/abc.yaml": NEIGHBOUR, "theirs.yaml": theirs})
    passes.burst("one")
    assert passes.where() == {"one": "worker-3"}
    passes.free = {"worker-2": 8}
    (refusal,) = (each for each in passes.burst("one", "two") if each.reason is Reason.TAKEN)
    assert refusal.message == (
        "ConfigMap demo/common is there already, and belongs to what another workspace runs there itself"
    )


def test_chart_stays_away_from_a_cluster_that_is_seen_to_run_its_workload() -> None:
    class Seeing(Charted):
        def observe(self) -> Observed:
            seen = super().observe()
            own = WorkloadRef(namespace="demo", name="one", kind="Deployment")
            worker = replace(seen.clusters[ClusterName("worker-2")], unplaced=(own,))
            return replace(seen, clusters={**seen.clusters, worker.cluster: worker})

    passes = Seeing()
    passes.burst("one")
    assert passes.where() == {"one": "worker-3"}
    passes.burst("one", "two")
    assert passes.where() == {"one": "worker-3", "two": "worker-2"}


def test_object_of_the_same_name_in_another_namespace_is_another_object() -> None:
    def files(namespace: str, placement: str) -> dict[str, bytes]:
        labelled = {**config(), "metadata": {"name": "common", "namespace": namespace}}
        labelled["metadata"]["labels"] = {PLACEMENT_LABEL: placement}
        return {f"clusters/w2/{placement}/manifests/01-configmap-common.yaml": emit(labelled).encode()}

    shared = ("/ConfigMap", "demo/common"), "clusters/w2/b/manifests/01-configmap-common.yaml"
    new = new_objects(files("demo", "a"), {})
    assert shared_object(new, files("demo", "b")) == shared
    assert shared_object(new, files("other", "b")) is None
    assert new_objects(files("demo", "a"), files("demo", "a")) == {}, "it stands so already"
