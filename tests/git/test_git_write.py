"""Writing commits into the mirror and pushing them to the output branch."""

from __future__ import annotations

import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.adapters.git import GitRepository
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.model.ids import CommitId
from reconciler.model.tree import Commit, Identity

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BOT = Identity(name="Overspill", email="overspill@overspill.dev")


def _commit(
    writes: dict[str, bytes] | None = None,
    *,
    removes: tuple[str, ...] = (),
    at: datetime = NOON,
    message: str = "Place",
) -> Commit:
    return Commit(message=message, author=BOT, at=at, removes=removes, writes=writes or {})


def _publish(repository: GitRepository, *commits: Commit) -> list[CommitId]:
    old = repository.tips().output
    made = repository.write(old, commits)
    repository.begin_push(made[-1], old=old)()
    return made


def test_first_push_makes_the_branch(remote, repository):
    remote.commit("main", {"a": "1"})
    repository.fetch()
    (made,) = _publish(repository, _commit({"clusters/w/p/placement.yaml": b"x: 1\n"}))
    assert remote.tip("placements") == made == repository.tips().output
    assert remote.files("placements") == {"clusters/w/p/placement.yaml": b"x: 1\n"}
    assert repository.tips().output_at == NOON


def test_push_to_an_empty_remote_makes_the_branch(remote, repository):
    repository.fetch()
    _publish(repository, _commit({"a": b"1"}))
    assert remote.files("placements") == {"a": b"1"}


def test_author_whose_name_is_no_text_is_written_as_far_as_it_is(remote, repository):
    """As git's user.name in Latin-1, or an argument of a shell."""
    remote.commit("main", {"a": "1"})
    repository.fetch()
    person = Identity(name="Jos\udce9", email="jos\udce9@example.com")
    (made,) = repository.write(None, [Commit(message="Place", author=person, at=NOON, writes={"a": b"1"})])
    (logged,) = repository.log(made)
    assert logged.author == Identity(name="Jos?", email="jos?@example.com")


def test_fetch_after_a_push_finds_nothing_new(remote, repository):
    remote.commit("main", {"a": "1"})
    repository.fetch()
    _publish(repository, _commit({"a": b"1"}))
    tips = repository.tips()
    assert repository.fetch() == tips


def test_commits_are_made_in_order_and_in_one_push(remote, repository):
    remote.commit("placements", {"foreign/file": "kept\n"})
    repository.fetch()
    commits = [_commit({f"p{number}": b"x"}, message=f"Place {number}") for number in range(3)]
    made = _publish(repository, *commits)
    assert remote.git("rev-list", "--reverse", "placements").split()[1:] == made
    assert remote.subjects("placements") == ["Place 2", "Place 1", "Place 0", "Edit by hand"]
    assert remote.files("placements")["foreign/file"] == b"kept\n"


def test_removals_come_before_writes(remote, repository):
    remote.commit("placements", {"p/a": "1", "p/b": "1", "q": "1"})
    repository.fetch()
    _publish(repository, _commit({"p/b": b"2"}, removes=("p",)))
    assert remote.files("placements") == {"p/b": b"2", "q": b"1"}


def test_removing_what_does_not_exist_is_no_error(remote, repository):
    remote.commit("placements", {"a": "1"})
    repository.fetch()
    _publish(repository, _commit(removes=("nowhere/at/all", "b")))
    assert remote.files("placements") == {"a": b"1"}
    assert len(remote.subjects("placements")) == 2


def test_directory_can_become_a_file_and_back(remote, repository):
    remote.commit("placements", {"x/y": "1"})
    repository.fetch()
    _publish(repository, _commit({"x": b"file"}), _commit({"x/z": b"dir"}))
    assert remote.files("placements") == {"x/z": b"dir"}


def test_same_commits_have_the_same_ids(remote, repository, tmp_path):
    remote.commit("placements", {"a": "1"})
    base = repository.fetch().output
    commits = [_commit({"b": b"1"}), _commit(removes=("a",))]
    with GitRepository(remote.url, cache=tmp_path / "elsewhere") as other:
        other.fetch()
        assert repository.write(base, commits) == other.write(base, commits)


