"""Killed at any call of git, `restore` leaves all branches as lost as they were, or all of them settled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.model.ids import CommitId
from tests.builders.passes import BRANCHES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal
from tests.fakes.warm_command import overspill as command

_GIT = """\
#!/bin/sh
number=$(($(cat {path}/number) + 1))
echo $number > {path}/number
test $number = $(cat {path}/fatal) || exec {git} "$@"
kill -9 $PPID
test {goes_on} = False || {git} "$@" > {path}/said 2>&1
touch {path}/killed
"""
"""A program in the place of git that kills its caller at one call, and then does nothing or goes on alone."""
_STRIDE = 20
"""Calls of git from one kill to the next one of a test."""
_WAYS: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "its git dies": ((), False),
    "its git goes on": ((), True),
    "accepting, its git dies": (("--accept",), False),
    "accepting, its git goes on": (("--accept",), True),
}
"""Arguments of `restore`, and whether the git that it called goes on without it."""
_KILLS = [
    pytest.param(*way, after_last, id=f"{name}-{after_last}")
    for number, (name, way) in enumerate(_WAYS.items())
    for after_last in range(_STRIDE)
    if after_last % len(_WAYS) in ({number} if after_last else {0})
]
"""The last call is killed in each way, as it alone pushes; each other one in one of the ways."""
_PERSON = ("-c", "user.name=Ben", "-c", "user.email=ben@example.com")


def _branches(remote: Remote) -> dict[str, str]:
    lines = remote.git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads").splitlines()
    return {name: commit for name, commit in (line.split() for line in lines) if name.startswith("placements")}


def _squash(remote: Remote, branch: str) -> None:
    tree = remote.git("rev-parse", f"{branch}^{{tree}}")
    remote.move(branch, CommitId(remote.git(*_PERSON, "commit-tree", tree, "-m", "Squash")))


def _reset(kept: Path, *places: Path) -> None:
    for place in places:
        shutil.rmtree(place)
        shutil.copytree(kept / place.name, place, symlinks=True)


def _calls(path: Path, environment: Mapping[str, str], arguments: tuple[str, ...], *, fatal: int) -> int:
    """Run `restore`, which is killed at its call of git of a number, 0 for none; return its calls once git ended."""
    (path / "number").write_text("0")
    (path / "fatal").write_text(str(fatal))
    (path / "killed").unlink(missing_ok=True)
    done = subprocess.run(
        [*command(), "restore", *arguments, "--author", ANN],
        env={**os.environ, **environment, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == (-signal.SIGKILL if fatal else 0), done.stderr
    deadline = time.monotonic() + 60
    while fatal and not (path / "killed").exists():
        assert time.monotonic() < deadline, "its git does not end"
        time.sleep(0.005)
    return int((path / "number").read_text())


@pytest.mark.parametrize(("arguments", "goes_on", "after_last"), _KILLS)
@pytest.mark.exhaustive(one_in=12)
def test_restore_killed_at_any_call_of_git_leaves_branches_lost_or_settles_all(
    overspill: Terminal,
    fleet: Remote,
    see: See,
    tmp_path: Path,
    *,
    arguments: tuple[str, ...],
    goes_on: bool,
    after_last: int,
) -> None:
    fleet.commit("main", BRANCHES)
    see(worker_2=2)
    overspill.done("once")
    known, files = _branches(fleet), fleet.files("placements")
    assert len(known) == 4
    for branch in known:
        if branch.endswith("worker-2"):
            fleet.move(branch, None)
        else:
            _squash(fleet, branch)
    overspill("plan")
    lost = _branches(fleet)
    cache, kept, path = Path(overspill.env["OVERSPILL_CACHE_DIR"]), tmp_path / "kept", tmp_path / "bin"
    for place in (fleet.path, cache):
        shutil.copytree(place, kept / place.name, symlinks=True)
    path.mkdir()
    (path / "git").write_text(_GIT.format(path=path, git=shutil.which("git"), goes_on=goes_on))
    (path / "git").chmod(0o755)
    calls = _calls(path, overspill.env, arguments, fatal=0)
    assert calls > 10
    for fatal in range(calls - after_last, 0, -_STRIDE):
        _reset(kept, fleet.path, cache)
        assert _calls(path, overspill.env, arguments, fatal=fatal) == fatal
        left = _branches(fleet)
        settled = left != lost
        assert settled == (goes_on and fatal == calls), f"only the last call pushes, and not {fatal}"
        assert not settled or all(left.get(branch) != lost.get(branch) for branch in known), f"half of it: {left}"
        rows = overspill.answer("restore", *arguments, "--author", ANN)["branches"]
        assert {row["branch"]: row["known"] for row in rows} == ({} if settled else known), f"call {fatal}"
        assert overspill.answer("restore", "--author", ANN)["branches"] == []
        if not arguments:
            assert fleet.files("placements") == files
            for branch, commit in known.items():
                fleet.git("merge-base", "--is-ancestor", commit, branch)
