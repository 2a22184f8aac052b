"""Recorded passes over a thousand clusters and a thousand workloads: what recording costs of the CPU time of a pass.

A first pass that places everything, idle ones, and ones in which a hundred workloads miss another replica. All clusters
are observed anew each time.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from time import process_time
from typing import Any, cast

from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.rendering import Helm
from reconciler.adapters.recording_files import RecordingFiles
from reconciler.app.world import GARBAGE
from reconciler.daemon import reconcile
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.model.capacity import Observed
from reconciler.model.tree import Identity
from tests.bench import fleet
from tests.bench.stage import Stage

RUNS = 9


class Stopwatch:
    """Adds up the CPU time of `record`, of which `append` is a part."""

    def __init__(self) -> None:
        self.taken = 0.0
        self._record = reconcile.record

    def __call__(self, *args: Any) -> None:
        begin = process_time()
        self._record(*args)
        self.taken += process_time() - begin


def figures(work: Path) -> dict[str, float]:
    """Return the percentage of recording in each kind of pass, the median of several."""
    remote = fleet.remote(work / "recorded.git", output=iter([("README.md", b"ours\n")]))
    stage = Stage(observed=fleet.observe({}, fleet.START))
    stopwatch = Stopwatch()
    reconcile.record = cast("Any", stopwatch)
    gc.set_threshold(GARBAGE)
    with GitRepository(str(remote), cache=work / "cache-recorded") as repository:
        recording = RecordingFiles(work / "passes")
        world = World(
            repository=repository, clusters=stage, charts=Helm(), clock=stage,
            author=Identity(name="Overspill", email="overspill@overspill.dev"), recording=recording,
        )  # fmt: skip # one world
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))

        def share(missing: dict[int, int], commits: int) -> float:
            stage.moment += timedelta(seconds=1)
            gc.collect()
            stopwatch.taken = 0.0
            begin = _cpu()
            stage.observed = _again(stage.observed, missing, stage.moment)  # as views do when a pass asks them
            outcome = reconcile_once(world, memory)
            took = _cpu() - begin
            if len(outcome.commits) != commits:
                raise RuntimeError(f"{commits} commits were meant, not {len(outcome.commits)}")
            print(f"# {commits} commits: {1e3 * stopwatch.taken:.1f} of {1e3 * took:.1f} ms", file=sys.stderr)
            return 100 * stopwatch.taken / took

        share({}, 0)
        missing = dict.fromkeys(range(fleet.TEMPLATES), 2)
        first = share(missing, fleet.TEMPLATES)
        idle = [share(missing, 0) for _ in range(RUNS)]
        changed = []
        for run in range(RUNS):
            missing |= dict.fromkeys(range(100 * run, 100 * run + 100), 4)
            changed.append(share(missing, 100))
        recording.close()
    size = sum(path.stat().st_size for path in (work / "passes").iterdir())
    print(f"# {1e-3 * size:.0f} kB recorded", file=sys.stderr)
    return {"first": first, "idle": statistics.median(idle), "changed": statistics.median(changed)}


def _again(before: Observed, missing: Mapping[int, int], now: datetime) -> Observed:
    """Observe everything once more; a workload that is as before is the same object, as views of clusters keep it."""
    observed = fleet.again(before, missing, now)
    home = observed.clusters[fleet.HOME]
    workloads = tuple(
        old if (old.wanted, old.running) == (new.wanted, new.running) else new
        for old, new in zip(before.clusters[fleet.HOME].workloads, home.workloads, strict=True)
    )
    return replace(observed, clusters={**observed.clusters, fleet.HOME: replace(home, workloads=workloads)})


def _cpu() -> float:
    """Return the CPU time of this process and of the git processes that it has waited for."""
    times = os.times()
    return process_time() + times.children_user + times.children_system


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="overspill-bench-") as directory:
        json.dump(figures(Path(directory)), sys.stdout)
