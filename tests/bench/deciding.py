"""Thousands of workloads over hundreds of clusters of fifty nodes: everything at once, one cluster changed, nothing.

A quarter of the workloads each is in order, by weight, by free capacity, and on the fewest clusters. Where they ask
together for more than there is, some wait, and are looked at anew in each pass.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate
from random import Random
from time import perf_counter

import numpy as np

from reconciler.app.world import GARBAGE
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.unchanged import DecidedPass, decide_again
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.observe import demand
from reconciler.core.observe.rollouts import Rollouts
from reconciler.model.action import Action
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
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import StrategyName
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import WorkloadRef
from tests.bench.fleet import FLEET, GPU, HOME, START, TEMPLATE
from tests.bench.peak import peak

NODES, GPUS = 50, 8
KINDS, SHAPES = 18, 40
CHANGES = 120
_COUNTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The size of a fleet, and what is missing in it."""

    workloads: int
    clusters: int
    wanted: int
    """Replicas that each workload lacks."""
    gpus: tuple[int, ...] = (1,)
    """GPUs of a replica, for one workload after the other."""
    nodes: tuple[int, ...] = (GPUS,)
    """GPUs of a node, for one node after the other."""
    varied: bool = False
    """Whether nodes are of many kinds, each with other amounts free, and replicas of forty shapes."""

    @property
    def names(self) -> tuple[ClusterName, ...]:
        """The clusters beside the primary."""
        return tuple(ClusterName(f"gpu-{index:03d}") for index in range(self.clusters))


SHORT = Scale(workloads=1000, clusters=100, wanted=41)
"""41,000 GPUs wanted, and 40,000 there."""
SATURATED = Scale(workloads=4000, clusters=100, wanted=6, gpus=(1, 2, 4), nodes=(4, 8))
"""56,000 GPUs wanted, and 30,000 there: nearly all bursts wait, of several shapes, on nodes of two kinds."""
LARGE = Scale(workloads=4000, clusters=400, wanted=12)
"""48,000 GPUs wanted, and 160,000 there."""
VARIED = Scale(workloads=1000, clusters=100, wanted=20, varied=True)
"""Nodes of eighteen kinds of labels and taints, with four resources; replicas of forty shapes, which not all fit."""
ROOMY = tuple(Scale(workloads=500, clusters=clusters, wanted=20) for clusters in (100, 400))
"""Room for all, on few clusters and on many."""
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


