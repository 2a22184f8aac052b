"""The fleet as the newest pass saw it, as gauges: demand, placements, clusters, budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from threading import Lock
from typing import TypeVar

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.commits.events import unserved_times
from reconciler.core.cost.prices import price_at
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain import request_state
from reconciler.core.explain.gpu_use import home_gpus
from reconciler.core.observe.demand import unseen
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.metrics.cluster_samples import (
    CLUSTER_GPUS,
    OF_PLACEMENTS,
    ClusterSamples,
    cluster_samples,
    sums,
)
from reconciler.daemon.metrics.gauge import Gauge, Labels
from reconciler.daemon.snapshot import Snapshot
from reconciler.errors import Bug
from reconciler.model.budget import BudgetState
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.policy import Desired

LabelsT = TypeVar("LabelsT", bound=Labels)

_WORKLOAD = ("workspace", "workload")
_PLACE = ("workspace", "cluster")
_BUDGET = ("owner_kind", "owner", "period")

_PASS = Gauge(name="pass_timestamp_seconds", help="When the newest pass looked, in Unix time.")
_OF_DEMAND: Sequence[tuple[Gauge, Callable[[Demand], int]]] = (
    (
        Gauge(name="workload_wanted_replicas", help="Replicas that the workload asks for on its primary.",
              labels=_WORKLOAD),
        lambda demand: demand.wanted,
    ),
    (
        Gauge(name="workload_running_replicas", help="Replicas that run on the primary.", labels=_WORKLOAD),
        lambda demand: demand.running,
    ),
    (
        Gauge(name="workload_missing_replicas", help="Replicas that are missing on the primary.", labels=_WORKLOAD),
        lambda demand: demand.needed,
    ),
)  # fmt: skip # a gauge and how it is read
_PLACED = Gauge(name="workload_placed_replicas", help="Replicas that are placed on other clusters.", labels=_WORKLOAD)
_UNSERVED = Gauge(
    name="workload_unserved_replicas",
    help="Missing replicas that have a node on no other cluster, where those of its placements are seen.",
    labels=_WORKLOAD,
)
_MISSING_GPUS = Gauge(
    name="workload_missing_gpus", help="GPUs of the replicas that are missing on the primary.", labels=_WORKLOAD
)
_UNSERVED_GPUS = Gauge(
    name="workload_unserved_gpus",
    help="GPUs of missing replicas that have a node on no other cluster.",
    labels=_WORKLOAD,
)
_WAITING = Gauge(
    name="workload_waiting_timestamp_seconds",
    help="Since when the first missing replica has been placed nowhere, in Unix time.",
    labels=_WORKLOAD,
)
_HELD_BACK = Gauge(
    name="workload_held_back_replicas",
    help="Replicas that are wanted and not placed, or not where the policy wants them, by reason.",
    labels=(*_WORKLOAD, "reason"),
)
_EXPIRY = Gauge(
    name="burst_expiry_timestamp_seconds",
    help="When the first placement of a burst ends, in Unix time.",
    labels=_WORKLOAD,
)
_REQUESTS = Gauge(
    name="requests", help="Requests by the state of their capacity.", labels=("workspace", "provisioning_status")
)
_DOLLARS = Gauge(name="dollars_per_hour", help="The price of placements, where clusters have one.", labels=_PLACE)
_OBSERVED = Gauge(name="cluster_observed", help="1 where the view of the cluster counts, else 0.", labels=("cluster",))
_OBSERVED_AT = Gauge(
    name="cluster_observed_timestamp_seconds",
    help="When the cluster was seen last, in Unix time.",
    labels=("cluster",),
)
_OVERDUE = Gauge(
    name="cluster_overdue_removals",
    help="Ended placements that the cluster's engine has not removed within ten minutes.",
    labels=("cluster",),
)
_SPENT = Gauge(name="budget_spent_dollars", help="Dollars of the present day or month, in UTC.", labels=_BUDGET)
_LIMIT = Gauge(name="budget_limit_dollars", help="The budget of a day or a month.", labels=_BUDGET)


class FleetMetrics:
    """Writes the gauges of a fleet. Safe to use from several threads."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = Lock()
        self._desired: Desired | None = None
        self._clusters: Mapping[ClusterName, ClusterSamples] = {}

    def text(self, snapshot: Snapshot, within: Collection[WorkspaceName] | None) -> str:
        """Return the gauges of a snapshot, of some workspaces, or of the whole fleet."""
        with self._lock:
            return "".join(_Fleet(snapshot, within, self._samples(snapshot)).families())

    def _samples(self, snapshot: Snapshot) -> Mapping[ClusterName, ClusterSamples]:
        """Make the samples of all clusters, anew for those that have changed."""
        inputs = snapshot.decision.inputs
        before = self._clusters if inputs.desired is self._desired else {}
        home = home_gpus(inputs)
        names = {*inputs.desired.clusters, *inputs.ledger.placements.clusters()}
        self._desired = inputs.desired
        self._clusters = {
            name: samples
            for name in sorted(names)
            for samples in _contained(name, partial(cluster_samples, inputs, name, home.get(name, 0), before.get(name)))
        }
        return self._clusters


