"""`gprs`, `wait-time`, `inventory` and `explain` of a running daemon read like those of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.daemon import EDITOR, OWNER, STRANGER, Daemon, small
from tests.builders.passes import SOURCE_FILES
from tests.cli.conftest import Terminal


@pytest.fixture
def placed(running: Daemon) -> None:
    """Let somebody have asked for a placement, and have it."""
    running.call("POST", "/api/v1/workload-placement", small("bookinfo"))
    running.until(lambda: "on worker-1 until" in json.dumps(running.call("GET", "/api/v1/workload-placement").body))


def test_gprs_are_those_that_the_daemon_knows(laptop: Terminal, placed: None) -> None:
    head, row = laptop.done("gprs").splitlines()
    assert head.split()[:4] == ["GPR", "WORKLOAD", "CLUSTER", "STATE"]
    assert row.split()[1:4] == ["abc/bookinfo", "worker-1", "Provisioning"]
    (gpr,) = laptop.answer("gprs", "--state", "PROVISIONING")
    assert laptop.answer("gprs", "--state", "provisioned") == []
    assert (gpr["gprName"], gpr["numberOfGPUNodes"]) == ("bookinfo", 1)
    assert laptop.done("gprs", "--workspace", "llm") == "No GPRs that this token may see.\n"
    assert laptop("gprs", "--state", "misspelt").exit_code == 2


def test_wait_times_are_those_that_the_daemon_estimates(laptop: Terminal) -> None:
    asked, head, *rows = laptop.done("wait-time", "--workspace", "abc", "--gpus", "8").splitlines()
    assert asked == "1 node with 8 GPUs, in abc:"
    assert head.split() == ["CLUSTER", "WAIT", "AT", "AHEAD", "WHY"]
    assert [row.split()[:3] for row in rows] == [["worker-1", "none", "-"], ["worker-2", "none", "-"]]
    (only,) = laptop.answer("wait-time", "--workspace", "abc", "--gpus", "8", "--cluster", "worker-2")
    assert only["clusterName"] == "worker-2"
    refused = laptop("wait-time", "--workspace", "nowhere", "--gpus", "8")
    assert (refused.exit_code, "there is no workspace nowhere" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "wait-time --workspace abc --gpus 8 --cluster gpu-eu",
            "workspace abc has none of this name (there are worker-1",
        ),
        ("gprs --workspace abd", "there is no workspace abd (GET /api/v1/whoami tells which"),
        ("placements list --workspace abd", "there is no workspace abd (GET /api/v1/whoami tells which"),
        ("placements list --cluster gpu-eu", "looking for cluster 'gpu-eu': this token may see none of this name"),
    ],
)
def test_name_that_is_not_there_is_refused_with_those_that_are(laptop: Terminal, command: str, message: str) -> None:
    refused = laptop(*command.split())
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert message in refused.stderr


def test_inventory_is_that_of_the_clusters_that_a_token_may_see(laptop: Terminal, placed: None) -> None:
    text = laptop.done("inventory", "--workspace", "abc")
    assert "worker-3" not in text
    assert "bookinfo" in text
    document = laptop.answer("inventory")
    assert {node["clusterName"] for node in document["managedNodes"]} == {"worker-1", "worker-2", "worker-3"}
    narrowed = laptop.answer("inventory", "--workspace", "abc")
    assert {node["clusterName"] for node in narrowed["managedNodes"]} == {"worker-1", "worker-2"}
    refused = laptop("inventory", "--workspace", "nowhere")
    assert (refused.exit_code, "this token may see none of this name (there are abc, llm)" in refused.stderr) == (
        1,
        True,
    )


def test_explanation_names_the_request_and_every_cluster(laptop: Terminal, placed: None) -> None:
    text = laptop.done("explain", "bookinfo")
    assert text.startswith("Request abc/bookinfo: Pending, ")
    assert laptop.answer("explain", "abc/bookinfo")["workload"] == "abc/bookinfo"
    shown = laptop.done("explain", "vllm")
    assert shown.startswith("llm/vllm misses nothing on worker-1, which runs 4 of 4.\n\nllm/vllm: primary worker-1, ")
    refused = laptop("explain", "nothing")
    assert (refused.exit_code, "there is: none of that name" in refused.stderr) == (1, True)


def test_status_and_history_of_a_daemon_read_like_those_of_this_machine(
    laptop: Terminal, placed: None, running: Daemon, tmp_path: Path
) -> None:
    here = Terminal(env={"OVERSPILL_REPO": running.remote.url, "OVERSPILL_CACHE_DIR": str(tmp_path / "own")})
    for command in ("status", "history"):
        there, local = laptop.done(command), here.done(command)
        assert _headers(there) == _headers(local)
        assert laptop.answer(command).keys() == here.answer(command).keys()
    assert laptop.answer("history", "abc/bookinfo") == here.answer("history")
    assert laptop.done("history", "vllm") == "No placement of vllm in the history: it has not burst yet.\n"


def _headers(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.isupper()]


def test_history_of_a_daemon_is_cut_at_its_limit_and_its_time(laptop: Terminal, placed: None, running: Daemon) -> None:
    running.call("POST", "/api/v1/workload-placement", small("second"))
    assert [burst["workload"] for burst in laptop.answer("history")["placements"]] == ["abc/second", "abc/bookinfo"]
    cut = laptop("history", "--limit", "1")
    assert len(cut.stdout.splitlines()) == 2
    assert "There are more; raise --limit" in cut.stderr
    assert len(laptop.answer("history", "--since", "1h")["placements"]) == 2
    refused = laptop("history", "nothing")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "telling the history of 'nothing': neither the fleet nor the history has it" in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        "status", "plan", "history", "explain abc/bookinfo", "gprs", "inventory", "placements list",
        "placements get bookinfo", "wait-time --workspace abc --gpus 8",
    ],
)  # fmt: skip # a list of commands, filled line by line
def test_every_answer_of_a_daemon_says_that_a_branch_is_lost(
    laptop: Terminal, placed: None, running: Daemon, command: str
) -> None:
    """Once, with the ways out for who runs it, and without a name for others."""
    laptop.env["OVERSPILL_TOKEN"] = OWNER
    whole = laptop(*command.split())
    assert "settled" not in whole.stderr
    running.remote.move("placements", None)
    running.wake("hint")
    running.until(lambda: running.latest.read().decision.tips.losses)
    done = laptop(*command.split())
    assert done.exit_code == (1 if command == "plan" else 0), done.output
    told = " ".join(done.stderr.split())
    assert told.count("branch placements: it was last seen at") == 1, told
    assert told.count("nothing is written until that is settled") == 1, told
    assert "`overspill restore --dry-run`" in told
    assert ("bookinfo" in done.stdout) == ("bookinfo" in whole.stdout) or command == "plan"
    laptop.env["OVERSPILL_TOKEN"] = EDITOR
    told = " ".join(laptop(*command.split()).stderr.split())
    assert told.count("no burst begins, ends or is renewed until that is settled") == 1, told
    assert "placements: it was" not in told


@pytest.mark.parametrize("command", ["history nothing", "placements get nothing", "placements delete bookinfo"])
def test_command_that_fails_says_once_that_a_branch_is_lost(
    laptop: Terminal, placed: None, running: Daemon, command: str
) -> None:
    running.remote.move("placements", None)
    running.wake("hint")
    running.until(lambda: running.latest.read().decision.tips.losses)
    laptop.env["OVERSPILL_TOKEN"] = OWNER
    failed = laptop(*command.split())
    assert failed.exit_code == 1
    told = " ".join(failed.stderr.split())
    assert told.count("until that is settled") == 1, told
    assert "overspill restore --dry-run" in told
    laptop.env["OVERSPILL_TOKEN"] = EDITOR
    told = " ".join(laptop(*command.split()).stderr.split())
    assert told.count("no burst begins, ends or is renewed until that is settled") == 1, told


def test_stranger_is_told_of_nothing_in_other_workspaces(laptop: Terminal, placed: None) -> None:
    laptop.env["OVERSPILL_TOKEN"] = STRANGER
    status = laptop.answer("status")
    assert [row["workload"] for row in status["workloads"]] == ["llm/vllm"]
    assert not any(status[rows] for rows in ("requests", "placements", "leaving", "budgets", "problems"))
    assert "bookinfo" not in json.dumps(status)
    assert laptop.answer("history") == {"placements": [], "more": False}
    refused = laptop("history", "abc/bookinfo")
    assert (refused.exit_code, "(there are: llm/vllm)" in refused.stderr) == (1, True)
    assert laptop.done("gprs") == "No GPRs that this token may see.\n"
    assert laptop("explain", "abc/bookinfo").exit_code == 1
    assert "bookinfo" not in laptop.done("inventory")


def test_who_has_no_token_is_told_where_to_put_one(laptop: Terminal) -> None:
    del laptop.env["OVERSPILL_TOKEN"]
    refused = laptop("gprs")
    assert refused.exit_code == 1
    assert "the request bears no token (set OVERSPILL_TOKEN_FILE or OVERSPILL_TOKEN" in refused.stderr
    assert "-H" not in refused.stderr


def test_flag_that_names_a_repository_is_stronger_than_the_variable_of_the_daemon(
    laptop: Terminal, running: Daemon, tmp_path: Path
) -> None:
    laptop.env["OVERSPILL_CACHE_DIR"] = str(tmp_path / "own")
    assert "no cluster can be seen" in laptop("gprs", "--repo", running.remote.url).stderr
    both = laptop("gprs", "--repo", running.remote.url, "--server", laptop.env["OVERSPILL_SERVER"])
    assert (both.exit_code, "--server goes without --repo" in both.stderr) == (2, True)
    moved = laptop("explain", "abc/bookinfo", "--at", "+1h")
    assert (moved.exit_code, "--at goes without --server" in moved.stderr) == (2, True)


def test_plan_of_a_daemon_reads_like_that_of_this_machine(laptop: Terminal, running: Daemon) -> None:
    question = ("plan", "--what-if", "llm/vllm+3")
    table = laptop.done(*question)
    assert table.splitlines()[0] == "What if 3 more replicas of llm/vllm had been missing on worker-1 for 30s?"
    assert table.splitlines()[3].split()[:2] == ["Place", "llm/vllm"]
    assert "Overspill plan: 1 commit, 0 held back" in laptop.done(*question, "-o", "markdown")
    patch = laptop.done(*question, "--diff")
    assert "+++ b/clusters/worker-2/" in patch
    assert laptop(*question, "--detailed-exitcode").exit_code == 2
    assert laptop("plan", "--detailed-exitcode").exit_code == 0
    assert "patch" not in laptop.answer(*question)
    assert laptop("plan", "--what-if", "llm/nothing+3").exit_code == 1
    broken = {"policies.yaml": SOURCE_FILES["policies.yaml"].replace("window: 30s", "window: soon")}
    running.remote.move("pr-1", running.remote.tip("main") or "")
    running.remote.commit("pr-1", broken)
    refused = laptop("plan", "--source-branch", "pr-1")
    assert (refused.exit_code, "no role for all workspaces" in refused.stderr) == (1, True)
    laptop.env["OVERSPILL_TOKEN"] = OWNER
    wrong = laptop("plan", "--source-branch", "pr-1", "--detailed-exitcode")
    assert (wrong.exit_code, "error: policies.yaml:6: spec.scaleUp.window: " in wrong.stderr) == (1, True)


def test_revert_and_extend_of_a_daemon_read_like_those_of_this_machine(
    laptop: Terminal, running: Daemon, placed: None
) -> None:
    laptop.env["OVERSPILL_TOKEN"] = OWNER
    name = laptop.answer("status")["placements"][0]["placement"]["name"]
    shown = laptop.done("extend", name, "--by", "30m", "--dry-run")
    assert shown.splitlines()[1].split()[:3] == ["Amend", "abc/bookinfo", "-"]
    assert laptop.answer("extend", name, "--by", "30m", "--dry-run").keys() == plan_keys(laptop) - {"supposed"}
    first, *_, last = laptop.done("extend", name, "--by", "30m", "--reason", "the evaluation goes on").splitlines()
    assert "asked for by Ada: the evaluation goes on" in first
    assert last == f"Pushed 2 commits to placements, now at {(running.remote.tip('placements') or '')[:12]}."
    done = laptop.answer("revert", f"abc/{name}", "--reason", "the audit")
    assert done.keys() == plan_keys(laptop) - {"supposed"} | {"pushed", "branches"}
    refused = laptop("revert", name)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: placement abc/{name} ended at ")
    named = laptop("revert", name, "--author", "Ann <ann@example.com>")
    assert (named.exit_code, "--author goes without --server" in named.stderr) == (2, True)
    assert laptop("extend", name).exit_code == 2


def plan_keys(laptop: Terminal) -> set[str]:
    return {*laptop.answer("plan")}
