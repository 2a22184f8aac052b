"""The identity and the roles of a caller."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from reconciler.api.body import answer
from reconciler.api.security.callers import Callers, caller_of, guarded_router


def router(callers: Callers) -> APIRouter:
    """Build the route."""
    routes = guarded_router(callers)

    @routes.get("/api/v1/whoami", operation_id="whoami")
    def whoami(request: Request) -> dict[str, Any]:
        """Tell whose token this is, and the role that it gives in each workspace; `*` is all of them."""
        caller = caller_of(request)
        roles = {scope: str(role) for scope, role in sorted(caller.roles.items())}
        return answer({"name": caller.name, "email": caller.email, "roles": roles})

    return routes
