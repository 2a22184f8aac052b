"""`gprs`, `wait-time` and `inventory`: their tables, their JSON and their empty states."""

from __future__ import annotations

import pytest

from tests.cli.conftest import See, Terminal


@pytest.fixture
def placed(overspill: Terminal, see: See) -> None:
    """Let 2 of 5 missing replicas be placed on worker-2, and the others fit nowhere."""
    see(missing=5, worker_3=0)
    overspill.done("once")


def test_gprs_shows_what_workloads_have_and_wait_for(overspill: Terminal, placed: None) -> None:
    lines = overspill.done("gprs").splitlines()
    assert lines[0].split() == [
        "GPR", "WORKLOAD", "CLUSTER", "STATE", "LEFT", "PRIORITY", "GPUS", "NODES", "SHAPE", "EVICTABLE", "NOTE"
    ]  # fmt: skip # a list of words, filled line by line
    rows = [[*line.split()[1:4], *line.split()[5:9]] for line in lines[1:]]
    assert sorted(rows, key=str) == [
        ["llm/vllm", "-", "Queued", "0", "low", "1", "3"],
        ["llm/vllm", "worker-2", "Provisioning", "0", "low", "1", "2"],
    ]


def test_gprs_as_json_can_be_narrowed_to_a_state_under_any_of_its_names(overspill: Terminal, placed: None) -> None:
    (waiting,) = overspill.answer("gprs", "--workspace", "llm", "--state", "QUEUED")
    assert (waiting["state"], waiting["cluster"], waiting["gpus"], waiting["nodes"]) == ("Queued", None, 1, 3)
    assert waiting["id"].startswith("gpr-")
    assert overspill.answer("gprs", "--state", "provisioned") == []


def test_gprs_of_a_quiet_fleet_says_so(overspill: Terminal, see: See) -> None:
    see(missing=0)
    assert overspill.done("gprs") == "No GPRs: no workload has GPUs elsewhere, and none waits for any.\n"
    assert overspill.done("gprs", "--state", "Failed") == "No GPRs like that.\n"


def test_gprs_names_the_states_when_one_is_misspelt(overspill: Terminal, see: See) -> None:
    see()
    result = overspill("gprs", "--state", "waiting")
    assert result.exit_code == 2
    assert "'waiting' is no state (try one of Pending, Queued, " in result.stderr


@pytest.mark.parametrize("command", [["gprs"], ["inventory"], ["wait-time", "--gpus", "1"]])
def test_a_workspace_that_is_not_there_is_refused_with_those_that_are(
    overspill: Terminal, see: See, command: list[str]
) -> None:
    see()
    result = overspill(*command, "--workspace", "lim")
    assert result.exit_code == 1
    assert "looking for workspace 'lim': there is none of this name (try 'llm')" in result.stderr


def test_wait_time_tells_each_cluster_of_the_workspace(overspill: Terminal, see: See) -> None:
    see(missing=0)
    lines = overspill.done("wait-time", "--workspace", "llm", "--gpus", "4").splitlines()
    assert lines[0] == "1 node with 4 GPUs, priority 101, in llm:"
    assert [line.split()[:2] for line in lines[2:]] == [
        ["worker-3", "none"],
        ["worker-1", "unknown"],
        ["worker-2", "unknown"],
    ]
    assert "needs 4 GPUs on one node, largest has 2 GPUs free" in lines[-1]


def test_a_cluster_that_the_workspace_has_not_is_refused_with_those_that_it_has(overspill: Terminal, see: See) -> None:
    see()
    asked = ("wait-time", "--workspace", "llm", "--gpus", "1")
    result = overspill(*asked, "--cluster", "worker-2", "--cluster", "gpu-eu")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        "looking for cluster 'gpu-eu': workspace llm has none of this name (there are worker-1, worker-2, worker-3)"
    ) in result.stderr


def test_wait_time_until_something_ends_is_told_with_the_moment(overspill: Terminal, placed: None) -> None:
    (found,) = overspill.answer(
        "wait-time", "--workspace", "llm", "--gpus", "1", "--cluster", "worker-2", "--priority", "300"
    )
    (burst,) = overspill.answer("status")["placements"]
    assert found["at"] == burst["placement"]["expiresAt"]
    assert found["reasons"] == [f"when {burst['placement']['name']} at {found['at']} ends"]


def test_inventory_shows_nodes_and_what_placements_have(overspill: Terminal, placed: None) -> None:
    text = overspill.done("inventory")
    rows = [line.split() for line in text.splitlines() if line.startswith("worker-")]
    assert [row[:5] for row in rows] == [
        ["worker-1-a", "worker-1", "8", "0", "Healthy"],
        ["worker-2-a", "worker-2", "8", "2", "Healthy"],
        ["worker-3-a", "worker-3", "8", "0", "Healthy"],
    ]
    assert "nvidia.com/gpu" not in text
    assert overspill.done("inventory", "-o", "wide").count("nvidia.com/gpu") == len(rows)
    (allocation,) = overspill.answer("inventory")["allocations"]
    assert (allocation["cluster"], allocation["replicas"], allocation["bound"]) == ("worker-2", 2, 0)


def test_inventory_without_an_observation_says_what_is_not_seen(overspill: Terminal) -> None:
    text = overspill.done("inventory")
    assert "No GPU nodes: none was seen in a cluster of a workspace." in text
    assert "worker-3 has not been observed" in text
