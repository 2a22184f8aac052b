"""Reports of Flux's Kustomizations and HelmReleases, folded into one report for each placement.

A Kustomization is one stage of a placement, and a HelmRelease a chart in a stage (docs/background/upstream/flux.md,
"Status").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from reconciler.core.engines.conditions import condition, first_time, is_unreachable
from reconciler.core.engines.flux.names import SOURCE, TOOLKIT
from reconciler.core.engines.reports import EngineResource, Reports
from reconciler.core.workloads.watch import OPTIONAL, ChangeEffect, ResourcePart, key_of
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.rollout import EngineReport, EngineState, ReportedSource
from reconciler.model.workload import Json
from reconciler.text.wording import engine_message

_RIGHTS = "bootstrap/rbac-flux.yaml"
KUSTOMIZATIONS = EngineResource(
    group=f"kustomize.{TOOLKIT}",
    versions=("v1",),
    plural="kustomizations",
    kind="Kustomization",
    rights=_RIGHTS,
    gap=OPTIONAL,
)
HELM_RELEASES = EngineResource(
    group=f"helm.{TOOLKIT}", versions=("v2",), plural="helmreleases", kind="HelmRelease", rights=_RIGHTS, gap=OPTIONAL
)

STAGE_LABEL = f"kustomize.{TOOLKIT}/name"
"""The label by which kustomize-controller marks what it has applied: the name of the Kustomization."""

_NO_CHART = ("SourceNotReady", "ArtifactFailed")
"""Reasons of helm-controller for not beginning: the chart is unavailable. The installed release stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmReleaseRecord:
    """The state of a HelmRelease."""

    name: str
    placement: PlacementName
    stage: str
    """The name of the Kustomization that applied it."""
    state: EngineState
    waiting: bool
    """Whether its chart is unavailable."""
    message: str
    since: datetime | None


def read_helmrelease(raw: Json) -> HelmReleaseRecord | None:
    """Read a HelmRelease; None for one that is of no placement."""
    metadata = raw["metadata"]
    labels = metadata.get("labels") or {}
    if not labels.get(PLACEMENT_LABEL):
        return None
    ready = condition(raw, "Ready")
    state, message = _release_state(raw, ready)
    waiting = state is EngineState.PENDING and ready.get("reason") in _NO_CHART
    return HelmReleaseRecord(
        name=metadata["name"],
        placement=PlacementName(labels[PLACEMENT_LABEL]),
        stage=labels.get(STAGE_LABEL) or "",
        state=state,
        waiting=waiting,
        message=engine_message(message),
        since=first_time(ready.get("lastTransitionTime")),
    )


def _release_state(raw: Json, ready: Json) -> tuple[EngineState, str]:
    stalled, released = condition(raw, "Stalled"), condition(raw, "Released")
    # Helm's own message is in the condition Released: after a rollback, Ready is about the rollback.
    failure = str(released.get("message") or "") if released.get("status") == "False" else ""
    message = failure or str(ready.get("message") or "")
    # 1. The status may be about another generation; while a release fails, observedGeneration does not move.
    current = (raw.get("status") or {}).get("observedGeneration") == raw["metadata"].get("generation")
    # 2. Its retries are used up, or it can never work. An exceeded deadline is Helm's own for the workload.
    if stalled.get("status") == "True" and current:
        message = message or str(stalled.get("message") or "")
        return (EngineState.PROGRESSING if is_unreachable(message) else EngineState.FAILED), message
    # 3. It is ready, or on its way.
    if ready.get("status") == "True":
        return (EngineState.HEALTHY if current else EngineState.PENDING), ""
    if not ready or ready.get("reason") in _NO_CHART:
        return EngineState.PENDING, message
    return EngineState.PROGRESSING, message


DIGEST = "overspill.dev/digest"

_FORBIDDEN = 'is forbidden: User "'
"""The words of an API server for missing rights, which no retry brings."""


