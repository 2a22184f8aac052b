"""Plans for now, as ``overspill plan`` prints them; nothing is committed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.access.rights import EVERYWHERE, AccessRole, Caller
from reconciler.api.asking import OneAtATime, asked
from reconciler.api.backend import Backend
from reconciler.api.body import answer
from reconciler.api.lookup import readable_workspaces
from reconciler.api.models import Answered, PlanDocument
from reconciler.api.redact import redact
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.core.observe.supposition import (
    ClusterDown,
    MoreMissing,
    MoreNodes,
    Supposition,
    parse_supposition,
    with_workspace,
)
from reconciler.daemon.answers.desk import AnswerDesk, PlanAnswer, PlanQuestion
from reconciler.daemon.answers.plan_report import placements_of, report_plan, visible_part
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import Json
from reconciler.text.to_json import json_value

_MOST = 10


class PlanFilters(BaseModel):
    """What is supposed, and whose files are decided on."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)

    what_if: list[Annotated[str, Field(max_length=200)]] = Field(
        [],
        max_length=_MOST,
        description="Suppositions: llm/vllm+3, cluster/worker-2=down, cluster/worker-2/gpu+4.",
        examples=[["cluster/worker-2=down"]],
    )
    source_branch: str = Field(
        "",
        max_length=200,
        description="A branch of the fleet repository, whose files are taken as if it was merged. It takes a role for"
        " all workspaces: the files of a branch may say what a caller may see.",
    )
    diff: bool = Field(False, description="Answer with the commits as a patch, too.")


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the route."""
    routes = guarded_router(callers)
    busy = OneAtATime()

    @routes.get(
        "/api/v1/plan",
        operation_id="getPlan",
        response_model=Answered[PlanDocument],
        response_model_exclude_unset=True,
        responses=error_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
        tags=["fleet"],
    )
    def plan(request: Request, filters: Annotated[PlanFilters, Query()]) -> dict[str, Any]:
        """Show what a pass would commit now, and commit nothing.

        It is decided on the observation of the newest pass. A caller without a role for all workspaces sees the commits
        of its own, with the files of their placements alone, and no problems of files.
        """
        caller, snapshot = caller_of(request), backend.snapshot()
        suppositions = tuple(map(_supposition, filters.what_if))
        if filters.source_branch:
            _require_everywhere(caller)
        within = readable_workspaces(caller)
        if not filters.source_branch:  # the templates of a branch are known once it is read
            templates = snapshot.decision.inputs.desired.templates
            visible = [workload for workload in templates if within is None or workload.workspace in within]
            with asked(snapshot, caller):
                suppositions = tuple(with_workspace(supposition, visible) for supposition in suppositions)
        for supposition in suppositions:
            _require_visible(supposition, snapshot, caller, within)
        with busy.of(caller), asked(snapshot, caller):
            made = backend.answers.plan(PlanQuestion(suppositions=suppositions, branch=filters.source_branch))
            return answer(plan_json(backend.answers, made, caller, diff=filters.diff))

    return routes


def plan_json(answers: AnswerDesk, made: PlanAnswer, caller: Caller, *, diff: bool) -> Json:
    """Return the part of a plan that a caller may see as JSON, with the suppositions and, if asked for, a patch."""
    within = readable_workspaces(caller)
    decision, rendered = made.decision, made.rendered
    planned = {str(placement.name): placement.workload.workspace for placement in placements_of(rendered.changes)}
    if within is not None:
        rendered = visible_part(rendered, lambda workload: workload.workspace in within)
    report = report_plan(decision, rendered)
    if within is not None:
        report = replace(report, problems=decision.shared_problems)
    document = {"supposed": [*made.questions], **json_value(report)}
    if diff:
        document["patch"] = json_value(answers.patch(decision.tips, rendered))
    return redact(document, made.snapshot, caller, planned)


def _supposition(text: str) -> Supposition:
    try:
        return parse_supposition(text)
    except ValueError as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


def _require_everywhere(caller: Caller) -> None:
    """Refuse a caller who could see more by the files of a branch, as by a cluster that a Workspace there has."""
    if EVERYWHERE not in caller.roles:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"{caller.name} has no role for all workspaces, which a plan of another branch takes",
            hint="ask whoever runs Overspill for the role Viewer of *",
        )


def _require_visible(
    supposition: Supposition, snapshot: Snapshot, caller: Caller, within: Collection[WorkspaceName] | None
) -> None:
    """Refuse a supposition about a workload or a cluster that a caller may not see."""
    match supposition:
        case MoreMissing(workload=workload):
            require_role(caller, AccessRole.VIEWER, workload.workspace)
        case ClusterDown(cluster=cluster) | MoreNodes(cluster=cluster) if within is not None:
            described = snapshot.decision.inputs.desired.workspaces
            if not any(cluster in described[name].everywhere for name in within if name in described):
                raise HttpError(
                    HTTPStatus.NOT_FOUND,
                    f"no workspace that you may see has the cluster {cluster}",
                    hint="GET /api/v1/status lists those that you may see",
                )
