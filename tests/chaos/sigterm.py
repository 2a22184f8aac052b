"""SIGTERM in every phase of a daemon: it ends by itself with 0, and the next one does what is due, once.

A program in the place of git sends the signal to the daemon when it is called for the phase, and then is git.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote

PHASES = ("init", "ls-remote", "fetch", "cat-file", "fast-import", "rev-list", "push", "gc", "idle", "start")
"""Subcommands of git, and moments without one."""

_GIT = """\
#!/bin/sh
if test -e {flag}; then
  for word in "$@"; do
    test "$word" = "{phase}" && rm -f {flag} && kill -TERM $(cat {pid}) && break
  done
fi
exec {git} "$@"
"""


def run(directory: Path, number: int) -> str:
    """Send SIGTERM in each phase, `number` times."""
    turns = ((phase, turn) for turn in range(number) for phase in PHASES)
    reached = [phase for phase, turn in turns if _disturb(directory / f"{phase}-{turn}", phase)]
    assert {"fetch", "cat-file", "fast-import", "push", "idle", "start"} <= {*reached}, f"reached only {reached}"
    return f"{len(reached)} signals, in {', '.join(dict.fromkeys(reached))}"


def _disturb(directory: Path, phase: str) -> bool:
    """Run a daemon until its signal has come, and one pass afterwards; tell whether the phase was reached."""
    directory.mkdir()
    remote = Remote(directory / "fleet.git")
    remote.commit("main", SOURCE_FILES)
    flag, pid, git = directory / "armed", directory / "pid", directory / "bin" / "git"
    git.parent.mkdir()
    git.write_text(_GIT.format(flag=flag, phase=phase, pid=pid, git=shutil.which("git")))
    git.chmod(0o755)
    observations = directory / "observations"
    observations.mkdir()
    environment = {
        **os.environ,
        "OVERSPILL_REPO": remote.url,
        "OVERSPILL_CACHE_DIR": str(directory / "cache"),
        "OVERSPILL_OBSERVATIONS": str(observations),
        "PATH": f"{git.parent}{os.pathsep}{os.environ['PATH']}",
    }
    flag.touch()
    log = directory / "log"
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "reconciler"]
        daemon = subprocess.Popen([*command, "run"], env=environment, stdout=stream, stderr=stream)
        pid.write_text(str(daemon.pid))
        if phase == "start":
            time.sleep(0.05)
            flag.unlink()
            daemon.send_signal(signal.SIGTERM)
        elif phase == "idle":
            _until(lambda: b"pushed" in log.read_bytes())
            flag.unlink()
            daemon.send_signal(signal.SIGTERM)
        else:
            _until(lambda: not flag.exists() or b"pushed" in log.read_bytes())
        reached = not flag.exists()
        if not reached:
            daemon.send_signal(signal.SIGTERM)
        code = daemon.wait(120)
    said = log.read_text()
    # While it starts, with nothing to finish, the signal ends it as any other program.
    assert code == 0 or (phase in {"start", "init"} and code == -signal.SIGTERM), f"{phase}: exit code {code}\n{said}"
    assert "Traceback" not in said, f"{phase}: {said}"
    done = subprocess.run([*command, "once"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{phase}: {done.stderr}"
    remote.git("fsck", "--strict")
    assert remote.subjects("placements") == ["start(demo): the output branch"], (
        f"{phase}: {remote.subjects('placements')}"
    )
    return reached


def _until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, at most two minutes."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "nothing for two minutes"
        time.sleep(0.02)
