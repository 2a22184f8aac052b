"""Request bodies, bounded in size and time and validated, and the envelope of every answer."""

from __future__ import annotations

from asyncio import timeout
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from reconciler.access.rights import Caller
from reconciler.api.refusal import HttpError
from reconciler.bulkhead import Seam, attempt
from reconciler.core.schema import yaml
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug, InvalidInput
from reconciler.model.bounds import API_BODIES_OF_CALLER, API_BODY, API_BODY_SECONDS
from reconciler.model.workload import Json
from reconciler.text.digits import whole_number
from reconciler.text.findings import Finding, shortened

T = TypeVar("T")


def answer(data: Json, *, status: HTTPStatus = HTTPStatus.OK, message: str = "Success") -> dict[str, Json]:
    """Build EGS's envelope around `data`."""
    return {"statusCode": int(status), "status": "OK", "message": message, "data": data}


def documents(items: Iterable[T], convert: Callable[[T], Json], name: Callable[[T], object]) -> list[Json]:
    """Convert the items of a list; one that meets an unforeseen exception is left out, and logged by its name."""
    converted = [attempt(Seam.STATUS, name(item), partial(convert, item)) for item in items]
    for document in converted:
        if isinstance(document, Bug):
            BUGS.note(document)
    return [document for document in converted if not isinstance(document, Bug)]


MAX_BODY = API_BODY.most
_MOST_READ = 32 << 20
"""Bytes that are read and dropped of an oversized body with a Content-Length, so that its sender receives the 413.

A connection that closes while the client still sends loses the answer."""
_SMALL = 16 << 10
_SECONDS = API_BODY_SECONDS.most
_CLOSED = {"Connection": "close"}
"""For answers before a body is complete: its sender is not waited for any longer."""


class _Receiving:
    """The bodies that are being received, by caller: one who sends them slowly takes the requests of no other.

    For use in event loops alone.
    """

    def __init__(self) -> None:
        self._bodies = Counter[Hashable]()

    @contextmanager
    def body(self, key: Hashable) -> Iterator[None]:
        """Count one body of a sender while it is received. Raises HttpError beyond the bound."""
        if self._bodies[key] >= API_BODIES_OF_CALLER.most:
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{API_BODIES_OF_CALLER.most} bodies of this caller are on their way",
                hint="try again in 1 s",
                headers={"Retry-After": "1", **_CLOSED},
            )
        self._bodies[key] += 1
        try:
            yield
        finally:
            self._bodies[key] -= 1
            if not self._bodies[key]:
                del self._bodies[key]


_RECEIVING = _Receiving()


async def read_body(request: Request, *, sender: Hashable = None) -> bytes:
    """Read a request's body within the bounds of size, time and number; raises HttpError beyond any.

    The sender is the caller, where one has logged in. Those who have not, as of webhooks and log-ins, are one sender
    for each route.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    with _RECEIVING.body(sender or (request.url.path if caller is None else caller.key)):
        return await _read(request)


async def _read(request: Request) -> bytes:
    too_large = HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 1 MiB", hint="try splitting it")
    length = request.headers.get("content-length", "")
    announced = whole_number(length) or 0
    # A client that sends Expect: 100-continue, as curl does, has sent no byte of the body yet.
    if announced > _MOST_READ or (announced > MAX_BODY and "expect" in request.headers):
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with timeout(_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > (_MOST_READ if announced else MAX_BODY):
                    break
                if size <= MAX_BODY:
                    parts.append(part)
    except TimeoutError as error:
        message = f"the body took longer than {_SECONDS} s"
        raise HttpError(HTTPStatus.REQUEST_TIMEOUT, message, headers=_CLOSED) from error
    except ClientDisconnect as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the connection was closed before the body was complete") from error
    if size > MAX_BODY:
        raise too_large
    return b"".join(parts)


async def read_json_body(request: Request) -> bytes:
    """Read a body of type application/json; raises HttpError for other types and as `read_body` does."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"{shortened(kind) or 'no content type'} is not JSON",
            hint="try -H 'Content-Type: application/json'",
        )
    return await read_body(request)


def parse_json_object(data: bytes) -> dict[str, Json]:
    """Parse a body as one JSON object; raises HttpError with the place of each error.

    Repeated keys and NaN are errors, as in files.
    """
    try:
        return yaml.read_object(data, "request")
    except InvalidInput as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error.problems[0]), problems=error.problems) from error


async def parse_off_loop(read: Callable[[bytes], T], data: bytes) -> T:
    """Parse a body in a thread; a small one is parsed at once, which takes less time than starting a thread."""
    return read(data) if len(data) <= _SMALL else await run_in_threadpool(read, data)


async def read_validated(read: Callable[[Json], T | tuple[Finding, ...]], request: Request) -> T:
    """Read and validate a JSON body beside the event loop; raises HttpError with all problems of an invalid one."""
    result = await parse_off_loop(lambda data: read(parse_json_object(data)), await read_json_body(request))
    if not isinstance(result, tuple):
        return result
    problems = tuple(finding.problem(path="request", line=0) for finding in result)
    raise HttpError(HTTPStatus.BAD_REQUEST, str(problems[0]), problems=problems)
