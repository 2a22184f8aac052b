"""A line a change; nothing on a quiet pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from reconciler.core.render import Rendered
from reconciler.daemon.announce import Announcer
from reconciler.daemon.reconcile import Outcome, View
from reconciler.errors import Problem, Severity
from reconciler.model.capacity import Observed, ReplicaShape
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Ledger, Placement
from reconciler.model.plan import Change, Plan, Reason, Revert, Suppressed, Why
from reconciler.model.policy import Desired, EngineName
from reconciler.model.tree import Tips
from reconciler.model.units import Resources
from reconciler.model.workload import DeletionPolicy

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
VLLM = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
BROKEN = Problem(path="templates/vllm.yaml", line=14, field="spec.steps", message="names no config")
OLD = Problem(path="clusters/a.yaml", message="has no labels", severity=Severity.WARNING)
PLACEMENT = Placement(
    name=PlacementName("vllm-7f3a90c1"),
    cluster=ClusterName("worker-2"),
    workload=VLLM,
    replicas=3,
    created_at=NOON,
    changed_at=NOON,
    expires_at=NOON + timedelta(minutes=10),
    engine=EngineName.MANIFESTS,
    policy="default",
    deletion_policy=DeletionPolicy.DELETE,
    source_commit=CommitId("0" * 40),
    namespace="llm",
    target_namespace="llm",
    shape=ReplicaShape(requests=Resources()),
)


def outcome(*changes: Change, problems: tuple[Problem, ...] = (), suppressed: tuple[Suppressed, ...] = ()) -> Outcome:
    view = View(
        now=NOON,
        tips=Tips(source=CommitId("0" * 40), output=None),
        desired=Desired(commit=CommitId("0" * 40), problems=problems),
        ledger=Ledger(commit=None),
        observed=Observed(),
        demands={},
        plan=Plan(changes=changes, suppressed=suppressed),
    )
    return Outcome(view=view, rendered=Rendered(commits=(), changes=changes, suppressed=()), commits=())


def waiting(message: str) -> Suppressed:
    return Suppressed(workload=VLLM, reason=Reason.NOTHING_FITS, message=message, replicas=3)


@pytest.fixture
def announcer() -> Announcer:
    return Announcer()


def test_each_change_is_a_line(announcer: Announcer) -> None:
    with capture_logs() as logs:
        announcer.tell(outcome(Revert(placement=PLACEMENT, why=Why.EXPIRED, detail="")))
    (entry,) = logs
    assert entry["event"] == "committed"
    assert "worker-2" in entry["line"]


def test_quiet_pass_says_nothing(announcer: Announcer) -> None:
    with capture_logs() as logs:
        announcer.tell(outcome())
    assert logs == []


def test_lasting_problem_is_told_when_it_comes_and_when_it_goes(announcer: Announcer) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            announcer.tell(outcome(problems=(BROKEN, OLD)))
        announcer.tell(outcome(problems=(OLD,)))
    assert [(entry["log_level"], entry["line"]) for entry in logs] == [
        ("warning", "clusters/a.yaml: has no labels"),
        ("error", "templates/vllm.yaml:14: spec.steps: names no config"),
        ("info", "mended: templates/vllm.yaml:14: spec.steps: names no config"),
    ]


def test_suppressed_change_is_told_once_though_its_numbers_move(announcer: Announcer) -> None:
    with capture_logs() as logs:
        for seconds in range(5):
            announcer.tell(outcome(suppressed=(waiting(f"3 replicas fit nowhere for {seconds}s"),)))
        announcer.tell(outcome())
        announcer.tell(outcome(suppressed=(waiting("3 replicas fit nowhere for 0s"),)))
    assert [entry["line"] for entry in logs] == ["llm/vllm: 3 replicas fit nowhere for 0s"] * 2
