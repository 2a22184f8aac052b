"""A cluster without a node for it takes a burst, and a real autoscaler adds the nodes and takes them away again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import karpenter
from tests.e2e.control_plane import Cluster
from tests.e2e.karpenter import POOL, POOL_LABEL, Karpenter
from tests.e2e.three_clusters.clusters import FLUX, GPU, ThreeClusters
from tests.e2e.three_clusters.scenario import AT_HOME, BY_ARGO_CD, NAMESPACE, PODS, POLICY, Scenario

MOST = 2
"""Nodes that worker-2's autoscaler may add, each with one GPU."""

_DECLARED = f"""\
  autoscaling:
  - labels: {{{POOL_LABEL}: {POOL}}}
    allocatable: {{cpu: "15", memory: 60Gi, {GPU}: "1"}}
    maxNodes: {MOST}
    delay: 2m
"""


@pytest.fixture
def autoscaler(three_clusters: ThreeClusters, tmp_path: Path) -> Iterator[Karpenter]:
    """Leave worker-2 no node with a GPU, and Karpenter to add some."""
    if reason := karpenter.missing():
        pytest.skip(reason)
    with three_clusters.without_gpus(FLUX):
        resources = {"cpu": "16", "memory": "64Gi", GPU: "1"}
        home = tmp_path / "karpenter"
        started = Karpenter(three_clusters.clusters[FLUX], home, resources=resources, limits={GPU: str(MOST)})
        try:
            yield started
        finally:
            started.stop()


def test_an_autoscaler_adds_nodes_for_a_burst_to_a_cluster_without_and_removes_them_after_the_revert(
    scenario: Scenario, autoscaler: Karpenter
) -> None:
    scenario.begin(
        {
            f"clusters/{FLUX}.yaml": {"  availability:": f"{_DECLARED}  availability:"},
            POLICY: {"maxReplicas: 8": "maxReplicas: 8", BY_ARGO_CD: ""},
        }
    )
    scaling = scenario.by_flux
    with scenario.daemon():
        tree = scenario.tree()
        assert autoscaler.nodes() == []
        scenario.wants(AT_HOME + MOST + 1)  # one more than the declared nodes hold
        scenario.until_placed(worker_2=MOST)
        assert f"on nodes that NodePool {POOL} adds in about 2m" in " ".join(scenario.fleet.log("--format=%B"))
        scaling.until(lambda: len(autoscaler.nodes()) == MOST, "too few nodes", told=autoscaler.last_words)
        scenario.until_lent(by_flux=MOST, by_argo_cd=0)
        pods, nodes = scaling.items(PODS), autoscaler.nodes()
        assert pended(scaling) >= {pod["metadata"]["name"] for pod in pods}
        assert {pod["spec"]["nodeName"] for pod in pods} == {node["metadata"]["name"] for node in nodes}
        scenario.wants(AT_HOME)
        scaling.until(lambda: not autoscaler.nodes(), "the nodes are still there", told=autoscaler.last_words)
        # Nor is any object of another kind left that the burst, Flux or Karpenter made.
        scenario.until_as_before()
        subjects = [subject.split("(")[0] for subject in scenario.fleet.subjects()]
        assert [subject for subject in subjects if subject != "resize"] == ["burst", 'Revert "burst']
        assert scenario.tree() == tree


def pended(cluster: Cluster) -> set[str]:
    """Name the pods that kube-scheduler had no node for, at least once."""
    events = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/events")
    return {event["involvedObject"]["name"] for event in events if event["reason"] == "FailedScheduling"}
