"""A request's body, and how much of it anybody may send."""

from __future__ import annotations

from asyncio import timeout
from http import HTTPStatus

from fastapi import Request

from reconciler.api.refusal import Refusal

MAX_BODY = 1 << 20
"""In bytes: as much as is read of a file."""
_SECONDS = 10


async def body_of(request: Request) -> bytes:
    """Read a request's body, up to 1 MiB and for ten seconds; raises Refusal beyond either."""
    too_large = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 1 MiB", hint="try splitting it")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with timeout(_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MAX_BODY:
                    raise too_large
                parts.append(part)
    except TimeoutError as error:
        raise Refusal(HTTPStatus.REQUEST_TIMEOUT, f"the body took longer than {_SECONDS} s") from error
    return b"".join(parts)
