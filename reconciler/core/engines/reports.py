"""Reports of engines on placements, kept as their objects are listed and change: a report each, and no objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from reconciler.core.workloads.watch import REQUIRED, ChangeEffect, Gap, ResourcePart, ServedResource
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.rollout import EngineReport

SELECTOR = PLACEMENT_LABEL
"""The label of all objects that engines keep for placements."""


@dataclass(frozen=True, slots=True)
class EngineResource(ServedResource):
    """A resource of an engine's own objects."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    rights: str
    """The file of repo-layout/ that grants the right to list and watch the resource."""
    gap: Gap = REQUIRED


class Reports:
    """Reports by the path of their placement."""

    def __init__(self) -> None:
        self._reports: dict[str, EngineReport] = {}
        self._snapshot: Mapping[str, EngineReport] | None = None

    def all(self) -> Mapping[str, EngineReport]:
        """Return all reports; the same object for as long as nothing has changed."""
        if self._snapshot is None:
            self._snapshot = MappingProxyType(dict(self._reports))
        return self._snapshot

    def put(self, path: str, report: EngineReport | None) -> ChangeEffect:
        """Add or replace a report; None removes it.

        Another state of a placement is more urgent than other words on the same state.
        """
        before = self._reports.get(path)
        if before == report:
            return ChangeEffect.NOTHING
        self._snapshot = None
        if report is None:
            del self._reports[path]
            return ChangeEffect.DEMAND
        self._reports[path] = report
        return ChangeEffect.CAPACITY if before is not None and _same_state(before, report) else ChangeEffect.DEMAND


def _same_state(before: EngineReport, report: EngineReport) -> bool:
    """Return whether only message, time or commit differ; the commit moves on with every other placement."""
    return replace(before, message=report.message, since=report.since, revision=report.revision) == report


class ReportObjects(Protocol):
    """An engine's reporting objects, and the reports that they come to."""

    reports: Reports

    @property
    def parts(self) -> Mapping[EngineResource, ResourcePart]:
        """The part of each resource that is watched."""
        ...


class ReportSource(Protocol):
    """Which objects of an engine report on placements; equal sources are the same objects."""

    @property
    def namespace(self) -> str:
        """The namespace of the objects. They have the label SELECTOR."""
        ...

    @property
    def page(self) -> int | None:
        """The number of objects to list at once, where they are larger than others; None for the usual one."""
        ...

    def objects(self) -> ReportObjects:
        """Return the state of the objects before the first list."""
        ...
