"""Placements in the form of a daemon's answer, read from the repository by a command without a daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from reconciler.api.serialize import ItemSerializer
from reconciler.app.commands import connected
from reconciler.cli.actions.known_names import refuse_unknown
from reconciler.cli.actions.visibility import tell_losses
from reconciler.core.explain.catalogue import Catalogue, CatalogueItem
from reconciler.core.explain.request_state import suppressed_by_request
from reconciler.daemon.reconcile import draft
from reconciler.daemon.snapshot import Snapshot
from reconciler.errors import InvalidInput
from reconciler.model.ids import WorkspaceName
from reconciler.model.placement import Placement
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.wording import join_names

Document: TypeAlias = Mapping[str, Any]
"""A placement in the fields of EGS's REST interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter:
    """The filters of a list; an empty one lets every placement pass."""

    workspace: str = ""
    cluster: str = ""
    status: str = ""
    phase: str = ""
    origin: str = ""


def all_placements(settings: Settings, filters: ListFilter) -> list[Document]:
    """List requests and bursts in the order of workspace and name.

    Raises InvalidInput where none passes and the fleet has no workspace or cluster of the name.
    """
    with _open_snapshot(settings) as (reading, serializer):
        items = reading.catalogue.page(None, wanted=lambda item: _passes(reading, item, filters), limit=_ALL).items
        if not items:
            desired = reading.decision.inputs.desired
            refuse_unknown("workspace", filter(None, [filters.workspace]), desired.workspaces)
            refuse_unknown("cluster", filter(None, [filters.cluster]), desired.clusters)
        return [json.loads(text) for text in serializer.serialize(reading, items)]


def one_placement(settings: Settings, name: str, workspace: str) -> Document:
    """Return a placement by its name. Raises InvalidInput where there is none, or where several workspaces have one."""
    with _open_snapshot(settings) as (reading, serializer):
        items = reading.catalogue.find(name, [WorkspaceName(workspace)] if workspace else None)
        if not items:
            raise InvalidInput(f"looking for {name!r}: there is no such placement (try `overspill placements list`)")
        places = sorted({str(item.workspace) for item in items})
        if len(places) > 1:
            raise InvalidInput(f"looking for {name!r}: it is in {join_names(places)} (try --workspace {places[0]})")
        (text,) = serializer.serialize(reading, items[:1])
    document: Document = json.loads(text)
    return document


_ALL = 1 << 31


@contextmanager
def _open_snapshot(settings: Settings) -> Iterator[tuple[Snapshot, ItemSerializer]]:
    """Look once, as a pass would, and open the files of the placements."""
    with connected(settings) as (world, memory):
        decision, _ = draft(world, decision_at(world, memory, None))
        tell_losses(decision.tips.losses)
        ledger = decision.inputs.ledger
        reading = Snapshot(
            decision=decision,
            blobs=memory.branch.blobs,
            catalogue=Catalogue(ledger.requests, ledger.placements),
            held=suppressed_by_request(decision.plan),
        )
        yield reading, ItemSerializer(world.repository)


def _passes(reading: Snapshot, item: CatalogueItem, filters: ListFilter) -> bool:
    if filters.workspace not in ("", item.workspace) or filters.origin not in ("", item.origin):
        return False
    if filters.cluster and filters.cluster not in _clusters(reading, item):
        return False
    state = reading.status(item)
    return filters.status in ("", state.provisioning) and filters.phase in ("", state.phase)


def _clusters(reading: Snapshot, item: CatalogueItem) -> frozenset[str]:
    """Name the clusters that a placement is on or a request asks for."""
    if isinstance(item.subject, Placement):
        return frozenset({item.subject.cluster})
    placed = reading.decision.inputs.ledger.placements.of(item.subject.workload).clusters
    return frozenset({*item.subject.request.clusters, *placed})
