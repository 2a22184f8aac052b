"""All that Flux says of one placement, as one report: its stages in their order, and the charts in them.

Flux's HelmReleases: what Helm says of a chart of a placement.

Flux's Kustomizations: one stage of a placement each, and how far it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.observe.kubernetes.conditions import condition, since, unreached
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.model.workload import Json
from reconciler.text.wording import engine_message

STAGE_LABEL = "kustomize.toolkit.fluxcd.io/name"
"""The label by which kustomize-controller marks what it has applied: the name of the Kustomization."""

_NO_CHART = ("SourceNotReady", "ArtifactFailed")
"""Why helm-controller cannot begin: the chart is not to be had. What it has installed before stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmReleaseRecord:
    """What is kept of a HelmRelease. `stage` is the name of the Kustomization that applied it.

    It is `waiting` while its chart is not to be had.
    """

    name: str
    placement: PlacementName
    stage: str
    state: EngineState
    waiting: bool
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
        since=since(ready.get("lastTransitionTime")),
    )


def _release_state(raw: Json, ready: Json) -> tuple[EngineState, str]:
    stalled, released = condition(raw, "Stalled"), condition(raw, "Released")
    # Helm's own words are in the condition of the release: once it is undone, Ready tells of the undoing.
    failure = str(released.get("message") or "") if released.get("status") == "False" else ""
    message = failure or str(ready.get("message") or "")
    # 1. What it says is about another generation. While it fails it does not count generations.
    current = (raw.get("status") or {}).get("observedGeneration") == raw["metadata"].get("generation")
    # 2. Its retries are used up, or it can never work. A deadline that was exceeded is Helm's own for the workload.
    if stalled.get("status") == "True" and current:
        message = message or str(stalled.get("message") or "")
        return (EngineState.PROGRESSING if unreached(message) else EngineState.FAILED), message
    # 3. It works, or is at it.
    if ready.get("status") == "True":
        return (EngineState.HEALTHY if current else EngineState.PENDING), ""
    if not ready or ready.get("reason") in _NO_CHART:
        return EngineState.PENDING, message
    return EngineState.PROGRESSING, message


DIGEST = "overspill.dev/digest"

_FORBIDDEN = 'is forbidden: User "'
"""How an API server says that the rights are missing: trying again does not bring them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KustomizationStage:
    """What is kept of a stage. `name` is that of its Kustomization: ``vllm-7f3a90c1-s01``.

    `revision` is the commit that its state is about, `attempted` the one that was tried last, `done` the last at which
    all was well. The objects of the attempted one are `applied` when the try came as far as to wait for them.
    """

    name: str
    placement: PlacementName
    digest: str
    revision: str
    attempted: str
    done: str
    state: EngineState
    message: str
    since: datetime | None
    applied: bool
    leaving: bool


def read_kustomization(raw: Json) -> KustomizationStage | None:
    """Read a Kustomization; None for one that is no stage of a placement."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    placement = (metadata.get("labels") or {}).get(PLACEMENT_LABEL)
    if not placement:
        return None
    ready, healthy = condition(raw, "Ready"), condition(raw, "Healthy")
    state, message = _kustomization_state(raw, ready)
    done, attempted = commit(status.get("lastAppliedRevision")), commit(status.get("lastAttemptedRevision"))
    return KustomizationStage(
        name=metadata["name"],
        placement=PlacementName(placement),
        digest=(metadata.get("annotations") or {}).get(DIGEST) or "",
        revision=done if state in {EngineState.HEALTHY, EngineState.PENDING} else attempted,
        attempted=attempted,
        done=done,
        state=state,
        message=engine_message(message),
        since=since(metadata.get("deletionTimestamp"), ready.get("lastTransitionTime")),
        applied=ready.get("reason") == "HealthCheckFailed" or healthy.get("status") == "Unknown",
        leaving="deletionTimestamp" in metadata,
    )


def commit(revision: Json) -> str:
    """Take the commit from a source's revision, ``placements@sha1:<id>``."""
    return str(revision or "").rpartition(":")[2]


