"""docs/reference/platform.md: tests show its rows, it lists all capabilities of clusters, its examples are in force."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.engines.autoscaled_replicas import autoscaler
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.schema import yaml
from reconciler.model.cluster import Category, NetworkApi
from reconciler.model.ids import ClusterName, CommitId, WorkspaceName
from tests.builders.gpu_nodes import cluster_of, nodes
from tests.docs.shown import rows_by_heading, shown, unclear

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "platform.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_row_is_shown_by_tests() -> None:
    rows = rows_by_heading(PAGE)
    named = shown("platform")
    assert {heading: [*firsts] for heading, firsts in named.items()} == {heading: rows[heading] for heading in named}
    assert len(named) == 4
    assert unclear("platform") == []


def test_everything_that_a_cluster_can_be_asked_for_is_listed() -> None:
    section = PAGE.partition("\n## What a cluster must have first\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [*Category]


@pytest.mark.parametrize(
    ("labels", "pods"),
    [
        ({}, 2),
        ({"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/mig.strategy": "mixed"}, 2),
        ({"amd.com/compute-memory-partition": "spx_nps1"}, 2),
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}, 0),
        ({"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "4"}, 0),
        ({"nvidia.com/mig.strategy": "single"}, 0),
        ({"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}, 0),
        ({"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, 0),
        ({"amd.com/compute-memory-partition": "cpx_nps4"}, 0),
    ],
)
def test_the_affinity_that_it_shows_takes_whole_gpus_alone(labels: dict[str, str], pods: int) -> None:
    (document,) = yaml.parse(EXAMPLES[0].encode(), "a.yaml")
    container = {"name": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    shape = replica_shape({"containers": [container], **document.value})
    assert ClusterCapacity(cluster_of(nodes(2, labels=labels))).count(shape, 9) == pods


def test_the_cluster_and_the_workspace_that_it_shows_are_in_force() -> None:
    others = "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker-1}\n"
    files = {"clusters/a.yaml": EXAMPLES[1], "workspaces/b.yaml": EXAMPLES[3], "clusters/c.yaml": others}
    desired = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in files.items()})
    assert desired.problems == ()
    assert desired.clusters[ClusterName("worker-2")].provides[Category.QUEUES] == ("ml/*", "research")
    shared = desired.workspaces[WorkspaceName("llm")].shared_networking
    assert shared is not None
    assert (shared.api, shared.slice) == (NetworkApi.KUBESLICE, "red")


def test_the_autoscaler_that_it_shows_is_one() -> None:
    (document,) = yaml.parse(EXAMPLES[2].encode(), "a.yaml")
    assert autoscaler(document.value)
    assert document.value["spec"]["scaleTargetRef"]["name"] == "vllm"
