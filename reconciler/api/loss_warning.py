"""The `Warning` header of answers while branches are lost: what they tell may have ended, and nothing is written.

Kubernetes' API server warns its callers in the same form (KEP-1693), `299 - "text"`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Depends, Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.api.backend import Backend
from reconciler.api.lookup import readable_workspaces
from reconciler.api.security.callers import Callers, caller_of
from reconciler.core.commits.branch_loss import loss_problem, shared_problem
from reconciler.errors import Transient

_WITH_PROBLEMS = ("/api/v1/status", "/api/v1/plan")
"""Routes whose answers list all problems themselves."""
_MOST = 5
"""Branches that a header names."""


def loss_warning(callers: Callers, backend: Backend) -> Callable[..., Awaitable[None]]:
    """Make the dependency of all routes that tell what stands; `LossWarnings` sends what it finds.

    Who sees all workspaces gets the branches and the ways out, and others that nothing is written.
    """

    async def warn(request: Request, _: None = Depends(callers.admit)) -> None:
        if request.url.path in _WITH_PROBLEMS:
            return
        try:
            losses = backend.latest.read().decision.tips.losses
        except Transient:  # before the first pass, which the route says where it needs one
            return
        if not losses:
            return
        if readable_workspaces(caller_of(request)) is None:
            lines = [str(loss_problem(loss)) for loss in losses[:_MOST]]
            lines += [f"{len(losses) - _MOST} more"] if len(losses) > _MOST else []
        else:
            lines = [str(problem) for problem in shared_problem(losses)]
        text = "; ".join(lines).replace('"', "'").replace("\\", "/")
        request.state.warning = f'299 - "{text.encode("ascii", "replace").decode()}"'

    return warn


class LossWarnings:
    """An ASGI middleware: routes that make their answer themselves have no other way to add a header."""

    def __init__(self, app: ASGIApp) -> None:
        """Add to the answers of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, and send the warning of its route with the answer."""

        async def warning(message: Message) -> None:
            text = scope.get("state", {}).get("warning")
            if text and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Warning"] = text
            await send(message)

        await self._app(scope, receive, warning)