class Deciding:
    """Passes over the whole fleet, each a second after the one before; what is placed has its nodes by the next."""

    def __init__(self, scale: Scale = SHORT) -> None:
        self._scale = scale
        self._names = scale.names
        files = {path: parse_file(text.encode()) for path, text in _files(scale)}
        self._desired = assemble(CommitId("5" * 40), files)
        if self._desired.problems:
            raise RuntimeError(f"the fleet was meant to be whole: {self._desired.problems[:3]}")
        self._enrolment = Enrolment(self._desired, {})
        self._history: demand.DemandHistory = {}
        self._more: Counter[ClusterName] = Counter()
        self._seen: dict[ClusterName, tuple[object, ClusterObservation]] = {}
        self._ledger = Ledger(commit=CommitId("7" * 40))
        self._now = START
        self._rollouts = Rollouts()
        self._measured: demand.Measured | None = None
        self._decided: DecidedPass | None = None
        self._workloads = tuple(_missing(scale, index) for index in range(scale.workloads))

    def add_node(self, cluster: int) -> None:
        """Let one cluster have a node more."""
        self._more[self._names[cluster]] += 1

    def run(self) -> tuple[float, Plan]:
        """Decide once; returns the seconds that it took, and the plan, whose placements stand from here on."""
        self._now += timedelta(seconds=1)
        observed = self._observed()
        gc.collect()
        began = perf_counter()
        demands = demand.measure(self._desired, observed, self._history, self._now, before=self._measured)
        self._measured = demand.Measured(demands=demands, desired=self._desired, observed=observed, now=self._now)
        self._history = demand.next_history(demands)
        self._enrolment = self._enrolment.updated(self._desired, self._ledger.requests)
        self._decided = decide_again(
            PassInput(
                desired=self._enrolment.desired,
                ledger=self._ledger,
                observed=observed,
                demands=demands,
                now=self._now,
                reach=self._enrolment.reach,
                rollouts=self._rollouts,
                enrolment=self._enrolment,
            ),
            self._decided,
        )
        took = perf_counter() - began
        self._land(self._decided.plan)
        return took, self._decided.plan

    def _land(self, plan: Plan) -> None:
        put: dict[str, Placement] = {}
        for change in plan.changes:
            if change.action not in (Action.PLACE, Action.RESIZE):
                raise RuntimeError(f"nothing was meant to end: {change}")
            put[change.placement.path] = change.placement
        self._ledger = replace(self._ledger, placements=self._ledger.placements.changed(put))

    def _observed(self) -> Observed:
        """Show every cluster as it is by now; one that is as before is shown as it was, a second later."""
        clusters = {}
        for name in self._names:
            there = self._ledger.placements.on(name).placements
            known = self._seen.get(name)
            if known is None or known[0] != (there, self._more[name]):
                nodes = [self._scale.nodes[index % len(self._scale.nodes)] for index in range(NODES + self._more[name])]
                seen = _cluster(name, there, nodes)
                known = self._seen[name] = (there, self._more[name]), _varied(seen) if self._scale.varied else seen
            clusters[name] = replace(known[1], observed_at=self._now)
        clusters[HOME] = ClusterObservation(cluster=HOME, observed_at=self._now, workloads=self._workloads)
        return Observed(clusters=clusters)


def figures() -> dict[str, float]:
    """Measure passes: each against the first of its fleet, that one against a count of all nodes, and two fleets."""
    short, saturated, large = _short(), _saturated(), _large()  # in this order: peaks of memory only grow
    few, varied = _many_over_few(), _of_varied_nodes()
    return {**short, **saturated, "large_mb": large, "many_over_few": few, "varied_over_count": varied}


def _short() -> dict[str, float]:
    """Measure a first pass, and those after nothing and after one cluster has changed, in percent of it."""
    before = peak()
    passes = Deciding()
    first, plan = passes.run()
    if (taken := _taken(plan)) != SHORT.clusters * NODES * GPUS:
        raise RuntimeError(f"every GPU was meant to be taken, not {taken}")
    passes.run()  # what was placed has come
    idle = statistics.median(passes.run()[0] for _ in range(3))
    took: list[float] = []
    for index in range(CHANGES):
        passes.add_node(index % SHORT.clusters)
        seconds, plan = passes.run()
        if _taken(plan) != GPUS:
            raise RuntimeError(f"what waits was meant to take the new node: {plan.changes}")
        took.append(seconds)
    again, p99 = statistics.median(took), statistics.quantiles(took, n=100)[-1]
    over_count, floor = _over_count(SHORT, first)
    print(
        f"# deciding for {SHORT.workloads} workloads: first {first:.2f} s ({1e3 * first / SHORT.workloads:.1f} ms each;"
        f" their nodes are counted in {floor:.3f} s), unchanged {1e3 * idle:.0f} ms,"
        f" one cluster changed {1e3 * again:.0f} ms, P99 {1e3 * p99:.0f} ms",
        file=sys.stderr,
    )
    return {
        "idle": 100 * idle / first,
        "again": 100 * again / first,
        "p99": 100 * p99 / first,
        "mb": peak() - before,
        "over_count": over_count,
    }


