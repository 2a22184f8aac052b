"""The catalogue of requests and bursts by name, in the order of workspace and name.

The order is computed at the first call. After that the cost of a page is that of its items.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from reconciler.model.ids import WorkloadId, WorkspaceName
from reconciler.model.placement import Origin, Placement
from reconciler.model.request import RequestRecord

Key: TypeAlias = tuple[str, str, str]
"""Workspace, name, and a distinction of equal names: nothing for a request, the cluster for a burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueItem:
    """A request or a burst."""

    key: Key
    subject: RequestRecord | Placement

    @property
    def workspace(self) -> WorkspaceName:
        """The workspace of the item."""
        return WorkspaceName(self.key[0])

    @property
    def name(self) -> str:
        """The name of the item."""
        return self.key[1]

    @property
    def origin(self) -> Origin:
        """The origin of the item: demand, or a person."""
        return Origin.BURST if isinstance(self.subject, Placement) else Origin.REQUEST


@dataclass(frozen=True, slots=True, kw_only=True)
class CataloguePage:
    """A page of items in order, the total, and the last key if more items follow."""

    items: Sequence[CatalogueItem]
    total: int
    last: Key | None


class Catalogue:
    """The requests and bursts of one ledger. Safe to read from several threads."""

    def __init__(self, requests: Mapping[WorkloadId, RequestRecord], placements: Mapping[str, Placement]) -> None:
        """Take the content of the ledger, unsorted."""
        self.requests = requests
        self.placements = placements
        self._shelves: (
            tuple[list[CatalogueItem], dict[str, list[CatalogueItem]], dict[str, list[CatalogueItem]]] | None
        ) = None

    def find(self, name: str, within: Iterable[WorkspaceName] | None) -> list[CatalogueItem]:
        """Return the items of a name in some workspaces (None: all). A request hides a burst of its workspace."""
        _, _, named = self._sort()
        allowed = None if within is None else frozenset(within)
        catalogue_items = [item for item in named.get(name, ()) if allowed is None or item.workspace in allowed]
        requested = {item.workspace for item in catalogue_items if item.origin is Origin.REQUEST}
        return [item for item in catalogue_items if item.origin is Origin.REQUEST or item.workspace not in requested]

    def page(
        self,
        within: Iterable[WorkspaceName] | None,
        *,
        wanted: Callable[[CatalogueItem], bool] | None = None,
        after: Key | None = None,
        limit: int,
    ) -> CataloguePage:
        """Return the wanted items after a key, of some workspaces (None: all)."""
        every, housed, _ = self._sort()
        items = every if within is None else [item for name in sorted(set(within)) for item in housed.get(name, ())]
        if wanted is not None:
            items = [item for item in items if wanted(item)]
        start = 0 if after is None else bisect_right(items, after, key=lambda item: item.key)
        shown = items[start : start + limit]
        more = start + limit < len(items)
        return CataloguePage(items=shown, total=len(items), last=shown[-1].key if more and shown else None)

    @cached_property
    def owners(self) -> Mapping[str, WorkspaceName]:
        """The workspace of each placement, by its name; those of requests included."""
        return {placement.name: placement.workload.workspace for placement in self.placements.values()}

    @cached_property
    def workspaces(self) -> frozenset[WorkspaceName]:
        """The workspaces with any items, including those that no file declares any more."""
        return frozenset({*self.owners.values(), *(workload.workspace for workload in self.requests)})

    def _sort(self) -> tuple[list[CatalogueItem], dict[str, list[CatalogueItem]], dict[str, list[CatalogueItem]]]:
        """Return all items in order, those of each workspace, and those of each name."""
        if self._shelves is None:
            items = [
                CatalogueItem(key=(workload.workspace, workload.name, ""), subject=record)
                for workload, record in self.requests.items()
            ]
            items += (
                CatalogueItem(key=(placement.workload.workspace, placement.name, placement.cluster), subject=placement)
                for placement in self.placements.values()
                if placement.origin is Origin.BURST
            )
            items.sort(key=lambda item: item.key)
            housed: dict[str, list[CatalogueItem]] = {}
            named: dict[str, list[CatalogueItem]] = {}
            for item in items:
                housed.setdefault(item.workspace, []).append(item)
                named.setdefault(item.name, []).append(item)
            self._shelves = (items, housed, named)
        return self._shelves
