"""What the engines say of placements, kept as their objects are listed and change: a report each, and no objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import MappingProxyType
from typing import Generic, TypeVar

from reconciler.core.observe.kubernetes.argocd_application import read_application
from reconciler.core.observe.kubernetes.flux import (
    HelmReleaseRecord,
    KustomizationStage,
    fold,
    read_helmrelease,
    read_kustomization,
)
from reconciler.core.observe.kubernetes.part import ChangeEffect, ResourcePart
from reconciler.core.observe.kubernetes.resources import Resource, Watched
from reconciler.core.workloads.object_key import key_of
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.rollout import EngineReport
from reconciler.model.workload import Json

SELECTOR = PLACEMENT_LABEL
"""The label that all objects have which engines keep for placements."""


class Reports:
    """Reports by the path of their placement."""

    def __init__(self) -> None:
        self._known: dict[str, EngineReport] = {}
        self._told: Mapping[str, EngineReport] | None = None

    def all(self) -> Mapping[str, EngineReport]:
        """Return them all; the same object for as long as nothing has changed."""
        if self._told is None:
            self._told = MappingProxyType(dict(self._known))
        return self._told

    def put(self, path: str, report: EngineReport | None) -> ChangeEffect:
        """Take note of a report, or that there is none any more.

        That a placement has come to another state is more urgent than what is said of it meanwhile.
        """
        before = self._known.get(path)
        if before == report:
            return ChangeEffect.NOTHING
        self._told = None
        if report is None:
            del self._known[path]
            return ChangeEffect.DEMAND
        self._known[path] = report
        return ChangeEffect.CAPACITY if before is not None and _same(before, report) else ChangeEffect.DEMAND


def _same(before: EngineReport, report: EngineReport) -> bool:
    """Tell whether only the words differ, or since when, or the commit, which moves on with every other placement."""
    return replace(before, message=report.message, since=report.since, revision=report.revision) == report


class ArgoCDObjects:
    """Argo CD's Applications of one project; others are not ours, whatever labels they have (a `parts.Part`).

    Two may be of one placement, as while they are renamed: what was told last counts, and when that one is gone, the
    other.
    """

    def __init__(self, project: str) -> None:
        self.reports = Reports()
        self.parts: Mapping[Watched, ResourcePart] = {Resource.APPLICATIONS: self}
        self._project = project
        self._known: dict[str, EngineReport] = {}
        self._by_path: dict[str, dict[str, EngineReport]] = {}

    def apply(self, raw: Json) -> ChangeEffect:
        """Take note of an Application as it is now."""
        report = read_application(raw) if (raw.get("spec") or {}).get("project") == self._project else None
        key = key_of(raw)
        before = self._known.get(key)
        if before == report:
            return ChangeEffect.NOTHING
        effect = ChangeEffect.NOTHING
        if before is not None and (report is None or report.path != before.path):
            effect = self.remove(key)
        if report is None:
            return effect
        self._known[key] = report
        of = self._by_path.setdefault(report.path, {})
        of.pop(key, None)
        of[key] = report
        return max(effect, self.reports.put(report.path, report))

    def remove(self, key: str) -> ChangeEffect:
        """Take note that an Application is gone."""
        report = self._known.pop(key, None)
        if report is None:
            return ChangeEffect.NOTHING
        others = self._by_path[report.path]
        del others[key]
        if not others:
            del self._by_path[report.path]
        return self.reports.put(report.path, next(reversed(others.values()), None))

    def keys(self) -> AbstractSet[str]:
        """Name the Applications of placements."""
        return self._known.keys()


class FluxObjects:
    """Flux's Kustomizations and HelmReleases in one cluster, which come to one report for each placement."""

    def __init__(self, cluster: ClusterName) -> None:
        self.reports = Reports()
        self._cluster = cluster
        self._stages = _Pieces[KustomizationStage](read_kustomization, self._fold)
        self._releases = _Pieces[HelmReleaseRecord](read_helmrelease, self._fold)
        self.parts: Mapping[Watched, ResourcePart] = {
            Resource.KUSTOMIZATIONS: self._stages,
            Resource.HELM_RELEASES: self._releases,
        }

    def _fold(self, placement: PlacementName) -> ChangeEffect:
        report = fold(self._cluster, self._stages.of(placement), self._releases.of(placement))
        return self.reports.put(f"clusters/{self._cluster}/{placement}", report)


P = TypeVar("P", KustomizationStage, HelmReleaseRecord)


class _Pieces(Generic[P]):
    """One resource whose objects are pieces of placements (a `parts.Part`)."""

    def __init__(self, read: Callable[[Json], P | None], changed: Callable[[PlacementName], ChangeEffect]) -> None:
        self._read: Callable[[Json], P | None] = read
        self._changed = changed
        self._known: dict[str, P] = {}
        self._by_placement: dict[PlacementName, dict[str, P]] = {}

    def of(self, placement: PlacementName) -> list[P]:
        """Return the pieces of a placement."""
        return list(self._by_placement.get(placement, {}).values())

    def apply(self, raw: Json) -> ChangeEffect:
        """Take note of an object as it is now."""
        return self._put(key_of(raw), self._read(raw))

    def remove(self, key: str) -> ChangeEffect:
        """Take note that an object is gone."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Name the objects that are pieces of placements."""
        return self._known.keys()

    def _put(self, key: str, piece: P | None) -> ChangeEffect:
        before = self._known.get(key)
        if before == piece:
            return ChangeEffect.NOTHING
        if before is not None:
            others = self._by_placement[before.placement]
            del self._known[key], others[key]
            if not others:
                del self._by_placement[before.placement]
        if piece is not None:
            self._known[key] = piece
            self._by_placement.setdefault(piece.placement, {})[key] = piece
        return max(
            self._changed(kustomization_stage.placement)
            for kustomization_stage in (before, piece)
            if kustomization_stage is not None
        )
