"""What people keep on the output branch is not replaced, wherever a directory of ours belongs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal

Make = Callable[[Path], None]


def _file(path: Path) -> None:
    path.write_text("mine\n")


def _link(path: Path) -> None:
    path.symlink_to("elsewhere")


def _person(fleet: Remote, directory: Path, path: str, make: Make) -> list[str]:
    """Let a person put something at a path of the output branch; return all of the branch."""

    def git(*arguments: str) -> None:
        person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", "-C", str(directory), *person, *arguments], check=True, capture_output=True)

    subprocess.run(["git", "clone", "-q", "-b", "placements", fleet.url, str(directory)], check=True)
    (directory / path).parent.mkdir(parents=True, exist_ok=True)
    if make is _submodule:
        git("update-index", "--add", "--cacheinfo", f"160000,{fleet.tip('main')},{path}")
    else:
        make(directory / path)
        git("add", "-A")
    git("commit", "-q", "-m", "Keep something here")
    git("push", "-q", "origin", "HEAD:placements")
    return fleet.git("ls-tree", "-r", "placements").splitlines()


def _submodule(path: Path) -> None:
    """Stand for a submodule, which git makes."""


STANDING = [(path, make) for path in ("clusters", "clusters/worker-2") for make in (_file, _link, _submodule)]


@pytest.mark.parametrize("standing", STANDING)
@pytest.mark.exhaustive(one_in=3)
def test_what_stands_where_a_directory_belongs_stays_and_is_named(
    remote: Remote, overspill: Terminal, see: See, tmp_path: Path, standing: tuple[str, Make]
) -> None:
    path, make = standing
    see(missing=0)
    overspill.done("once")
    before = _person(remote, tmp_path / "clone", path, make)
    see(missing=3)
    done = overspill("once")
    assert done.exit_code == 0
    after = remote.git("ls-tree", "-r", "placements").splitlines()
    assert set(before) <= set(after)
    kind = make.__name__.removeprefix("_")
    words = f"a {kind} that is not Overspill's stands at {path} on the output branch"
    for answer in (done, *(overspill(*asked) for asked in (["explain", "llm/vllm"], ["status"], ["plan"]))):
        assert words in " ".join(answer.output.split()), answer.output
    assert bool(remote.files("placements", "clusters/worker-3")) == (path != "clusters")


def test_a_file_in_place_of_the_ledger_stays_and_no_end_waits_for_it(
    overspill: Terminal, fleet: Remote, placed: list[str], tmp_path: Path
) -> None:
    before = _person(fleet, tmp_path / "clone", "ledger", _file)
    overspill.done("revert", placed[0], "--author", "Ann <ann@example.com>")
    after = fleet.git("ls-tree", "-r", "placements").splitlines()
    assert [line for line in before if line.endswith("\tledger")] == [
        line for line in after if line.endswith("\tledger")
    ]
    assert not fleet.files("placements", f"clusters/worker-2/{placed[0]}")
