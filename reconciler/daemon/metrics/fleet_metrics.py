"""The fleet as the newest pass saw it, as gauges: demand, placements, clusters, budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import TypeAlias

from prometheus_client.core import GaugeMetricFamily

from reconciler.core.cost.rate import hourly_rate
from reconciler.daemon.status import ClusterStatus, FleetStatus, WorkloadStatus
from reconciler.model.budget import BudgetState
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster
from reconciler.text.gpu_cells import GpuUse

Labels: TypeAlias = tuple[str, ...]

_USES: Mapping[GpuUse, str] = {
    GpuUse.BURST: "burst",
    GpuUse.STARTING: "starting",
    GpuUse.HOME: "home",
    GpuUse.OTHER: "other",
    GpuUse.FREE: "free",
}
_WORKLOAD = ("workspace", "workload")
_BURST = (*_WORKLOAD, "cluster")
_PLACE = ("workspace", "cluster")
_BUDGET = ("owner", "name", "per")

_OF_WORKLOADS: Sequence[tuple[str, str, Callable[[WorkloadStatus], float | None]]] = (
    ("wanted_replicas", "Replicas that the workload asks for on its primary.", lambda row: row.wanted),
    ("running_replicas", "Replicas that run on the primary.", lambda row: row.running),
    ("missing_replicas", "Replicas that are missing on the primary.", lambda row: row.deficit),
    ("placed_replicas", "Replicas that are placed on other clusters.", lambda row: row.placed),
    ("observed", "1 where the primary of the workload is seen, else 0.", lambda row: row.wanted is not None),
)
_OF_CLUSTERS: Sequence[tuple[str, str, Callable[[ClusterStatus], float | None]]] = (
    (
        "observed",
        "1 where the view of the cluster counts, else 0.",
        lambda row: not row.message,
    ),
    (
        "observed_timestamp_seconds",
        "When the cluster was seen last, in Unix time.",
        lambda row: None if row.observed_at is None else _unix(row.observed_at),
    ),
)
_OF_BUDGETS: Sequence[tuple[str, str, Callable[[BudgetState], float]]] = (
    ("spent_dollars", "Dollars of the present day or month, in UTC.", lambda state: state.spent),
    ("limit_dollars", "The budget of a day or a month.", lambda state: state.limit),
)


def fleet_families(
    fleet: FleetStatus, clusters: Mapping[ClusterName, Cluster], uses: Mapping[ClusterName, Mapping[GpuUse, int]]
) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of a fleet; `clusters` have its prices, and `uses` the GPUs of the clusters to tell of."""
    yield _gauge("pass_timestamp_seconds", "When the newest pass looked, in Unix time.", (), {(): _unix(fleet.now)})
    yield from _workloads(fleet)
    yield from _bursts(fleet, clusters)
    by_cluster: Mapping[Labels, ClusterStatus] = {(str(row.cluster),): row for row in fleet.clusters}
    for name, help_text, read in _OF_CLUSTERS:
        values = {key: read(row) for key, row in by_cluster.items()}
        yield _gauge(f"cluster_{name}", help_text, ("cluster",), values)
    gpus: Mapping[Labels, float] = {
        (str(name), _USES[use]): value for name, counts in uses.items() for use, value in counts.items()
    }
    yield _gauge("cluster_gpus", "GPUs of nodes that take pods, by use.", ("cluster", "use"), gpus)
    budgets = {_budget_labels(state): state for state in fleet.budgets}
    for name, help_text, amount in _OF_BUDGETS:
        yield _gauge(f"budget_{name}", help_text, _BUDGET, {key: amount(state) for key, state in budgets.items()})


def _workloads(fleet: FleetStatus) -> Iterator[GaugeMetricFamily]:
    by_workload = {_labels(row.workload): row for row in fleet.workloads}
    for name, help_text, read in _OF_WORKLOADS:
        values = {key: read(row) for key, row in by_workload.items()}
        yield _gauge(f"workload_{name}", help_text, _WORKLOAD, values)
    bound: Counter[Labels] = Counter()
    for placed in fleet.placements:
        bound[_labels(placed.placement.workload)] += placed.bound or 0
    unserved = {key: row.deficit and max(0, row.deficit - bound[key]) for key, row in by_workload.items()}
    help_text = "Missing replicas that have a node on no other cluster."
    yield _gauge("workload_unserved_replicas", help_text, _WORKLOAD, unserved)
    held: Counter[Labels] = Counter()
    for key, row in by_workload.items():
        for suppressed in row.suppressed:
            held[*key, str(suppressed.reason)] += suppressed.replicas
    help_text = "Replicas that are wanted and not placed, by reason."
    yield _gauge("workload_held_back_replicas", help_text, (*_WORKLOAD, "reason"), held)


def _bursts(fleet: FleetStatus, clusters: Mapping[ClusterName, Cluster]) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of placements: those of one workload or request on one cluster together.

    There may be many of these pairs, so that only replicas are told of each; times are told by workload, and money by
    workspace and cluster.
    """
    replicas, bound, phases = Counter[Labels](), Counter[Labels](), Counter[Labels]()
    expiries: dict[Labels, float] = {}
    placements: dict[Labels, list[Placement]] = {}
    for row in fleet.placements:
        labels, cluster = _labels(row.placement.workload), str(row.placement.cluster)
        replicas[*labels, cluster] += row.placement.replicas
        bound[*labels, cluster] += row.bound or 0
        expiries[labels] = min(expiries.get(labels, inf), _unix(row.placement.expires_at))
        phases[labels[0], cluster, str(row.phase)] += 1
        placements.setdefault((labels[0], cluster), []).append(row.placement)
    rates = {key: hourly_rate(group, clusters, fleet.now) for key, group in placements.items()}
    gpus = {key: rate.gpus for key, rate in rates.items()}
    dollars = {key: rate.dollars for key, rate in rates.items() if rate.priced}
    yield _gauge("burst_replicas", "Replicas of placements.", _BURST, replicas)
    yield _gauge("burst_bound_replicas", "Replicas of placements that have a node.", _BURST, bound)
    help_text = "When the first of the placements ends, in Unix time."
    yield _gauge("burst_expiry_timestamp_seconds", help_text, _WORKLOAD, expiries)
    yield _gauge("burst_gpus", "GPUs that placements ask for.", _PLACE, gpus)
    yield _gauge("burst_dollars_per_hour", "The price of placements, where clusters have one.", _PLACE, dollars)
    yield _gauge("placements", "Placements by phase.", (*_PLACE, "phase"), phases)


def _gauge(name: str, help_text: str, labels: Labels, values: Mapping[Labels, float | None]) -> GaugeMetricFamily:
    """Make a gauge of the values that are known."""
    family = GaugeMetricFamily(f"overspill_{name}", help_text, labels=labels)
    for key, value in sorted(values.items()):
        if value is not None:
            family.add_metric(key, value)
    return family


def _labels(workload: WorkloadId) -> Labels:
    return str(workload.workspace), str(workload.name)


def _budget_labels(state: BudgetState) -> Labels:
    kind, _, name = state.owner.partition(" ")
    return kind, name, "day" if state.field.endswith("Day") else "month"


def _unix(moment: datetime) -> float:
    return moment.timestamp()
