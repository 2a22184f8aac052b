"""Thousands of passes in one process: memory, file descriptors, threads and the cache stop growing."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

from reconciler.adapters.git import GitRepository
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.builders.remote import Remote

_MORE_MEMORY = 16 << 20
_MORE_FILES = 4


def run(directory: Path, number: int) -> str:
    """Run so many passes, each of which changes something, and compare the last quarter with the first."""
    remote = Remote(directory / "remote.git")
    remote.commit("main", SOURCE_FILES)
    cache, readings, done = directory / "cache", [], 0
    with GitRepository(remote.url, cache=cache) as repository:
        passes = Passes(repository)
        while done < number:
            passes.advance(70)
            passes.missing = (3, 5, 1, 7, 0, 2)[done % 6]
            passes.since, passes.steady_since = passes.moment - seconds(60), passes.moment - seconds(61)
            passes.repository.fetch()
            passes.run_once()
            done += 1
            if done % (number // 4) == 0:
                gc.collect()
                readings.append(
                    (_memory(), len([*Path("/proc/self/fd").iterdir()]), threading.active_count(), _size(cache))
                )
    (memory, files, threads, _), *_, last = readings
    assert last[0] <= memory + _MORE_MEMORY, f"memory grows: {[reading[0] >> 20 for reading in readings]} MB"
    assert last[1] <= files + _MORE_FILES, f"file descriptors grow: {[reading[1] for reading in readings]}"
    assert last[2] <= threads, f"threads grow: {[reading[2] for reading in readings]}"
    commits = len(remote.subjects("placements"))
    return (
        f"{done} passes, {commits} commits; at each quarter MB {[reading[0] >> 20 for reading in readings]}, "
        f"files {[reading[1] for reading in readings]}, threads {[reading[2] for reading in readings]}, "
        f"cache KB {[reading[3] >> 10 for reading in readings]}"
    )


def _memory() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
