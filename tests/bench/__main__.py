"""Measure and judge: one line a figure."""

from __future__ import annotations

import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.rendering import Helm
from reconciler.app.world import GARBAGE
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.model.ids import ClusterName
from reconciler.model.tree import Commit, Identity
from reconciler.model.workload import WorkloadRef
from tests.bench import fleet
from tests.bench.api import write_over_floor
from tests.bench.floor import Floor
from tests.bench.listing import list_over_empty
from tests.bench.page import page_figures
from tests.bench.restart import restart_percent
from tests.bench.stage import Stage
from tests.bench.start import start_over_click
from tests.bench.waiting import SHAPES, Waiting
from tests.builders.kube_objects import many

ATTEMPTS = 3
ONE_PLACEMENT_RUNS = 15
ALL_PLACEMENTS_RUNS = 5
IDLE_RUNS = 7
WAITING = 10_000
WAITING_RUNS = 3


@contextmanager
def daemon(remote: Path, cache: Path, stage: Stage) -> Iterator[Callable[..., Outcome]]:
    """Start a daemon with an empty memory; what it yields runs one pass."""
    gc.set_threshold(GARBAGE)
    with GitRepository(str(remote), cache=cache) as repository:
        world = World(
            repository=repository,
            clusters=stage,
            charts=Helm(),
            clock=stage,
            author=Identity(name="Overspill", email="overspill@overspill.dev"),
        )
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
        yield lambda **flags: reconcile_once(world, memory, **flags)


def timed(action: Callable[[], Outcome]) -> tuple[float, Outcome]:
    """Time one pass, with the debts of the collector and of the disk paid beforehand."""
    gc.collect()
    os.sync()
    begin = perf_counter()
    outcome = action()
    return perf_counter() - begin, outcome


def one_placement(filled: Path, work: Path) -> float:
    """One placement of three files, from observation in memory to pushed, against the same commit by script."""
    full, theirs = work / "full.git", work / "floor.git"
    for copy in (full, theirs):
        shutil.copytree(filled, copy)
    floor = Floor(theirs, work / "floor-mirror.git")
    stage = Stage(observed=fleet.observe({}, fleet.START, full=True))
    ours: list[float] = []
    floors: list[float] = []
    with daemon(full, work / "cache-one", stage) as run:
        first, outcome = timed(run)
        print(f"# first pass on 100,000 files: {first:.1f} s", file=sys.stderr)
        if outcome.commits:
            raise RuntimeError(f"the full branch was to stand as it is: {outcome.rendered.changes[:3]}")
        for index in range(ONE_PLACEMENT_RUNS + 1):
            stage.moment += timedelta(seconds=1)
            stage.observed = fleet.again(
                stage.observed, dict.fromkeys(range(index + 1), fleet.REPLICAS), stage.moment, full=True
            )
            took, outcome = timed(lambda: run(fetch=False))
            (commit,) = outcome.rendered.commits
            if len(commit.writes) != 3:
                raise RuntimeError(f"a placement of three files was meant, not {sorted(commit.writes)}")
            script = floor.seconds([commit])
            if index:  # the first of each warms the caches of both
                ours.append(took)
                floors.append(script)
    print(
        f"# one placement: {statistics.median(ours) * 1e3:.1f} ms, floor {statistics.median(floors) * 1e3:.1f} ms",
        file=sys.stderr,
    )
    return statistics.median(ours) / statistics.median(floors)


