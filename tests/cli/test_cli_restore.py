"""A lost or rewound output branch: every command that writes stops, and `restore` settles it."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.repository import COMMITTER
from reconciler.cli import main
from reconciler.core.commits.proposals import proposal_commit
from reconciler.daemon.branch import BranchReader
from reconciler.model.ids import CommitId
from reconciler.text.timestamps import format_time
from tests.builders.daemon import NAMELESS, OWNER, STRANGER, Daemon
from tests.builders.passes import BRANCHES, SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal
from tests.web.conftest import signed_in

STOPPED = "nothing is written until that is settled"


def _rewind(remote: Remote) -> None:
    remote.move("placements", CommitId(remote.git("rev-parse", "placements~1")))


def _delete(remote: Remote) -> None:
    remote.move("placements", None)


def _squash(remote: Remote) -> None:
    person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    tree = remote.git("rev-parse", "placements^{tree}")
    remote.move("placements", CommitId(remote.git(*person, "commit-tree", tree, "-m", "Squash")))


def _swap(remote: Remote) -> None:
    """Put another repository behind the address."""
    main = remote.files("main")
    shutil.rmtree(remote.path)
    remote._begin()
    remote.commit("main", main)


LOSSES = pytest.mark.parametrize("lose", [_rewind, _delete, _squash, _swap])
Lose = Callable[[Remote], None]


@LOSSES
@pytest.mark.exhaustive(one_in=4)
def test_every_command_that_writes_stops_and_says_so_and_readers_read_on(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See, lose: Lose
) -> None:
    known = fleet.tip("placements")
    lose(fleet)
    before = fleet.git("for-each-ref")
    see(missing=6)
    commands = (
        ("once",),
        ("sweep",),
        ("revert", placed[0], "--author", ANN),
        ("extend", placed[0], "--by", "1m", "--author", ANN),
    )
    for command in commands:
        done = overspill(*command)
        assert (done.exit_code, str(known)[:12] in done.stderr, STOPPED in done.stderr) == (1, True, True), done.output
        assert "overspill restore" in done.stderr
        assert done.stderr.count("\n") == 1
    assert fleet.git("for-each-ref") == before
    for command in ("plan", "status"):
        done = overspill(command)
        assert STOPPED in done.stderr, done.output
        assert "vllm" in done.stdout


READERS: Mapping[str, Sequence[str]] = {
    "plan": (),
    "status": (),
    "explain": ("llm/vllm",),
    "history": (),
    "cost": (),
    "gprs": (),
    "wait-time": ("--gpus", "1", "--workspace", "llm"),
    "inventory": (),
    "placements list": (),
    "placements get": ("PLACEMENT",),
    "notify list": (),
}
"""The commands that show what stands, with their arguments."""
OTHERS = {
    *("once", "run", "sweep", "revert", "release", "extend", "approve", "reject", "confirm", "rebalance"),
    *("restore", "doctor", "watch", "bootstrap", "support-bundle", "notify test", "lab compare", "lab replay"),
}
"""The commands with a repository that write, that are tried elsewhere, or that show nothing of the output branch."""


def _with_repository(group: click.Group, before: str = "") -> Iterator[str]:
    """Name the commands that read the fleet repository."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _with_repository(command, f"{before}{name} ")
        elif any(parameter.name == "repo" for parameter in command.params):
            yield f"{before}{name}"


def _without_ages(text: str) -> str:
    """Leave out what grows from one second to the next, GPU-hours included."""
    return " ".join(re.sub(r"\b(\d+(h|min|m|s))+\b|\b\d+\.\d\d\b", "AGE", text).split())


def test_every_command_with_a_repository_reads_or_is_among_the_others() -> None:
    assert sorted(_with_repository(main)) == sorted({*READERS, *OTHERS})


@LOSSES
@pytest.mark.exhaustive(one_in=4)
def test_readers_show_beside_a_daemon_what_they_show_alone(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See, lose: Lose
) -> None:
    """A command beside a daemon has a mirror of its own, which begins with the ids of the known commits alone."""
    lose(fleet)
    see(missing=6)
    # What was placed within this second has no GPU-hours yet: neither with a price nor without one.
    time.sleep(1)
    at = ("--at", format_time(datetime.now(UTC) + timedelta(minutes=1)))
    shown: list[dict[str, tuple[int, str]]] = []
    for stands_beside in (False, True):
        with ExitStack() as stack:
            if stands_beside:
                cache = Path(overspill.env["OVERSPILL_CACHE_DIR"])
                stack.enter_context(GitRepository(fleet.url, cache=cache)).fetch()
            answers: dict[str, tuple[int, str]] = {}
            for name, arguments in READERS.items():
                words = [placed[0] if word == "PLACEMENT" else word for word in arguments]
                moment = at if name in ("plan", "status", "explain") else ()
                done = overspill(*name.split(), *words, *moment)
                assert STOPPED in done.stderr, (name, done.output)
                answers[name] = (done.exit_code, _without_ages(done.stdout))
            shown.append(answers)
    alone, beside = shown
    assert beside == alone
    for name in ("status", "history", "placements list", "inventory"):
        assert placed[0] in beside[name][1], beside[name]
    assert "Place " not in beside["plan"][1]


