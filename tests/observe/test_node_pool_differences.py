"""Declared nodes that part from their NodePool are told, with both; what nobody can compare is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.observe.node_pool_differences import with_node_pool_differences
from reconciler.errors import Severity
from reconciler.model.capacity import NodePool, Observed
from reconciler.model.cluster import ScalableNodes
from reconciler.model.kubernetes.scheduling import Taint
from tests.builders.fleet_files import FLEET
from tests.builders.inputs import cluster, desired, free
from tests.builders.node_pools import declared, pool
from tests.cli.conftest import Terminal

HEAD = "cluster worker-2: spec.autoscaling[0]: NodePoolDiffers: "
TAIL = " (declare the nodes as the NodePool has them)"
SPOT = Taint(key="capacity", value="spot", effect="NoSchedule")


def differences(nodes: ScalableNodes, pools: Mapping[str, NodePool] | None) -> list[str]:
    fleet = desired(clusters=(cluster("worker-1"), cluster("worker-2", autoscaling=(nodes,))))
    seen = replace(free("worker-2"), node_pools=pools)
    observed = with_node_pool_differences(Observed(clusters={seen.cluster: seen}), fleet)
    assert {problem.severity for problem in observed.problems} <= {Severity.WARNING}
    return [str(problem) for problem in observed.problems]


def test_nodes_that_are_declared_as_their_pool_has_them_are_not_told() -> None:
    like = pool(taints=(SPOT,), labels={"team": "llm"}, requirements={"zone": ("a", "b")})
    assert differences(declared(taints=(SPOT,), zone="b", team="llm"), {"gpu": like}) == []


@pytest.mark.parametrize(
    ("nodes", "other", "words"),
    [
        (
            declared(),
            pool(taints=(SPOT,)),
            "its nodes have the taint capacity=spot:NoSchedule, which is not declared",
        ),
        (
            declared(taints=(SPOT,)),
            pool(),
            "its nodes do not have the taint capacity=spot:NoSchedule, which is declared",
        ),
        (
            declared(team="chat"),
            pool(labels={"team": "llm"}),
            "the label team of its nodes is llm, and chat is declared",
        ),
        (
            declared(zone="c"),
            pool(requirements={"zone": ("a", "b")}),
            "the label zone of its nodes is a and b, and c is declared",
        ),
    ],
    ids=["a taint of the pool", "a taint of the cluster", "a label", "a value"],
)
def test_what_they_part_in_is_told_with_both(nodes: ScalableNodes, other: NodePool, words: str) -> None:
    assert differences(nodes, {"gpu": other}) == [f"{HEAD}NodePool gpu: {words}{TAIL}"]


def test_a_pool_that_is_not_there_is_told_with_the_nearest_one() -> None:
    assert differences(declared("gpus"), {"gpu": pool()}) == [f"{HEAD}there is no NodePool gpus (try 'gpu')"]


@pytest.mark.parametrize(
    ("nodes", "pools"),
    [(declared(), None), (replace(declared(), labels={"pool": "gpu"}), {})],
    ids=["unknown pools", "another autoscaler"],
)
def test_what_nobody_can_compare_is_not_told(nodes: ScalableNodes, pools: Mapping[str, NodePool] | None) -> None:
    assert differences(nodes, pools) == []


OBSERVATION = """\
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-2
observedAt: 2026-11-20T10:00:00Z
nodePools:
- {name: gpu, taints: [{key: capacity, value: spot}]}
"""
CLUSTER = """\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-2}
spec:
  autoscaling:
  - labels: {karpenter.sh/nodepool: gpu}
    allocatable: {nvidia.com/gpu: 1}
    maxNodes: 2
"""


def test_check_compares_declared_nodes_with_observations(tmp_path: Path) -> None:
    for path, text in {**FLEET, "clusters/worker-2.yaml": CLUSTER}.items():
        (tmp_path / "fleet" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fleet" / path).write_text(text)
    (tmp_path / "seen.yaml").write_text(OBSERVATION)
    printed = Terminal(env={}).done("check", str(tmp_path / "fleet"), "--observations", str(tmp_path / "seen.yaml"))
    words = "NodePool gpu: its nodes have the taint capacity=spot:NoSchedule, which is not declared"
    assert f"{HEAD}{words}" in " ".join(printed.split())
