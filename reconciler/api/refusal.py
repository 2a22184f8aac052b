"""Why a request was refused, in the one shape that every error has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from reconciler.errors import Problem
from reconciler.ports import Clock

log = structlog.get_logger()

_LOG_EVERY = timedelta(minutes=1)


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
        error["problems"] = [{name: getattr(problem, name) for name in _PROBLEM} for problem in problems]
    return {"statusCode": status, "status": "Error", "message": message, "error": error}


def answers(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Describe the errors of a route for OpenAPI."""
    content = {"application/json": {"schema": _SCHEMA}}
    return {int(status): {"description": status.phrase, "content": content} for status in statuses}


_PROBLEM = {"path": "string", "line": "integer", "field": "string", "message": "string", "hint": "string"}
_SCHEMA = {
    "type": "object",
    "required": ["statusCode", "status", "message", "error"],
    "properties": {
        "statusCode": {"type": "integer"},
        "status": {"const": "Error"},
        "message": {"type": "string"},
        "error": {
            "type": "object",
            "required": ["reason"],
            "properties": {
                "reason": {"type": "string"},
                "hint": {"type": "string"},
                "problems": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {name: {"type": kind} for name, kind in _PROBLEM.items()},
                    },
                },
            },
        },
    },
}


class _Seldom:
    """Logs the first refusal of a kind in each minute, with how many more came since the one before.

    Whoever may not come in must not be able to fill the log either.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[tuple[str, int], tuple[datetime, int]] = {}

    def log(self, request: Request, error: Refusal) -> None:
        """Log a refusal, or count it."""
        key, now = (request.url.path, int(error.status)), self._clock.now()
        last, more = self._last.get(key, (None, 0))
        if last is not None and abs(now - last) < _LOG_EVERY:
            self._last[key] = (last, more + 1)
            return
        self._last[key] = (now, 0)
        client = request.client.host if request.client else ""
        counted = {"more_before": more} if more else {}
        log.warning("request refused", path=key[0], status=key[1], why=error.message, client=client, **counted)


def install(app: FastAPI, clock: Clock) -> None:
    """Answer every error of `app` in the envelope, and log those who were refused and what went wrong with us."""
    seldom = _Seldom(clock)

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Refusal)  # noqa: S101 - it is registered for nothing else
        seldom.log(request, error)
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
