"""Workload templates, read-only: they are files of the fleet repository, changed by pull requests."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, NoReturn

from fastapi import APIRouter, Query, Request

from reconciler.access.rights import AccessRole, visible_workspaces
from reconciler.api.backend import Backend
from reconciler.api.body import answer, documents
from reconciler.api.models import Answered, Template
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.core.schema.egs.resource import rest_document
from reconciler.model.ids import TemplateName, WorkspaceName
from reconciler.model.request import Request as Asked
from reconciler.model.workload import Json, WorkloadTemplate
from reconciler.text.wording import join_names

PATH = "/api/v1/workload-template"

_Workspace = Annotated[str, Query(alias="workspaceName", max_length=63, description="Only those of this workspace.")]
_READ = error_responses(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the routes; the routes for writes answer with the file to change."""
    routes = guarded_router(callers)

    @routes.get(
        PATH,
        operation_id="listTemplates",
        response_model=Answered[list[Template]],
        responses=error_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
        tags=["fleet"],
    )
    def templates(request: Request, workspace: _Workspace = "") -> dict[str, Any]:
        """List the templates that are in force.

        Templates are files of the fleet repository, changed by pull requests; a write here answers with the file.
        """
        templates = _visible_templates(request, backend, workspace)
        return answer(documents(templates, _template_document, lambda template: template.name))

    @routes.get(
        f"{PATH}/{{name}}",
        operation_id="getTemplate",
        response_model=Answered[Template],
        responses=_READ,
        tags=["fleet"],
    )
    def template(request: Request, name: str, workspace: _Workspace = "") -> dict[str, Any]:
        """Read one template."""
        templates = [template for template in _visible_templates(request, backend, workspace) if template.name == name]
        if not templates:
            raise HttpError(HTTPStatus.NOT_FOUND, "Workload Template not found", hint=f"GET {PATH} lists them")
        if len(templates) > 1:
            raise HttpError(
                HTTPStatus.CONFLICT,
                f"{name} is in several workspaces: {join_names(template.workspace for template in templates)}",
                hint=f"try ?workspaceName={templates[0].workspace}",
            )
        return answer(_template_document(templates[0]))

    @routes.post(PATH, include_in_schema=False, response_model=None)
    def create() -> NoReturn:
        """Refuse with the way to add a template."""
        raise _by_pull_request(backend, "add a file with the WorkloadTemplate, anywhere", "GET")

    @routes.put(f"{PATH}/{{name}}", include_in_schema=False, response_model=None)
    @routes.delete(f"{PATH}/{{name}}", include_in_schema=False, response_model=None)
    def change(request: Request, name: str) -> NoReturn:
        """Refuse with the file of the template."""
        files = [
            template.path
            for template in _visible_templates(request, backend, "")
            if template.name == name and template.path
        ]
        raise _by_pull_request(backend, f"change {join_names(files) or 'the file that it is in'}", "GET")

    return routes


def _by_pull_request(backend: Backend, what: str, allowed: str) -> HttpError:
    return HttpError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "a template is changed by a pull request to the fleet repository",
        hint=f"{what}, on the branch {backend.source_branch}",
        headers={"Allow": allowed},
    )


def _visible_templates(request: Request, backend: Backend, workspace: str) -> list[WorkloadTemplate]:
    """List the templates that a caller may see, by workspace and name; templates of requests are left out."""
    desired, caller = backend.snapshot().decision.inputs.desired, caller_of(request)
    if workspace:
        require_role(caller, AccessRole.VIEWER, WorkspaceName(workspace))
    workspaces = {WorkspaceName(workspace)} if workspace else {*visible_workspaces(caller, desired.workspaces)}
    return [
        template
        for workload, template in sorted(desired.templates.items())
        if not template.request and workload.workspace in workspaces
    ]


def _template_document(template: WorkloadTemplate) -> dict[str, Json]:
    """Convert a template to EGS's JSON with its path and line."""
    spec = Asked(
        name=TemplateName(template.name), workspace=template.workspace, namespace=template.namespace, spec=template.spec
    )
    document = {
        name: value for name, value in rest_document(spec).items() if name not in ("clusters", "autoSelectCluster")
    }
    return {
        **document,
        "namespaces": list(template.namespaces),
        "gprTemplates": list(template.gpr_templates),
        "path": template.path,
        "line": template.line,
    }
