"""Why a request was refused, in the one shape that every error has."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from reconciler.errors import Problem

log = structlog.get_logger()

MAX_BODY = 1 << 20
"""Bytes of a request's body that are read: as much as is read of a file."""
_BODY_SECONDS = 10


class Refusal(Exception):  # noqa: N818 - a refusal is an answer to a caller, no error of ours
    """A request that is answered with an error."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        hint: str = "",
        problems: tuple[Problem, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.problems = problems
        self.headers = headers


def envelope(status: int, message: str, *, hint: str = "", problems: tuple[Problem, ...] = ()) -> dict[str, Any]:
    """Build the body of an error: EGS's envelope, with the problems as data."""
    error: dict[str, Any] = {"reason": HTTPStatus(status).phrase.replace(" ", "")}
    if hint:
        error["hint"] = hint
    if problems:
        error["problems"] = [
            {name: getattr(problem, name) for name in ("path", "line", "field", "message", "hint")}
            for problem in problems
        ]
    return {"statusCode": status, "status": "Error", "message": message, "error": error}


def install(app: FastAPI) -> None:
    """Answer every error of `app` in the envelope, and log those who were refused and what went wrong with us."""

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Refusal)  # noqa: S101 - it is registered for nothing else
        client = request.client.host if request.client else ""
        log.warning(
            "request refused", path=request.url.path, status=int(error.status), why=error.message, client=client
        )
        body = envelope(error.status, error.message, hint=error.hint, problems=error.problems)
        return JSONResponse(body, error.status, headers=error.headers)

    async def unknown(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for nothing else
        return JSONResponse(envelope(error.status_code, str(error.detail)), error.status_code, headers=error.headers)

    async def invalid(_request: Request, _error: Exception) -> JSONResponse:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return JSONResponse(envelope(status, "the request is not what this address takes"), status)

    async def bug(request: Request, error: Exception) -> JSONResponse:
        log.error("bug in answering a request", path=request.url.path, exc_info=error)
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        return JSONResponse(envelope(status, "this is a bug in Overspill; its log says more"), status)

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(HTTPException, unknown)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, bug)


async def body_of(request: Request) -> bytes:
    """Read a request's body, up to 1 MiB and for ten seconds; raises Refusal beyond either."""
    too_large = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 1 MiB", hint="try splitting it")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with timeout(_BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MAX_BODY:
                    raise too_large
                parts.append(part)
    except TimeoutError as error:
        raise Refusal(HTTPStatus.REQUEST_TIMEOUT, f"the body took longer than {_BODY_SECONDS} s") from error
    return b"".join(parts)
