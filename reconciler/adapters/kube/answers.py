"""Answers of API servers: an exception for each error that is handled in its own way."""

from __future__ import annotations

import re
from collections.abc import Mapping

import aiohttp

from reconciler.core.workloads.paths import at
from reconciler.errors import Transient
from reconciler.http_client import json_object_in
from reconciler.model.workload import Json

_MANAGER = re.compile(r'conflict with "([^"]*)"')

_GONE, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 410, 401, 403, 404, 409
_LONGEST_ANSWER = 64 << 20
"""Most bytes of an answer, which is held in memory: 320 KiB for each object of a page of 200."""


class Conflicts(Transient):
    """409 of a server-side apply: fields that it changes belong to other managers."""

    def __init__(self, fields: Mapping[str, tuple[str, ...]]) -> None:
        """Take the fields by their manager."""
        super().__init__("; ".join(f"{', '.join(named)} set by {manager}" for manager, named in fields.items()))
        self.fields = fields


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
    status = json_object_in(await body(response))
    message = str(status.get("message") or "")[:300] or "no reason given"
    if response.status == _FORBIDDEN:
        raise Forbidden(f"forbids it: {message}")
    if response.status == _NOT_FOUND:
        raise NotServed(f"answers 404: {message}")
    if response.status == _CONFLICT and (fields := _conflicts(status)):
        raise Conflicts(fields)
    raise Transient(f"answers {response.status}: {message}")


async def body(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer; raises TooLong over the limit."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _LONGEST_ANSWER:
            raise TooLong("sent an answer of over 64 MiB")
    return bytes(content)


def _conflicts(status: Mapping[str, Json]) -> dict[str, tuple[str, ...]]:
    """Return the fields of other managers by their manager; empty where a server refuses for another reason.

    https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    """
    fields: dict[str, tuple[str, ...]] = {}
    causes = at(status, ("details", "causes"))
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "FieldManagerConflict":
            quoted = _MANAGER.search(str(cause.get("message")))
            manager = quoted[1] if quoted else "another manager"
            fields[manager] = (*fields.get(manager, ()), str(cause.get("field")).lstrip("."))
    return fields
