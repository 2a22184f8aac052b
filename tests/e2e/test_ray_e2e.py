"""A sweep of the lab on a Ray cluster of two nodes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from reconciler.lab.policy_file import read_policy
from reconciler.lab.standard import MADE_UP
from reconciler.lab.sweep import in_order, on_ray, on_this_machine, tasks

POLICY = Path(__file__).parents[2] / "repo-layout" / "policies" / "serving.yaml"


def test_sweep_on_two_nodes_gives_the_figures_of_this_machine() -> None:
    if find_spec("ray") is None:
        pytest.skip("ray: not installed (pip install 'overspill[ray]')")
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - of the extra `ray`

    memory = 100_000_000
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": memory})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=memory)
        scenarios = [MADE_UP["plateau"](), MADE_UP["flap"]()]
        todo = tasks(scenarios, read_policy(POLICY, "overspill"), {"maxReplicas": ("4", "12")})
        there = in_order(on_ray(todo, cluster.address), lambda _: None)
    finally:
        cluster.shutdown()
    assert there == in_order(on_this_machine(todo, 2), lambda _: None)