def _saturated() -> dict[str, float]:
    """Measure passes in which thousands of bursts wait, in percent of the first."""
    passes = Deciding(SATURATED)
    first, _ = passes.run()
    passes.run()
    unchanged, changed = [], []
    for index in range(3):
        seconds, plan = passes.run()
        if plan.changes or len(plan.suppressed) < SATURATED.workloads * 3 // 4:
            raise RuntimeError(f"three of four bursts were meant to wait, not {len(plan.suppressed)}")
        unchanged.append(seconds)
        passes.add_node(index)
        seconds, plan = passes.run()
        if not plan.changes:
            raise RuntimeError("what waits was meant to take the new node")
        changed.append(seconds)
        passes.run()
    idle, again = statistics.median(unchanged), statistics.median(changed)
    print(
        f"# {len(plan.suppressed)} of {SATURATED.workloads} bursts wait: first {first:.2f} s, unchanged"
        f" {1e3 * idle:.0f} ms, one cluster changed {1e3 * again:.0f} ms",
        file=sys.stderr,
    )
    return {"waiting": 100 * idle / first, "waiting_again": 100 * again / first}


def _of_varied_nodes() -> float:
    """Measure a first pass over nodes and shapes of many kinds, over the count of all nodes."""
    first, plan = Deciding(VARIED).run()
    if not plan.changes or not plan.suppressed:
        raise RuntimeError("some were meant to find room, and others to wait")
    over_count, floor = _over_count(VARIED, first)
    print(f"# nodes of many kinds: first {first:.2f} s, counted in {floor:.3f} s", file=sys.stderr)
    return over_count


def _large() -> float:
    """Measure the memory of passes over a large fleet in a process that has decided for others before, in MB."""
    before = peak()
    passes = Deciding(LARGE)
    passes.run()
    passes.run()
    return peak() - before


def _many_over_few() -> float:
    """Compare a first pass over many clusters with one over few: how much dearer a workload is."""
    few, many = (min(Deciding(scale).run()[0] for _ in range(2)) for scale in ROOMY)
    print(f"# with room for all: {few:.2f} s, on four times as many clusters {many:.2f} s", file=sys.stderr)
    return many / few


def _over_count(scale: Scale, first: float) -> tuple[float, float]:
    """Divide a first pass by the count of all nodes, which is returned too.

    A count takes milliseconds where a pass takes seconds, so that a moment of a busy machine would decide: the median
    of several counts does.
    """
    floor = statistics.median(_count_all_nodes(scale) for _ in range(_COUNTS))
    return first / floor, floor


