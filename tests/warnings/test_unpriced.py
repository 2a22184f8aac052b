"""A budget that cannot count the GPUs of a cluster says so where it is written."""

from __future__ import annotations

import pytest

from tests.builders.fleet_files import FLEET, cluster, load, policy, warnings, workspace

BUDGETS = {
    "policies/gpu.yaml": policy(spec="{budget: {perDay: 100}}"),
    "workspaces/llm.yaml": workspace(more="budget: {perMonth: 100}"),
}
WORDS = "worker-2 has no price, so that GPUs there count as nothing (add spec.pricePerGPUHour to the Cluster)"


@pytest.mark.parametrize("path", BUDGETS)
def test_clusters_without_a_price_are_named_at_the_budget(path: str) -> None:
    (line,) = warnings(load({**FLEET, path: BUDGETS[path]}))
    assert line.startswith(f"{path}:")
    assert line.endswith(f"spec.budget: {WORDS}")


def test_where_all_have_a_price_nothing_is_told() -> None:
    priced = cluster("worker-2", "{pricePerGPUHour: 0}")
    assert warnings(load({**FLEET, **BUDGETS, "clusters/worker-2.yaml": priced})) == []
