"""The fleet as the newest pass saw it, as gauges: demand, placements, clusters, budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import TypeAlias, TypeVar

from prometheus_client.core import GaugeMetricFamily

from reconciler.core.cost.rate import hourly_rate
from reconciler.daemon.status import ClusterStatus, FleetStatus, PlacementStatus, WorkloadStatus
from reconciler.model.budget import BudgetState
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster
from reconciler.text.gpu_cells import GpuUse

Labels: TypeAlias = tuple[str, ...]
K = TypeVar("K", bound=Hashable)

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
_BUDGET = ("owner_kind", "owner", "period")

_OF_WORKLOADS: Sequence[tuple[str, str, Callable[[WorkloadStatus], float | None]]] = (
    ("wanted_replicas", "Replicas that the workload asks for on its primary.", lambda row: row.wanted),
    ("running_replicas", "Replicas that run on the primary.", lambda row: row.running),
    ("missing_replicas", "Replicas that are missing on the primary.", lambda row: row.deficit),
    ("placed_replicas", "Replicas that are placed on other clusters.", lambda row: row.placed),
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
    yield from _placements(fleet, clusters)
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
    bound = _sums((row.placement.workload, row.bound) for row in fleet.placements)
    unserved = {key: _unserved(row.deficit, bound.get(row.workload, 0)) for key, row in by_workload.items()}
    help_text = "Missing replicas that have a node on no other cluster, where those of its placements are seen."
    yield _gauge("workload_unserved_replicas", help_text, _WORKLOAD, unserved)
    held: Counter[Labels] = Counter()
    for key, row in by_workload.items():
        for suppressed in row.suppressed:
            held[*key, str(suppressed.reason)] += suppressed.replicas
    help_text = "Replicas that are wanted and not placed, by reason."
    yield _gauge("workload_held_back_replicas", help_text, (*_WORKLOAD, "reason"), held)


def _unserved(missing: int | None, bound: int | None) -> int | None:
    return None if missing is None or bound is None else max(0, missing - bound)


def _placements(fleet: FleetStatus, clusters: Mapping[ClusterName, Cluster]) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of placements: bursts by workload, and requests by workspace, since callers choose their names.

    Workloads may have bursts on many clusters, so that only replicas are told of each pair.
    """
    groups: tuple[tuple[str, Labels, Callable[[PlacementStatus], Labels]], ...] = (
        ("burst", _BURST, lambda row: (*_labels(row.placement.workload), str(row.placement.cluster))),
        ("request", _PLACE, _place),
    )
    for name, labels, key in groups:
        rows = [row for row in fleet.placements if row.placement.workload.request == (name == "request")]
        replicas = _sums((key(row), row.placement.replicas) for row in rows)
        bound = _sums((key(row), row.bound) for row in rows)
        yield _gauge(f"{name}_replicas", f"Replicas of a {name}'s placements.", labels, replicas)
        help_text = f"Replicas of a {name}'s placements that have a node, where the cluster is seen."
        yield _gauge(f"{name}_bound_replicas", help_text, labels, bound)
    expiries: dict[Labels, float] = {}
    phases: Counter[Labels] = Counter()
    placements: dict[Labels, list[Placement]] = {}
    for row in fleet.placements:
        if not row.placement.workload.request:
            workload = _labels(row.placement.workload)
            expiries[workload] = min(expiries.get(workload, inf), _unix(row.placement.expires_at))
        phases[*_place(row), str(row.phase)] += 1
        placements.setdefault(_place(row), []).append(row.placement)
    help_text = "When the first placement of a burst ends, in Unix time."
    yield _gauge("burst_expiry_timestamp_seconds", help_text, _WORKLOAD, expiries)
    yield _gauge("placements", "Placements by phase.", (*_PLACE, "phase"), phases)
    rates = {key: hourly_rate(group, clusters, fleet.now) for key, group in placements.items()}
    gpus = {key: rate.gpus for key, rate in rates.items()}
    dollars = {key: rate.dollars for key, rate in rates.items() if rate.priced}
    yield _gauge("placed_gpus", "GPUs that placements ask for.", _PLACE, gpus)
    yield _gauge("dollars_per_hour", "The price of placements, where clusters have one.", _PLACE, dollars)


def _sums(values: Iterable[tuple[K, int | None]]) -> Mapping[K, int | None]:
    """Add up values by key; a sum with an unknown part is unknown."""
    sums: dict[K, int | None] = {}
    for key, value in values:
        before = sums.get(key, 0)
        sums[key] = None if before is None or value is None else before + value
    return sums


def _place(row: PlacementStatus) -> Labels:
    return str(row.placement.workload.workspace), str(row.placement.cluster)


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