def test_history_does_not_run_backwards_when_the_clock_does(remote, repository):
    remote.commit("placements", {"a": "1"}, at=NOON)
    repository.fetch()
    _publish(repository, _commit({"b": b"1"}, at=NOON - timedelta(minutes=30)))
    assert repository.tips().output_at == NOON
    later, earlier = NOON + timedelta(hours=1), NOON + timedelta(minutes=1)
    made = _publish(repository, _commit({"c": b"1"}, at=later), _commit({"d": b"1"}, at=earlier))
    assert [commit.at for commit in repository.log(made[-1], limit=3)] == [later, later, NOON]


def test_commit_carries_author_committer_and_message(remote, repository):
    repository.fetch()
    ann = Identity(name="Ann <x> Änn\n", email="ann@example.com")
    message = "burst(llm/vllm): 3 replicas\n\nWhy: ünïcode.\n\nOverspill-Action: Place\n"
    (made,) = repository.write(None, [Commit(message=message, author=ann, at=NOON)])
    repository.begin_push(made, old=None)()
    shown = remote.git("show", "-s", "--format=%an|%ae|%cn|%ce|%at|%ct|%B", made).rstrip("\n") + "\n"
    seconds = int(NOON.timestamp())
    people = f"Ann x Änn|ann@example.com|Overspill|overspill@overspill.dev|{seconds}|{seconds}"
    assert shown == f"{people}|{message}Overspill-Branch: placements\n"


_PART = st.text(st.characters(blacklist_categories=["C", "Z"], blacklist_characters="/\\."), min_size=1, max_size=8)


def test_foreign_words_mention_nobody_on_the_host_and_are_read_back_as_they_were(remote, repository):
    said = "fixes acme/infra#12 (@acme/admins): see https://evil.example, `x` GH-7, !3"
    message = f"burst(llm/vllm): 1 replica\n\n{said}.\n\nOverspill-Placement: llm/vllm\nOverspill-Subset: @here #1\n"
    remote.commit("main", {"a": "1"})
    repository.fetch()
    _publish(repository, _commit({"a": b"1"}, message=message))
    stored = remote.git("log", "-1", "--format=%B", "placements")
    assert [mark for mark in ("#12", "#1", "@acme", "@here", "://", "`", "GH-7", "!3") if mark in stored] == []
    (logged,) = repository.log(repository.tips().output, limit=1)
    assert f"{said}." in logged.body
    assert logged.trailers == {"Overspill-Placement": "llm/vllm", "Overspill-Subset": "@here #1"}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(st.tuples(_PART, _PART).map("/".join), st.binary(max_size=50), min_size=1, max_size=5))
def test_any_files_are_written_as_they_are(remote, repository, files):
    repository.fetch()
    (made,) = repository.write(repository.tips().output, [_commit(files, removes=tuple(remote.files("placements")))])
    repository.begin_push(made, old=repository.tips().output)()
    read = repository.read(entry.blob for entry in repository.entries(made))
    assert {entry.path: read[entry.blob] for entry in repository.entries(made)} == files


def test_strict_fsck_finds_nothing(remote, repository):
    remote.commit("main", {"a": "1"})
    remote.commit("placements", {"a": "1"})
    repository.fetch()
    odd = Identity(name="", email="")
    commits = [_commit({f"clusters/c{n}/p/x": b"%d" % n}) for n in range(5)]
    _publish(repository, *commits, Commit(message="", author=odd, at=NOON, removes=("clusters/c1",)))
    done = subprocess.run(
        ["git", "--git-dir", remote.url, "fsck", "--strict", "--full"], capture_output=True, text=True, check=True
    )
    assert done.stdout + done.stderr == ""


def test_nothing_written_is_visible_before_the_push(remote, repository, tmp_path):
    tip = remote.commit("placements", {"a": "1"})
    repository.fetch()
    repository.write(tip, [_commit({"b": b"1"})])
    assert remote.tip("placements") == tip == repository.tips().output
    refs = [path.name for path in (tmp_path / "cache").glob("*/mirror.git/refs/**/*") if path.is_file()]
    assert refs == ["placements"]


