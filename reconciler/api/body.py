"""Bodies of requests, bounded in size and time and read into values, and the envelope of every answer."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from reconciler.api.refusal import HttpError
from reconciler.core.schema import yaml
from reconciler.errors import InvalidInput
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, shortened


def answer(data: Json, *, status: HTTPStatus = HTTPStatus.OK, message: str = "Success") -> dict[str, Json]:
    """Build EGS's envelope around `data`."""
    return {"statusCode": int(status), "status": "OK", "message": message, "data": data}


MAX_BODY = 1 << 20
"""In bytes: as much as is read of a file."""
_MOST_READ = 32 << 20
"""In bytes: so much of a body whose length is known is read, and forgotten, so that whoever sends it hears that it is
too much. A connection that is closed on somebody who is still sending takes the answer with it."""
_SMALL = 16 << 10
_SECONDS = 10

T = TypeVar("T")


async def read_body(request: Request) -> bytes:
    """Read a request's body, up to 1 MiB and for ten seconds; raises Refusal beyond either."""
    too_large = HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 1 MiB", hint="try splitting it")
    length = request.headers.get("content-length", "")
    announced = int(length) if length.isdecimal() else 0
    # Whoever asks first, as curl does, has sent nothing yet.
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
    if size > MAX_BODY:
        raise too_large
    return b"".join(parts)


async def read_json_object(request: Request) -> dict[str, Json]:
    """Read a request's body as one object of JSON; raises Refusal for a body that is none, as well as `body_of` does.

    It is as strict as the files are: a key that stands there twice is an error, and so is NaN.
    """
    return await parse_off_loop(parse_json_object, await read_json_body(request))


async def read_json_body(request: Request) -> bytes:
    """Read the body of a request that says that it is JSON; raises Refusal as `body_of` does, and for other types."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"{shortened(kind) or 'no content type'} is not JSON",
            hint="try -H 'Content-Type: application/json'",
        )
    return await read_body(request)


def parse_json_object(data: bytes) -> dict[str, Json]:
    """Parse a body; raises Refusal that tells where it is wrong."""
    try:
        return yaml.read_object(data, "request")
    except InvalidInput as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error.problems[0]), problems=error.problems) from error


async def parse_off_loop(read: Callable[[bytes], T], data: bytes) -> T:
    """Work on a body beside the event loop; a small one is done before a thread would have begun with it."""
    return read(data) if len(data) <= _SMALL else await run_in_threadpool(read, data)


async def read_validated(read: Callable[[Json], T | tuple[Finding, ...]], request: Request) -> T:
    """Read a request's body, which may be large, beside the event loop. Raises Refusal for one that is wrong."""
    result = await parse_off_loop(lambda data: read(parse_json_object(data)), await read_json_body(request))
    if not isinstance(result, tuple):
        return result
    problems = tuple(finding.problem(path="request", line=0) for finding in result)
    raise HttpError(HTTPStatus.BAD_REQUEST, str(problems[0]), problems=problems)
