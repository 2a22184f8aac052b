"""Who cannot sign changes nothing: whatever is pushed, what was in force stays until a successor of it is signed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.signing import AllowedSigners
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import CommitId
from reconciler.model.tree import Commit, SignatureFault, Tips
from tests.builders.remote import MORNING, Remote
from tests.fakes.memory_repository import OURS


@dataclass
class Fleet:
    """A remote whose source branch has to be signed, and those who push to it. Each commit is a minute later."""

    remote: Remote
    path: Path
    allowed: list[str] = field(default_factory=lambda: ["ann", "bob"])
    minute: int = 0

    def __post_init__(self) -> None:
        for name in ("ann", "bob"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.path / name)]
            subprocess.run(made, check=True)
        self.allow("ann", "bob")

    def allow(self, *names: str) -> None:
        keys = (f"{name}@example.com {(self.path / f'{name}.pub').read_text()}" for name in names)
        (self.path / "allowed").write_text("".join(keys))

    def commit(self, *parents: CommitId, by: str = "", early: bool = False, files: int = 1) -> CommitId:
        """Make a commit of other files each time, signed by one of them or not; `early` backdates it."""
        self.minute += 1
        at = MORNING + timedelta(minutes=-self.minute if early else self.minute)
        blob = self.remote.run("hash-object", "-w", "--stdin", stdin=b"%d" % self.minute).decode().strip()
        tree = self.remote.run("mktree", stdin=f"100644 blob {blob}\tfleet.yaml\n".encode()).decode().strip()
        signing = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={self.path / by}"] if by else []
        given = [part for parent in parents for part in ("-p", parent)]
        command = ["git", "--git-dir", self.remote.url, *signing, "commit-tree", tree, *given, "-m", "edit"]
        done = subprocess.run(
            [*command, *["-S"] * bool(by)],
            env={
                **os.environ, "GIT_AUTHOR_NAME": "X", "GIT_AUTHOR_EMAIL": "x@example.com", "GIT_COMMITTER_NAME": "X",
                "GIT_COMMITTER_EMAIL": "x@example.com", "GIT_COMMITTER_DATE": at.isoformat(),
            },
            check=True, capture_output=True, text=True,
        )  # fmt: skip # one command
        return CommitId(done.stdout.strip())

    def push(self, commit: CommitId) -> CommitId:
        self.remote.git("update-ref", "refs/heads/main", commit)
        return commit

    def open(self, cache: str = "cache") -> GitRepository:
        return GitRepository(
            self.remote.url, cache=self.path / cache, committer=OURS,
            allowed_signers=AllowedSigners(ssh=self.path / "allowed"),
        )  # fmt: skip # short arguments

    def decide(self, on: CommitId) -> None:
        """Commit a decision to the output branch, as a pass does."""
        with self.open("deciding") as repository:
            old = repository.fetch().output
            message = f"burst\n\nOverspill-Action: Place\nOverspill-Source: {on}\n"
            commit = Commit(message=message, author=OURS, at=MORNING, writes={f"clusters/w2/{on}": b"x"})
            (made,) = repository.write(old, [commit])
            repository.begin_push(made, old=old)()


@pytest.fixture
def fleet(remote: Remote, tmp_path: Path) -> Fleet:
    return Fleet(remote, tmp_path)


@pytest.fixture
def repository(fleet: Fleet) -> Iterator[GitRepository]:
    with fleet.open() as opened:
        yield opened


def held(tips: Tips) -> tuple[CommitId | None, SignatureFault | None]:
    return tips.source, tips.held_back.why if tips.held_back else None


def test_merge_without_a_signature_puts_none_of_its_parents_in_force(fleet: Fleet, repository: GitRepository) -> None:
    old = fleet.push(fleet.commit(by="ann"))
    tip = fleet.push(fleet.commit(old, by="ann"))
    assert held(repository.fetch()) == (tip, None)
    draft = fleet.commit(tip, by="ann")
    for first in (old, draft, fleet.commit(by="bob")):
        fleet.push(fleet.commit(first, tip))
        assert held(repository.fetch()) == (tip, SignatureFault.UNSIGNED)


def test_signature_that_is_not_allowed_any_more_takes_nothing_back(fleet: Fleet, repository: GitRepository) -> None:
    old = fleet.push(fleet.commit(by="ann"))
    tip = fleet.push(fleet.commit(old, by="bob"))
    assert held(repository.fetch()) == (tip, None)
    fleet.allow("ann")
    assert held(repository.fetch()) == (tip, SignatureFault.DELISTED)
    fleet.push(fleet.commit(tip))
    assert held(repository.fetch()) == (tip, SignatureFault.UNSIGNED)
    after = fleet.push(fleet.commit(tip, by="ann"))
    assert held(repository.fetch()) == (after, None)


def test_what_was_signed_once_cannot_be_pushed_again(fleet: Fleet, repository: GitRepository) -> None:
    old = fleet.push(fleet.commit(by="ann"))
    tip = fleet.push(fleet.commit(old, by="ann"))
    repository.fetch()
    for replayed in (old, fleet.commit(by="bob", early=True)):
        fleet.push(replayed)
        assert held(repository.fetch()) == (tip, SignatureFault.OLDER)
    rewritten = fleet.push(fleet.commit(by="bob"))
    assert held(repository.fetch()) == (rewritten, None), "a person who may sign has rewritten the branch"


def test_any_number_of_commits_without_a_signature_refuses_no_pass(fleet: Fleet, repository: GitRepository) -> None:
    tip = fleet.push(fleet.commit(by="ann"))
    repository.fetch()
    last = tip
    for _ in range(210):
        last = fleet.remote.commit("main", {"note": last})
    assert held(repository.fetch()) == (tip, SignatureFault.UNSIGNED)


def test_history_that_the_host_has_thrown_away_takes_nothing_back(fleet: Fleet, repository: GitRepository) -> None:
    tip = fleet.push(fleet.commit(by="ann"))
    repository.fetch()
    fleet.push(fleet.commit())
    fleet.remote.git("reflog", "expire", "--expire=now", "--all")
    fleet.remote.git("gc", "-q", "--prune=now")
    assert held(repository.fetch()) == (tip, SignatureFault.UNSIGNED)
    repository.maintain()
    assert [entry.path for entry in repository.entries(tip)] == ["fleet.yaml"]


def test_restart_and_a_command_beside_the_daemon_know_what_is_in_force(fleet: Fleet) -> None:
    old = fleet.push(fleet.commit(by="ann"))
    tip = fleet.push(fleet.commit(old, by="ann"))
    with fleet.open() as repository:
        repository.fetch()
        fleet.push(fleet.commit(fleet.commit(tip, by="ann"), tip))
        with fleet.open() as beside:
            assert not beside.owns_directory
            assert held(beside.fetch()) == (tip, SignatureFault.UNSIGNED)
    with fleet.open() as again:
        assert held(again.fetch()) == (tip, SignatureFault.UNSIGNED)


def test_empty_disk_goes_on_from_the_last_decision(fleet: Fleet) -> None:
    old = fleet.push(fleet.commit(by="ann"))
    decided = fleet.push(fleet.commit(old, by="bob"))
    fleet.decide(decided)
    fleet.push(fleet.commit(old, decided))
    with fleet.open("empty") as repository:
        assert held(repository.fetch()) == (decided, SignatureFault.UNSIGNED)
    fleet.allow("ann")
    with fleet.open("delisted") as repository, pytest.raises(InvalidInput, match="which was decided on last"):
        repository.fetch()
    fleet.allow("ann", "bob")
    later = fleet.commit(decided, by="ann")
    fleet.push(fleet.commit(later))
    with fleet.open("later") as repository:
        assert held(repository.fetch()) == (later, SignatureFault.UNSIGNED)


def test_decision_that_somebody_forged_puts_nothing_in_force(fleet: Fleet) -> None:
    tip = fleet.push(fleet.commit(by="ann"))
    foreign = fleet.push(fleet.commit(tip))
    fleet.decide(foreign)
    with fleet.open("forged") as repository, pytest.raises(InvalidInput, match="signed by an allowed signer"):
        repository.fetch()
    fleet.decide(CommitId("5" * 40))
    with fleet.open("absent") as repository:
        assert held(repository.fetch()) == (tip, SignatureFault.UNSIGNED)


@dataclass
class Programs:
    """The programs that git finds, in place of those of this machine."""

    path: Path
    search: str
    """The PATH of this machine."""

    def put(self, name: str, text: str = "") -> None:
        """Put a program in; one without a text is that of this machine."""
        place = self.path / name
        place.unlink(missing_ok=True)
        if text:
            place.write_text(f"#!/bin/sh\n{text}\n")
            place.chmod(0o755)
        else:
            place.symlink_to(str(shutil.which(name, path=self.search)))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    made = Programs(tmp_path / "bin", os.environ["PATH"])
    made.path.mkdir()
    for name in ("git", "sh", "ssh-keygen"):
        made.put(name)
    monkeypatch.setenv("PATH", str(made.path))
    return made


def test_signature_that_cannot_be_checked_is_told_as_that_and_looked_at_again(fleet: Fleet, programs: Programs) -> None:
    old = fleet.push(fleet.commit(by="ann"))
    with fleet.open() as repository:
        assert held(repository.fetch()) == (old, None)
        tip = fleet.push(fleet.commit(old, by="ann"))
        (programs.path / "ssh-keygen").unlink()
        tips = repository.fetch()
        assert held(tips) == (old, SignatureFault.UNCHECKED)
        assert tips.held_back is not None
        assert "ssh-keygen is not on the PATH (try installing OpenSSH" in tips.held_back.said
        with fleet.open("empty") as empty, pytest.raises(InvalidInput, match="ssh-keygen is not on the PATH"):
            empty.fetch()
        programs.put("ssh-keygen", "kill -9 $$")
        assert held(repository.fetch()) == (old, SignatureFault.UNSIGNED)
        programs.put("ssh-keygen")
        assert held(repository.fetch()) == (tip, None)


def test_what_was_before_a_rewriting_is_looked_for_once_signatures_can_be_checked(
    fleet: Fleet, programs: Programs
) -> None:
    before = fleet.push(fleet.commit(by="ann"))
    fleet.decide(before)
    fleet.push(fleet.commit(by="ann"))
    with fleet.open("empty") as ended:
        ended.fetch()
    (programs.path / "ssh-keygen").unlink()
    for _ in range(12):
        with fleet.open("empty") as repository:
            tip = repository.fetch().source
            assert tip is not None
            with pytest.raises(Transient, match="ssh-keygen is not on the PATH"):
                repository.past_versions(tip, ["fleet.yaml"])
    programs.put("ssh-keygen")
    assert_found_before(fleet, before)


def test_what_was_before_a_rewriting_is_looked_for_again_after_a_check_failed_when_the_tip_had_passed(
    fleet: Fleet, programs: Programs
) -> None:
    before = fleet.push(fleet.commit(by="ann"))
    fleet.decide(before)
    tip = fleet.push(fleet.commit(by="ann"))
    with fleet.open("empty") as repository:
        assert held(repository.fetch()) == (tip, None)
        (programs.path / "ssh-keygen").unlink()
        with pytest.raises(Transient, match=r"before [0-9a-f]{12}: checking .* ssh-keygen is not on the PATH"):
            repository.past_versions(tip, ["fleet.yaml"])
    programs.put("ssh-keygen")
    assert_found_before(fleet, before)


def assert_found_before(fleet: Fleet, before: CommitId) -> None:
    """Assert that a process on the disk of those before finds what stood in the fleet file before the rewriting."""
    with fleet.open("empty") as repository:
        (blob,) = (entry.blob for entry in repository.entries(before))
        tip = repository.fetch().source
        assert tip is not None
        assert blob in repository.past_versions(tip, ["fleet.yaml"]).paths["fleet.yaml"].versions


def test_signature_in_a_format_that_no_allowed_signer_uses_is_refused_without_its_program(
    fleet: Fleet, programs: Programs
) -> None:
    fleet.push(fleet.commit(by="ann"))
    (programs.path / "ssh-keygen").unlink()
    programs.put("false")
    nobody = GitRepository(fleet.remote.url, cache=fleet.path / "cache", allowed_signers=AllowedSigners())
    with nobody as repository, pytest.raises(InvalidInput, match=r"none .* is signed by an allowed signer"):
        repository.fetch()


@pytest.mark.parametrize(("by", "fault"), [("", SignatureFault.UNSIGNED), ("bob", SignatureFault.OLDER)])
def test_mirror_that_is_made_again_takes_nothing_back(
    fleet: Fleet, repository: GitRepository, by: str, fault: SignatureFault
) -> None:
    tip = fleet.push(fleet.commit(fleet.commit(by="ann"), by="ann"))
    repository.fetch()
    fleet.push(fleet.commit(by=by, early=True))
    assert held(repository.fetch()) == (tip, fault)
    repository._branches._renew()
    assert held(repository.fetch()) == (tip, fault)
    assert [entry.path for entry in repository.entries(tip)] == ["fleet.yaml"]


@pytest.mark.parametrize("opened", ["still", "beside"])
def test_mirror_that_was_put_aside_takes_nothing_back_that_came_in_force_later(fleet: Fleet, opened: str) -> None:
    """A lost branch keeps it there; commits between what it knows and what is in force cannot be pushed again."""
    first = fleet.push(fleet.commit(by="ann"))
    fleet.decide(first)
    with fleet.open() as repository:
        assert held(repository.fetch()) == (first, None)
        fleet.remote.move("placements", None)
        assert repository.fetch().losses
        repository._branches._renew()
        assert held(repository.fetch()) == (first, None)
        between = fleet.commit(first, by="bob")
        last = fleet.push(fleet.commit(between, by="ann"))
        assert held(repository.fetch()) == (last, None)
        fleet.push(between)
        if opened == "beside":
            with fleet.open() as beside:
                assert held(beside.fetch()) == (last, SignatureFault.OLDER)
        repository._branches._renew()
        assert held(repository.fetch()) == (last, SignatureFault.OLDER)
        assert list(repository.directory.glob("aside.git"))


def test_mirror_that_is_made_again_does_without_what_the_host_has_thrown_away(
    fleet: Fleet, repository: GitRepository
) -> None:
    fleet.push(fleet.commit(by="ann"))
    repository.fetch()
    fleet.push(fleet.commit())
    repository.fetch()
    fleet.remote.git("reflog", "expire", "--expire=now", "--all")
    fleet.remote.git("gc", "-q", "--prune=now")
    repository._branches._renew()
    with pytest.raises(InvalidInput, match="none of its last 200 commits"):
        repository.fetch()
    after = fleet.push(fleet.commit(by="bob"))
    assert held(repository.fetch()) == (after, None)


@pytest.mark.parametrize("by", ["", "ann"])
def test_commit_that_somebody_names_in_a_decision_lends_no_file_without_a_signature(fleet: Fleet, by: str) -> None:
    """An empty disk takes files of a branch that was rewritten for what stood before."""
    other = fleet.commit(by=by)
    fleet.decide(other)
    tip = fleet.push(fleet.commit(by="bob"))
    with fleet.open("empty") as repository:
        assert held(repository.fetch()) == (tip, None)
        (before,) = repository.past_versions(tip, ["fleet.yaml"]).paths.values()
        assert len(before.versions) == (1 if by else 0)