def all_placements(work: Path) -> tuple[float, float]:
    """1,000 placements in one pass, against one script; and an idle pass at that size, against the first."""
    ratios: list[float] = []
    firsts: list[float] = []
    idles: list[float] = []
    for index in range(ALL_PLACEMENTS_RUNS):
        remote = fleet.remote(work / f"all-{index}.git", output=iter([("README.md", b"ours\n")]))
        theirs = work / f"all-floor-{index}.git"
        shutil.copytree(remote, theirs)
        stage = Stage(observed=fleet.observe({}, fleet.START))
        with daemon(remote, work / f"cache-all-{index}", stage) as run:
            first, _ = timed(run)
            stage.moment += timedelta(seconds=1)
            stage.observed = fleet.again(stage.observed, dict.fromkeys(range(fleet.TEMPLATES), 2), stage.moment)
            took, outcome = timed(run)
            if len(outcome.commits) != fleet.TEMPLATES:
                raise RuntimeError(f"1,000 placements were meant, not {len(outcome.commits)}")
            commits: tuple[Commit, ...] = outcome.rendered.commits
            script = Floor(theirs, work / f"all-floor-mirror-{index}.git").seconds(commits)
            ratios.append(took / script)
            print(f"# 1,000 placements: {took:.3f} s, floor {script:.3f} s; first pass {first:.3f} s", file=sys.stderr)
            firsts.append(first)
            for _ in range(IDLE_RUNS):
                stage.moment += timedelta(seconds=1)
                stage.observed = fleet.again(stage.observed, dict.fromkeys(range(fleet.TEMPLATES), 2), stage.moment)
                idle, outcome = timed(run)
                if outcome.commits:
                    raise RuntimeError("an idle pass committed something")
                idles.append(idle)
    print(
        f"# idle pass {statistics.median(idles) * 1e3:.1f} ms, first {statistics.median(firsts):.3f} s", file=sys.stderr
    )
    return statistics.median(ratios), 100 * statistics.median(idles) / statistics.median(firsts)


def memory(filled: Path, work: Path) -> float:
    """Peak memory, in MB over the imports alone, at 1,000 clusters, 1,000 templates and 100,000 files."""

    def peak(*arguments: str) -> float:
        command = [sys.executable, "-m", "tests.bench.memory", *arguments]
        return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))

    return peak(str(filled), str(work / "cache-memory")) - peak()


def cluster_memory() -> float:
    """What is kept of one watched cluster of 1,000 nodes and 20,000 pods, in MB, with an observation made of it."""
    state = ClusterState(frozenset({WorkloadRef(namespace="team-1", name="service-1")}))
    tracemalloc.start()
    for resource, raw in many(nodes=1000, pods=20_000):
        state.apply(resource, raw)
    seen = state.observation(ClusterName("worker-1"), fleet.START)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if sum(len(pool.nodes) for pool in seen.pools) != 1000:
        raise RuntimeError("all thousand nodes were meant to be seen")
    return taken / 1e6


def waiting() -> tuple[float, float]:
    """A first pass with 10,000 requests that wait, against one with one of each shape; and an idle one, against it."""

    def seconds(passes: Waiting) -> float:
        gc.collect()
        begin = perf_counter()
        plan = passes.run()
        took = perf_counter() - begin
        if plan.changes or not plan.suppressed:
            raise RuntimeError("everybody was meant to wait")
        return took

    few, firsts, idles = [], [], []
    for _ in range(WAITING_RUNS):
        few.append(seconds(Waiting(SHAPES)))
        many = Waiting(WAITING)
        firsts.append(seconds(many))
        idles.append(statistics.median(seconds(many) for _ in range(WAITING_RUNS)))
    floor, first, idle = statistics.median(few), statistics.median(firsts), statistics.median(idles)
    print(f"# {WAITING} wait: first {first:.3f} s, idle {idle:.3f} s; {SHAPES} wait: {floor:.3f} s", file=sys.stderr)
    return first / floor, idle / first


def deciding() -> dict[str, float]:
    """A thousand workloads over a hundred clusters, in a process of their own."""
    command = [sys.executable, "-m", "tests.bench.deciding"]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


def recording() -> dict[str, float]:
    """The cost of recording in passes of a thousand workloads, in a process of their own."""
    command = [sys.executable, "-m", "tests.bench.recording"]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


