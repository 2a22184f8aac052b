"""The samples of one cluster: its placements, and the uses of its GPUs.

They are kept for as long as nothing that they are made from has changed, so that a scrape costs what changed since the
one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from reconciler.core.capacity.gpu_models import gpus_of_pod, gpus_paid, plain_number
from reconciler.core.cost.prices import NodeLabels, node_labels
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.gpu_use import gpu_use
from reconciler.core.ledger import lifecycle
from reconciler.core.workloads import replica_count
from reconciler.daemon.metrics.gauge import Gauge, Labels
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.rollout import EngineState
from reconciler.text.gpu_cells import GpuUse

K = TypeVar("K", bound=Hashable)

_BURST = ("workspace", "workload", "cluster")
_PLACE = ("workspace", "cluster")

BURST_REPLICAS = Gauge(name="burst_replicas", help="Replicas of a burst's placements.", labels=_BURST)
BURST_BOUND = Gauge(
    name="burst_bound_replicas",
    help="Replicas of a burst's placements that have a node, where the cluster is seen.",
    labels=_BURST,
)
BURST_GPUS = Gauge(name="burst_gpus", help="GPUs that a burst's placements ask for.", labels=_BURST)
REQUEST_REPLICAS = Gauge(name="request_replicas", help="Replicas of a request's placements.", labels=_PLACE)
REQUEST_BOUND = Gauge(
    name="request_bound_replicas",
    help="Replicas of a request's placements that have a node, where the cluster is seen.",
    labels=_PLACE,
)
PLACEMENTS = Gauge(name="placements", help="Placements by phase.", labels=(*_PLACE, "phase"))
UNAPPLIED = Gauge(
    name="unapplied_placements",
    help="Placements that the cluster's engine has not taken up as they stand, where it reports.",
    labels=_PLACE,
)
PLACED_GPUS = Gauge(name="placed_gpus", help="GPUs that placements ask for.", labels=_PLACE)
OF_PLACEMENTS = (
    BURST_REPLICAS, BURST_BOUND, BURST_GPUS, REQUEST_REPLICAS, REQUEST_BOUND, PLACEMENTS, UNAPPLIED, PLACED_GPUS,
)  # fmt: skip # a list of words
"""The gauges of placements: bursts by workload, and requests by workspace, since callers choose their names."""

CLUSTER_GPUS = Gauge(name="cluster_gpus", help="GPUs of nodes that take pods, by use.", labels=("cluster", "use"))
_USES: Mapping[GpuUse, str] = {
    GpuUse.BURST: "burst",
    GpuUse.STARTING: "starting",
    GpuUse.HOME: "home",
    GpuUse.OTHER: "other",
    GpuUse.FREE: "free",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSamples:
    """The samples of one cluster."""

    evidence: tuple[object, ...]
    """All that they are made from."""
    lines: Mapping[WorkspaceName, Mapping[str, str]]
    """The samples of placements by workspace and by the name of the gauge."""
    gpus: str
    """The samples of `CLUSTER_GPUS`; empty for a cluster that was never seen."""
    bound: Mapping[WorkloadId, int | None]
    """Replicas of placements that have a node, by workload; None where the cluster is not seen."""
    expiries: Mapping[WorkloadId, float]
    """When the first placement of each burst ends, in Unix time."""
    rates: tuple[tuple[WorkspaceName, NodeLabels, float], ...]
    """GPUs by workspace and by the labels of their nodes, which have prices."""


def _evidence(inputs: PassInput, cluster: ClusterName, home: int) -> tuple[object, ...]:
    """Gather all that the samples of a cluster are made from, beside the files of the fleet."""
    seen = inputs.observed.clusters.get(cluster)
    sight = () if seen is None else (seen.bound, seen.ready, seen.non_gpu_pods, seen.pools)
    return (inputs.ledger.placements.on(cluster), inputs.rollouts.cluster(cluster), home, *sight)


def cluster_samples(
    inputs: PassInput, cluster: ClusterName, home: int, before: ClusterSamples | None
) -> ClusterSamples:
    """Make the samples of a cluster, or return those of before, by the same files, where they still hold.

    `home` are the GPUs of workloads that have their primary there.
    """
    evidence = _evidence(inputs, cluster, home)
    if before is not None and before.evidence == evidence:
        return before
    placements = inputs.ledger.placements.on(cluster).placements
    seen = inputs.observed.clusters.get(cluster)
    bound_of = {
        placement.path: None if seen is None else replica_count.bound_replicas(placement, seen)
        for placement in placements
    }
    by_workspace: dict[WorkspaceName, list[Placement]] = {}
    for placement in placements:
        by_workspace.setdefault(placement.workload.workspace, []).append(placement)
    rates: dict[tuple[WorkspaceName, NodeLabels], float] = {}
    expiries: dict[WorkloadId, float] = {}
    for placement in placements:
        workload = placement.workload
        key = workload.workspace, node_labels(placement.shape)
        paid = gpus_paid(placement.shape) * placement.shape.group_size * placement.replicas
        rates[key] = rates.get(key, 0) + plain_number(paid)
        if not workload.request:
            expiries[workload] = min(expiries.get(workload, inf), placement.expires_at.timestamp())
    uses = "" if seen is None else "".join(
        CLUSTER_GPUS.line((str(cluster), _USES[use]), number) for use, number in gpu_use(inputs, cluster, home).items()
    )  # fmt: skip # one line for each use
    return ClusterSamples(
        evidence=evidence,
        lines={name: _lines(inputs, cluster, name, group, bound_of) for name, group in by_workspace.items()},
        gpus=uses,
        bound=sums((placement.workload, bound_of[placement.path]) for placement in placements),
        expiries=expiries,
        rates=tuple((*key, gpus) for key, gpus in rates.items()),
    )


def _lines(
    inputs: PassInput,
    cluster: ClusterName,
    workspace: WorkspaceName,
    placements: list[Placement],
    bound_of: Mapping[str, int | None],
) -> Mapping[str, str]:
    """Write the samples of one workspace's placements on a cluster."""
    place = (str(workspace), str(cluster))
    bursts = [placement for placement in placements if not placement.workload.request]
    requests = [placement for placement in placements if placement.workload.request]
    phases: Counter[str] = Counter()
    unapplied = 0
    for placement in placements:
        healthy = gang_health.is_healthy(inputs, placement)
        phases[str(lifecycle.phase(placement, bound_of[placement.path] or 0, well=healthy))] += 1
        failure = inputs.rollouts.ailing.get(placement.path)
        unapplied += failure is not None and failure.state is EngineState.PENDING

    def key(placement: Placement) -> Labels:
        return str(workspace), str(placement.workload.name), str(cluster)

    values: dict[Gauge, Mapping[Labels, int | None]] = {
        BURST_REPLICAS: sums((key(placement), placement.replicas) for placement in bursts),
        BURST_BOUND: sums((key(placement), bound_of[placement.path]) for placement in bursts),
        BURST_GPUS: sums((key(placement), _gpus(placement)) for placement in bursts),
        REQUEST_REPLICAS: sums((place, placement.replicas) for placement in requests),
        REQUEST_BOUND: sums((place, bound_of[placement.path]) for placement in requests),
        PLACEMENTS: {(*place, phase): number for phase, number in sorted(phases.items())},
        UNAPPLIED: {place: unapplied},
        PLACED_GPUS: {place: sum(map(_gpus, placements))},
    }
    return {
        gauge.name: "".join([gauge.line(labels, value) for labels, value in told.items() if value is not None])
        for gauge, told in values.items()
    }


def sums(values: Iterable[tuple[K, int | None]]) -> Mapping[K, int | None]:
    """Add up values by key; a sum with an unknown part is unknown."""
    totals: dict[K, int | None] = {}
    for key, value in values:
        before = totals.get(key, 0)
        totals[key] = None if before is None or value is None else before + value
    return totals


def _gpus(placement: Placement) -> int:
    return gpus_of_pod(placement.shape) * placement.shape.group_size * placement.replicas