_SETTLED = frozenset({EngineState.HEALTHY, EngineState.PENDING})
"""States of what was applied last, whatever is tried now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KustomizationStage:
    """The state of a stage."""

    name: str
    """The name of its Kustomization: ``vllm-7f3a90c1-s01``."""
    placement: PlacementName
    digest: str
    revision: str
    """The commit that `state` is about."""
    attempted: str
    """The commit that was tried last."""
    done: str
    """The last commit that became ready."""
    state: EngineState
    message: str
    since: datetime | None
    applied: bool
    """Whether the objects of the attempted commit are applied: the try came as far as to wait for them."""
    leaving: bool
    """Whether the Kustomization is being deleted."""
    branch: str = ""
    """The branch that `revision` is of; empty for one of another source than `bootstrap` writes."""


def read_kustomization(raw: Json) -> KustomizationStage | None:
    """Read a Kustomization; None for one that is no stage of a placement."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    placement = (metadata.get("labels") or {}).get(PLACEMENT_LABEL)
    if not placement:
        return None
    ready, healthy = condition(raw, "Ready"), condition(raw, "Healthy")
    state, message = _kustomization_state(raw, ready)
    settled = "lastAppliedRevision" if state in _SETTLED else "lastAttemptedRevision"
    done, attempted = commit(status.get("lastAppliedRevision")), commit(status.get("lastAttemptedRevision"))
    return KustomizationStage(
        name=metadata["name"],
        placement=PlacementName(placement),
        digest=(metadata.get("annotations") or {}).get(DIGEST) or "",
        revision=done if state in _SETTLED else attempted,
        attempted=attempted,
        done=done,
        state=state,
        message=engine_message(message),
        since=first_time(metadata.get("deletionTimestamp"), ready.get("lastTransitionTime")),
        applied=ready.get("reason") == "HealthCheckFailed" or healthy.get("status") == "Unknown",
        leaving="deletionTimestamp" in metadata,
        branch=_branch(raw, status.get(settled)),
    )


def _branch(raw: Json, revision: Json) -> str:
    """Take the branch from a revision of the GitRepository that `bootstrap` writes."""
    source: Json = (raw.get("spec") or {}).get("sourceRef") or {}
    ours = source.get("kind") == "GitRepository" and source.get("name") == SOURCE
    ours = ours and source.get("namespace") in (None, "", raw["metadata"].get("namespace"))
    return str(revision or "").rpartition("@")[0].removeprefix("refs/heads/") if ours else ""


def commit(revision: Json) -> str:
    """Take the commit from a source's revision, ``placements@sha1:<id>``."""
    return str(revision or "").rpartition(":")[2]


def _kustomization_state(raw: Json, ready: Json) -> tuple[EngineState, str]:
    status, spec = raw.get("status") or {}, raw.get("spec") or {}
    message = str(ready.get("message") or "")
    # 1. The status may be about another generation; while a stage fails, observedGeneration does not move.
    current = status.get("observedGeneration") == raw["metadata"].get("generation")
    if ready.get("status") == "True":
        return (EngineState.HEALTHY, "") if current else (EngineState.PENDING, "")
    # 2. Flux will not retry.
    stalled = condition(raw, "Stalled")
    if stalled.get("status") == "True" and current:
        return EngineState.FAILED, str(stalled.get("message") or message)
    if ready.get("status") == "False" and ready.get("reason") == "ReconciliationFailed" and _FORBIDDEN in message:
        return EngineState.FAILED, message
    # 3. A person has suspended it.
    if spec.get("suspend"):
        return EngineState.PROGRESSING, "is suspended"
    # 4. The source of the files is unavailable: the objects that were applied before may be well.
    if ready.get("reason") == "ArtifactFailed":
        return EngineState.PENDING, message
    # 5. It is on its way, or retries.
    if ready.get("status") == "False":
        return EngineState.PROGRESSING, message
    if not ready:
        return EngineState.PENDING, ""
    # 6. It is checked again, as after each commit on the branch: the applied objects may be as well as ever.
    message = str(condition(raw, "Reconciling").get("message") or message)
    return (EngineState.PENDING if status.get("lastAppliedRevision") else EngineState.PROGRESSING), message


def fold(
    cluster: ClusterName, stages: Iterable[KustomizationStage], releases: Iterable[HelmReleaseRecord]
) -> EngineReport | None:
    """Fold the stages and charts of one placement into one report; None where there is no stage.

    A stage begins only when those before it are ready at the same revision. So the first that is not ready has the
    state of the placement; when all are ready, the last has the oldest revision.
    """
    ordered = sorted(stages, key=lambda stage: stage.name)
    if not ordered:
        return None
    # A stage that is deleted while others stay is one that a new version has dropped.
    current = [stage for stage in ordered if not stage.leaving] or ordered
    for stage in current:
        if stage.state is not EngineState.HEALTHY or stage.leaving:
            charts = sorted((release for release in releases if release.stage == stage.name), key=lambda it: it.name)
            return _report(cluster, current, _with_charts(stage, charts))
    return _report(cluster, current, current[-1])


