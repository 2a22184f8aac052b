"""Requests and bursts that a caller may see: a single item by name, or a page of the items that match a filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.access.rights import EVERYWHERE, AccessRole, Caller, visible_workspaces
from reconciler.api import paging
from reconciler.api.orders import denial_error
from reconciler.api.refusal import HttpError
from reconciler.api.security.callers import require_role
from reconciler.api.serialize import ItemSerializer
from reconciler.core.explain.catalogue import CatalogueItem
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.ids import WorkspaceName
from reconciler.model.placement import Origin, Phase, Placement
from reconciler.model.request import Answer, Denial, Provisioning
from reconciler.text.wording import join_names as named


class ItemFilters(BaseModel):
    """The filters and the page of a list call."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)

    workspace_name: str = Field("", max_length=63, description="Only those of this workspace.")
    cluster: str = Field("", max_length=63, description="Only those that are on this cluster or name it.")
    provisioning_status: Provisioning | None = Field(None, description="Only those whose GPUs are so.")
    phase: Phase | None = Field(None, description="Only those whose workload is so.")
    origin: Origin | None = Field(None, description="Only what people asked for, or only what demand brought.")
    name: str = Field("", max_length=63, description="Only those whose name begins so.")
    limit: int = Field(paging.LIMIT, ge=1, le=paging.MOST, description="Entries of a page.")
    continue_: str = Field(
        "", alias="continue", max_length=400, description="metadata.continue of the page before; nothing for the first."
    )


def list_items(snapshot: Snapshot, serializer: ItemSerializer, caller: Caller, filters: ItemFilters) -> Response:
    """Answer with one page of the items that a caller may see."""
    if filters.workspace_name:
        require_role(caller, AccessRole.VIEWER, WorkspaceName(filters.workspace_name))
    within: Collection[WorkspaceName] | None = readable_workspaces(caller)
    if filters.workspace_name:
        within = [WorkspaceName(filters.workspace_name)]
    after = paging.read_key(filters.continue_) if filters.continue_ else None
    page = snapshot.catalogue.page(within, wanted=_item_test(snapshot, filters), after=after, limit=filters.limit)
    following = {
        "total": page.total,
        "limit": filters.limit,
        "continue": "" if page.last is None else paging.name_token(page.last),
    }
    head = b'{"statusCode":200,"status":"OK","message":"Success","data":['
    body = b",".join(serializer.serialize(snapshot, page.items, caller))
    return Response(
        b"".join((head, body, b'],"metadata":', json.dumps(following).encode(), b"}")), media_type="application/json"
    )


def find_item(snapshot: Snapshot, caller: Caller, name: str, workspace: str) -> CatalogueItem:
    """Find an item by name; raises HttpError where none is visible, or where several workspaces have one."""
    if workspace:
        require_role(caller, AccessRole.VIEWER, WorkspaceName(workspace))
    items = snapshot.catalogue.find(name, [WorkspaceName(workspace)] if workspace else readable_workspaces(caller))
    if not items:
        raise denial_error(Denial.MISSING, name, Answer())
    if len({item.workspace for item in items}) > 1:
        raise HttpError(
            HTTPStatus.CONFLICT,
            f"{name} is in several workspaces: {named(sorted(item.workspace for item in items))}",
            hint=f"try ?workspaceName={items[0].workspace}",
        )
    return items[0]


def readable_workspaces(caller: Caller) -> Collection[WorkspaceName] | None:
    """List the workspaces that a caller may read; None stands for all, deleted ones included."""
    if EVERYWHERE in caller.roles:
        return None
    return visible_workspaces(caller, [WorkspaceName(scope) for scope in caller.roles])


def _item_test(snapshot: Snapshot, filters: ItemFilters) -> Callable[[CatalogueItem], bool] | None:
    """Build the predicate of the filters, cheap comparisons first; None where no filter is set."""
    tests: list[Callable[[CatalogueItem], bool]] = []
    if filters.name:
        tests.append(lambda item: item.name.startswith(filters.name))
    if filters.origin is not None:
        tests.append(lambda item: item.origin is filters.origin)
    if filters.cluster:
        tests.append(lambda item: filters.cluster in _clusters_of(snapshot, item))
    if filters.provisioning_status is not None:
        tests.append(lambda item: snapshot.status(item).provisioning is filters.provisioning_status)
    if filters.phase is not None:
        tests.append(lambda item: snapshot.status(item).phase is filters.phase)
    return (lambda item: all(test(item) for test in tests)) if tests else None


def _clusters_of(snapshot: Snapshot, item: CatalogueItem) -> Collection[str]:
    """List the clusters that an item runs on or requests."""
    if isinstance(item.subject, Placement):
        return (item.subject.cluster,)
    return {
        *item.subject.request.clusters,
        *snapshot.decision.inputs.ledger.placements.of(item.subject.workload).clusters,
    }
