"""`once` and `run`: passes that write, and how they end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.core.fleet.spread import drafts
from reconciler.model.bounds import SUBSET_WORK, TEMPLATE_ROUNDS
from tests.builders.passes import BRANCHES, SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal, push_first
from tests.daemon.test_untried_subsets import NUMBER, spread_files
from tests.fakes.warm_command import overspill as warm

ROOT = Path(__file__).parents[2]


def test_once_tells_each_change_in_a_line_and_where_it_went(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    result = overspill("once")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.partition(" for 10m (")[0] for line in lines[:3]] == [
        "start(demo): the output branch",
        "burst(llm/vllm): 2 replicas on worker-2",
        "burst(llm/vllm): 1 replica on worker-3",
    ]
    tip = fleet.tip("placements")
    assert tip is not None
    assert lines[3] == f"Pushed 3 commits to placements, now at {tip[:12]}."


def test_once_with_nothing_to_do_commits_nothing(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    overspill.done("once")
    before = fleet.tip("placements")
    assert overspill.done("once") == "Nothing to change.\n"
    assert fleet.tip("placements") == before
    looked = overspill("plan", "--output-branch", "placemnts")
    assert "'placemnts' is not there, so that nothing counts as placed; there is 'placements'" in looked.stderr
    misspelt = overspill("once", "--output-branch", "placemnts")
    assert misspelt.exit_code == 0
    assert "'placemnts' does not exist yet and is begun; there is 'placements'" in misspelt.stderr


def test_once_gets_past_templates_that_fail(overspill: Terminal, fleet: Remote, see: See, observations: Path) -> None:
    """Each process began with the first of them again."""
    names = [f"a{index:03}" for index in range(2 * TEMPLATE_ROUNDS.most)]
    failing = SOURCE_FILES["template.yaml"].replace("registry.example.com/vllm:1.0", "'{{ cluster.labels.nope }}'")
    fleet.commit("main", {f"{name}.yaml": failing.replace("vllm", name) for name in names})
    see(missing=1, worker_2=1, worker_3=0)
    seen = json.loads((observations / "worker-1.json").read_text())
    (vllm,) = seen["workloads"]
    seen["workloads"] += [{**vllm, "name": name} for name in names]
    (observations / "worker-1.json").write_text(json.dumps(seen))
    answer = overspill.answer("once")
    assert [commit["subject"].partition(" for ")[0] for commit in answer["commits"]] == [
        "start(demo): the output branch",
        "burst(llm/vllm): 1 replica on worker-2",
    ]
    assert answer["pushed"][-1] == fleet.tip("placements")
    assert len(answer["pushed"]) == 2
    assert overspill.done("once").startswith("Nothing to change.\n")


def _miss(see: See, observations: Path, *names: str) -> None:
    """Show workloads of which one replica each is missing."""
    see(missing=1, worker_2=4, worker_3=4)
    seen = json.loads((observations / "worker-1.json").read_text())
    (vllm,) = seen["workloads"]
    seen["workloads"] = [{**vllm, "name": name} for name in names]
    (observations / "worker-1.json").write_text(json.dumps(seen))


def test_once_gets_past_all_subsets_however_many_passes_that_takes(
    overspill: Terminal, fleet: Remote, see: See, observations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "SUBSET_WORK", replace(SUBSET_WORK, most=1))  # each pass renders one
    names = tuple(f"a{index:03}" for index in range(30))
    fleet.commit("main", spread_files(names))
    _miss(see, observations, *names, "b")
    subjects = [commit["subject"] for commit in overspill.answer("once")["commits"]]
    assert subjects[-1].startswith("burst(llm/b): 1 replica on worker-2/own")


@pytest.mark.parametrize("begun", [False, True])
def test_once_gets_past_subsets_that_take_long(
    overspill: Terminal, fleet: Remote, see: See, observations: Path, begun: bool
) -> None:
    """Each process begins without any pods of subsets, and would leave the same workloads waiting for ever.

    On a branch that has begun the first passes change nothing at all.
    """
    names = tuple(f"a{index:03}" for index in range(NUMBER))
    fleet.commit("main", spread_files(names))
    if begun:
        overspill.done("once")
    _miss(see, observations, *names, "b")
    assert "the subsets of its workspace took too long in this pass" in overspill.done("plan")
    subjects = [commit["subject"] for commit in overspill.answer("once")["commits"]]
    assert [subject.partition(" for ")[0] for subject in subjects] == [
        *([] if begun else ["start(demo): the output branch"]),
        "burst(llm/b): 1 replica on worker-2/own",
    ]


def test_once_tells_which_branches_of_clusters_it_moved(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", BRANCHES)
    see(missing=2)
    tips = ("placements", *(f"placements-by-cluster/worker-{number}" for number in (1, 2, 3)))
    last = overspill.done("once").splitlines()[-1]
    assert last.startswith(
        "Pushed 2 commits to placements and the branches of worker-1, worker-2 and worker-3, now at "
    )
    fleet.commit(tips[2], {"notes.md": "mine\n"})
    assert overspill.done("once") == "follow(worker-2): brought to where the output branch stands\n"
    see(missing=3)
    answer = overspill.answer("once")
    assert answer["branches"] == {"worker-3": fleet.tip(tips[3])}
    assert answer["pushed"] == [fleet.tip("placements")]


def test_once_runs_again_when_the_branch_moves_under_it(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    overspill.done("once")
    see(missing=5)
    push_first(fleet, "First")
    assert "Pushed 1 commit" in overspill.done("once")
    assert [subject.split("(")[0] for subject in fleet.subjects("placements")[:2]] == ["resize", "First"]


def test_once_exits_with_1_for_a_broken_file_and_does_the_rest(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    fleet.commit("main", {"more.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nspec: {}\n"})
    result = overspill("once")
    assert (result.exit_code, "Pushed 3 commits" in result.stdout) == (1, True)
    assert "error: more.yaml" in result.stderr


class Daemon:
    """`overspill run` as a process of its own."""

    def __init__(self, env: dict[str, str], *arguments: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [*warm(), "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **env},
        )
        self._rest = b""

    def wait_for(self, text: str) -> str:
        """Read its log until a line holds a text, and return that line."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for line in self.lines:
                if text in line:
                    return line
            if select.select([self.process.stdout], [], [], 0.1)[0]:
                data = os.read(self.process.stdout.fileno(), 65536)
                assert data, f"it ended before it said {text!r}: {self.lines}"
                *whole, self._rest = (self._rest + data).split(b"\n")
                self.lines += [line.decode() for line in whole]
        raise AssertionError(f"it never said {text!r}: {self.lines}")

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=60)
        self.lines += (self._rest + rest).decode().splitlines()
        return self.process.returncode