@LOSSES
@pytest.mark.exhaustive(one_in=4)
def test_doctor_misses_a_lost_branch_and_names_the_way_out(
    overspill: Terminal, fleet: Remote, placed: list[str], lose: Lose
) -> None:
    known = fleet.tip("placements")
    lose(fleet)
    done = overspill("doctor", "-o", "json")
    assert done.exit_code == 1, done.output
    rows = {row["subject"]: row for group in json.loads(done.stdout) for row in group["results"]}
    row = rows["branch placements"]
    assert (row["readiness"], row["remedy"]) == ("missing", "overspill restore --dry-run")
    assert str(known)[:12] in row["seen"]
    assert STOPPED in row["seen"]
    assert not [subject for subject in rows if subject.startswith(("output branch", "push to"))]


def test_commands_say_that_the_branch_of_a_cluster_is_lost(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See
) -> None:
    engine = b"engine: manifests"
    text = fleet.files("main")["fleet.yaml"].replace(engine, engine + b", branchPerCluster: true")
    fleet.commit("main", {"fleet.yaml": text.decode()})
    see()
    overspill.done("once")
    branch = "placements-by-cluster/worker-3"
    known = fleet.tip(branch)
    fleet.move(branch, None)
    see(missing=6)
    for command in (("once",), ("revert", placed[0], "--author", ANN)):
        done = overspill(*command)
        assert (done.exit_code, str(known)[:12] in done.stderr, STOPPED in done.stderr) == (1, True, True), done.output
    for command in ("plan", "status"):
        done = overspill(command)
        assert f"branch {branch}: it was last seen at {str(known)[:12]}" in done.stderr, done.output
    assert branch in overspill.done("restore", "--author", ANN)
    assert fleet.tip(branch) == known


@LOSSES
@pytest.mark.exhaustive(one_in=2)
def test_restore_brings_everything_back_byte_for_byte(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See, lose: Lose
) -> None:
    files, history = fleet.files("placements"), fleet.git("log", "--format=%s", "placements")
    lose(fleet)
    before = fleet.git("for-each-ref")
    assert "A restore" in overspill.done("restore", "--dry-run", "--author", ANN)
    assert fleet.git("for-each-ref") == before
    (row,) = overspill.answer("restore", "--author", ANN)["branches"]
    assert row["branch"] == "placements"
    assert fleet.files("placements") == files
    assert set(history.splitlines()) <= set(fleet.git("log", "--format=%s", "placements").splitlines())
    assert overspill.done("restore", "--author", ANN).startswith("Nothing to restore: the remote has all that is known")
    see()
    overspill.done("once")


def test_restore_says_what_goes_and_what_holds_again(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See
) -> None:
    overspill.done("revert", placed[0], "--author", ANN)
    fleet.git("update-ref", "refs/heads/placements", "placements~1")  # a person undoes the end of a burst
    shown = overspill.done("restore", "--dry-run", "--author", ANN)
    assert f"This gives up 1 placement (llm/{placed[0]})." in shown
    assert "This brings back 1 held-back workload (llm/vllm)." in shown
    done = overspill.answer("restore", "--author", ANN)
    assert done["givenUp"] == [f"1 placement (llm/{placed[0]})"]
    assert done["broughtBack"] == ["1 held-back workload (llm/vllm)"]


@LOSSES
@pytest.mark.exhaustive(one_in=2)
def test_accepted_loss_says_what_goes_and_is_a_commit_in_a_persons_name(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See, lose: Lose
) -> None:
    lose(fleet)
    files = fleet.files("placements")
    shown = overspill.done("restore", "--accept", "--author", ANN)
    assert (f"llm/{placed[1]}" in shown) == (lose is not _squash)
    assert fleet.files("placements") == files
    assert fleet.git("log", "-1", "--format=%an <%ae>, %cn", "placements") == f"{ANN}, Overspill"
    see()
    overspill.done("once")
    assert fleet.files("placements", "clusters")


def test_commit_that_an_engine_runs_restores_the_branch_from_another_machine(
    overspill: Terminal, fleet: Remote, placed: list[str], tmp_path: Path
) -> None:
    known = str(fleet.tip("placements"))
    _delete(fleet)
    overspill.env["OVERSPILL_CACHE_DIR"] = str(tmp_path / "another")
    done = overspill("restore", "--dry-run")
    assert done.exit_code == 1
    assert "the remote has no such branch, and no earlier commit of it is known here (run this where" in done.stderr
    overspill.done("restore", "--commit", known, "--author", ANN)
    assert fleet.tip("placements") == known


