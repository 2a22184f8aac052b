"""Routes that are called so often that what FastAPI looks for in each call, and does not find, would count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from reconciler.api.door.callers import Callers
from reconciler.api.orders import KEY


def alone(endpoint: Callable[[Request], Awaitable[Response]], callers: Callers) -> type[APIRoute]:
    """Make the class of a `guarded` route whose endpoint takes the request, and a key where the call has one.

    Without a key only who calls has to be found out: matching parameters that are not there takes as long as reading
    the body.
    """

    class Alone(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            solved = super().get_route_handler()

            async def handle(request: Request) -> Response:
                if KEY in request.headers:
                    return await solved(request)
                await callers.admit(request)
                return await endpoint(request)

            return handle

    return Alone
