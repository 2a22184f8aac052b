"""Answers of API servers: an exception for each error that is handled in its own way."""

from __future__ import annotations

import json

import aiohttp

from reconciler.errors import Transient

_GONE, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 410, 401, 403, 404
_LONGEST_ANSWER = 64 << 20
"""Most bytes of an answer, which is held in memory: 320 KiB for each object of a page of 200."""


class Expired(Exception):  # noqa: N818 - it names what happened, as the API server does
    """410 Gone: the resourceVersion has expired, so the resource is listed anew."""


class Unauthorized(Transient):
    """401: the credentials are wrong or have expired, so they are read anew."""


class Forbidden(Transient):
    """403: RBAC forbids the request."""


class TooLong(Transient):
    """The answer is over the limit, so smaller pages are requested."""


class Silent(Transient):
    """A watch brought nothing within its time: the connection is dead, or nothing has changed."""


class NotServed(Transient):
    """404: the server does not serve the group, the version or the resource."""


class Moved(Transient):
    """The login leads to another server than before, so everything that is known has to be listed anew."""


async def check(response: aiohttp.ClientResponse) -> None:
    """Raise the exception of an error status, with the server's message."""
    if response.status < 400:  # noqa: PLR2004 - the first status of errors
        return
    if response.status == _GONE:
        raise Expired
    if response.status == _UNAUTHORIZED:
        raise Unauthorized("does not take our credentials")
    message = _message(await body(response))
    if response.status == _FORBIDDEN:
        raise Forbidden(f"forbids it: {message}")
    if response.status == _NOT_FOUND:
        raise NotServed(f"answers 404: {message}")
    raise Transient(f"answers {response.status}: {message}")


async def body(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer; raises TooLong over the limit."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _LONGEST_ANSWER:
            raise TooLong("sent an answer of over 64 MiB")
    return bytes(content)


def _message(body: bytes) -> str:
    """Return the message of a Status object; a proxy may have sent anything else."""
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return "no reason given"
    message = status.get("message") if isinstance(status, dict) else None
    return str(message)[:300] if message else "no reason given"