def _contained(name: ClusterName, call: Callable[[], ClusterSamples]) -> Iterator[ClusterSamples]:
    """Yield the samples of a cluster; none where an unforeseen exception ends the work on it."""
    samples = attempt(Seam.STATUS, f"cluster {name}", call)
    if isinstance(samples, Bug):
        BUGS.note(samples)
    else:
        yield samples


class _Fleet:
    """The gauges of one snapshot, as far as a caller may see it."""

    def __init__(
        self,
        snapshot: Snapshot,
        within: Collection[WorkspaceName] | None,
        samples: Mapping[ClusterName, ClusterSamples],
    ) -> None:
        self._snapshot, self._within, self._samples = snapshot, within, samples
        self._inputs: PassInput = snapshot.decision.inputs
        workspaces = self._inputs.desired.workspaces
        own = [workspaces[name] for name in within or () if name in workspaces]
        self._clusters = frozenset(cluster for workspace in own for cluster in workspace.everywhere)

    def families(self) -> Iterator[str]:
        """Yield each gauge with its samples."""
        yield _PASS.head + _PASS.line((), _unix(self._inputs.now))
        yield from self._workloads()
        yield from self._placements()
        yield _REQUESTS.head + _written(_REQUESTS, self._requests())
        yield from self._seen()
        yield from self._budgets()

    def _visible(self, workspace: WorkspaceName) -> bool:
        return self._within is None or workspace in self._within

    def _workloads(self) -> Iterator[str]:
        inputs = self._inputs
        workloads = {
            workload: (str(workload.workspace), str(workload.name))
            for workload, template in sorted(inputs.desired.templates.items(), key=lambda item: item[0])
            if not template.request and self._visible(workload.workspace)
        }
        found = {workload: inputs.demands.get(workload) for workload in workloads}
        demands = {workload: demand for workload, demand in found.items() if isinstance(demand, Demand)}
        for gauge, read in _OF_DEMAND:
            yield gauge.head + _written(gauge, {workloads[key]: read(demand) for key, demand in demands.items()})
        placed = {labels: inputs.ledger.placements.of(key).replicas for key, labels in workloads.items()}
        yield _PLACED.head + _written(_PLACED, placed)
        bound = sums(chain.from_iterable(samples.bound.items() for samples in self._samples.values()))
        missing, unserved = dict[Labels, int](), dict[Labels, int]()
        unserved_gpus = dict[Labels, int]()
        for workload, demand in demands.items():
            labels, nodes = workloads[workload], bound.get(workload, 0)
            gpus = None if demand.shape is None else gpus_of_pod(demand.shape) * demand.shape.group_size
            lacking = None if nodes is None else max(0, demand.needed - nodes)
            if lacking is not None:
                unserved[labels] = lacking
            if gpus is not None:
                missing[labels] = demand.needed * gpus
            if gpus is not None and lacking is not None:
                unserved_gpus[labels] = lacking * gpus
        yield _UNSERVED.head + _written(_UNSERVED, unserved)
        yield _MISSING_GPUS.head + _written(_MISSING_GPUS, missing)
        yield _UNSERVED_GPUS.head + _written(_UNSERVED_GPUS, unserved_gpus)
        waiting = {
            workloads[workload]: _unix(inputs.now - waited)
            for workload, waited in unserved_times(inputs).items()
            if workload in workloads
        }
        yield _WAITING.head + _written(_WAITING, waiting)
        held: Counter[Labels] = Counter()
        for suppressed in self._snapshot.decision.plan.suppressed:
            if suppressed.workload in workloads:
                held[*workloads[suppressed.workload], str(suppressed.reason)] += suppressed.replicas
        yield _HELD_BACK.head + _written(_HELD_BACK, held)

    def _placements(self) -> Iterator[str]:
        rows = [
            lines
            for samples in self._samples.values()
            for workspace, lines in samples.lines.items()
            if self._visible(workspace)
        ]
        for gauge in OF_PLACEMENTS:
            yield gauge.head + "".join([lines[gauge.name] for lines in rows])
        expiries: dict[WorkloadId, float] = {}
        for samples in self._samples.values():
            for workload, moment in samples.expiries.items():
                if self._visible(workload.workspace):
                    expiries[workload] = min(expiries.get(workload, moment), moment)
        labelled = {(str(key.workspace), str(key.name)): moment for key, moment in expiries.items()}
        yield _EXPIRY.head + _written(_EXPIRY, labelled)
        yield _DOLLARS.head + _written(_DOLLARS, self._dollars())

    def _dollars(self) -> Mapping[Labels, float]:
        """Add up the dollars an hour of all placements that have a price now."""
        dollars: dict[Labels, float] = {}
        for name, samples in self._samples.items():
            cluster = self._inputs.desired.clusters.get(name)
            for workspace, labels, gpus in samples.rates if cluster is not None else ():
                price = None if cluster is None else price_at(cluster, labels, self._inputs.now)
                if price is not None and self._visible(workspace):
                    place = str(workspace), str(name)
                    dollars[place] = dollars.get(place, 0.0) + price * gpus
        return dollars

    def _requests(self) -> Mapping[Labels, int]:
        """Count requests that have not ended."""
        states: Counter[Labels] = Counter()
        held = self._snapshot.held
        for workload, record in self._inputs.ledger.requests.items():
            if record.ended is None and self._visible(workload.workspace):
                call = partial(request_state.provisioning_state, record, self._inputs, held.get(workload, ()))
                state = attempt(Seam.STATUS, workload, call)
                if not isinstance(state, Bug):
                    states[str(workload.workspace), str(state)] += 1
        return states

    def _seen(self) -> Iterator[str]:
        inputs, desired = self._inputs, self._inputs.desired
        names = [
            name
            for name, cluster in sorted(desired.clusters.items())
            if cluster.slurm is None and (self._within is None or name in self._clusters)
        ]
        seen = {(str(name),): not unseen(desired.fleet, inputs.observed, name, inputs.now) for name in names}
        yield _OBSERVED.head + _written(_OBSERVED, seen)
        moments = {
            (str(name),): _unix(inputs.observed.clusters[name].observed_at)
            for name in names
            if name in inputs.observed.clusters
        }
        yield _OBSERVED_AT.head + _written(_OBSERVED_AT, moments)
        yield CLUSTER_GPUS.head + "".join([self._samples[name].gpus for name in names if name in self._samples])
        rollouts = inputs.rollouts
        overdue = Counter(each.cluster for each in rollouts.leaving if rollouts.is_overdue(each, inputs.now))
        yield _OVERDUE.head + _written(_OVERDUE, {(str(name),): overdue[name] for name in names})

    def _budgets(self) -> Iterator[str]:
        states = {
            _budget_labels(state): state
            for state in self._inputs.budgets.states
            if self._within is None or state.owner.workspace in self._within
        }
        yield _SPENT.head + _written(_SPENT, {labels: state.spent for labels, state in states.items()})
        yield _LIMIT.head + _written(_LIMIT, {labels: state.limit for labels, state in states.items()})


def _written(gauge: Gauge, values: Mapping[LabelsT, float]) -> str:
    return "".join([gauge.line(labels, value) for labels, value in sorted(values.items())])


def _budget_labels(state: BudgetState) -> Labels:
    return state.owner.kind, state.owner.name, state.unit


def _unix(moment: datetime) -> float:
    return moment.timestamp()
