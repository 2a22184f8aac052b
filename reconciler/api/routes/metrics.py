"""``/metrics`` for Prometheus: OpenMetrics where a scraper takes it, with the commits of exemplars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from reconciler.api.backend import Backend
from reconciler.api.lookup import readable_workspaces
from reconciler.api.routes.fleet import status_within
from reconciler.api.security.callers import Callers, caller_of, guarded_router
from reconciler.api.snapshot_cache import SnapshotCache
from reconciler.core.explain.gpu_use import gpu_uses
from reconciler.daemon.metrics.fleet_metrics import fleet_families
from reconciler.daemon.status import FleetStatus, status
from reconciler.errors import Transient
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster
from reconciler.text.gpu_cells import GpuUse


def router(callers: Callers, backend: Backend, process: CollectorRegistry) -> APIRouter:
    """Build the route; `process` holds what this process counts."""
    routes = guarded_router(callers)
    statuses = SnapshotCache(lambda snapshot: status(snapshot.decision))
    uses = SnapshotCache(lambda snapshot: gpu_uses(snapshot.decision.inputs))

    @routes.get(
        "/metrics",
        operation_id="getMetrics",
        response_class=Response,
        responses={HTTPStatus.OK: {"content": {"text/plain": {}, "application/openmetrics-text": {}}}},
        tags=["fleet"],
    )
    def metrics(request: Request) -> Response:
        """Answer with metrics in the format of OpenMetrics, or of Prometheus' text.

        A caller without a role for all workspaces gets the gauges of its own, and none of the process.
        """
        within = readable_workspaces(caller_of(request))
        registry = CollectorRegistry()
        try:
            snapshot = backend.latest.read()
        except Transient:  # before the first pass there are only those of the process
            snapshot = None
        if snapshot is not None:
            fleet = statuses.of(snapshot)
            visible = fleet if within is None else status_within(fleet, snapshot, within)
            registry.register(_Fleet(visible, snapshot.decision.inputs.desired.clusters, uses.of(snapshot)))
        if within is None:
            registry.register(_Process(process))
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return routes


class _Fleet(Collector):
    """The gauges of a fleet, as far as a caller may see it."""

    def __init__(
        self,
        fleet: FleetStatus,
        clusters: Mapping[ClusterName, Cluster],
        uses: Mapping[ClusterName, Mapping[GpuUse, int]],
    ) -> None:
        self._fleet, self._clusters, self._uses = fleet, clusters, uses

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges; nobody knows the GPUs of a cluster that was never seen."""
        seen = {row.cluster for row in self._fleet.clusters if row.observed_at is not None}
        uses = {name: counts for name, counts in self._uses.items() if name in seen}
        yield from fleet_families(self._fleet, self._clusters, uses)


class _Process(Collector):
    """The metrics of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        yield from self._registry.collect()
