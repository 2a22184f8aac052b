"""Liveness and readiness of the daemon."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response

from reconciler.daemon.loop import Vitals
from reconciler.model.units import format_duration

_NOT_NOW: dict[int | str, dict[str, Any]] = {503: {"description": "Not so; the reason is in the body"}}

_LOST = "the remote lacks commits that a branch had, and nothing is written; the log says which, and the ways out"


def router(vitals: Callable[[], Vitals]) -> APIRouter:
    """Build the two routes. The routes need no token and give no reasons, which are in the log."""
    routes = APIRouter()

    @routes.get("/healthz", operation_id="healthz", responses=_NOT_NOW)
    def healthz(response: Response) -> dict[str, Any]:
        """Report whether passes are still being run.

        A remote that is away is no reason to restart: while tries go on, this says "failing" and 200.
        """
        now = vitals()
        if now.idle > now.stuck_after:
            response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
            return {"status": "stuck", "reason": f"no pass has ended for {format_duration(now.idle)}"}
        if now.lost:
            return {"status": "stopped", "reason": _LOST, "bugs": now.bugs}
        if now.trouble:
            return {"status": "failing", "reason": "the last pass failed; the log says why", "bugs": now.bugs}
        return {"status": "ok", "bugs": now.bugs}

    @routes.get("/readyz", operation_id="readyz", responses=_NOT_NOW)
    def readyz(response: Response) -> dict[str, Any]:
        """Report whether a first pass has ended well, the git remote is the known host, and all commits stand."""
        now = vitals()
        if now.alarm:
            response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
            return {"status": "alarm", "reason": "the git remote shows another host key; the log says more"}
        if now.passes and not now.lost:
            return {"status": "ok"}
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        if now.lost:
            return {"status": "stopped", "reason": _LOST}
        return {"status": "starting", "reason": "no pass has ended well yet"}

    return routes
