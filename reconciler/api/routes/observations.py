"""Observations pushed by HTTP, for clusters that Overspill cannot watch."""

from __future__ import annotations

import hmac
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Security
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.body import read_body
from reconciler.api.refusal import HttpError, error_responses
from reconciler.core.observe import observation_file
from reconciler.core.schema.observation import ObservationFile
from reconciler.errors import InvalidInput, Problem
from reconciler.model.capacity import ClusterObservation
from reconciler.ports import Clock, Wake

_TYPES = frozenset({"application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})
_AHEAD = timedelta(minutes=1)
"""Bound on the lead of a sender's clock: an observation of the future would keep out all others until then."""


_BEARER = HTTPBearer(auto_error=False, scheme_name="push", description="The token of OVERSPILL_PUSH_TOKEN.")
"""Declares the token in OpenAPI; `_authorize` checks it."""
_ERRORS = error_responses(
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_OBSERVATION = {"$ref": f"#/components/schemas/{ObservationFile.__name__}"}
_OBSERVATION_LIST = {
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": _OBSERVATION}},
    "additionalProperties": False,
}
_SCHEMA = {
    "anyOf": [_OBSERVATION, _OBSERVATION_LIST],
    "description": "One Observation, or a list of them; docs/reference/observations.md has all.",
}
_EXAMPLE = {
    "apiVersion": "overspill.dev/v1alpha1",
    "kind": "Observation",
    "cluster": "worker-2",
    "observedAt": "2026-11-20T10:00:00Z",
    "pools": [
        {
            "name": "h100",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "allocatable": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8"},
            "nodes": [{"name": "gpu-1", "used": {"cpu": "40", "memory": "300Gi", "nvidia.com/gpu": "6"}}],
        }
    ],
}
_MEDIA = {"schema": _SCHEMA, "example": _EXAMPLE}
_BODY = {"requestBody": {"required": True, "content": {"application/json": _MEDIA, "application/yaml": _MEDIA}}}


def router(pushed: PushedObservations, wake: Wake, clock: Clock, *, token: str) -> APIRouter:
    """Build the route. Without a `token` it refuses every push, since observations decide where workloads run."""
    routes = APIRouter()

    def parse(data: bytes) -> tuple[ClusterObservation, ...]:
        try:
            observations = observation_file.read(data, "request")
        except InvalidInput as error:
            problems = error.problems or (Problem(path="request", message=str(error)),)
            raise _unprocessable(*problems) from error
        if not observations:
            raise _unprocessable(Problem(path="request", message="holds no Observation"))
        latest = clock.now() + _AHEAD
        early = [seen for seen in observations if seen.observed_at > latest]
        if early:
            raise _unprocessable(*(_from_the_future(seen, clock) for seen in early))
        return observations

    @routes.post(
        "/api/v1/observations",
        operation_id="pushObservations",
        openapi_extra=_BODY,
        responses=_ERRORS,
        dependencies=[Security(_BEARER)],
    )
    async def push(request: Request) -> dict[str, Any]:
        """Take observations of one or more clusters."""
        _authorize(request, token)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _TYPES:
            raise HttpError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                f"{kind or 'no content type'} is neither JSON nor YAML",
                hint="try -H 'Content-Type: application/yaml'",
            )
        observations = await run_in_threadpool(parse, await read_body(request, sender="observations"))
        try:
            result = pushed.take(observations)
        except InvalidInput as error:
            raise _unprocessable(Problem(path="request", message=str(error))) from error
        if result.taken:
            wake("observation")
        return {
            "statusCode": HTTPStatus.OK,
            "status": "OK",
            "taken": sorted({str(seen.cluster) for seen in result.taken}),
            "ignored": [
                {"cluster": seen.cluster, "reason": "a newer observation of this cluster is known"}
                for seen in result.older
            ],
        }

    return routes


def _authorize(request: Request, token: str) -> None:
    """Check the bearer token of a request; raises HttpError."""
    if not token:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            "observations cannot be pushed here: no token is configured",
            hint="set OVERSPILL_PUSH_TOKEN_FILE or OVERSPILL_PUSH_TOKEN and start again",
        )
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not right:
        raise HttpError(
            HTTPStatus.UNAUTHORIZED,
            "the bearer token is missing or wrong",
            hint="try -H 'Authorization: Bearer ...'",
            headers={"WWW-Authenticate": 'Bearer realm="overspill"'},
        )


def _unprocessable(*problems: Problem) -> HttpError:
    return HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, "the observations were not taken", problems=problems)


def _from_the_future(seen: ClusterObservation, clock: Clock) -> Problem:
    ahead = int((seen.observed_at - clock.now()).total_seconds())
    return Problem(
        path="request",
        field="observedAt",
        message=f"{seen.cluster} was observed {ahead} s ahead of this machine's clock",
        hint="try setting the sender's clock by NTP",
    )
