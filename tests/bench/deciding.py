"""A thousand workloads over a hundred clusters of fifty nodes: everything at once, one cluster changed, one workload.

A quarter of the workloads each is in order, by weight, by free capacity, and on the fewest clusters. Together they ask
for a little more than there is, so that some wait, and are looked at anew in each pass.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from time import perf_counter

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.observe import demand
from reconciler.model.capacity import (
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    Pool,
    ReplicaShape,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.plan import Place, Plan, Resize
from reconciler.model.policy import StrategyName
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import WorkloadRef
from tests.bench.fleet import FLEET, GPU, HOME, START, TEMPLATE
from tests.bench.peak import peak

WORKLOADS, CLUSTERS, NODES, GPUS = 1000, 100, 50, 8
WANTED = 41
"""Replicas of one GPU that each workload lacks: 41,000 for 40,000 GPUs."""
CHANGES = 120
CLUSTER = """\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{region: {region}}}}}
"""
POLICY = """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {{name: {name}}}
spec:
  templates: [{templates}]
  distribution: {{strategy: {strategy}}}
  clusters: [{clusters}]
  scaleUp: {{window: 30s}}
  coolDown: 5m
"""
WORKSPACE = """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {{name: bench}}
spec: {{primaryCluster: {home}, clusters: [{clusters}], namespaces: [serving]}}
"""
_NAMES = tuple(ClusterName(f"gpu-{index:03d}") for index in range(CLUSTERS))
_SHAPE = ReplicaShape(requests=Resources(amounts={GPU: ONE}))


class Deciding:
    """Passes over the whole fleet, each a second after the one before; what is placed has its nodes by the next."""

    def __init__(self) -> None:
        files = {path: parse_file(text.encode()) for path, text in _files()}
        self._desired = assemble(CommitId("5" * 40), files)
        if self._desired.problems:
            raise RuntimeError(f"the fleet was meant to be whole: {self._desired.problems[:3]}")
        self._enrolment = Enrolment(self._desired, {})
        self._history: demand.DemandHistory = {}
        self._more: Counter[ClusterName] = Counter()
        self._seen: dict[ClusterName, tuple[object, ClusterObservation]] = {}
        self._ledger = Ledger(commit=CommitId("7" * 40))
        self._now = START

    def add_node(self, cluster: int) -> None:
        """Let one cluster have a node more."""
        self._more[_NAMES[cluster]] += 1

    def run(self) -> tuple[float, Plan]:
        """Decide once; returns the seconds that it took, and the plan, whose placements stand from here on."""
        self._now += timedelta(seconds=1)
        observed = self._observed()
        gc.collect()
        began = perf_counter()
        demands = demand.measure(self._desired, observed, self._history, self._now)
        self._history = demand.remembered(demands)
        self._enrolment = self._enrolment.following(self._desired, self._ledger.requests)
        plan = decide(
            PassInput(
                desired=self._enrolment.desired,
                ledger=self._ledger,
                observed=observed,
                demands=demands,
                now=self._now,
                reach=self._enrolment.reach,
                enrolment=self._enrolment,
            )
        )
        took = perf_counter() - began
        self._land(plan)
        return took, plan

    def _land(self, plan: Plan) -> None:
        put: dict[str, Placement] = {}
        for change in plan.changes:
            match change:
                case Place(placement=placement) | Resize(after=placement):
                    put[placement.path] = placement
                case _:
                    raise RuntimeError(f"nothing was meant to end: {change}")
        self._ledger = replace(self._ledger, placements=self._ledger.placements.changed(put))

    def _observed(self) -> Observed:
        """Show every cluster as it is by now; one that is as before is shown as it was, a second later."""
        clusters = {}
        for name in _NAMES:
            there = self._ledger.placements.on(name).placements
            known = self._seen.get(name)
            if known is None or known[0] != (there, self._more[name]):
                known = self._seen[name] = (there, self._more[name]), _cluster(name, there, NODES + self._more[name])
            clusters[name] = replace(known[1], observed_at=self._now)
        workloads = tuple(_missing(index) for index in range(WORKLOADS))
        clusters[HOME] = ClusterObservation(cluster=HOME, observed_at=self._now, workloads=workloads)
        return Observed(clusters=clusters)


def figures() -> dict[str, float]:
    """Measure a pass after one cluster has changed, in percent of the first; and what of one workload is decided in."""
    before = peak()
    passes = Deciding()
    first, plan = passes.run()
    if (taken := _taken(plan)) != CLUSTERS * NODES * GPUS:
        raise RuntimeError(f"every GPU was meant to be taken, not {taken}")
    passes.run()  # what was placed has come
    took: list[float] = []
    for index in range(CHANGES):
        passes.add_node(index % CLUSTERS)
        seconds, plan = passes.run()
        if _taken(plan) != GPUS:
            raise RuntimeError(f"what waits was meant to take the new node: {plan.changes}")
        took.append(seconds)
    again, p99 = statistics.median(took), statistics.quantiles(took, n=100)[-1]
    print(
        f"# deciding for {WORKLOADS} workloads: first {first:.2f} s ({1e3 * first / WORKLOADS:.1f} ms each),"
        f" one cluster changed {1e3 * again:.0f} ms, P99 {1e3 * p99:.0f} ms",
        file=sys.stderr,
    )
    return {"again": 100 * again / first, "p99": 100 * p99 / first, "mb": peak() - before}


def _taken(plan: Plan) -> int:
    """Count the replicas that a plan places."""
    more = (change.after.replicas - change.before.replicas for change in plan.changes if isinstance(change, Resize))
    return sum(more) + sum(change.placement.replicas for change in plan.changes if isinstance(change, Place))


def _name(index: int) -> str:
    return f"serving-{index:04d}"


def _files() -> Iterator[tuple[str, str]]:
    yield "fleet.yaml", FLEET
    for number, name in enumerate((HOME, *_NAMES)):
        yield f"clusters/{name}.yaml", CLUSTER.format(name=name, region=f"region-{number % 4}")
    for strategy in StrategyName:
        own = [_name(index) for index in range(WORKLOADS) if strategy is _strategy(index)]
        yield (
            f"policies/{strategy}.yaml".lower(),
            POLICY.format(name=strategy.lower(), strategy=strategy, templates=", ".join(own), clusters=_listed(_NAMES)),
        )
    for index in range(WORKLOADS):
        yield f"templates/{_name(index)}.yaml", TEMPLATE.format(name=_name(index))
    yield "workspaces/bench.yaml", WORKSPACE.format(home=HOME, clusters=", ".join((HOME, *_NAMES)))


def _listed(names: Iterable[ClusterName]) -> str:
    return ", ".join(f"{{name: {name}}}" for name in names)


def _strategy(index: int) -> StrategyName:
    return tuple(StrategyName)[index % len(StrategyName)]


def _cluster(name: ClusterName, there: Sequence[Placement], nodes: int) -> ClusterObservation:
    """Observe a cluster whose placements take the GPUs of one node after the other."""
    taken = sum(placement.replicas for placement in there)
    room = [max(0, min(GPUS, GPUS * (index + 1) - taken)) for index in range(nodes)]
    whole = Resources(amounts={GPU: Quantity(GPUS * ONE)})
    pool = Pool(
        name="gpu",
        nodes=tuple(
            Node(
                name=f"node-{index:02d}",
                free=Resources(amounts={GPU: Quantity(free * ONE)}),
                allocatable=whole,
            )
            for index, free in enumerate(room)
        ),
    )
    replicas = {placement.name: placement.replicas for placement in there}
    return ClusterObservation(cluster=name, observed_at=START, pools=(pool,), bound=replicas, ready=replicas)


def _missing(index: int) -> WorkloadObservation:
    return WorkloadObservation(
        ref=WorkloadRef(namespace="serving", name=_name(index), kind="Deployment"),
        wanted=4 + WANTED,
        running=4,
        waiting=(MissingReplicas(replicas=WANTED, since=START - timedelta(minutes=1)),),
        shape=_SHAPE,
    )


if __name__ == "__main__":
    json.dump(figures(), sys.stdout)
