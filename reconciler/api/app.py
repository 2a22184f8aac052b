"""All routes together."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fastapi import FastAPI

from reconciler import __version__
from reconciler.adapters.pushed_observations import PushedObservations
from reconciler.api import egs_openapi, page, refusal
from reconciler.api.backend import Backend
from reconciler.api.door.callers import Callers
from reconciler.api.routes import (
    explain,
    gprs,
    health,
    observations,
    placements,
    templates,
    webhooks,
    whoami,
    workspaces,
)
from reconciler.daemon.loop import Vitals
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
) -> FastAPI:
    """Build the HTTP side of a daemon. What has no token, secret or callers refuses everybody.

    Without a `backend` there is nobody who carries orders out, and so there are no routes for it.
    """
    app = FastAPI(
        title="Overspill",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both pages load scripts from a CDN; `page` has one of its own
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    refusal.install(app, clock)
    callers = callers or Callers(clock)
    if backend is not None:
        for part in (placements, gprs, templates, workspaces, explain):
            app.include_router(part.router(callers, backend))
    app.include_router(whoami.router(callers))
    app.include_router(observations.router(pushed, wake, clock, token=push_token))
    app.include_router(webhooks.router(wake, clock, secret=webhook_secret, branches=branches))
    app.include_router(health.router(vitals))
    egs_openapi.describe(app)
    app.include_router(page.router(app.openapi))
    return app