@pytest.fixture
def daemon(overspill: Terminal) -> Iterator[Callable[..., Daemon]]:
    started: list[Daemon] = []

    def start(*arguments: str, **env: str) -> Daemon:
        started.append(Daemon({**overspill.env, **env}, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def test_sigterm_ends_run_after_what_it_was_doing(daemon: Callable[..., Daemon], fleet: Remote, see: See) -> None:
    see()
    running = daemon("--log-format", "json")
    running.wait_for("burst(llm/vllm): 1 replica on worker-3")
    assert running.end(signal.SIGTERM) == 0
    assert len(fleet.subjects("placements")) == 3
    events = [json.loads(line)["event"] for line in running.lines]
    assert (events[0], events[-1]) == ("watching", "stopped")
    assert {"pushed", "committed"} <= set(events)


def test_run_says_what_it_watches_and_commits_once_a_file_of_observations_changes(
    daemon: Callable[..., Daemon], fleet: Remote, observations: Path, see: See
) -> None:
    see(missing=0)
    running = daemon("--listen", "127.0.0.1:0", "--poll-interval", "1h")
    said = running.wait_for("watching")
    assert f"watching {fleet.url}: main -> placements, observations from {observations}, polling every 1h" in said
    assert "listening at 127.0.0.1:" in said
    running.wait_for("pushed 1 commit")
    see(missing=1)
    running.wait_for("burst(llm/vllm): 1 replica on worker-2")
    assert running.end(signal.SIGINT) == 0


def test_run_that_listens_without_tokens_says_that_nobody_may_call_the_api(
    daemon: Callable[..., Daemon], tmp_path: Path, see: See
) -> None:
    see(missing=0)
    running = daemon("--listen", "127.0.0.1:0")
    assert "make a token with `overspill token`" in running.wait_for("nobody may call the API")
    assert running.end(signal.SIGINT) == 0
    access = tmp_path / "access.yaml"
    access.write_text("tokens: []\n")
    running = daemon("--listen", "127.0.0.1:0", OVERSPILL_API_TOKENS_FILE=str(access))
    running.wait_for("polling every")  # after all that is said of the settings
    assert running.end(signal.SIGINT) == 0
    assert not any("nobody may call" in line for line in running.lines)


def test_run_tells_a_problem_when_it_comes_and_when_it_goes(
    daemon: Callable[..., Daemon], see: See, observations: Path
) -> None:
    see(missing=0)
    bad = observations / "bad.yaml"
    bad.write_text("kind: [")
    running = daemon("--poll-interval", "1h")
    running.wait_for(f"error: {bad}")
    bad.unlink()
    running.wait_for(f"mended: {bad}")
    assert sum("bad.yaml" in line for line in running.lines) == 2


def test_run_without_remote_or_observations_says_both_and_shows_no_password(daemon: Callable[..., Daemon]) -> None:
    password = "hunter" + "2"
    running = daemon(OVERSPILL_REPO=f"https://ann:{password}@127.0.0.1:1/fleet.git", OVERSPILL_OBSERVATIONS="")
    running.wait_for("no cluster can be seen, so nothing new is placed")
    running.wait_for("backing off")
    assert running.end(signal.SIGTERM) == 0
    assert not any(password in line for line in running.lines)


def test_commit_of_a_broken_clock_is_told_and_costs_end_with_the_burst(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See
) -> None:
    fleet.commit("placements", {"note.txt": "mine\n"}, at=datetime(2300, 1, 1, tzinfo=UTC))
    see()
    for command in ("plan", "status"):
        assert "is dated 2200-12-31T23:59:59Z, which is not yet: our commits" in overspill(command).stderr
    for name in placed:
        overspill.done("revert", name, "--author", ANN)
    report = overspill.answer("cost", "--since", "30d")
    # A burst that ends in the second in which it began has cost nothing, and has no row.
    assert {row["gpusNow"] for row in report["rows"]} <= {0}
    assert report["total"]["gpuHours"] < 1
    assert "2200" not in overspill.done("history")
    assert "is not yet" not in overspill("status").stderr
