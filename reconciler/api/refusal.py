"""Errors of the API: their envelope, their OpenAPI, and their log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from reconciler.api.request_id import HEADER
from reconciler.bulkhead import Seam, bug_of
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Problem
from reconciler.ports import Clock
from reconciler.text.findings import shortened
from reconciler.text.redaction import redacted
from reconciler.text.spelling import nearest
from reconciler.text.wording import join_names

log = structlog.get_logger()

_LOG_EVERY = timedelta(minutes=1)
_MOST_KINDS = 10_000
_MOST_WORDS = 300
_REFERENCE = "/docs#errors"
"""The page that the daemon itself serves."""

BUG = "this is a bug in Overspill; its log says more"
"""The answer to a caller after an unforeseen exception."""

BRANCH_LOST = "BranchLost"
"""The reason of a 503 that does not pass by waiting: branches of ours are lost, and nothing is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDetail:
    """Fields of EGS's error envelope beside the message; an empty text reads as the message itself."""

    key: str = ""
    """`error.errorKey`"""
    text: str = ""
    """`error.message`"""
    title: str = ""
    """Message of `error.data`"""
    cause: str = ""
    """Errormessage of `error.data`"""
    reason: str = ""
    """`error.reason`; empty for the phrase of the status."""
    details: str = ""
    """Details of `error.data`; empty for the problems."""


class HttpError(Exception):
    """An error that a request is answered with."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        hint: str = "",
        problems: tuple[Problem, ...] = (),
        headers: Mapping[str, str] | None = None,
        detail: ErrorDetail | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.problems = problems
        self.headers = headers
        self.detail = detail or ErrorDetail()


def envelope(
    status: int, message: str, *, hint: str = "", problems: tuple[Problem, ...] = (), detail: ErrorDetail | None = None
) -> dict[str, Any]:
    """Build the body of an error: EGS's envelope with a hint and the problems as further fields.

    `error.data` is JSON in a string, as EGS has it (docs/reference/egs.md, "REST: answers").
    """
    detail = detail or ErrorDetail()
    reason = detail.reason or HTTPStatus(status).phrase.replace(" ", "")
    error: dict[str, Any] = {
        "errorKey": detail.key,
        "message": detail.text or message,
        "data": _data(status, message, reason, problems, detail),
        "reason": reason,
    }
    if hint:
        error["hint"] = hint
    if problems:
        error["problems"] = [{name: getattr(problem, name) for name in _PROBLEM} for problem in problems]
    return {"statusCode": status, "status": "Error", "message": message, "data": None, "error": error}


def _data(status: int, message: str, reason: str, problems: tuple[Problem, ...], detail: ErrorDetail) -> str:
    listed = [{"reason": "Invalid", "message": problem.message, "field": problem.field} for problem in problems]
    inner = {
        "Message": detail.title or detail.text or message,
        "Status": status,
        "DetailedError": {
            "Errormessage": detail.cause or detail.text or message,
            "Reason": reason,
            "Details": detail.details or listed or "",
        },
        "StatusCode": status,
        "ReferenceDocumentation": _REFERENCE,
    }
    return json.dumps({"error": inner})


def error_responses(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a route for OpenAPI."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{SCHEMA_NAME}"}}}
    return {int(status): {"description": status.phrase, "content": content} for status in statuses}


_PROBLEM = {"path": "string", "line": "integer", "field": "string", "message": "string", "hint": "string"}
SCHEMA_NAME = "Error"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["statusCode", "status", "message", "data", "error"],
    "properties": {
        "statusCode": {"type": "integer"},
        "status": {"const": "Error"},
        "message": {"type": "string"},
        "data": {"type": "null"},
        "error": {
            "type": "object",
            "required": ["errorKey", "message", "data", "reason"],
            "properties": {
                "errorKey": {"type": "string"},
                "message": {"type": "string"},
                "data": {"type": "string", "contentMediaType": "application/json"},
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


class _RefusalLog:
    """Logs the first refusal of a kind in each minute, and the number of refusals left out before it.

    A kind is a route, a status, and the caller where it is known. The path of a request is no part of the kind, so that
    callers without access can fill neither the log nor the memory.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[tuple[str, int, str], tuple[datetime, int]] = {}

    def log(self, request: Request, error: HttpError) -> None:
        """Log a refusal, or count it."""
        caller = getattr(request.state, "bearer", "")
        key, now = (_route(request), int(error.status), caller), self._clock.now()
        last, more = self._last.get(key, (None, 0))
        if last is not None and abs(now - last) < _LOG_EVERY:
            self._last[key] = (last, more + 1)
            return
        self._last.pop(key, None)
        self._last[key] = (now, 0)
        if len(self._last) > _MOST_KINDS:
            del self._last[next(iter(self._last))]  # the kind that was logged longest ago
        context = {"caller": caller} if caller else {}
        client = request.client.host if request.client else ""
        counted = {"more_before": more} if more else {}
        path = request.url.path
        log.warning(
            "request refused", path=path, status=key[1], why=_log_reason(error), **context, client=client, **counted
        )


def _log_reason(error: HttpError) -> str:
    """Return the reason for the log; of an invalid body only its fields, since a refused value may be a secret."""
    if not error.problems:
        return error.message
    kind = error.detail.key or error.status.phrase
    fields = join_names(dict.fromkeys(problem.field for problem in error.problems if problem.field))
    return shortened(redacted(f"{kind}: {fields}" if fields else kind), _MOST_WORDS)


