"""Flux's HelmReleases: what Helm says of a chart of a placement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.core.kubernetes.conditions import condition, since
from reconciler.core.kubernetes.outages import unreached
from reconciler.core.wording import engine_message
from reconciler.model.deployed import EngineState
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json

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
