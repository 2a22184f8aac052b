"""Argo CD's Applications: what each says of the placement that it deploys.

The rules are those of docs/reference/argocd.md, "Status of an Application". Argo CD has no one field that tells:
conditions say what keeps it from trying, the operation how the last try went, health what has become of it, each as of
its own moment.
"""

from __future__ import annotations

from reconciler.core.observe.kubernetes.conditions import since, unreached
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.model.workload import Json
from reconciler.text.wording import engine_message

CLUSTER_LABEL = "overspill.dev/cluster"
DIGEST = "overspill.dev/digest"

_REFUSED = ("do not match any of the allowed destinations", "is not permitted in project")
"""What the project forbids is forbidden until a person changes it; any other fault of a spec may mend itself."""

_UNTRIED = "is not synced yet"
_UNCHECKED = "is applied, and its health not looked at since"

_ERRORS = ("InvalidSpecError", "ComparisonError", "SyncError")


def read_application(raw: Json) -> EngineReport | None:
    """Read an Application; None for one that the ApplicationSet of `bootstrap` did not make."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    labels = metadata.get("labels") or {}
    if not (labels.get(CLUSTER_LABEL) and labels.get(PLACEMENT_LABEL)):
        return None
    state, message, revision, when = _state(raw, status)
    return EngineReport(
        cluster=ClusterName(labels[CLUSTER_LABEL]),
        placement=PlacementName(labels[PLACEMENT_LABEL]),
        digest=(metadata.get("annotations") or {}).get(DIGEST) or "",
        revision=revision,
        state=state,
        message=engine_message(message),
        since=since(*when),
        leaving="deletionTimestamp" in metadata,
    )


def _state(raw: Json, status: Json) -> tuple[EngineState, str, str, tuple[Json, ...]]:
    """Tell the state, in which words, of which revision, and since when."""
    operation: Json = status.get("operationState") or {}
    health: Json = status.get("health") or {}
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    index = _index(raw)
    seen, tried = _revision(status.get("sync"), index), _revision(operation.get("syncResult"), index)
    # 1. It goes away: whatever its status says is about what it was.
    if "deletionTimestamp" in raw["metadata"]:
        broken = conditions.get("DeletionError") or {}
        return (
            EngineState.PROGRESSING,
            broken.get("message") or "is being deleted",
            seen,
            (raw["metadata"]["deletionTimestamp"],),
        )
    # 2. The project refuses it: Argo CD does not even try.
    invalid: Json = conditions.get("InvalidSpecError") or {}
    if any(words in (invalid.get("message") or "") for words in _REFUSED):
        return EngineState.FAILED, invalid["message"], seen, (invalid.get("lastTransitionTime"),)
    # 3. It is at it. A try that failed and will be repeated is Running, too.
    phase = operation.get("phase")
    failed = phase in {"Failed", "Error"}
    if phase in {"Running", "Terminating"}:
        return EngineState.PROGRESSING, operation.get("message") or "", tried or seen, (operation.get("startedAt"),)
    # 4. It has given up on a revision: an operation ends in these only when it has no retry left. Its retries take less
    # than a minute, so a cluster that is away for so long uses them up; that says nothing of the placement.
    message = _failure(operation) if failed else ""
    away = unreached(message) or "context deadline exceeded" in message
    if failed and tried:
        state = EngineState.PROGRESSING if away else EngineState.FAILED
        return state, message, tried, (operation.get("finishedAt"),)
    # 5. Something keeps it from comparing or trying. What it has applied before may be as well as ever.
    synced = (status.get("sync") or {}).get("status") == "Synced"
    finished, looked = since(operation.get("finishedAt")), since(status.get("reconciledAt"))
    applied = phase == "Succeeded" and tried and finished
    for kind in _ERRORS:
        if error := conditions.get(kind):
            state, revision = (EngineState.PENDING, tried) if applied else (EngineState.PROGRESSING, seen)
            return state, error.get("message") or kind, revision, (error.get("lastTransitionTime"),)
    # 6. It has looked at it and not tried it, which a sync window or a person can keep it from for good.
    if seen and not (phase or synced):
        return EngineState.PROGRESSING, _UNTRIED, seen, ()
    # 7. It has failed before it knew of what, as for want of its project: older versions try again by themselves then,
    # newer ones do not (alreadyAttemptedSync). Where nobody answered it has not got it. What is in sync is applied.
    if failed and not (synced and seen):
        state, revision = (EngineState.PENDING, "") if away else (EngineState.PROGRESSING, seen)
        return state, message, revision, (operation.get("finishedAt"),)
    # 8. It has not looked at it yet, or said that it succeeded and not in what (argo-cd#29636).
    if not (applied or (synced and seen and (failed or not phase))):
        return EngineState.PENDING, operation.get("message") or "", seen, ()
    # 9. It is applied; its health counts when it was looked at afterwards (Kargo's rule).
    revision = seen if synced else tried
    told_at = (health.get("lastTransitionTime"), operation.get("finishedAt"))
    if health.get("status") == "Healthy":
        if finished is None or (looked is not None and looked >= finished):
            return EngineState.HEALTHY, "", revision, told_at
        return EngineState.PROGRESSING, _UNCHECKED, revision, (operation.get("finishedAt"),)
    message = ": ".join(part for part in (health.get("status"), health.get("message")) if part)
    return EngineState.PROGRESSING, message, revision, told_at


def _index(raw: Json) -> int:
    """Find our own source among the sources: the one that is a directory of a placement in git."""
    spec: Json = raw.get("spec") or {}
    for index, source in enumerate(spec.get("sources") or ()):
        if str(source.get("path") or "").startswith("clusters/"):
            return index
    return 0


def _revision(result: Json, index: int) -> str:
    """Read the revision of one source; an Application of one source may have `revision` instead."""
    revisions = (result or {}).get("revisions") or [(result or {}).get("revision") or ""]
    return str(revisions[index]) if index < len(revisions) else ""


def _failure(operation: Json) -> str:
    """Say why an operation failed, with the first object that did."""
    message = str(operation.get("message") or "")
    for one in (operation.get("syncResult") or {}).get("resources") or ():
        failed = one.get("status") == "SyncFailed" or one.get("hookPhase") in {"Failed", "Error"}
        if failed and one.get("message") and one["message"] not in message:
            return f"{one.get('kind')}/{one.get('name')}: {one['message']} ({message})"
    return message