def _with_charts(stage: KustomizationStage, charts: Sequence[HelmReleaseRecord]) -> KustomizationStage:
    """Replace message and state of a stage that is not ready by those of its charts.

    Helm knows better why a chart is not ready than the stage, which only waits for it. A failure of Helm counts once
    the stage has applied the present version of the chart.
    """
    if stage.leaving:
        return replace(stage, state=EngineState.PROGRESSING, message=stage.message or "is being deleted")
    if not stage.applied or stage.state is EngineState.FAILED:
        return stage
    for chart in charts:
        if chart.state is EngineState.FAILED:
            failed = replace(stage, state=EngineState.FAILED, message=chart.message, since=chart.since)
            return replace(failed, revision=stage.attempted)
    explained = replace(stage, message=next((chart.message for chart in charts if chart.message), stage.message))
    unwell = [chart for chart in charts if chart.state is not EngineState.HEALTHY]
    if stage.done and unwell and all(chart.waiting for chart in unwell):
        # A chart server that is away leaves the installed release as it was; without a release the stage is late.
        return replace(explained, state=EngineState.PENDING, revision=stage.done)
    return explained


def _report(cluster: ClusterName, stages: Sequence[KustomizationStage], stage: KustomizationStage) -> EngineReport:
    """Make the report of all stages from the one that has the state of the placement."""
    digests = {other.digest for other in stages}
    return EngineReport(
        cluster=cluster,
        placement=stage.placement,
        digest=digests.pop() if len(digests) == 1 else "",  # on its way from one version to the next
        revision=stage.revision,
        state=stage.state,
        message=stage.message,
        since=stage.since,
        leaving=all(other.leaving for other in stages),
        source=ReportedSource(branch=stage.branch) if stage.branch else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FluxSource:
    """The Kustomizations and HelmReleases in one cluster (a `ReportSource`)."""

    namespace: str
    cluster: ClusterName
    page: int | None = None

    def objects(self) -> FluxReports:
        """Return the state of the objects before the first list."""
        return FluxReports(self.cluster)


class FluxReports:
    """Reports of the Kustomizations and HelmReleases in one cluster, one for each placement (a `ReportObjects`)."""

    def __init__(self, cluster: ClusterName) -> None:
        self.reports = Reports()
        self._cluster = cluster
        self._stages = _PlacementPieces[KustomizationStage](read_kustomization, self._fold)
        self._releases = _PlacementPieces[HelmReleaseRecord](read_helmrelease, self._fold)
        self.parts: Mapping[EngineResource, ResourcePart] = {
            KUSTOMIZATIONS: self._stages,
            HELM_RELEASES: self._releases,
        }

    def _fold(self, placement: PlacementName) -> ChangeEffect:
        report = fold(self._cluster, self._stages.of(placement), self._releases.of(placement))
        return self.reports.put(f"clusters/{self._cluster}/{placement}", report)


P = TypeVar("P", KustomizationStage, HelmReleaseRecord)


class _PlacementPieces(Generic[P]):
    """A resource whose objects are pieces of placements (a `ResourcePart`)."""

    def __init__(self, read: Callable[[Json], P | None], changed: Callable[[PlacementName], ChangeEffect]) -> None:
        self._read: Callable[[Json], P | None] = read
        self._changed = changed
        self._by_key: dict[str, P] = {}
        self._by_placement: dict[PlacementName, dict[str, P]] = {}

    def of(self, placement: PlacementName) -> list[P]:
        """Return the pieces of a placement."""
        return list(self._by_placement.get(placement, {}).values())

    def apply(self, raw: Json) -> ChangeEffect:
        """Add or replace an object."""
        return self._put(key_of(raw), self._read(raw))

    def remove(self, key: str) -> ChangeEffect:
        """Remove an object."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the objects that are pieces of placements."""
        return self._by_key.keys()

    def _put(self, key: str, piece: P | None) -> ChangeEffect:
        before = self._by_key.get(key)
        if before == piece:
            return ChangeEffect.NOTHING
        if before is not None:
            others = self._by_placement[before.placement]
            del self._by_key[key], others[key]
            if not others:
                del self._by_placement[before.placement]
        if piece is not None:
            self._by_key[key] = piece
            self._by_placement.setdefault(piece.placement, {})[key] = piece
        return max(self._changed(record.placement) for record in (before, piece) if record is not None)