def _route(request: Request) -> str:
    """Return the path template of a request's route: ``/api/v1/things/{name}``."""
    return str(getattr(request.scope.get("route"), "path", ""))


def install(app: FastAPI, clock: Clock) -> None:
    """Register handlers that answer every error of `app` in the envelope, and log refusals and bugs."""
    seldom = _RefusalLog(clock)

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HttpError)  # noqa: S101 - registered for this type alone
        seldom.log(request, error)
        body = envelope(error.status, error.message, hint=error.hint, problems=error.problems, detail=error.detail)
        return JSONResponse(body, error.status, headers=error.headers)

    async def unknown(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type alone
        headers = error.headers
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers = {"Allow": ", ".join(_methods(app, request))}
        hint = _replacement(request.method, request.url.path)
        if not hint and error.status_code == HTTPStatus.NOT_FOUND:
            hint = "GET /docs shows every call"
        elif not hint and headers:
            allowed = f"try {headers['Allow']}; " if headers.get("Allow") else ""
            hint = f"{allowed}GET /docs shows every call"
        return JSONResponse(
            envelope(error.status_code, str(error.detail), hint=hint), error.status_code, headers=headers
        )

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type alone
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        problems = tuple(_parameter_problem(detail, _parameters(app, request)) for detail in error.errors())
        return JSONResponse(envelope(status, "the request is not what this address takes", problems=problems), status)

    async def bug(request: Request, error: Exception) -> JSONResponse:
        BUGS.note(bug_of(Seam.REQUEST, f"{request.method} {_route(request) or 'an unknown path'}", error))
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        name = getattr(request.state, "request_id", "")
        return JSONResponse(envelope(status, BUG), status, headers={HEADER: name} if name else None)

    app.add_exception_handler(HttpError, refused)
    app.add_exception_handler(HTTPException, unknown)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, bug)


_FLEET_FILE = "{} is a file of the fleet repository; change it by a pull request"
_REPLACEMENTS: tuple[tuple[str, str], ...] = (
    (
        r"POST /api/v1/gpr/?",
        "a GPUProvisioningRequest is a file of the fleet repository; a placement's gprDetails ask for GPUs here",
    ),
    (r"DELETE /api/v1/gpr(/.*)?", 'PUT /api/v1/gpr with {"gprId": ..., "earlyRelease": true} gives its GPUs back'),
    (r"PUT /api/v1/gpr/.+", "PUT /api/v1/gpr takes the gprId in its body"),
    (
        r"\w+ /api/v1/(auth|login|token|api-key)(/.*)?",
        "there is no call to log in: send Authorization: Bearer with a token that `overspill token` makes",
    ),
    (
        r"\w+ (/api/v1)?(/workload-placement/[^/]+)?/enable-egs(/.*)?",
        "a placement with gprDetails needs no call to enable EGS",
    ),
    (r"\w+ (/api/v1)?/workspace-polic(y|ies)(/.*)?", _FLEET_FILE.format("a WorkspacePolicy")),
    (r"\w+ (/api/v1)?/gpr-template-bindings?(/.*)?", _FLEET_FILE.format("a GPRTemplateBinding")),
    (r"\w+ (/api/v1)?/gpr-templates?(/.*)?", _FLEET_FILE.format("a GPRTemplate")),
    (r"\w+ (/api/v1)?/slice-workspace(/.*)?", "GET /api/v1/slice-workspace/list lists workspaces; each is a file"),
    (r"\w+ (/api/v1)?/(continuum-group|prices)(/.*)?", "clusters and their prices are Cluster files"),
    (r"\w+ (/api/v1)?/inventory(/.*)?", "GET /api/v1/inventory/list lists the nodes with GPUs"),
    (
        r"\w+ /(workload-placement|workload-template|gpr|inventory|slice-workspace)(/.*)?",
        "every call begins with /api/v1",
    ),
)
"""Calls of EGS that are not served, by method and path, and their replacements (docs/reference/egs.md, "REST: calls").

The first that matches counts.
"""


def _replacement(method: str, path: str) -> str:
    """Return what replaces a call of EGS that is not served; empty for any other call."""
    call = f"{method} {path}"
    return next((text for pattern, text in _REPLACEMENTS if re.fullmatch(pattern, call)), "")


def _methods(app: FastAPI, request: Request) -> list[str]:
    """List the methods of the path that a request names; Starlette names those of its first route alone.

    Where several paths match, the one with the fewest parameters is meant:
    https://spec.openapis.org/oas/v3.1.1.html#path-templating-matching
    """
    matching = [path for path in app.openapi()["paths"] if compile_path(path)[0].match(request.url.path)]
    if not matching:
        return []
    return sorted(method.upper() for method in app.openapi()["paths"][min(matching, key=lambda path: path.count("{"))])


def _parameters(app: FastAPI, request: Request) -> list[Mapping[str, Any]]:
    """List the OpenAPI parameters of the operation that a request calls."""
    calls = app.openapi()["paths"].get(_route(request), {})
    return list(calls.get(request.method.lower(), {}).get("parameters", ()))


def _parameter_problem(error: Mapping[str, Any], parameters: Iterable[Mapping[str, Any]]) -> Problem:
    """Convert an error of a parameter: its place (``query``, ``header``), name and reason."""
    place, *names = (str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        hint = nearest(names[-1], (parameter["name"] for parameter in parameters if parameter["in"] == place))
        return Problem(path=place, field=".".join(names), message="unknown parameter", hint=hint)
    return Problem(path=place, field=".".join(names), message=str(error["msg"]))