def _extended(overspill: Terminal, fleet: Remote, placed: list[str], see: See, tmp_path: Path) -> str:
    """Push one more commit from another machine, and return its id; the remote keeps it."""
    another = Terminal(env={**overspill.env, "OVERSPILL_CACHE_DIR": str(tmp_path / "another")})
    see()
    another.done("extend", placed[0], "--by", "5m", "--author", ANN)
    last = str(fleet.tip("placements"))
    fleet.git("update-ref", "refs/keep/last", last)
    return last


@pytest.mark.parametrize("lose", [_delete, _squash])
@pytest.mark.parametrize("how", [(), ("--accept",)])
def test_named_commit_is_settled_beside_what_the_machine_knows(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See, *, lose: Lose, how: tuple[str, ...], tmp_path: Path
) -> None:
    """The machine was beside the daemon once, and knows an older commit."""
    old = str(fleet.tip("placements"))
    last = _extended(overspill, fleet, placed, see, tmp_path)
    lose(fleet)
    overspill.done("restore", "--commit", last, "--author", ANN, *how)
    for commit in (old, last):
        assert (commit in fleet.git("rev-list", "placements").split()) is (not how)
    daemon = Terminal(env={**overspill.env, "OVERSPILL_CACHE_DIR": str(tmp_path / "another")})
    see()
    daemon.done("once")


def test_named_commit_beside_what_the_machine_knows_is_settled_after_that(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See, tmp_path: Path
) -> None:
    base = fleet.tip("placements")
    last = _extended(overspill, fleet, placed, see, tmp_path)
    fleet.move("placements", base)
    known = fleet.commit("placements", {"notes.md": "mine\n"})
    overspill("status")
    fleet.move("placements", base)
    shown = " ".join(overspill.done("restore", "--commit", last, "--dry-run").split())
    assert f"pushes {known[:12]} back" in shown
    assert f"Once that is done, a restore goes on with {last[:12]}" in shown
    overspill.done("restore", "--commit", last, "--author", ANN)
    assert {known, last} <= set(fleet.git("rev-list", "placements").split())