def metrics() -> dict[str, float]:
    """A scrape of 10,000 placements on 1,000 clusters, in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.metrics"]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


Figure: TypeAlias = tuple[str, float, float]
"""A name, what was measured, and its bound."""


def measurements(filled: Path) -> Iterator[Callable[[Path], Iterable[Figure]]]:
    """Yield what measures, each by the empty directory in which it works; `filled` is a remote of 100,000 files."""
    yield lambda work: [("one_placement_over_floor", one_placement(filled, work), 1.5)]
    yield _all_placements
    yield _waiting
    yield _deciding
    yield lambda _: [(f"recording_percent_of_{kind}_pass", percent, 5.0) for kind, percent in recording().items()]
    # 15 is the aim
    yield lambda work: [("restart_with_cache_percent_of_without", restart_percent(filled, work / "cache"), 17.0)]
    yield lambda work: [("daemon_peak_memory_mb", memory(filled, work), 150.0)]
    yield lambda _: [("watched_cluster_memory_mb", cluster_memory(), 25.0)]
    # 0.10, ten times the floor, is the aim. One git alone makes 18 to 26 commits a second on one and the same idle
    # machine, and the API takes 142 to 160 writes there.
    yield lambda work: [("api_write_over_floor", write_over_floor(work), 0.20)]
    yield lambda _: [("api_list_of_10000_over_empty", list_over_empty(), 5.0)]
    yield _metrics
    yield lambda _: page_figures()
    yield lambda work: _starting(filled, work)


def _all_placements(work: Path) -> Iterator[Figure]:
    placed, idle = all_placements(work)
    # 2.0 is the aim: the same code is at 1.8 to 2.4 on one machine within hours.
    yield "thousand_placements_over_floor", placed, 2.6
    yield "idle_pass_percent_of_first", idle, 2.0


def _waiting(_: Path) -> Iterator[Figure]:
    alike, again = waiting()
    yield "waiting_pass_over_one_of_each_shape", alike, 8.0
    yield "waiting_pass_over_first", again, 0.6


def _deciding(_: Path) -> Iterator[Figure]:
    decided = deciding()
    yield "unchanged_percent_of_first", decided["idle"], 1.0
    yield "one_cluster_changed_percent_of_first", decided["again"], 10.0
    yield "one_cluster_changed_p99_percent_of_first", decided["p99"], 10.0
    # 40 and 200 are the aims. Machines switch every few seconds between two speeds, of which one is half as fast again:
    # a pass of seconds over a count of milliseconds is 47 to 87 and 178 to 260 with one and the same code.
    yield "first_pass_over_count_of_all_nodes", decided["over_count"], 80.0
    yield "first_pass_of_varied_nodes_over_count", decided["varied_over_count"], 280.0
    yield "waiting_bursts_percent_of_first", decided["waiting"], 1.0
    yield "waiting_bursts_changed_percent_of_first", decided["waiting_again"], 10.0
    yield "workload_at_400_clusters_over_100", decided["many_over_few"], 1.8  # 1.5 is the aim
    yield "deciding_peak_memory_mb", decided["mb"], 150.0
    yield "deciding_for_large_fleet_peak_memory_mb", decided["large_mb"], 300.0


def _metrics(_: Path) -> Iterator[Figure]:
    scraped = metrics()
    yield "metrics_series", scraped["series"], 60_000.0
    yield "metrics_scrape_over_written_lines", scraped["over_floor"], 5.0
    yield "metrics_scrape_percent_of_first", scraped["percent_of_first"], 25.0
    yield "metrics_kept_between_scrapes_mb", scraped["mb"], 10.0


def _starting(filled: Path, work: Path) -> Iterator[Figure]:
    started = start_over_click(filled, work / "cache")
    yield "version_over_click", started["version"], 2.5
    yield "help_over_click", started["help"], 2.5
    yield "completion_over_click", started["completion"], 5.0  # git reads a thousand templates for it


def measure(measurement: Callable[[Path], Iterable[Figure]], work: Path) -> list[Figure]:
    """Return the least of each figure, measured again while one is over its bound.

    What else runs on a machine makes its code and the floor slow at different moments, by half and more; a change that
    is dear is dear each time.
    """
    least: list[Figure] = []
    for attempt in range(ATTEMPTS):
        directory = work / str(attempt)
        directory.mkdir(parents=True)
        again = list(measurement(directory))
        shutil.rmtree(directory)
        least = [min(pair, key=itemgetter(1)) for pair in zip(least or again, again, strict=True)]
        missed = [f"{name} {value:.2f}" for name, value, bound in least if value > bound]
        if not missed:
            break
        print(f"# over the bound: {', '.join(missed)} (measurement {attempt + 1} of {ATTEMPTS})", file=sys.stderr)
    return least


def main() -> int:
    """Run all figures and say at the end which bounds were missed."""
    missed = []
    with tempfile.TemporaryDirectory(prefix="overspill-bench-") as directory:
        work = Path(directory)
        filled = fleet.remote(work / "filled.git", output=fleet.placed())
        for number, measurement in enumerate(measurements(filled)):
            for name, value, bound in measure(measurement, work / str(number)):
                print(f"{name} {value:.2f} {bound:.2f}", flush=True)
                if value > bound:
                    missed.append(f"{name} is {value:.2f}, over its bound of {bound:.2f}")
    for line in missed:
        print(line, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
