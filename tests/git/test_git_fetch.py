"""Following two branches of a remote that other people move."""

from __future__ import annotations

import os
import re
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import Credentials, GitRepository
from reconciler.errors import InvalidInput, Transient


def test_empty_remote_has_no_branches(repository):
    assert repository.fetch() == repository.tips()
    assert (repository.tips().source, repository.tips().output) == (None, None)


def test_branch_that_does_not_exist_yet_is_none(remote, repository):
    source = remote.commit("main", {"a.yaml": "a: 1\n"})
    tips = repository.fetch()
    assert (tips.source, tips.output, tips.output_at) == (source, None, None)


def test_output_time_is_the_committer_time_of_its_tip(remote, repository):
    at = datetime(2026, 11, 20, 11, 30, tzinfo=UTC)
    remote.commit("placements", {"a": "1"}, at=at)
    assert repository.fetch().output_at == at


def test_both_branches_are_followed(remote, repository):
    remote.commit("main", {"a": "1"})
    remote.commit("placements", {"b": "1"})
    first = repository.fetch()
    assert repository.fetch() == first
    source, output = remote.commit("main", {"a": "2"}), remote.commit("placements", {"b": "2"})
    tips = repository.fetch()
    assert (tips.source, tips.output) == (source, output)


def test_output_branch_made_by_somebody_else_appears(remote, repository):
    remote.commit("main", {"a": "1"})
    repository.fetch()
    output = remote.commit("placements", {"b": "1"})
    assert repository.fetch().output == output


def test_deleted_source_branch_is_noticed_and_its_return_too(remote, repository):
    source = remote.commit("main", {"a": "1"})
    output = remote.commit("placements", {"b": "1"})
    repository.fetch()
    remote.move("main", None)
    assert (repository.fetch().source, repository.fetch().output) == (None, output)
    remote.move("main", source)
    assert repository.fetch().source == source


def test_branches_of_people_are_listed_by_name_and_ours_are_not(remote, repository):
    assert repository.branch_names() == []
    for branch in ("team/live", "placements", "placements-by-cluster/worker-2", "trunk"):
        remote.commit(branch, {"a": "1"})
    assert repository.branch_names() == ["team/live", "trunk"]


def test_forced_push_of_the_source_branch_is_followed(remote, repository):
    kept = remote.commit("main", {"a": "1"})
    remote.commit("main", {"a": "2"})
    remote.commit("placements", {"b": "1"})
    repository.fetch()
    remote.move("main", kept)
    assert repository.fetch().source == kept


def test_first_fetch_brings_the_last_commit_only(remote, repository, tmp_path):
    for number in range(5):
        remote.commit("main", {"a": str(number)})
        remote.commit("placements", {"b": str(number)})
    repository.fetch()
    (shallow,) = (tmp_path / "cache").glob("*/mirror.git/shallow")
    assert sorted(shallow.read_text().split()) == sorted([remote.tip("main"), remote.tip("placements")])


def test_branches_of_other_names_are_not_fetched(remote, tmp_path):
    remote.commit("main", {"a": "1"})
    remote.commit("live", {"a": "2"})
    remote.commit("placements-old", {"a": "3"})
    with GitRepository(remote.url, cache=tmp_path / "cache", output_branch="live") as repository:
        tips = repository.fetch()
        assert tips.output == remote.tip("live")
        assert repository.entries(tips.output)[0].path == "a"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("fleeet.git", r"the directory does not exist \(try .*/fleet.git\)"),
        ("nothing", r"the directory does not exist \(try another path"),
        ("no/where", r"no does not exist \(try another path"),
        ("file", r"is a file \(name the directory"),
    ],
)
def test_no_repository_on_this_machine_is_for_a_person_to_mend(tmp_path, path, why):
    (tmp_path / "fleet.git").mkdir()
    (tmp_path / "file").write_text("kind: Fleet")
    with (
        GitRepository(str(tmp_path / path), cache=tmp_path / "cache") as repository,
        pytest.raises(InvalidInput, match=why),
    ):
        repository.fetch()