def test_writing_nothing_makes_nothing(repository):
    assert repository.write(None, []) == []


def test_branch_that_moved_on_is_a_conflict(remote, repository):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    (made,) = repository.write(old, [_commit({"b": b"1"})])
    theirs = remote.commit("placements", {"c": "1"})
    with pytest.raises(Conflict, match="stale info"):
        repository.begin_push(made, old=old)()
    assert remote.tip("placements") == theirs
    assert repository.fetch().output == theirs


def test_pushes_are_measured_by_whether_the_remote_took_them(remote, tmp_path):
    process = ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0)
    with GitRepository(remote.url, cache=tmp_path / "measured", measure=process.call) as repository:
        old = remote.commit("placements", {"a": "1"})
        repository.fetch()
        (made,) = repository.write(old, [_commit({"b": b"1"})])
        remote.commit("placements", {"c": "1"})
        with pytest.raises(Conflict):
            repository.begin_push(made, old=old)()
        repository.fetch()
        _publish(repository, _commit({"b": b"1"}))
    pushes = {
        result: process.registry.get_sample_value("overspill_git_calls_total", {"command": "push", "result": result})
        for result in ("ok", "rejected")
    }
    assert pushes == {"ok": 1, "rejected": 1}


def test_branch_that_was_set_back_is_not_put_forward_again(remote, repository):
    first = remote.commit("placements", {"a": "1"})
    old = remote.commit("placements", {"b": "1"})
    repository.fetch()
    (made,) = repository.write(old, [_commit({"c": b"1"})])
    remote.move("placements", first)
    with pytest.raises(Conflict):
        repository.begin_push(made, old=old)()
    assert remote.tip("placements") == first


def test_branch_that_was_removed_is_not_made_again(remote, repository):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    (made,) = repository.write(old, [_commit({"c": b"1"})])
    remote.move("placements", None)
    with pytest.raises(Conflict):
        repository.begin_push(made, old=old)()
    assert remote.tip("placements") is None


def test_branch_that_somebody_else_made_first_is_a_conflict(remote, repository):
    repository.fetch()
    (made,) = repository.write(None, [_commit({"b": b"1"})])
    theirs = remote.commit("placements", {"c": "1"})
    with pytest.raises(Conflict):
        repository.begin_push(made, old=None)()
    assert remote.tip("placements") == theirs


def test_push_from_a_tip_that_is_not_ours_is_a_conflict(remote, repository):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    made = _publish(repository, _commit({"b": b"1"}))
    with pytest.raises(Conflict, match="has moved"):
        repository.begin_push(made[-1], old=old)()


def test_commit_that_does_not_follow_the_tip_is_never_pushed(remote, repository):
    first = remote.commit("placements", {"a": "1"})
    repository.fetch()
    old = remote.commit("placements", {"b": "1"})
    repository.fetch()
    (made,) = repository.write(first, [_commit({"c": b"1"})])
    with pytest.raises(Conflict, match="does not follow"):
        repository.begin_push(made, old=old)()
    assert remote.tip("placements") == old


def test_push_that_had_landed_already_is_a_success(remote, repository, tmp_path):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    (made,) = repository.write(old, [_commit({"b": b"1"})])
    with GitRepository(remote.url, cache=tmp_path / "other") as other:
        other.fetch()
        other.begin_push(*other.write(old, [_commit({"b": b"1"})]), old=old)()
    repository.begin_push(made, old=old)()
    assert repository.tips().output == remote.tip("placements") == made


@pytest.mark.parametrize("wrong", ["", "main", "--force", "1" * 41])
def test_only_a_full_commit_id_is_pushed(repository, wrong):
    with pytest.raises(ValueError, match="not a full object id"):
        repository.begin_push(CommitId(wrong), old=None)()


