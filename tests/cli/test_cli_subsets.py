"""Subsets on the command line: `plan` and `explain` show whose patch the pods of a placement have."""

from __future__ import annotations

import pytest

from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal, on, over

TOLD = "subset spot of WorkloadSpread demo/pools changes its pods: patches metadata.labels"


@pytest.fixture
def spread(fleet: Remote) -> Remote:
    spot = f"name: spot, {on('worker-3')}, patch: {{metadata: {{labels: {{capacity: spot}}}}}}"
    fleet.commit("main", over(f"name: own, {on('worker-2')}", spot), message="spread over two clusters")
    return fleet


@pytest.mark.usefixtures("spread")
def test_plan_shows_the_patch_of_each_placement(overspill: Terminal, see: See) -> None:
    see(missing=6, worker_2=4, worker_3=8)
    shown = overspill.done("plan")
    assert [line.split()[2] for line in shown.splitlines() if TOLD in line] == ["worker-3/spot"]
    notes = {one["subject"]: one["notes"] for one in overspill.answer("plan")["commits"] if one["notes"]}
    assert notes == {"burst(llm/vllm): 2 replicas on worker-3/spot for 10m": [TOLD]}


@pytest.mark.usefixtures("spread")
def test_explain_shows_it_below_the_placement(overspill: Terminal, see: See) -> None:
    see(missing=6, worker_2=4, worker_3=8)
    overspill.done("once")
    lines = overspill.done("explain", "vllm").splitlines()
    assert "on worker-3/spot until" in lines[lines.index(f"    {TOLD}") - 1]


@pytest.mark.usefixtures("spread")
def test_history_tells_the_subset_of_each_placement(overspill: Terminal, see: See) -> None:
    see(missing=6, worker_2=4, worker_3=8)
    overspill.done("once")
    rows = overspill.done("history").splitlines()[1:]
    assert sorted(row.split()[2] for row in rows) == ["worker-2/own", "worker-3/spot"]
    assert {one["subset"] for one in overspill.answer("history")["placements"]} == {"own", "spot"}
