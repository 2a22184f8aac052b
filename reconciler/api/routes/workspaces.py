"""Workspaces, as EGS lists them (its REST interface, `slice-workspace`); they are files of the fleet repository."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from reconciler.access.rights import visible_workspaces
from reconciler.api.backend import Backend
from reconciler.api.body import answer, documents
from reconciler.api.models import Answered, Workspaces
from reconciler.api.security.callers import Callers, caller_of, guarded_router
from reconciler.model.policy import Workspace
from reconciler.model.workload import Json


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the route."""
    routes = guarded_router(callers)

    @routes.get(
        "/api/v1/slice-workspace/list",
        operation_id="listWorkspaces",
        response_model=Answered[Workspaces],
        tags=["fleet"],
    )
    def workspaces(request: Request) -> dict[str, Any]:
        """List the workspaces that the caller has a role in."""
        workspaces_in_force = backend.snapshot().decision.inputs.desired.workspaces
        shown = visible_workspaces(caller_of(request), sorted(workspaces_in_force))
        workspaces = [workspaces_in_force[name] for name in shown]
        return answer({"workspaces": documents(workspaces, _workspace_document, lambda workspace: workspace.name)})

    return routes


def _workspace_document(workspace: Workspace) -> dict[str, Json]:
    """Convert a workspace to EGS's JSON. A workspace has no overlay network, and its clusters are the maximum."""
    clusters = list(workspace.clusters)
    namespaces = [{"namespace": namespace, "clusters": clusters} for namespace in workspace.namespaces]
    return {
        "name": workspace.name,
        "overlayNetworkDeploymentMode": "no-network",
        "maxClusters": len(clusters),
        "sliceDescription": "",
        "clusters": clusters,
        "namespaces": namespaces or None,
        "primaryCluster": workspace.primary,
    }