def _hook(remote_path: Path, name: str, script: str) -> None:
    hook = remote_path / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("update", r"\(hook declined\).*this branch is protected"),
        ("pre-receive", r"pre-receive hook declined.*this branch is protected"),
    ],
)
def test_protected_branch_is_for_a_person_to_mend(remote, repository, hook, said):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    _hook(remote.path, hook, "echo this branch is protected >&2; exit 1")
    (made,) = repository.write(old, [_commit({"b": b"1"})])
    with pytest.raises(InvalidInput, match=said):
        repository.begin_push(made, old=old)()
    assert remote.tip("placements") == old
    _hook(remote.path, hook, "exit 0")
    repository.begin_push(made, old=old)()
    assert remote.tip("placements") == made


def test_plain_push_needs_no_right_to_force(remote, repository):
    remote.commit("placements", {"a": "1"})
    remote.git("config", "receive.denyNonFastForwards", "true")
    remote.git("config", "receive.denyDeletes", "true")
    repository.fetch()
    _publish(repository, _commit({"b": b"1"}))
    assert remote.files("placements") == {"a": b"1", "b": b"1"}


def test_ref_that_is_locked_on_the_remote_is_a_conflict(remote, repository):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    (remote.path / "refs" / "heads" / "placements.lock").touch()
    (made,) = repository.write(old, [_commit({"b": b"1"})])
    with pytest.raises(Conflict, match=r"failed to update ref|cannot lock ref"):
        repository.begin_push(made, old=old)()


def test_remote_that_is_gone_is_told_from_a_refusal(remote, repository):
    old = remote.commit("placements", {"a": "1"})
    repository.fetch()
    (made,) = repository.write(old, [_commit({"b": b"1"})])
    remote.path.rename(remote.path.with_name("away.git"))
    with pytest.raises(InvalidInput, match="the directory does not exist"):
        repository.begin_push(made, old=old)()
    remote.path.with_name("away.git").rename(remote.path)
    repository.begin_push(made, old=old)()


def test_remote_that_hangs_in_a_push_is_transient(remote, tmp_path):
    old = remote.commit("placements", {"a": "1"})
    _hook(remote.path, "pre-receive", "sleep 60")
    with GitRepository(remote.url, cache=tmp_path / "cache", timeout=timedelta(seconds=0.7)) as repository:
        repository.fetch()
        (made,) = repository.write(old, [_commit({"b": b"1"})])
        with pytest.raises(Transient, match="no answer"):
            repository.begin_push(made, old=old)()
    assert remote.tip("placements") == old


def test_writers_at_once_lose_nothing(remote, tmp_path):
    remote.commit("main", {"a": "1"})
    remote.commit("placements", {"a": "1"})
    failures: list[BaseException] = []

    def write(name: str) -> None:
        with GitRepository(remote.url, cache=tmp_path / name) as repository:
            for number in range(4):
                for _ in range(50):
                    repository.fetch()
                    try:
                        _publish(repository, _commit({f"{name}/{number}": b"1"}))
                    except Conflict:
                        continue
                    break
                else:
                    failures.append(AssertionError(f"{name} never got through"))

    writers = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert len(remote.files("placements")) == 1 + 3 * 4
    assert remote.git("rev-list", "--count", "placements") == "13"
    assert remote.git("rev-list", "--merges", "placements") == ""


@pytest.mark.exhaustive(one_in=None)
def test_cost_of_a_write_does_not_follow_the_size_of_the_branch(remote, repository, tmp_path):
    remote.commit("placements", {f"clusters/c{n // 100}/p{n % 100}/placement.yaml": f"{n}\n" for n in range(5_000)})
    repository.fetch()
    made = _publish(repository, _commit({"clusters/c7/new/placement.yaml": b"1\n"}))
    packs = sorted((tmp_path / "cache").glob("*/mirror.git/objects/pack/*.pack"), key=lambda path: path.stat().st_size)
    assert packs[0].stat().st_size < 5_000  # a blob, five trees and a commit, of a branch of 5,000 files
    assert len(repository.changes(repository.log(made[0], limit=2)[1].id, made[0])) == 1
