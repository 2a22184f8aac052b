"""Answers of API servers: an exception for each error that is handled in its own way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import aiohttp

from reconciler.adapters.kube.input_budget import InputBudget, PartialAnswer
from reconciler.core.workloads.paths import at
from reconciler.errors import Transient, one_line
from reconciler.model.bounds import (
    CLUSTER_BYTES_IN_FLIGHT,
    CLUSTER_DEPTH,
    CLUSTER_EVENT_SIZE,
    CLUSTER_EVENT_VALUES,
    CLUSTER_PAGE_SIZE,
    CLUSTER_PAGE_VALUES,
    CLUSTER_REASON,
    JsonBounds,
)
from reconciler.model.workload import Json
from reconciler.text.json_input import JsonTooLarge, UnreadableJson, parse_json

PAGE = JsonBounds(size=CLUSTER_PAGE_SIZE, values=CLUSTER_PAGE_VALUES, depth=CLUSTER_DEPTH)
"""The bounds of one answer, such as a page of a list."""
EVENT = JsonBounds(size=CLUSTER_EVENT_SIZE, values=CLUSTER_EVENT_VALUES, depth=CLUSTER_DEPTH)
_MANAGER = re.compile(r'conflict with "([^"]*)"')

_GONE, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 410, 401, 403, 404, 409


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


async def check(response: aiohttp.ClientResponse, budget: InputBudget) -> None:
    """Raise the exception of an error status, with the server's message."""
    if response.status < 400:  # noqa: PLR2004 - the first status of errors
        return
    if response.status == _GONE:
        raise Expired
    if response.status == _UNAUTHORIZED:
        raise Unauthorized("does not take our credentials")
    status = await _error_status(response, budget)
    message = reason_text(status.get("message")) or "no reason given"
    if response.status == _FORBIDDEN:
        raise Forbidden(f"forbids it: {message}")
    if response.status == _NOT_FOUND:
        raise NotServed(f"answers 404: {message}")
    if response.status == _CONFLICT and (fields := _conflicts(status)):
        raise Conflicts(fields)
    raise Transient(f"answers {response.status}: {message}")


async def _error_status(response: aiohttp.ClientResponse, budget: InputBudget) -> Mapping[str, Json]:
    """Read the Status of an error; an empty one where the answer is none."""
    try:
        status = parsed(await body(response, budget), PAGE)
    except (TooLong, UnreadableJson):
        return {}
    return status if isinstance(status, dict) else {}


async def body(response: aiohttp.ClientResponse, budget: InputBudget) -> bytes:
    """Read an answer; raises TooLong beyond its bound."""
    with budget.answer() as answer:
        async for chunk in response.content.iter_any():
            budget.add(answer, chunk)
            _check_cut(answer)
            if len(answer.content) > CLUSTER_PAGE_SIZE.most:
                raise TooLong(f"sent an answer of over {CLUSTER_PAGE_SIZE}")
        return bytes(answer.content)


def event_lines(budget: InputBudget, answer: PartialAnswer, chunk: bytes) -> Iterator[bytes]:
    """Yield the lines that a chunk of a watch completes, and keep the rest; raises TooLong beyond the bound."""
    searched = len(answer.content)
    budget.add(answer, chunk)
    while (end := answer.content.find(b"\n", searched)) >= 0:
        line, searched = budget.take(answer, end + 1), 0
        if line.strip():
            yield line
    _check_cut(answer)
    if len(answer.content) > CLUSTER_EVENT_SIZE.most:
        raise TooLong(f"sent an event of over {CLUSTER_EVENT_SIZE}")


def parsed(content: bytes, bounds: JsonBounds) -> Json:
    """Parse an answer or an event. Raises TooLong beyond its bounds, UnreadableJson for anything but JSON."""
    try:
        return parse_json(content, bounds)
    except JsonTooLarge as error:
        raise TooLong(f"sent what {error}") from error


def _check_cut(answer: PartialAnswer) -> None:
    if answer.cut:
        raise TooLong(f"and others sent over {CLUSTER_BYTES_IN_FLIGHT} at the same time, and it the most")


def reason_text(value: Json) -> str:
    """Return the text that a server gives for a reason, on one line and cut; empty for anything else."""
    return one_line(value[: CLUSTER_REASON.most]) if isinstance(value, str) else ""


def _conflicts(status: Mapping[str, Json]) -> dict[str, tuple[str, ...]]:
    """Return the fields of other managers by their manager; empty where a server refuses for another reason.

    https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    """
    fields: dict[str, tuple[str, ...]] = {}
    causes = at(status, ("details", "causes"))
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "FieldManagerConflict":
            quoted = _MANAGER.search(reason_text(cause.get("message")))
            manager = quoted[1] if quoted else "another manager"
            fields[manager] = (*fields.get(manager, ()), reason_text(cause.get("field")).lstrip("."))
    return fields
