"""A cache on a disk that is full or read-only: what is due happens as far as it can, and all of it once there is room.

The disk is a tmpfs in a mount namespace of the daemon's own; where the machine allows none, the disturbance says so.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

from tests.chaos.whole_daemon import Daemon, Scene, scene

_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
_SIZE = "8m"
"""Room for a mirror of the fleet, and little beside it."""


def run(directory: Path, number: int) -> str:
    """Fill the disk of a daemon so often, and make it read-only so often; see that nothing is lost or stays."""
    if subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode:
        return "not tried: this machine allows no mount namespaces (unshare --user --mount)"
    chance, outages = random.Random(20261130), 0
    with scene(directory) as one:
        for turn in range(number):
            daemon = _start(one)
            one.begin(daemon)
            one.missing = {name: chance.choice([1, 2, 3]) for name in one.workloads}
            time.sleep(chance.uniform(0, 1))
            full = turn % 2 == 0
            _spoil(daemon, one, full=full)
            one.missing = {name: chance.choice([0, 2, 4]) for name in one.workloads}
            one.remote.commit("main", {"README.md": f"turn {turn}"})  # something to fetch
            time.sleep(chance.uniform(1, 4))
            outages += "backing off" in daemon.said() or "cannot" in daemon.said()
            _mend(daemon, one, full=full)
            one.settle(daemon)
            assert daemon.end() == 0, daemon.said()[-2000:]
            assert "Traceback" not in daemon.said(), daemon.said()[-3000:]
            one.see_history()
        return f"{number} disks, every other full and read-only, {outages} told; {one.judge()}"


def _start(one: Scene) -> Daemon:
    """Start a daemon whose cache is a small disk of its own."""
    cache = one.path / "cache"
    cache.mkdir(exist_ok=True)
    mount = f'mount -t tmpfs -o size={_SIZE},mode=700 tmpfs "{cache}" && exec "$@"'
    return one.start("cache", around=(*_NAMESPACE, "sh", "-c", mount, "sh"), warm=False)


def _spoil(daemon: Daemon, one: Scene, *, full: bool) -> None:
    """Fill the disk, or make it read-only."""
    cache = one.path / "cache"
    _inside(daemon, f"dd if=/dev/zero of={cache}/filler bs=64k 2>&1; true" if full else f"mount -o remount,ro {cache}")


def _mend(daemon: Daemon, one: Scene, *, full: bool) -> None:
    """Give the disk its room back, or make it writable."""
    cache = one.path / "cache"
    _inside(daemon, f"rm -f {cache}/filler" if full else f"mount -o remount,rw {cache}")


def _inside(daemon: Daemon, command: str) -> None:
    """Run a command where the daemon sees its disk."""
    enter = ["nsenter", f"--target={daemon.process.pid}", "--user", "--mount", "--preserve-credentials"]
    subprocess.run([*enter, "sh", "-c", command], check=False, capture_output=True)
