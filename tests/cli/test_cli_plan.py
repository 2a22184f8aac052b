"""What `plan` promises: the very commits that would be made, and what is held back."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.ids import CommitId
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal


class Twin(Remote):
    """A copy of a remote as it stands."""

    def __init__(self, of: Remote, path: Path) -> None:
        shutil.copytree(of.path, path)
        self.path, self.url, self._environment = path, str(path), of._environment


@pytest.fixture
def twin(fleet: Remote, tmp_path: Path) -> Callable[[], Twin]:
    return lambda: Twin(fleet, tmp_path / "twin.git")


def once_there(overspill: Terminal, twin: Remote) -> Any:
    """Let `once` commit to the copy, and return its answer."""
    there = Terminal(env={**overspill.env, "OVERSPILL_REPO": twin.url})
    return there.answer("once")


def new_commits(remote: Remote, since: CommitId | None) -> list[str]:
    return remote.git("rev-list", "--reverse", "placements", *([f"^{since}"] if since else [])).split()


@pytest.fixture(params=["burst", "growth", "return"])
def change(request: pytest.FixtureRequest, overspill: Terminal, see: See) -> str:
    """Bring the fleet to the brink of a change, and return what the change is called."""
    see(missing=3)
    if request.param != "burst":
        overspill.done("once")
        see(missing=5 if request.param == "growth" else 1)
    return {"burst": "Place", "growth": "Resize", "return": "Revert"}[request.param]


def test_plan_prints_exactly_what_once_commits(
    overspill: Terminal, fleet: Remote, twin: Callable[[], Twin], change: str
) -> None:
    before, copy = fleet.tip("placements"), twin()
    done = once_there(overspill, copy)
    planned = overspill.answer("plan", "--at", done["at"])
    assert fleet.tip("placements") == before
    assert planned["commits"] == done["commits"]
    made = new_commits(copy, before)
    assert made == done["pushed"]
    assert change in [one["change"]["action"] for one in planned["commits"] if one["change"]]
    for commit, told in zip(made, planned["commits"], strict=True):
        assert copy.run("cat-file", "commit", commit).partition(b"\n\n")[2] == told["message"].encode()
        for path, text in told["writes"].items():
            assert copy.run("cat-file", "blob", f"{commit}:{path}") == text.encode()


def test_diff_applied_by_git_gives_the_tree_that_once_commits(
    overspill: Terminal, fleet: Remote, twin: Callable[[], Twin], change: str, tmp_path: Path
) -> None:
    copy = twin()
    done = once_there(overspill, copy)
    patch = overspill("plan", "--diff", "--at", done["at"]).stdout_bytes
    tree = tmp_path / "tree"
    tree.mkdir()
    for path, data in fleet.files("placements").items() if fleet.tip("placements") else ():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    subprocess.run(["git", "apply", "-"], input=patch, cwd=tree, check=True, env=fleet._environment)
    there = {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    assert there == copy.files("placements")


def test_diff_shows_every_message_whole(overspill: Terminal, see: See) -> None:
    see()
    planned = overspill.answer("plan")
    shown = overspill("plan", "--diff", "--at", planned["at"]).stdout
    for commit in planned["commits"]:
        assert "\n".join(f"    {line}".rstrip() for line in commit["message"].rstrip("\n").split("\n")) in shown


def test_plan_tells_what_and_why_in_a_table(overspill: Terminal, see: See) -> None:
    see()
    rows = overspill.done("plan").splitlines()
    assert rows[0].split() == ["ACTION", "WORKLOAD", "PLACEMENT", "CLUSTER", "REPLICAS", "UNTIL", "WHY"]
    assert [row.split()[:2] + row.split()[3:5] for row in rows[2:4]] == [
        ["Place", "llm/vllm", "worker-2", "2"],
        ["Place", "llm/vllm", "worker-3", "1"],
    ]
    assert "3 replicas missing on worker-1 for 1m3" in rows[2]


def test_plan_shows_a_row_for_each_commit_that_it_counts(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    first = overspill.done("plan").splitlines()
    assert first[1].startswith("Start ")
    assert first[1].endswith(" the output branch")
    assert [row.split()[0] for row in first[1:4]] == ["Start", "Place", "Place"]
    assert ": 3 commits, 0 held back" in first[-2]
    assert first[-1].startswith("The digits of a new placement's name come from the time of the pass")
    see(missing=0)
    alone = overspill.done("plan").splitlines()
    assert [row.split()[0] for row in alone[1:2]] == ["Start"]
    assert ": 1 commit, 0 held back" in alone[-1]
    overspill.done("once")
    fleet.commit("main", {"fleet.yaml": SOURCE_FILES["fleet.yaml"].replace("engine: manifests", "engine: flux")})
    later = overspill.done("plan").splitlines()
    assert later[1].startswith("Start ")
    assert " what Flux follows in " in later[1]


def test_plan_tells_what_is_held_back_and_which_clusters_were_refused(overspill: Terminal, see: See) -> None:
    see(missing=9, worker_2=0)
    shown = overspill.done("plan")
    assert "5 replicas of 9 fit on no cluster" in shown
    assert "Refused clusters" in shown
    held = overspill.answer("plan")["suppressed"]
    assert [(one["reason"], one["replicas"]) for one in held] == [("NothingFits", 5)]
    assert [(one["cluster"], one["reason"]) for one in held[0]["refusals"]] == [("worker-2", "NoCapacity")]


def test_plan_at_a_later_moment_ends_what_will_have_lapsed(overspill: Terminal, see: See) -> None:
    see()
    overspill.done("once")
    assert overspill.answer("plan")["commits"] == []
    see(missing=0, watched=False)
    later = overspill.answer("plan", "--at", "+11m")
    assert {one["change"]["why"] for one in later["commits"]} == {"expired"}


def test_plan_at_a_later_moment_counts_the_time_until_then_as_watched(overspill: Terminal, see: See) -> None:
    see()
    overspill.done("once")
    see(missing=0, watched=False)
    later = overspill.answer("plan", "--at", "+2m")
    assert [one["change"]["why"] for one in later["commits"]] == ["demand-gone", "demand-gone"]


@pytest.mark.parametrize("command", [("plan",), ("once",), ("explain", "llm/vllm")])
def test_observations_that_are_too_old_are_to_be_written_anew(
    overspill: Terminal, see: See, observations: Path, command: tuple[str, ...]
) -> None:
    see()
    assert "write newer observations" not in overspill(*command).stderr
    seen = observations / "worker-1.json"
    told = json.loads(seen.read_text())
    seen.write_text(json.dumps({**told, "observedAt": "2026-01-01T00:00:00Z", "workloads": []}))
    result = overspill(*command)
    assert "PrimaryUnseen" in result.stdout or "was last observed" in result.stdout
    assert f"{observations}: a primary is missing or too old there, and counts as unseen (write newer" in result.stderr


def test_plan_without_observations_says_how_to_give_them(overspill: Terminal, tmp_path: Path) -> None:
    del overspill.env["OVERSPILL_OBSERVATIONS"]
    overspill.env["KUBECONFIG"] = str(tmp_path / "kubectl's")
    result = overspill("plan")
    assert result.exit_code == 0
    assert "no cluster can be seen, so nothing new is placed" in result.stderr
    assert "--observations" in result.stderr
    (tmp_path / "kubectl's").touch()
    assert f"pass --kubeconfig {shlex.quote(overspill.env['KUBECONFIG'])}" in overspill("plan").stderr


def test_pass_over_a_repository_without_a_fleet_says_so(overspill: Terminal, fleet: Remote) -> None:
    assert "describes no cluster" not in overspill("plan").stderr
    fleet.commit("main", dict.fromkeys(SOURCE_FILES) | {"README.md": "other", "chart/values.yaml": "a: 1"})
    warning = "the source branch describes no cluster, workspace or template, so nothing is done (name the fleet"
    for command in ("plan", "once"):
        result = overspill(command)
        assert result.exit_code == 0
        assert warning in result.stderr
    assert fleet.tip("placements") is None, "nothing was begun there"


def test_plan_goes_on_with_a_broken_file_and_exits_with_1(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    fleet.commit("main", {"policies2.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nspec: {a: 1}\n"})
    result = overspill("plan")
    assert result.exit_code == 1
    assert "Place" in result.stdout
    assert "error: policies2.yaml" in result.stderr


def test_plan_shows_what_would_happen_if_and_commits_nothing(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    assert "Place" not in overspill.done("plan")
    shown = overspill.done("plan", "--what-if", "llm/vllm+3").splitlines()
    assert shown[:2] == ["What if 3 more replicas of llm/vllm had been missing on worker-1 for 30s?", ""]
    assert [row.split()[:2] + row.split()[3:5] for row in shown[4:6]] == [
        ["Place", "llm/vllm", "worker-2", "2"],
        ["Place", "llm/vllm", "worker-3", "1"],
    ]
    both = overspill.answer("plan", "--what-if", "llm/vllm+3", "--what-if", "cluster/worker-2=down", "--at", "+2m")
    places = [one["change"] for one in both["commits"] if one["change"]]
    assert [(place["placement"]["cluster"], place["placement"]["replicas"]) for place in places] == [("worker-3", 3)]
    assert len(both["supposed"]) == 2
    wide = overspill.answer("plan", "--what-if", "llm/vllm+9", "--what-if", "cluster/worker-2/gpu+1")
    assert [one["change"]["placement"]["replicas"] for one in wide["commits"] if one["change"]] == [9]
    assert "What if worker-2" in overspill.done("plan", "--diff", "--what-if", "cluster/worker-2+1")
    assert fleet.tip("placements") is None


def test_plan_refuses_a_supposition_of_something_that_does_not_exist(overspill: Terminal, see: See) -> None:
    see()
    unknown = overspill("plan", "--what-if", "llm/vlm+3")
    assert unknown.exit_code == 1
    assert "what if llm/vlm+3: there is no workload llm/vlm (try 'llm/vllm')" in unknown.stderr
    wrong = overspill("plan", "--what-if", "vllm")
    assert wrong.exit_code == 2
    assert "'vllm' is no supposition (try [WORKSPACE/]TEMPLATE+3" in wrong.stderr


def test_detailed_exit_code_tells_whether_something_would_change(overspill: Terminal, see: See) -> None:
    see()
    assert overspill("plan").exit_code == 0
    assert overspill("plan", "--detailed-exitcode").exit_code == 2
    assert overspill("plan", "--detailed-exitcode", "-o", "json").exit_code == 2
    overspill.done("once")
    assert overspill("plan", "--detailed-exitcode").exit_code == 0
    assert overspill("plan", "--detailed-exitcode", "--what-if", "llm/vllm+1").exit_code == 2


def test_replicas_that_are_held_back_alone_are_no_change(overspill: Terminal, see: See) -> None:
    see(worker_2=0, worker_3=0, missing=0)
    overspill.done("once")  # begins the branch
    see(worker_2=0, worker_3=0)
    held = overspill("plan", "--detailed-exitcode")
    assert held.exit_code == 0
    assert "Held back" in held.stdout


def test_detailed_exit_code_of_an_error_is_never_that_of_a_change(
    overspill: Terminal, see: See, observations: Path, tmp_path: Path
) -> None:
    see()
    assert overspill("plan", "--detailed-exitcode", "--what-if", "llm/vlm+3").exit_code == 1
    for wrong in (["--what-if", "vllm"], ["--bogus"], ["--at", "soon"]):
        assert overspill("plan", *wrong).exit_code == 2
        assert overspill("plan", *wrong, "--detailed-exitcode").exit_code == 1
    nowhere = Terminal(env={"OVERSPILL_CACHE_DIR": str(tmp_path / "mirrors")})
    assert nowhere("plan").exit_code == 2
    assert nowhere("plan", "--detailed-exitcode").exit_code == 1
    (observations / "broken.yaml").write_text("kind: [")
    broken = overspill("plan", "--detailed-exitcode")
    assert broken.exit_code == 1
    assert "Place" in broken.stdout


def test_markdown_is_a_comment_with_the_commits_and_their_money(overspill: Terminal, see: See, fleet: Remote) -> None:
    see(missing=3)
    comment = overspill.done("plan", "-o", "markdown")
    assert comment.startswith("<!-- overspill plan -->\n### Overspill plan: 3 commits, 0 held back\n")
    rows = [line for line in comment.splitlines() if line.startswith("| Place | llm/vllm | worker-")]
    assert len(rows) == 2
    assert "**+3 GPUs** elsewhere; their clusters have no price" in comment
    assert "vllm-" not in "".join(rows), "names change with the time"
    source = str(fleet.tip("main"))[:12]
    assert comment.splitlines()[-1].startswith(f"Of `{source}`, as the clusters were seen at ")


def test_markdown_of_a_quiet_fleet_says_so(overspill: Terminal, see: See) -> None:
    see(missing=0)
    comment = overspill.done("plan", "-o", "markdown")
    assert "elsewhere" not in comment


def test_explain_of_a_workload_whose_policy_is_not_read_names_the_check(overspill: Terminal, fleet: Remote) -> None:
    fleet.commit("main", {"policies.yaml": None})
    fleet.commit("main", {"policy/gpu.yaml": SOURCE_FILES["policies.yaml"]})
    told = " ".join(overspill("explain", "llm/vllm").stdout.split())
    assert "no BurstPolicy covers it" in told
    assert "1 file with problems may hold one: `overspill check` lists them." in told
