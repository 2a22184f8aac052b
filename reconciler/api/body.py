"""Request bodies, bounded in size and time and validated, and the envelope of every answer."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from reconciler.api.refusal import HttpError
from reconciler.bulkhead import Seam, attempt
from reconciler.core.schema import yaml
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug, InvalidInput
from reconciler.model.workload import Json
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


MAX_BODY = 1 << 20
"""Most bytes of a body; a file of the fleet repository has the same limit."""
_MOST_READ = 32 << 20
"""Bytes that are read and dropped of an oversized body with a Content-Length, so that its sender receives the 413.

A connection that closes while the client still sends loses the answer."""
_SMALL = 16 << 10
_SECONDS = 10


async def read_body(request: Request) -> bytes:
    """Read a request's body, up to 1 MiB and for ten seconds; raises HttpError beyond either."""
    too_large = HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 1 MiB", hint="try splitting it")
    length = request.headers.get("content-length", "")
    announced = int(length) if length.isdecimal() else 0
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
        raise HttpError(HTTPStatus.REQUEST_TIMEOUT, f"the body took longer than {_SECONDS} s") from error
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
