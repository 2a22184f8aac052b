"""What Argo CD and Flux write into their objects, read as one of four states in the engine's own words."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.core.engines.argocd.applications import read_application
from reconciler.core.engines.flux.reports import fold, read_helmrelease, read_kustomization
from reconciler.model.ids import ClusterName
from reconciler.model.rollout import MAX_MESSAGE, EngineReport, EngineState, ReportedSource
from reconciler.text.wording import engine_message

Raw = dict[str, Any]
OURS = "0123456789abcdef0123456789abcdef01234567"
LATER = "fedcba9876543210fedcba9876543210fedcba98"
DIGEST = "sha256-3b1c"
NAME = "vllm-7f3a90c1"
AT = "2026-11-20T10:00:00Z"
FINISHED = "2026-11-20T10:00:20Z"
LOOKED = "2026-11-20T10:00:21Z"
WORKER = ClusterName("worker-2")


# Argo CD


def application(**status: Any) -> Raw:
    """An Application as the ApplicationSet makes it and Argo CD 3.6 tells of it, healthy unless told otherwise."""
    healthy = {
        "sync": {"status": "Synced", "revisions": [OURS, "0.1.7"]},
        "health": {"status": "Healthy", "lastTransitionTime": FINISHED},
        "reconciledAt": LOOKED,
        "operationState": operation(),
    }
    return {
        "metadata": {
            "name": f"worker-2.{NAME}",
            "generation": 4,
            "labels": {"overspill.dev/cluster": "worker-2", "overspill.dev/placement": NAME},
            "annotations": {"overspill.dev/digest": DIGEST},
        },
        "spec": {
            "sources": [
                {"repoURL": "https://git.example.com/fleet.git", "path": f"clusters/worker-2/{NAME}/manifests"},
                {"repoURL": "https://charts.example.com", "chart": "vllm-stack", "targetRevision": "0.1.7"},
            ]
        },
        "status": {key: value for key, value in {**healthy, **status}.items() if value is not None},
    }


def operation(phase: str = "Succeeded", message: str = "", *, at: str = OURS, **result: Any) -> Raw:
    over = {} if phase == "Running" else {"finishedAt": FINISHED}
    return {
        "phase": phase,
        "message": message,
        "startedAt": AT,
        "operation": {"retry": {"limit": 3}},
        "syncResult": {"revisions": [at, "0.1.7"], **result},
        **over,
    }


def said(**status: Any) -> EngineReport:
    report = read_application(application(**status))
    assert report is not None
    return report


def wrong(kind: str, message: str) -> list[Raw]:
    return [{"type": kind, "message": message, "lastTransitionTime": AT}]


def test_application_that_is_applied_and_well_is_healthy_at_our_commit() -> None:
    assert said() == EngineReport(
        cluster=WORKER,
        placement="vllm-7f3a90c1",
        digest=DIGEST,
        revision=OURS,
        state=EngineState.HEALTHY,
        since=datetime(2026, 11, 20, 10, 0, 20, tzinfo=UTC),
        source=said().source,
    )


def test_application_names_the_repository_and_the_branch_of_its_directory() -> None:
    raw = application()
    placed = {"repoURL": "https://git.example.com/f.git", "targetRevision": "refs/heads/placements"}
    raw["spec"] = {
        "sources": [{"path": "clusters/w/p/manifests", **placed}, {"chart": "redis", "repoURL": "https://c"}]
    }
    report = read_application(raw)
    assert report is not None
    assert report.source == ReportedSource(branch="placements", repo_url=placed["repoURL"])
    raw["spec"] = {"source": {"repoURL": "https://git.example.com/f.git"}}
    report = read_application(raw)
    assert report is not None
    assert report.source is None


def test_application_of_others_is_passed_over() -> None:
    raw = application()
    del raw["metadata"]["labels"]["overspill.dev/placement"]
    assert read_application(raw) is None


def test_application_that_nobody_has_looked_at_yet_is_pending() -> None:
    raw = application()
    del raw["status"]
    report = read_application(raw)
    assert report is not None
    assert (report.state, report.revision, report.digest) == (EngineState.PENDING, "", DIGEST)


def test_application_that_is_compared_and_not_tried_is_at_it() -> None:
    report = said(sync={"status": "OutOfSync", "revisions": [OURS]}, operationState=None, health={"status": "Missing"})
    assert (report.state, report.revision, report.message) == (EngineState.PROGRESSING, OURS, "is not synced yet")


def test_health_from_before_the_sync_counts_for_nothing() -> None:
    assert said(reconciledAt=AT).state is EngineState.PROGRESSING
    assert said(reconciledAt=None).state is EngineState.PROGRESSING


def test_what_was_synced_anew_and_not_looked_at_is_at_it_since_the_sync() -> None:
    report = said(reconciledAt=AT, health={"status": "Healthy", "lastTransitionTime": "2026-11-19T10:00:00Z"})
    assert report.since == datetime(2026, 11, 20, 10, 0, 20, tzinfo=UTC)
    assert report.message == "is applied, and its health not looked at since"


def test_success_without_a_result_is_not_believed() -> None:
    hollow = operation()
    del hollow["syncResult"]
    assert said(operationState=hollow).state is EngineState.PENDING


def test_a_later_commit_that_changed_nothing_here_is_the_revision() -> None:
    assert said(sync={"status": "Synced", "revisions": [LATER, "0.1.7"]}).revision == LATER


def test_drift_leaves_what_was_applied_as_it_is() -> None:
    report = said(sync={"status": "OutOfSync", "revisions": [LATER, "0.1.7"]})
    assert (report.state, report.revision) == (EngineState.HEALTHY, OURS)


@pytest.mark.parametrize("status", ["Progressing", "Degraded", "Missing", "Suspended"])
def test_application_that_is_not_well_is_at_it_and_says_why(status: str) -> None:
    report = said(health={"status": status, "message": "waiting for 2 replicas", "lastTransitionTime": LOOKED})
    assert (report.state, report.message) == (EngineState.PROGRESSING, f"{status}: waiting for 2 replicas")
    assert report.since == datetime(2026, 11, 20, 10, 0, 21, tzinfo=UTC)


def test_failure_that_will_be_tried_again_is_no_failure_yet() -> None:
    words = "one or more objects failed to apply. Retrying attempt #1 at 10:00AM."
    retried = {**operation("Running", words), "finishedAt": FINISHED, "retryCount": 1}
    assert said(operationState=retried).state is EngineState.PROGRESSING
    assert said(operationState=retried).message == words


@pytest.mark.parametrize("phase", ["Failed", "Error"])
def test_operation_that_has_no_retry_left_has_failed_at_its_own_revision(phase: str) -> None:
    given_up = operation(phase, "one or more synchronization tasks are not valid (retried 3 times).", at=OURS)
    report = said(operationState=given_up, sync={"status": "OutOfSync", "revisions": [LATER, "0.1.7"]})
    assert (report.state, report.revision) == (EngineState.FAILED, OURS)
    assert report.message == "one or more synchronization tasks are not valid (retried 3 times)."


@pytest.mark.parametrize("phase", ["Failed", "Error"])
@pytest.mark.parametrize("result", [{}, {"syncResult": {"revisions": ["", ""]}}])
def test_operation_that_failed_before_it_knew_of_what_is_at_it_and_says_why(phase: str, result: Raw) -> None:
    words = "Failed to load application project: not found"
    early = {**operation(phase, words), "syncResult": None, **result}
    behind = {"status": "OutOfSync", "revisions": [LATER, "0.1.7"]}
    report = said(operationState=early, sync=behind, health={"status": "Missing"})
    assert (report.state, report.revision, report.message) == (EngineState.PROGRESSING, LATER, words)
    assert report.since == datetime(2026, 11, 20, 10, 0, 20, tzinfo=UTC)
    unseen = said(operationState=early, sync={"status": "Unknown"}, health=None)
    assert (unseen.state, unseen.revision, unseen.message) == (EngineState.PROGRESSING, "", words)


def test_operation_that_reached_nobody_and_knows_of_no_commit_has_got_none() -> None:
    early = {**operation("Error", "failed to list refs: dial tcp: connection refused"), "syncResult": None}
    report = said(operationState=early, sync={"status": "OutOfSync", "revisions": [LATER, "0.1.7"]})
    assert (report.state, report.revision) == (EngineState.PENDING, "")


def test_what_is_in_sync_is_applied_though_an_operation_failed_before_it_knew_of_what() -> None:
    early = {**operation("Error", "Failed to load application project: not found"), "syncResult": None}
    assert (said(operationState=early).state, said(operationState=early).revision) == (EngineState.HEALTHY, OURS)
    sick = said(operationState=early, health={"status": "Degraded", "message": "crashes"})
    assert (sick.state, sick.message) == (EngineState.PROGRESSING, "Degraded: crashes")


@pytest.mark.parametrize(
    "words",
    [
        'Get "https://10.0.0.2:6443/api": dial tcp 10.0.0.2:6443: connect: connection refused (retried 3 times).',
        "dial tcp: lookup worker-2.example.com: no such host",
        'Get "https://10.0.0.2:6443/version": EOF',
        "the server is currently unable to handle the request",
        "context deadline exceeded",
    ],
)
def test_retries_that_were_used_up_on_a_cluster_that_is_away_are_no_failure(words: str) -> None:
    report = said(operationState=operation("Error", words), sync={"status": "Unknown"})
    assert (report.state, report.message, report.revision) == (EngineState.PROGRESSING, words, OURS)
    away = {**UNDONE, "message": f"Helm install failed: {words}"}
    late = "context deadline" in words
    state = folded(stage(0, **UNHEALTHY), release(0, "False", "uninstalled", away, STALLED)).state
    assert state is (EngineState.FAILED if late else EngineState.PROGRESSING), "Helm's deadline is that of the workload"


def test_failure_names_the_object_that_failed() -> None:
    results = [
        {"kind": "ConfigMap", "name": "a", "status": "Synced", "message": "configmap/a configured"},
        {"kind": "Service", "name": "vllm", "status": "SyncFailed", "message": "namespace llm is not permitted"},
    ]
    report = said(operationState=operation("Failed", "one or more tasks are not valid", resources=results))
    assert report.message == "Service/vllm: namespace llm is not permitted (one or more tasks are not valid)"


def test_what_the_project_forbids_has_failed_before_it_was_tried() -> None:
    words = (
        "application destination server 'https://10.0.0.2' and namespace 'llm' do not match any of the allowed"
        " destinations in project 'overspill'"
    )
    report = said(conditions=wrong("InvalidSpecError", words), operationState=None, sync={"status": "Unknown"})
    assert (report.state, report.message, report.revision) == (EngineState.FAILED, words, "")


def test_a_fault_of_the_spec_that_may_mend_itself_is_no_failure() -> None:
    words = "there are no clusters with this name: worker-2"
    report = said(conditions=wrong("InvalidSpecError", words), operationState=None, sync={"status": "Unknown"})
    assert (report.state, report.message) == (EngineState.PROGRESSING, words)


@pytest.mark.parametrize("kind", ["ComparisonError", "SyncError"])
def test_error_says_nothing_of_what_was_applied_before(kind: str) -> None:
    report = said(conditions=wrong(kind, "repository not accessible"), sync={"status": "Unknown"})
    assert (report.state, report.revision, report.message) == (EngineState.PENDING, OURS, "repository not accessible")
    fresh = said(conditions=wrong(kind, "chart not found"), operationState=None, sync={"status": "Unknown"})
    assert (fresh.state, fresh.message) == (EngineState.PROGRESSING, "chart not found")


def test_application_that_is_deleted_is_leaving_and_says_what_holds_it() -> None:
    raw = application(conditions=wrong("DeletionError", "hook failed"))
    raw["metadata"]["deletionTimestamp"] = AT
    report = read_application(raw)
    assert report is not None
    assert (report.leaving, report.message) == (True, "hook failed")


# Flux


def stage(number: int = 0, ready: str = "True", reason: str = "ReconciliationSucceeded", **fields: Any) -> Raw:
    """A Kustomization as kustomize-controller 1.9 tells of it."""
    message, at = fields.pop("message", ""), fields.pop("at", OURS)
    conditions = [{"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": AT}]
    conditions += fields.pop("conditions", [])
    return {
        "metadata": {
            "name": f"{NAME}-s{number:02d}",
            "generation": 2,
            "labels": {"overspill.dev/placement": NAME, "kustomize.toolkit.fluxcd.io/name": "overspill-root"},
            "annotations": {"overspill.dev/digest": DIGEST},
        },
        "spec": {},
        "status": {
            "observedGeneration": 2,
            "lastAppliedRevision": f"placements@sha1:{at}" if ready == "True" else "",
            "lastAttemptedRevision": f"placements@sha1:{at}",
            "conditions": conditions,
            **fields,
        },
    }


def release(number: int, ready: str, message: str, *more: Raw, **status: Any) -> Raw:
    """A HelmRelease as helm-controller 1.6 tells of it."""
    condition = {"type": "Ready", "status": ready, "message": message, "lastTransitionTime": FINISHED}
    return {
        "metadata": {
            "name": f"{NAME}-stack",
            "generation": 3,
            "labels": {"overspill.dev/placement": NAME, "kustomize.toolkit.fluxcd.io/name": f"{NAME}-s{number:02d}"},
        },
        "status": {"observedGeneration": 3, "conditions": [condition, *more], **status},
    }


def folded(*raws: Raw) -> EngineReport:
    stages = [
        one for raw in raws if (one := read_kustomization(raw)) and raw["metadata"]["name"].startswith(f"{NAME}-s0")
    ]
    charts = [one for raw in raws if (one := read_helmrelease(raw)) and raw["metadata"]["name"] == f"{NAME}-stack"]
    report = fold(WORKER, stages, charts)
    assert report is not None
    return report


UNHEALTHY = {
    "ready": "False",
    "reason": "HealthCheckFailed",
    "message": f"health check failed after 5m0s: timeout waiting for: [HelmRelease/{NAME}-stack status: 'Failed']",
}
HELM = "Helm install failed for release demo/vllm with chart vllm-stack@0.1.7: context deadline exceeded"
STALLED = {
    "type": "Stalled",
    "status": "True",
    "reason": "RetriesExceeded",
    "message": "Failed to install after 1 attempt(s)",
}
UNDONE = {"type": "Released", "status": "False", "reason": "InstallFailed", "message": HELM}


def test_stages_that_are_all_ready_are_healthy_at_the_commit_of_the_last() -> None:
    report = folded(stage(0, at=LATER), stage(1))
    assert (report.state, report.revision, report.digest) == (EngineState.HEALTHY, OURS, DIGEST)
    assert report.path == f"clusters/worker-2/{NAME}"


def test_kustomization_of_others_is_passed_over() -> None:
    raw = stage()
    raw["metadata"]["labels"] = {}
    assert read_kustomization(raw) is None
    assert fold(WORKER, [], []) is None


def test_stage_that_waits_for_the_one_before_lets_that_one_speak() -> None:
    first = stage(
        0, "Unknown", "Progressing", conditions=[{"type": "Reconciling", "status": "True", "message": "at it"}]
    )
    second = stage(1, "False", "DependencyNotReady", message=f"dependency 'overspill/{NAME}-s00' is not ready")
    assert (folded(first, second).state, folded(first, second).message) == (EngineState.PROGRESSING, "at it")
    waits = folded(stage(0), second)
    assert waits.state is EngineState.PROGRESSING
    assert waits.message.startswith("dependency")


def test_ready_of_an_earlier_generation_is_not_yet() -> None:
    assert folded(stage(0, observedGeneration=1)).state is EngineState.PENDING


def test_stages_of_two_versions_are_of_neither() -> None:
    raw = stage(1)
    raw["metadata"]["annotations"]["overspill.dev/digest"] = "sha256-old"
    assert folded(stage(0), raw).digest == ""


def test_helms_own_words_go_before_those_of_who_waits_for_it() -> None:
    tries = folded(stage(0, **UNHEALTHY), release(0, "False", "upgrade retries remain", observedGeneration=2))
    assert (tries.state, tries.message) == (EngineState.PROGRESSING, "upgrade retries remain")
    gone = folded(stage(0, **UNHEALTHY), release(0, "False", "uninstalled", UNDONE, STALLED))
    assert (gone.state, gone.message, gone.revision) == (EngineState.FAILED, HELM, OURS)
    assert gone.since == datetime(2026, 11, 20, 10, 0, 20, tzinfo=UTC)


def test_chart_that_failed_counts_while_its_stage_still_waits_for_it() -> None:
    waits = {"type": "Healthy", "status": "Unknown", "reason": "Progressing"}
    raw = stage(0, "Unknown", "Progressing", conditions=[waits])
    assert folded(raw, release(0, "False", HELM, STALLED)).state is EngineState.FAILED


def test_chart_that_failed_before_its_stage_was_applied_anew_does_not_count() -> None:
    again = stage(0, "Unknown", "Progressing", conditions=[{"type": "Healthy", "status": "False"}])
    assert folded(again, release(0, "False", HELM, STALLED)).state is EngineState.PROGRESSING
    older = release(0, "False", HELM, STALLED, observedGeneration=2)
    assert folded(stage(0, **UNHEALTHY), older).state is EngineState.PROGRESSING


def test_chart_that_is_not_to_be_had_says_nothing_of_what_was_installed_before() -> None:
    words = f"HelmChart 'demo/{NAME}-stack' is not ready: failed to fetch: connection refused"
    for reason in ("SourceNotReady", "ArtifactFailed"):
        chart = release(0, "False", words)
        chart["status"]["conditions"][0]["reason"] = reason
        again = folded(stage(0, at=LATER, **UNHEALTHY, lastAppliedRevision=f"placements@sha1:{OURS}"), chart)
        assert (again.state, again.revision, again.message) == (EngineState.PENDING, OURS, words)
        fresh = folded(stage(0, **UNHEALTHY), chart)
        assert (fresh.state, fresh.revision, fresh.message) == (EngineState.PROGRESSING, OURS, words)


def test_missing_rights_are_a_failure_and_other_trouble_is_not() -> None:
    words = (
        'Service/llm/vllm dry-run failed (Forbidden): services "vllm" is forbidden: User "system:serviceaccount:a:b"'
    )
    assert folded(stage(0, "False", "ReconciliationFailed", message=words)).state is EngineState.FAILED
    assert folded(stage(0, "False", "ReconciliationFailed", message="timeout")).state is EngineState.PROGRESSING
    full = 'pods "a" is forbidden: exceeded quota: gpus'
    assert folded(stage(0, "False", "ReconciliationFailed", message=full)).state is EngineState.PROGRESSING


def test_source_that_is_away_says_nothing_of_what_was_applied_before() -> None:
    applied = {"lastAppliedRevision": f"placements@sha1:{OURS}"}
    report = folded(stage(0, "False", "ArtifactFailed", message="Source artifact not found", **applied))
    assert (report.state, report.revision) == (EngineState.PENDING, OURS)


def test_stage_that_looks_again_after_a_commit_for_others_is_not_unwell() -> None:
    applied = {"lastAppliedRevision": f"placements@sha1:{OURS}"}
    again = stage(0, "Unknown", "Progressing", at=LATER, **applied)
    assert (folded(again).state, folded(again).revision) == (EngineState.PENDING, OURS)
    waits = {"type": "Healthy", "status": "Unknown", "reason": "Progressing"}
    again = stage(0, "Unknown", "Progressing", at=LATER, conditions=[waits], **applied)
    failed = folded(again, release(0, "False", HELM, STALLED))
    assert (failed.state, failed.revision) == (EngineState.FAILED, LATER)


def test_suspended_stage_is_told_as_such() -> None:
    raw = stage(0, "False", "BuildFailed", message="no such file")
    raw["spec"]["suspend"] = True
    assert folded(raw).message == "is suspended"


def test_stage_that_a_new_version_dropped_is_no_hindrance_and_all_gone_is_leaving() -> None:
    going = stage(1)
    going["metadata"]["deletionTimestamp"] = AT
    assert folded(stage(0), going).state is EngineState.HEALTHY
    first = copy.deepcopy(going)
    first["metadata"]["name"] = f"{NAME}-s00"
    assert folded(first, going).leaving
    first["metadata"]["deletionTimestamp"] = FINISHED
    assert folded(first).since == datetime(2026, 11, 20, 10, 0, 20, tzinfo=UTC), "and not when it became ready"
    assert not folded(first, stage(1)).leaving


def test_message_is_one_line_of_bounded_length() -> None:
    assert engine_message("a\n  b\tc") == "a b c"
    assert len(engine_message("x" * 1000)) == MAX_MESSAGE
    assert engine_message(None) == ""
