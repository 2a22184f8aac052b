"""A line a change; nothing on a quiet pass."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from reconciler.core.render import Rendered
from reconciler.daemon.announce import Announcer
from reconciler.daemon.reconcile import Outcome, View
from reconciler.errors import Problem, Severity
from reconciler.model.plan import Change, Plan, Reason, Revert, Suppressed, Why
from reconciler.model.tree import Tips
from tests.situations import SOURCE, VLLM, desired, placement, situation

BROKEN = Problem(path="templates/vllm.yaml", line=14, field="spec.steps", message="names no config")
OLD = Problem(path="clusters/a.yaml", message="has no labels", severity=Severity.WARNING)


def outcome(*changes: Change, problems: tuple[Problem, ...] = (), suppressed: tuple[Suppressed, ...] = ()) -> Outcome:
    plan = Plan(changes=changes, suppressed=suppressed)
    view = View.of(situation(wanted=desired(problems=problems)), Tips(source=SOURCE, output=None), plan)
    return Outcome(view=view, rendered=Rendered(commits=(), changes=changes, suppressed=()), commits=())


def waiting(message: str) -> Suppressed:
    return Suppressed(workload=VLLM, reason=Reason.NOTHING_FITS, message=message, replicas=3)


@pytest.fixture
def announcer() -> Announcer:
    return Announcer()


def test_each_change_is_a_line(announcer: Announcer) -> None:
    with capture_logs() as logs:
        announcer.tell(outcome(Revert(placement=placement(), why=Why.EXPIRED, detail="")))
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
