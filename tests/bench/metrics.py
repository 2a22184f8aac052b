"""What a scrape of 10,000 placements on 1,000 clusters costs, in a process of its own.

The floor is what the scrape cannot do without: the same number of lines, written by a loop that does nothing else.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import TypeVar

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.catalogue import Catalogue
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.observe.demand import measure
from reconciler.daemon.metrics.fleet_metrics import FleetMetrics
from reconciler.daemon.reconcile import PassDecision
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, CommitId, WorkspaceName
from reconciler.model.ledger import Ledger, Placements
from reconciler.model.plan import Plan
from reconciler.model.policy import BurstPolicy, Cluster, ClusterPreference, Desired, EngineName, Workspace
from reconciler.model.tree import Tips
from reconciler.model.workload import DeploySpec, WorkloadRef, WorkloadTemplate
from tests.bench import fleet

T = TypeVar("T")

PLACEMENTS_EACH = 10
"""Of each of the thousand workloads."""
CHANGED = 10
"""Clusters that are seen otherwise from one scrape to the next: one in a hundred."""
RUNS = 15


def main() -> None:
    """Print the figures as JSON."""
    passes = _Passes()
    scrapes = FleetMetrics()
    tracemalloc.start()
    text = scrapes.text(passes.snapshot(), None)
    kept, _ = tracemalloc.get_traced_memory()
    kept -= sys.getsizeof(text)
    tracemalloc.stop()
    lines = text.splitlines()
    series = sum(not line.startswith("#") for line in lines)
    first = _seconds(lambda seen: FleetMetrics().text(seen, None), passes.snapshot, runs=3)
    again = _seconds(lambda seen: scrapes.text(seen, None), passes.next, runs=RUNS)
    names = [line.partition("{")[0] for line in lines]
    rows = [(name, "llm", f"serving-{at:04d}", f"gpu-{at:04d}", float(at)) for at, name in enumerate(names)]
    floor = _seconds(lambda _: _write(rows), lambda: None, runs=RUNS)
    figures = {
        "series": series,
        "over_floor": again / floor,
        "percent_of_first": 100 * again / first,
        "mb": kept / 1e6,
    }
    told = f"first {first * 1e3:.0f} ms, later ones {again * 1e3:.1f} ms, floor {floor * 1e3:.1f} ms of CPU"
    print(f"# /metrics of {series:,} series ({len(text) / 1e6:.1f} MB): {told}", file=sys.stderr)
    print(json.dumps(figures))


def _write(rows: list[tuple[str, str, str, str, float]]) -> str:
    return "".join(
        [f'{name}{{workspace="{a}",workload="{b}",cluster="{c}"}} {value!r}\n' for name, a, b, c, value in rows]
    )


def _seconds(action: Callable[[T], str], before: Callable[[], T], *, runs: int) -> float:
    """Return the median of the CPU seconds that an action takes with what is made before it."""
    times = []
    for _ in range(runs):
        made = before()
        gc.collect()
        begin = process_time()
        action(made)
        times.append(process_time() - begin)
    return statistics.median(times)


class _Passes:
    """Snapshots of a fleet, a second apart."""

    def __init__(self) -> None:
        workloads = [fleet.workload(index) for index in range(fleet.TEMPLATES)]
        names = fleet.every_cluster()
        order = tuple(ClusterPreference(name=name) for name in names[1:40])
        self._desired = Desired(
            commit=CommitId("5" * 40),
            clusters={name: Cluster(name=name, engine=EngineName.ARGOCD, price_per_gpu_hour=2.99) for name in names},
            workspaces={
                WorkspaceName("bench"): Workspace(
                    name=WorkspaceName("bench"), primary=fleet.HOME, clusters=tuple(names[1:])
                )
            },
            templates={
                workload: WorkloadTemplate(
                    name=workload.name,
                    workspace=workload.workspace,
                    namespace="kubeslice-bench",
                    spec=DeploySpec(burst_duration=timedelta(hours=1)),
                    ref=WorkloadRef(namespace="serving", name=workload.name),
                )
                for workload in workloads
            },
            policies=dict.fromkeys(workloads, BurstPolicy(name="bench", candidates=order)),
        )
        placements = {
            made.path: made
            for index in range(fleet.TEMPLATES)
            for made in [*fleet.working_plan(index)][:PLACEMENTS_EACH]
        }
        self._ledger = Ledger(commit=CommitId("7" * 40), placements=Placements(placements))
        self._now = fleet.START
        self._observed = fleet.observe({}, self._now, full=True)
        self._turn = 0

    def next(self) -> Snapshot:
        """Let a second pass, in which pods come or go on some clusters; each cluster is observed anew."""
        self._now += timedelta(seconds=1)
        self._turn += 1
        clusters = {
            name: replace(seen, observed_at=self._now, bound=dict(seen.bound))
            for name, seen in self._observed.clusters.items()
        }
        for step in range(CHANGED):
            name: ClusterName = fleet.cluster((self._turn * CHANGED + step) % fleet.CLUSTERS)
            bound = {placement: max(0, pods - 1) for placement, pods in clusters[name].bound.items()}
            clusters[name] = replace(clusters[name], bound=bound)
        self._observed = Observed(clusters=clusters)
        return self.snapshot()

    def snapshot(self) -> Snapshot:
        """Return the snapshot of a pass at this moment."""
        demands = measure(self._desired, self._observed, {}, self._now, {})
        reach = ClusterOrder(self._desired)
        inputs = PassInput(
            desired=self._desired,
            ledger=self._ledger,
            observed=self._observed,
            demands=demands,
            now=self._now,
            reach=reach,
        )
        tips = Tips(source=self._desired.commit, output=self._ledger.commit)
        decision = PassDecision(inputs=inputs, tips=tips, plan=Plan(changes=(), suppressed=()))
        return Snapshot(decision=decision, blobs={}, catalogue=Catalogue({}, {}), held={})


if __name__ == "__main__":
    main()
