"""Explanations of placements, as ``overspill explain`` prints them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from reconciler.access.rights import AccessRole
from reconciler.api.backend import Backend
from reconciler.api.body import answer
from reconciler.api.models import Answered, Explained
from reconciler.api.redact import redact
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import Explanation, explain
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.text.to_json import json_value

_NAME = Query(
    description="The workload, as <workspace>/<name>: of a template, or of a request.",
    examples=["llm/vllm"],
    max_length=200,
)


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the route."""
    routes = guarded_router(callers)

    @routes.get(
        "/api/v1/explain",
        operation_id="explain",
        response_model=Answered[Explained],
        responses=error_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
        tags=["fleet"],
    )
    def explained(request: Request, workload: Annotated[str, _NAME]) -> dict[str, Any]:
        """Explain the room of each cluster for a workload, the obstacles, and the changes that would remove them."""
        workspace, _, name = workload.partition("/")
        snapshot = backend.snapshot()
        require_role(caller_of(request), AccessRole.VIEWER, WorkspaceName(workspace))
        explanation = explain_workload(snapshot, WorkspaceName(workspace), TemplateName(name))
        return answer(redact(json_value(explanation), snapshot, caller_of(request)))

    return routes


def explain_workload(snapshot: Snapshot, workspace: WorkspaceName, name: TemplateName) -> Explanation:
    """Explain the request of that name, else the template; raises HttpError 404 where neither exists."""
    plan, inputs = snapshot.decision.plan, snapshot.decision.inputs
    record = inputs.ledger.requests.get(WorkloadId(workspace, name, request=True))
    if record is not None:
        return explain_request(record, inputs, plan)
    template = WorkloadId(workspace, name)
    if template in inputs.desired.templates:
        return explain(template, inputs, plan)
    raise HttpError(
        HTTPStatus.NOT_FOUND,
        f"the workspace {workspace} has no such workload",
        hint="GET /api/v1/workload-template lists the templates, /api/v1/workload-placement the requests",
    )
