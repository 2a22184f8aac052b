"""The last lines of the daemon's log, for `overspill support-bundle`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request

from reconciler.access.rights import EVERYWHERE
from reconciler.api.body import answer
from reconciler.api.models import Answered, LogDocument
from reconciler.api.refusal import HttpError
from reconciler.api.security.callers import Callers, caller_of, guarded_router


def router(callers: Callers, lines: Callable[[], Sequence[str]]) -> APIRouter:
    """Build the route; `lines` are redacted, the oldest first."""
    routes = guarded_router(callers)

    @routes.get("/api/v1/log", operation_id="getLog", response_model=Answered[LogDocument], tags=["fleet"])
    def log(request: Request) -> dict[str, Any]:
        """Show the last lines of the daemon's log, each a JSON object as text, without secrets.

        They tell of all workspaces, and are for callers with a role for all of them.
        """
        if EVERYWHERE not in caller_of(request).roles:
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                "the log tells of all workspaces",
                hint="ask whoever runs Overspill for a role in `*`",
            )
        return answer({"lines": list(lines())})

    return routes
