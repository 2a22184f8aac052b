"""``/metrics`` for Prometheus: OpenMetrics where a scraper takes it, with the commits of exemplars."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from reconciler.api.backend import Backend
from reconciler.api.lookup import readable_workspaces
from reconciler.api.routes.fleet import StatusCache, status_within
from reconciler.api.security.callers import Callers, caller_of, guarded_router
from reconciler.core.explain.gpu_use import gpu_uses
from reconciler.daemon.metrics.fleet_metrics import fleet_families
from reconciler.daemon.snapshot import Snapshot
from reconciler.daemon.status import FleetStatus
from reconciler.errors import Transient


def router(callers: Callers, backend: Backend, process: CollectorRegistry) -> APIRouter:
    """Build the route; `process` holds what this process counts."""
    routes = guarded_router(callers)
    cache = StatusCache()

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
            fleet = cache.of(snapshot)
            registry.register(_Fleet(snapshot, fleet if within is None else status_within(fleet, snapshot, within)))
        if within is None:
            registry.register(_Process(process))
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return routes


class _Fleet(Collector):
    """The gauges of a snapshot, as far as a caller may see them."""

    def __init__(self, snapshot: Snapshot, fleet: FleetStatus) -> None:
        self._snapshot, self._fleet = snapshot, fleet

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges."""
        inputs = self._snapshot.decision.inputs
        visible = {row.cluster for row in self._fleet.clusters}
        uses = {name: counts for name, counts in gpu_uses(inputs).items() if name in visible}
        yield from fleet_families(self._fleet, inputs.desired.clusters, uses)


class _Process(Collector):
    """The metrics of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        yield from self._registry.collect()
