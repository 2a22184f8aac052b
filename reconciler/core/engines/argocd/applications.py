"""Reports of Argo CD's Applications, each on the placement that it deploys.

The rules are those of docs/background/upstream/argocd.md, "Status of an Application". No single field of an Application
has the state: conditions say what keeps Argo CD from trying, the operation how the last try went, health what has
become of it, each as of its own moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from reconciler.core.engines.conditions import first_time, is_unreachable
from reconciler.core.engines.reports import EngineResource, Reports
from reconciler.core.workloads.watch import ChangeEffect, ResourcePart, key_of
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.rollout import EngineReport, EngineState, ReportedSource
from reconciler.model.workload import Json
from reconciler.text.wording import engine_message

APPLICATIONS = EngineResource(
    group="argoproj.io",
    versions=("v1alpha1",),
    plural="applications",
    kind="Application",
    rights="bootstrap/rbac-argocd.yaml",
)

CLUSTER_LABEL = "overspill.dev/cluster"
DIGEST = "overspill.dev/digest"

_REFUSED = ("do not match any of the allowed destinations", "is not permitted in project")
"""A violation of the AppProject stays until a person changes it; other faults of a spec may resolve by themselves."""

_PAGE = 25
"""The number of Applications to list at once: their status names every object that they deploy, up to 100 KiB each."""

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
        since=first_time(*when),
        leaving="deletionTimestamp" in metadata,
        source=_source(raw),
    )


def _source(raw: Json) -> ReportedSource | None:
    """Read the repository and the branch of a placement's directory."""
    spec: Json = raw.get("spec") or {}
    sources = spec.get("sources") or [spec.get("source") or {}]
    source: Json = sources[_index(raw)]
    branch, url = str(source.get("targetRevision") or ""), str(source.get("repoURL") or "")
    if not branch or not url:
        return None
    return ReportedSource(branch=branch.removeprefix("refs/heads/"), repo_url=url)


def _state(raw: Json, status: Json) -> tuple[EngineState, str, str, tuple[Json, ...]]:
    """Read the state, its message, the revision that it is about, and the times that it may be since."""
    operation: Json = status.get("operationState") or {}
    health: Json = status.get("health") or {}
    conditions = {entry.get("type"): entry for entry in status.get("conditions") or ()}
    index = _index(raw)
    seen, tried = _revision(status.get("sync"), index), _revision(operation.get("syncResult"), index)
    # 1. The Application is being deleted: its status is about the time before.
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
    # 3. A sync is under way. A try that failed and will be repeated is Running, too.
    phase = operation.get("phase")
    failed = phase in {"Failed", "Error"}
    if phase in {"Running", "Terminating"}:
        return EngineState.PROGRESSING, operation.get("message") or "", tried or seen, (operation.get("startedAt"),)
    # 4. The sync of a revision has failed for good: an operation ends in these phases only without a retry left. The
    # retries take less than a minute, so a cluster out of reach for as long uses them up; the placement may be well.
    message = _failure(operation) if failed else ""
    away = is_unreachable(message) or "context deadline exceeded" in message
    if failed and tried:
        state = EngineState.PROGRESSING if away else EngineState.FAILED
        return state, message, tried, (operation.get("finishedAt"),)
    # 5. An error keeps Argo CD from comparing or trying. The objects that it applied before may be as well as ever.
    synced = (status.get("sync") or {}).get("status") == "Synced"
    finished, assessed = first_time(operation.get("finishedAt")), first_time(status.get("reconciledAt"))
    applied = phase == "Succeeded" and tried and finished
    for kind in _ERRORS:
        if error := conditions.get(kind):
            state, revision = (EngineState.PENDING, tried) if applied else (EngineState.PROGRESSING, seen)
            return state, error.get("message") or kind, revision, (error.get("lastTransitionTime"),)
    # 6. The revision was compared and not tried, which a sync window or a person can prevent for good.
    if seen and not (phase or synced):
        return EngineState.PROGRESSING, _UNTRIED, seen, ()
    # 7. The sync failed before it knew its revision, as without its project: older versions of Argo CD try again by
    # themselves then, newer ones do not (alreadyAttemptedSync). Where a server did not answer, the revision has not
    # arrived. What is in sync is applied.
    if failed and not (synced and seen):
        state, revision = (EngineState.PENDING, "") if away else (EngineState.PROGRESSING, seen)
        return state, message, revision, (operation.get("finishedAt"),)
    # 8. The revision was not compared yet, or the sync succeeded without naming one (argo-cd#29636).
    if not (applied or (synced and seen and (failed or not phase))):
        return EngineState.PENDING, operation.get("message") or "", seen, ()
    # 9. The revision is applied; health counts when it was assessed afterwards (Kargo's rule).
    revision = seen if synced else tried
    times = (health.get("lastTransitionTime"), operation.get("finishedAt"))
    if health.get("status") == "Healthy":
        if finished is None or (assessed is not None and assessed >= finished):
            return EngineState.HEALTHY, "", revision, times
        return EngineState.PROGRESSING, _UNCHECKED, revision, (operation.get("finishedAt"),)
    message = ": ".join(part for part in (health.get("status"), health.get("message")) if part)
    return EngineState.PROGRESSING, message, revision, times


def _index(raw: Json) -> int:
    """Return the index of the source that is a placement's directory in git."""
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
    for result in (operation.get("syncResult") or {}).get("resources") or ():
        failed = result.get("status") == "SyncFailed" or result.get("hookPhase") in {"Failed", "Error"}
        if failed and result.get("message") and result["message"] not in message:
            return f"{result.get('kind')}/{result.get('name')}: {result['message']} ({message})"
    return message


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSource:
    """The Applications of one project (a `ReportSource`)."""

    namespace: str
    project: str
    page: int | None = _PAGE

    def objects(self) -> ApplicationReports:
        """Return the state of the Applications before the first list."""
        return ApplicationReports(self.project)


class ApplicationReports:
    """Reports of one project's Applications; others are not ours, whatever their labels (a `ResourcePart`).

    Two may be of one placement, as while they are renamed: the one that changed last counts, and after its end the
    other.
    """

    def __init__(self, project: str) -> None:
        self.reports = Reports()
        self.parts: Mapping[EngineResource, ResourcePart] = {APPLICATIONS: self}
        self._project = project
        self._by_key: dict[str, EngineReport] = {}
        self._by_path: dict[str, dict[str, EngineReport]] = {}

    def apply(self, raw: Json) -> ChangeEffect:
        """Add or replace an Application."""
        report = read_application(raw) if (raw.get("spec") or {}).get("project") == self._project else None
        key = key_of(raw)
        before = self._by_key.get(key)
        if before == report:
            return ChangeEffect.NOTHING
        effect = ChangeEffect.NOTHING
        if before is not None and (report is None or report.path != before.path):
            effect = self.remove(key)
        if report is None:
            return effect
        self._by_key[key] = report
        same_path = self._by_path.setdefault(report.path, {})
        same_path.pop(key, None)
        same_path[key] = report
        return max(effect, self.reports.put(report.path, report))

    def remove(self, key: str) -> ChangeEffect:
        """Remove an Application."""
        report = self._by_key.pop(key, None)
        if report is None:
            return ChangeEffect.NOTHING
        others = self._by_path[report.path]
        del others[key]
        if not others:
            del self._by_path[report.path]
        return self.reports.put(report.path, next(reversed(others.values()), None))

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the Applications of placements."""
        return self._by_key.keys()