def test_named_commit_that_nobody_holds_is_named_where_another_one_is_restored(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    known = fleet.tip("placements")
    _rewind(fleet)
    done = overspill("restore", "--commit", "5" * 40, "--author", ANN)
    assert (done.exit_code, fleet.tip("placements")) == (1, known)
    assert f"pushes {str(known)[:12]} back" in done.stdout
    assert "goes on at its next look" not in done.stdout
    assert "neither this machine nor the remote holds 555555555555" in done.stderr


def test_proposal_that_was_refused_is_not_placed_by_a_restore(
    overspill: Terminal, fleet: Remote, see: See, tmp_path: Path
) -> None:
    policies = SOURCE_FILES["policies.yaml"]
    fleet.commit("main", {"policies.yaml": f"{policies}  approval: PullRequest\n"})
    see()
    overspill.done("once")
    with GitRepository(fleet.url, cache=tmp_path / "desk") as desk:
        output = desk.fetch().output
        (proposal,) = BranchReader(desk).ledger(output).proposals.values()
        (commit,) = desk.write(output, [proposal_commit(proposal, COMMITTER, datetime.now(UTC))])
        desk.move_head("overspill/llm-vllm", old=None, new=commit)
    overspill.done("reject", "llm/vllm", "--author", ANN, "--reason", "too dear")
    fleet.move("overspill/llm-vllm", None)
    overspill.env["OVERSPILL_CACHE_DIR"] = str(tmp_path / "another")
    done = overspill("restore", "--commit", commit, "--author", ANN)
    assert (done.exit_code, done.stdout.startswith("Nothing to restore")) == (0, True), done.output
    assert f"{commit[:12]} is of another branch, and stands for {str(output)[:12]} of the output branch" in done.stderr
    see()
    overspill.done("once")
    assert fleet.files("placements", "clusters") == {}


def test_placements_outlive_a_look_at_the_source_branch_in_their_place(
    overspill: Terminal, fleet: Remote, placed: list[str], tmp_path: Path
) -> None:
    """With the clusters of the source in `clusters/`, as in repo-layout."""
    known, files = fleet.tip("placements"), fleet.files("placements")
    text = SOURCE_FILES["clusters.yaml"]
    fleet.commit("main", {"clusters.yaml": None, "clusters/all.yaml": text})
    fleet.move("placements", fleet.tip("main"))
    overspill.env["OVERSPILL_CACHE_DIR"] = str(tmp_path / "another")
    overspill("plan")
    fleet.move("placements", known)
    assert overspill.done("restore", "--author", ANN).startswith("Nothing to restore")
    assert fleet.files("placements") == files


@pytest.mark.parametrize("lose", [_rewind, _squash])
def test_machine_that_knows_nothing_gives_no_all_clear(
    overspill: Terminal, fleet: Remote, placed: list[str], lose: Lose, tmp_path: Path
) -> None:
    lose(fleet)
    overspill.env["OVERSPILL_CACHE_DIR"] = str(tmp_path / "another")
    for _ in range(2):
        shown = " ".join(overspill.done("restore", "--dry-run").split())
        assert f"all that is known here, up to {str(fleet.tip('placements'))[:12]} of 20" in shown
        assert "If it should have more, run this where the daemon runs" in shown
        overspill("status")


def test_commit_that_nobody_has_any_more_names_the_ways_out(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    done = overspill("restore", "--commit", "5" * 40, "--author", ANN)
    assert done.exit_code == 1
    assert "neither this machine nor the remote holds 555555555555" in done.stderr
    assert "--accept" in done.stderr
    assert overspill("restore", "--commit", "main").exit_code == 2


def test_restore_that_leaves_a_branch_says_that_nothing_is_written(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See
) -> None:
    fleet.commit("main", BRANCHES)
    see()
    overspill.done("once")
    known = fleet.tip("placements")
    branch = "placements-by-cluster/worker-3"
    with GitRepository(fleet.url, cache=Path(overspill.env["OVERSPILL_CACHE_DIR"])) as daemon:
        daemon.fetch()
        daemon.branches()
        daemon.look_for(CommitId("5" * 40), branch=branch, reported_by="worker-3")
    _rewind(fleet)
    for arguments in (("--dry-run",), ("--author", ANN)):
        done = overspill("restore", *arguments)
        shown = " ".join(done.stdout.split())
        assert (done.exit_code, f"{branch} is left as it is" in shown) == (1, True), done.output
        assert "or push that commit from any clone that has it, or give it up with --accept" in shown
        assert STOPPED.capitalize() in shown
        assert "daemon goes on" not in shown
    assert fleet.tip("placements") == known
    assert STOPPED in overspill("once").stderr
    overspill.done("restore", "--accept", "--author", ANN)
    overspill.done("once")


@pytest.mark.parametrize("token", [STRANGER, OWNER, NAMELESS])
def test_daemon_tells_everybody_that_nothing_is_written_and_refuses_orders_once(
    running: Daemon, laptop: Terminal, token: str
) -> None:
    """An editor of one workspace cannot read the daemon's log, and hears no name of a branch."""
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: len(running.latest.read().decision.inputs.ledger.placements))
    name = next(iter(running.latest.read().decision.inputs.ledger.placements.values())).name
    known = str(running.remote.tip("placements"))[:12]
    browser = signed_in(running, token)
    assert f"/do/revert?placement={name}" in browser.get("/").page.links()
    running.remote.move("placements", None)
    running.wake("hint")
    running.until(lambda: running.call("GET", "/healthz").body["status"] == "stopped")

    for place in ("/", "/why?workload=llm/vllm", "/clusters", "/time", "/money"):
        answer = browser.get(place)
        page = " ".join(answer.page.text.split())
        assert "Nothing is written" in page, place
        assert "overspill restore" in page, place
        assert (known in page) == (token != STRANGER), place
        assert not [link for link in answer.page.links() if link.startswith("/do/")], place
    assert "Nothing is written: no burst begins" in browser.get("/").page.text
    assert "problem in the files" not in browser.get("/").page.text

    laptop.env["OVERSPILL_TOKEN"] = token
    for command in ("status", "plan"):
        done = laptop(command)
        assert "overspill restore" in done.stderr, done.output
        assert (known in done.stderr) == (token != STRANGER), done.output
    done = laptop("revert", str(name), "--reason", "x")
    assert done.exit_code == 1
    assert "no burst begins, ends or is renewed until that is settled (whoever runs Overspill" in done.stderr
    assert done.stderr.count("(") == 1
    assert "try again" not in done.stderr
    assert running.remote.tip("placements") is None


def test_daemon_stops_and_goes_on_by_itself_once_it_is_restored(
    overspill: Terminal, running: Daemon, fleet: Remote, tmp_path: Path
) -> None:
    known = running.remote.tip("placements")
    assert known is not None
    running.remote.move("placements", None)
    running.wake("hint")
    running.until(lambda: running.call("GET", "/healthz").body["status"] == "stopped")
    assert f"branch placements: it was last seen at {known[:12]}" in str(running.latest.read().decision.problems[0])
    assert running.remote.tip("placements") is None
    overspill.env["OVERSPILL_CACHE_DIR"] = str(tmp_path / "cache")
    overspill.done("restore", "--author", ANN)
    assert running.remote.tip("placements") == known
    running.wake("hint")
    running.until(lambda: running.call("GET", "/healthz").body["status"] == "ok")