def _count_all_nodes(scale: Scale) -> float:
    """Time the floor of a first pass: each workload's replicas counted on all nodes, with arrays.

    As any count must, it leaves out the nodes whose kind of labels and taints does not admit the shape, divides four
    resources, and adds up by cluster.
    """
    free = [np.full(scale.clusters * NODES, GPUS * ONE, dtype=np.int64) for _ in range(4)]
    kinds, begins = np.arange(scale.clusters * NODES) % KINDS, np.arange(0, scale.clusters * NODES, NODES)
    admitting = np.arange(KINDS) % 9 != 0
    began = perf_counter()
    for _ in range(scale.workloads):
        fits = free[0] // ONE
        for amounts in free[1:]:
            np.minimum(fits, amounts // ONE, out=fits)
        fits[~admitting[kinds]] = 0
        np.add.reduceat(fits, begins)
    return perf_counter() - began


def _taken(plan: Plan) -> int:
    """Count the replicas that a plan places."""
    return sum(change.growth for change in plan.changes if change.action in (Action.PLACE, Action.RESIZE))


def _name(index: int) -> str:
    return f"serving-{index:04d}"


def _files(scale: Scale) -> Iterator[tuple[str, str]]:
    yield "fleet.yaml", FLEET
    for number, name in enumerate((HOME, *scale.names)):
        yield f"clusters/{name}.yaml", CLUSTER.format(name=name, region=f"region-{number % 4}")
    for strategy in StrategyName:
        own = [_name(index) for index in range(scale.workloads) if strategy is _strategy(index)]
        yield (
            f"policies/{strategy}.yaml".lower(),
            POLICY.format(
                name=strategy.lower(), strategy=strategy, templates=", ".join(own), clusters=_listed(scale.names)
            ),
        )
    for index in range(scale.workloads):
        yield f"templates/{_name(index)}.yaml", TEMPLATE.format(name=_name(index))
    yield "workspaces/bench.yaml", WORKSPACE.format(home=HOME, clusters=", ".join((HOME, *scale.names)))


def _listed(names: Iterable[ClusterName]) -> str:
    return ", ".join(f"{{name: {name}}}" for name in names)


def _strategy(index: int) -> StrategyName:
    return tuple(StrategyName)[index % len(StrategyName)]


def _cluster(name: ClusterName, there: Sequence[Placement], nodes: Sequence[int]) -> ClusterObservation:
    """Observe a cluster whose placements take the GPUs of one node after the other."""
    taken = sum(placement.replicas * (placement.shape.requests.amounts[GPU] // ONE) for placement in there)
    room = [max(0, min(gpus, end - taken)) for gpus, end in zip(nodes, accumulate(nodes), strict=True)]
    pool = Pool(
        name="gpu",
        nodes=tuple(
            Node(
                name=f"node-{index:02d}",
                free=Resources(amounts={GPU: Quantity(free * ONE)}),
                allocatable=Resources(amounts={GPU: Quantity(gpus * ONE)}),
            )
            for index, (gpus, free) in enumerate(zip(nodes, room, strict=True))
        ),
    )
    replicas = {placement.name: placement.replicas for placement in there}
    return ClusterObservation(cluster=name, observed_at=START, pools=(pool,), bound=replicas, ready=replicas)


def _varied(seen: ClusterObservation) -> ClusterObservation:
    """Give each node of a cluster a kind, and other amounts of what is free beside its GPUs."""
    random, (pool,) = Random(seen.cluster), seen.pools
    return replace(seen, pools=(replace(pool, nodes=tuple(_varied_node(node, random) for node in pool.nodes)),))


def _varied_node(node: Node, random: Random) -> Node:
    kind = random.randrange(KINDS)
    free = Resources(
        amounts={
            **node.free.amounts,
            "cpu": Quantity(random.randrange(64, 192) * ONE),
            "memory": Quantity(random.randrange(200, 2000) * 2**30 * ONE),
            "rdma/ib": Quantity(random.randrange(8, 16) * ONE),
        }
    )
    labels = {"gpu.model": f"model-{kind % 6}", "topology.kubernetes.io/zone": f"zone-{kind % 3}"}
    taints = (Taint(key="team", value="research"),) if kind % 9 == 0 else ()
    return replace(node, free=free, labels=labels, taints=taints)


def _varied_shape(index: int) -> ReplicaShape:
    random = Random(index % SHAPES)
    amounts = {
        "cpu": Quantity(random.randrange(1, 12) * ONE),
        "memory": Quantity(random.randrange(8, 64) * 2**30 * ONE),
        GPU: Quantity(random.choice((1, 1, 2, 4)) * ONE),
    }
    return ReplicaShape(requests=Resources(amounts=amounts))


def _missing(scale: Scale, index: int) -> WorkloadObservation:
    gpus = scale.gpus[index % len(scale.gpus)]
    shape = ReplicaShape(requests=Resources(amounts={GPU: Quantity(gpus * ONE)}))
    return WorkloadObservation(
        ref=WorkloadRef(namespace="serving", name=_name(index), kind="Deployment"),
        wanted=4 + scale.wanted,
        running=4,
        waiting=(MissingReplicas(replicas=scale.wanted, since=START - timedelta(minutes=1)),),
        shape=_varied_shape(index) if scale.varied else shape,
    )


if __name__ == "__main__":
    gc.set_threshold(GARBAGE)
    json.dump(figures(), sys.stdout)
