"""The application: every router, error handler and page of the HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fastapi import Depends, FastAPI

from reconciler import __version__
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.adapters.traces import Traces
from reconciler.api import egs_openapi, page, refusal
from reconciler.api.backend import Backend
from reconciler.api.call_telemetry import CallMetrics, CallTraces
from reconciler.api.loss_warning import LossWarnings, loss_warning
from reconciler.api.request_id import RequestIds
from reconciler.api.routes import (
    approvals,
    explain,
    fleet,
    gprs,
    health,
    log,
    metrics,
    observations,
    placements,
    plan,
    steering,
    templates,
    webhooks,
    whoami,
    workspaces,
)
from reconciler.api.security.callers import Callers
from reconciler.daemon.loop import Vitals
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.ports import Clock, Wake


def create_app(
    *,
    pushed: PushedObservations,
    wake: Wake,
    clock: Clock,
    vitals: Callable[[], Vitals],
    branches: Collection[str],
    push_token: str = "",
    webhook_secret: str = "",
    callers: Callers | None = None,
    backend: Backend | None = None,
    process: ProcessMetrics | None = None,
    traces: Traces | None = None,
    log_lines: Callable[[], Sequence[str]] = tuple,
) -> FastAPI:
    """Build the HTTP API of a daemon.

    Without a token, secret or callers a route refuses every request. Without a `backend` no order can be carried out,
    so the management routes are left out. With `process` calls are counted, and ``/metrics`` tells what it holds;
    with `traces` they are traced. `log_lines` are the last lines of the log.
    """
    app = FastAPI(
        title="Overspill",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both of FastAPI's pages load scripts from a CDN; `page` serves ours
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    refusal.install(app, clock)
    if process is not None:
        app.add_middleware(CallMetrics, count=process.count_call)
    if traces is not None:
        app.add_middleware(CallTraces, traces=traces)
    app.add_middleware(LossWarnings)
    app.add_middleware(RequestIds)  # the outermost of ours: what others log and count has the id as well
    callers = callers or Callers(clock)
    if backend is not None:
        for part in (placements, gprs, templates, workspaces, explain, fleet, plan, steering, approvals):
            app.include_router(part.router(callers, backend), dependencies=[Depends(loss_warning(callers, backend))])
        if process is not None:
            app.include_router(metrics.router(callers, backend, process.registry))
        app.include_router(log.router(callers, log_lines))
    app.include_router(whoami.router(callers))
    app.include_router(observations.router(pushed, wake, clock, token=push_token))
    app.include_router(webhooks.router(callers, wake, clock, secret=webhook_secret, branches=branches))
    app.include_router(health.router(vitals))
    egs_openapi.describe(app)
    app.include_router(page.router(app.openapi))
    return app
