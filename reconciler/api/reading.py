"""Bodies that become values, with every field that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from fastapi import Request

from reconciler.api.body import beside, json_body, parsed
from reconciler.api.refusal import HttpError
from reconciler.model.workload import Json
from reconciler.text.findings import Finding

T = TypeVar("T")


async def read_as(read: Callable[[Json], T | tuple[Finding, ...]], request: Request) -> T:
    """Read a request's body, which may be large, beside the event loop. Raises Refusal for one that is wrong."""
    found = await beside(lambda data: read(parsed(data)), await json_body(request))
    if not isinstance(found, tuple):
        return found
    problems = tuple(finding.problem(path="request", line=0) for finding in found)
    raise HttpError(HTTPStatus.BAD_REQUEST, str(problems[0]), problems=problems)
