"""All routes together."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fastapi import FastAPI

from reconciler import __version__
from reconciler.adapters.pushed import PushedObservations
from reconciler.api import health, observations, refusal, webhooks
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
) -> FastAPI:
    """Build the HTTP side of a daemon. What has no token or secret refuses everybody."""
    app = FastAPI(
        title="Overspill",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both pages load scripts from a CDN
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    refusal.install(app, clock)
    app.include_router(observations.router(pushed, wake, clock, token=push_token))
    app.include_router(webhooks.router(wake, clock, secret=webhook_secret, branches=branches))
    app.include_router(health.router(vitals))
    return app