def _kustomization_state(raw: Json, ready: Json) -> tuple[EngineState, str]:
    status, spec = raw.get("status") or {}, raw.get("spec") or {}
    message = str(ready.get("message") or "")
    # 1. It has nothing to say of this generation yet. While it fails it does not count generations.
    current = status.get("observedGeneration") == raw["metadata"].get("generation")
    if ready.get("status") == "True":
        return (EngineState.HEALTHY, "") if current else (EngineState.PENDING, "")
    # 2. It will not try again by itself.
    stalled = condition(raw, "Stalled")
    if stalled.get("status") == "True" and current:
        return EngineState.FAILED, str(stalled.get("message") or message)
    if ready.get("status") == "False" and ready.get("reason") == "ReconciliationFailed" and _FORBIDDEN in message:
        return EngineState.FAILED, message
    # 3. Somebody has stopped it.
    if spec.get("suspend"):
        return EngineState.PROGRESSING, "is suspended"
    # 4. Where the files come from is away: that says nothing of what was applied before.
    if ready.get("reason") == "ArtifactFailed":
        return EngineState.PENDING, message
    # 5. It is at it, or tries again.
    if ready.get("status") == "False":
        return EngineState.PROGRESSING, message
    if not ready:
        return EngineState.PENDING, ""
    # 6. It looks again, as it does after each commit on the branch: what it has applied may be as well as ever.
    message = str(condition(raw, "Reconciling").get("message") or message)
    return (EngineState.PENDING if status.get("lastAppliedRevision") else EngineState.PROGRESSING), message


def fold(
    cluster: ClusterName, stages: Iterable[KustomizationStage], releases: Iterable[HelmReleaseRecord]
) -> EngineReport | None:
    """Fold the stages and charts of one placement into one report; None where there is no stage.

    A stage begins only when those before it are ready at the same revision. So the first that is not ready tells how
    far the placement is; when all are, the last has the oldest revision.
    """
    every = sorted(stages, key=lambda stage: stage.name)
    if not every:
        return None
    # A stage that goes while others stay is one that a new version has dropped.
    kustomization_stages = [stage for stage in every if not stage.leaving] or every
    for stage in kustomization_stages:
        if stage.state is not EngineState.HEALTHY or stage.leaving:
            charts = sorted((release for release in releases if release.stage == stage.name), key=lambda one: one.name)
            return _report(cluster, kustomization_stages, _told(stage, charts))
    return _report(cluster, kustomization_stages, kustomization_stages[-1])


def _told(stage: KustomizationStage, charts: Sequence[HelmReleaseRecord]) -> KustomizationStage:
    """Let the charts of a stage that is not ready speak for it.

    Helm knows better why a chart is not ready than the stage, which only waits for it. That it has given up counts once
    the stage has applied the chart as it is now.
    """
    if stage.leaving:
        return replace(stage, state=EngineState.PROGRESSING, message=stage.message or "is being deleted")
    if not stage.applied or stage.state is EngineState.FAILED:
        return stage
    for chart in charts:
        if chart.state is EngineState.FAILED:
            failed = replace(stage, state=EngineState.FAILED, message=chart.message, since=chart.since)
            return replace(failed, revision=stage.attempted)
    kustomization_stage = replace(
        stage, message=next((chart.message for chart in charts if chart.message), stage.message)
    )
    unwell = [chart for chart in charts if chart.state is not EngineState.HEALTHY]
    if stage.done and unwell and all(chart.waiting for chart in unwell):
        # A chart server that is away says nothing of what was installed before; where nothing was, that is late.
        return replace(kustomization_stage, state=EngineState.PENDING, revision=stage.done)
    return kustomization_stage


def _report(cluster: ClusterName, stages: Sequence[KustomizationStage], stage: KustomizationStage) -> EngineReport:
    """Make the report of all stages from the one that tells."""
    digests = {stage.digest for stage in stages}
    return EngineReport(
        cluster=cluster,
        placement=stage.placement,
        digest=digests.pop() if len(digests) == 1 else "",  # on its way from one version to the next
        revision=stage.revision,
        state=stage.state,
        message=stage.message,
        since=stage.since,
        leaving=all(stage.leaving for stage in stages),
    )
