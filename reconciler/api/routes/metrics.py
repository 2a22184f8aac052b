"""``/metrics`` for Prometheus: OpenMetrics where a scraper takes it, with the commits of exemplars."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from reconciler.api.backend import Backend
from reconciler.api.lookup import readable_workspaces
from reconciler.api.security.callers import Callers, caller_of, guarded_router
from reconciler.daemon.metrics.fleet_metrics import FleetMetrics
from reconciler.errors import Transient

_NOTHING = CollectorRegistry()


def router(callers: Callers, backend: Backend, process: CollectorRegistry) -> APIRouter:
    """Build the route; `process` holds what this process counts."""
    routes = guarded_router(callers)
    fleet = FleetMetrics()

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
        try:
            gauges = fleet.text(backend.latest.read(), within)
        except Transient:  # before the first pass there are only those of the process
            gauges = ""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # The encoder ends the text, in OpenMetrics with a line of its own.
        body = gauges.encode() + encode(process if within is None else _NOTHING)
        return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return routes
