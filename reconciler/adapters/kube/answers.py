"""What an API server answers, and its errors told apart by what they ask of us."""

from __future__ import annotations

import json

import aiohttp

from reconciler.errors import Transient

_GONE, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 410, 401, 403, 404
_LONGEST_ANSWER = 64 << 20
"""Bytes of one answer, which is in memory as a whole: of a page of 200 objects that is 320 KiB each."""


class Expired(Exception):  # noqa: N818 - it names what happened, as the API server does
    """The version to go on from is no longer known: list anew."""


class Unauthorized(Transient):
    """The credentials are not, or no longer, good: read them anew."""


class Forbidden(Transient):
    """Our rights do not reach this far."""


class TooLong(Transient):
    """The answer is larger than we care to hold: ask for less at once."""


class Silent(Transient):
    """A watch has said nothing for so long that it is dead, or there has been nothing to say."""


class NotServed(Transient):
    """There is nothing at that path: the server does not know the group, the version or the resource."""


class Moved(Transient):
    """The login leads to another server than before: nothing that is known of this one is true of that."""


async def check(response: aiohttp.ClientResponse) -> None:
    """Raise what an error status asks of us, in the server's words."""
    if response.status < 400:  # noqa: PLR2004 - where HTTP's errors begin
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
    """Read an answer, as long as it has an end."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _LONGEST_ANSWER:
            raise TooLong("sent an answer of over 64 MiB")
    return bytes(content)


def _message(body: bytes) -> str:
    """Find the message of a Status object; a proxy in between may have sent anything."""
    try:
        status = json.loads(body)
    except ValueError:
        return "no reason given"
    message = status.get("message") if isinstance(status, dict) else None
    return str(message)[:300] if message else "no reason given"
