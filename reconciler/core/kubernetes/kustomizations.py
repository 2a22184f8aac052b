"""Flux's Kustomizations: one stage of a placement each, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.core.kubernetes.conditions import condition, since
from reconciler.core.wording import engine_message
from reconciler.model.deployed import EngineState
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json

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