def test_directory_that_is_no_repository_is_told_apart(tmp_path):
    fleet = tmp_path / "my fleet"
    fleet.mkdir()
    with (
        GitRepository(str(fleet), cache=tmp_path / "cache") as repository,
        pytest.raises(InvalidInput, match=r"is no git repository \(only `overspill check` reads .*try: git") as caught,
    ):
        repository.fetch()
    (tmp_path / ".git").mkdir()
    with (
        GitRepository(str(fleet), cache=tmp_path / "cache") as repository,
        pytest.raises(
            InvalidInput, match=re.escape(f"lies in the git repository {tmp_path}, and is none itself")
        ) as it,
    ):
        repository.fetch()
    assert f"(try --repo {tmp_path}, or give" in str(it.value)
    (begin,) = re.findall(r": (git init .*)\)$", str(it.value))
    assert begin in str(caught.value)
    (fleet / "fleet.yaml").write_text("")
    (begin,) = re.findall(r"try: (git .*)\)$", str(caught.value))
    person = {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ann"}
    person |= {"GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "ann@example.com"}
    subprocess.run(["sh", "-euc", begin], env={**os.environ, **person}, check=True, capture_output=True)
    with GitRepository(str(fleet), cache=tmp_path / "cache") as repository:
        assert repository.fetch().source


def test_host_that_is_away_is_transient(tmp_path):
    with (
        GitRepository("http://127.0.0.1:9/fleet.git", cache=tmp_path / "cache") as repository,
        pytest.raises(Transient, match=r"fetching http://127\.0\.0\.1:9/fleet\.git"),
    ):
        repository.fetch()


def _ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a stand-in for ssh first on the PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "ssh").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


def _ends(pid: str) -> bool:
    """Wait until a killed process runs no more; whose parent is gone too may still wait for init to notice."""
    state = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_remote_that_hangs_is_given_up_and_its_processes_ended(tmp_path, monkeypatch):
    _ssh(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid\nsleep 60")
    patience = timedelta(seconds=0.5)
    with GitRepository("git@example.com:fleet.git", cache=tmp_path / "cache", timeout=patience) as repository:
        with pytest.raises(Transient, match=r"git ls-remote: no answer for 0\.5 s"):
            repository.fetch()
        pid = (tmp_path / "pid").read_text().strip()
    assert _ends(pid)


def test_slow_remote_that_says_something_is_waited_for(remote, tmp_path, monkeypatch):
    remote.commit("main", {"a": "1"})
    talk = "for i in 1 2 3 4; do echo still here >&2; sleep 0.3; done"
    once = f"test -e {tmp_path}/told || {{ touch {tmp_path}/told; {talk}; }}"
    _ssh(tmp_path, monkeypatch, f'{once}\nfor last; do :; done\nexec sh -c "$last"')
    patience = timedelta(seconds=0.8)
    with GitRepository(f"ssh://host{remote.url}", cache=tmp_path / "cache", timeout=patience) as repository:
        assert repository.fetch().source == remote.tip("main")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("git@example.com: Permission denied (publickey).", "deploy key with write access"),
        ("Host key verification failed.", "OVERSPILL_KNOWN_HOSTS"),
        ("ERROR: Repository not found.", "check the repository's URL"),
    ],
)
def test_refused_login_says_what_to_do(tmp_path, monkeypatch, said, hint):
    _ssh(tmp_path, monkeypatch, f"echo '{said}' >&2; exit 255")
    with (
        GitRepository("git@example.com:fleet.git", cache=tmp_path / "cache") as repository,
        pytest.raises(InvalidInput, match=hint),
    ):
        repository.fetch()


def test_ssh_host_that_cannot_be_reached_is_transient(tmp_path, monkeypatch):
    _ssh(tmp_path, monkeypatch, "echo 'ssh: connect to host example.com port 22: Connection refused' >&2; exit 255")
    with (
        GitRepository("git@example.com:fleet.git", cache=tmp_path / "cache") as repository,
        pytest.raises(Transient, match="Connection refused"),
    ):
        repository.fetch()


def test_ssh_never_asks_and_takes_the_given_key(tmp_path, monkeypatch):
    _ssh(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/arguments; exit 1')
    login = Credentials(ssh_key=tmp_path / "my key", known_hosts=tmp_path / "hosts")
    repository = GitRepository("ssh://git@example.com/fleet.git", cache=tmp_path / "cache", credentials=login)
    with repository, pytest.raises(Transient):
        repository.fetch()
    arguments = (tmp_path / "arguments").read_text()
    assert "BatchMode=yes" in arguments
    assert f"-i {tmp_path}/my key" in arguments
    assert "StrictHostKeyChecking=yes" in arguments


def test_inherited_git_variables_do_not_reach_git(remote, tmp_path, monkeypatch):
    remote.commit("main", {"a": "1"})
    other = tmp_path / "other"
    other.mkdir()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, str(other))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'alias.fetch'='!false' 'fetch.recurseSubmodules'='nonsense'")
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        assert [entry.path for entry in repository.entries(repository.fetch().source)] == ["a"]
    assert list(other.iterdir()) == []
