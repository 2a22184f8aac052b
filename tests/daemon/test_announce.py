"""A line for what is new since the pass before; nothing on a quiet pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from reconciler.adapters.logs import EventLog
from reconciler.core.commits.events import of_push
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts, RolloutSigns
from reconciler.daemon.announce import Announcer
from reconciler.daemon.reconcile import Outcome, PassDecision
from reconciler.errors import Problem, Severity
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.end_reason import EndReason
from reconciler.model.events.event import Event, Push
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import CommitId
from reconciler.model.plan import Change, Plan, Reason, Suppressed
from reconciler.model.rollout import EngineState
from reconciler.model.tree import Tips
from tests.builders.inputs import NOW, SOURCE, VLLM, desired, inputs, placement, seconds, short

BROKEN = Problem(path="templates/vllm.yaml", line=14, field="spec.steps", message="names no config")
OLD = Problem(path="clusters/a.yaml", message="has no labels", severity=Severity.WARNING)


def outcome(
    *changes: Change,
    problems: tuple[Problem, ...] = (),
    suppressed: tuple[Suppressed, ...] = (),
    source: CommitId = SOURCE,
    seen: tuple[ClusterObservation, ...] = (short(0),),
    now: datetime = NOW,
) -> Outcome:
    plan = Plan(changes=changes, suppressed=suppressed)
    made = inputs(*seen, wanted=desired(problems=problems), now=now)
    decision = PassDecision.of(made, Tips(source=source, output=None), plan)
    commits = (CommitId("c" * 40),) * len(changes)
    rendered = RenderedPlan(commits=(), changes=changes, suppressed=())
    return Outcome(decision=decision, rendered=rendered, commits=commits, events=of_push(changes, commits, (), now))


def waiting(message: str, reason: Reason = Reason.NOTHING_FITS) -> Suppressed:
    return Suppressed(workload=VLLM, reason=reason, message=message, replicas=3)


@pytest.fixture
def announcer() -> Announcer:
    return Announcer(source_branch="main", sinks=(EventLog(),))


def test_each_event_and_each_push_is_a_line() -> None:
    made = outcome(Change(action=Action.REVERT, before=placement(), why=EndReason.EXPIRED, detail=""))
    push = Push(branch="placements", old=None, new=made.commits[0], commits=1, repo_url="", paths=None)
    with capture_logs() as logs:
        EventLog().publish(made.events, [push])
    assert [(entry["event"], entry["line"].partition(" (")[0]) for entry in logs] == [
        ("pushed", "pushed 1 commit to placements"),
        ("committed", 'Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m"'),
    ]


def test_what_is_held_back_is_published_without_a_push_when_it_comes_and_when_it_goes() -> None:
    published: list[tuple[Event, ...]] = []

    class Chat:
        def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
            assert not pushes
            published.append(tuple(events))

    announcer = Announcer(source_branch="main", sinks=(Chat(), Chat()))
    for suppressed in ((waiting("3 replicas fit nowhere"),), (waiting("2 replicas fit nowhere"),), (), ()):
        announcer.tell(outcome(suppressed=suppressed))
    first, again, last, _ = published
    assert first == again
    assert [(event.kind, event.workload, event.replicas, event.held_by) for (event,) in (first, last)] == [
        (EventKind.HELD_BACK, VLLM, 3, Reason.NOTHING_FITS),
        (EventKind.NO_LONGER_HELD_BACK, VLLM, 0, Reason.NOTHING_FITS),
    ]


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
        ("info", "mended: templates/vllm.yaml"),
    ]


def test_file_that_is_put_right_is_one_line_whatever_was_told_of_it(announcer: Announcer) -> None:
    of_it = (BROKEN, replace(BROKEN, line=3), replace(BROKEN, line=0, severity=Severity.WARNING))
    announcer.tell(outcome(problems=of_it))
    with capture_logs() as logs:
        announcer.tell(outcome())
    assert [entry["line"] for entry in logs] == ["mended: templates/vllm.yaml"]


def test_file_is_mended_with_the_last_of_its_errors(announcer: Announcer) -> None:
    other, odd = replace(BROKEN, line=3), replace(BROKEN, line=5, severity=Severity.WARNING)
    announcer.tell(outcome(problems=(BROKEN, other, odd)))
    with capture_logs() as logs:
        announcer.tell(outcome(problems=(other, odd)))
    assert logs == []
    with capture_logs() as logs:
        announcer.tell(outcome(problems=(odd,)))
    assert [entry["line"] for entry in logs] == ["mended: templates/vllm.yaml"]


def test_suppressed_change_is_told_once_though_its_numbers_move(announcer: Announcer) -> None:
    with capture_logs() as logs:
        for seconds in range(5):
            announcer.tell(outcome(suppressed=(waiting(f"3 replicas fit nowhere for {seconds}s"),)))
        announcer.tell(outcome())
        announcer.tell(outcome(suppressed=(waiting("3 replicas fit nowhere for 0s"),)))
    told = "llm/vllm: 3 replicas fit nowhere for 0s"
    assert [entry["line"] for entry in logs] == [told, "llm/vllm: no longer held back (NothingFits)", told]


def test_end_of_a_suppression_is_told_by_the_line_of_the_change_if_that_was_made(announcer: Announcer) -> None:
    grown = Change(action=Action.RESIZE, before=placement(), after=placement(replicas=9), detail="5 more")
    ended = Change(action=Action.REVERT, before=placement(), why=EndReason.DEMAND_GONE, detail="")
    for reason, change in ((Reason.SCALE_UP_WINDOW, grown), (Reason.SCALE_DOWN_WINDOW, ended)):
        announcer.tell(outcome(suppressed=(waiting("not yet", reason),)))
        with capture_logs() as logs:
            announcer.tell(outcome(change))
        assert logs == []


def test_change_that_was_not_waited_for_does_not_hide_the_end_of_a_suppression(announcer: Announcer) -> None:
    longer = Change(action=Action.EXTEND, before=placement(), after=placement(), detail="asked for")
    ended = Change(action=Action.REVERT, before=placement(), why=EndReason.EXPIRED, detail="")
    for change in (longer, ended):
        announcer.tell(outcome(suppressed=(waiting("not seen", Reason.PRIMARY_UNSEEN),)))
        with capture_logs() as logs:
            announcer.tell(outcome(change))
        assert [entry["event"] for entry in logs] == ["no longer held back"]
        assert logs[0]["line"] == "llm/vllm: no longer held back (PrimaryUnseen)"


def test_primary_that_is_seen_a_moment_after_the_start_is_no_line(announcer: Announcer) -> None:
    blind = waiting("worker-1 has not been observed", Reason.PRIMARY_UNSEEN)
    with capture_logs() as logs:
        announcer.tell(outcome(suppressed=(blind,), seen=()))
        announcer.tell(outcome(now=NOW + seconds(1)))
    assert logs == []


def test_primary_that_is_not_seen_for_ten_seconds_is_told_and_one_that_was_lost_at_once(announcer: Announcer) -> None:
    blind = waiting("worker-1 has not been observed", Reason.PRIMARY_UNSEEN)
    with capture_logs() as logs:
        for after in (0, 9, 10, 11):
            announcer.tell(outcome(suppressed=(blind,), seen=(), now=NOW + seconds(after)))
            assert len(logs) == (after >= 10)
    assert [entry["event"] for entry in logs] == ["held back"]
    with capture_logs() as logs:
        Announcer(source_branch="main", sinks=(EventLog(),)).tell(outcome(suppressed=(blind,)))
    assert [entry["event"] for entry in logs] == ["held back"]


def test_source_branch_that_moved_is_told_once_and_not_at_the_start(announcer: Announcer) -> None:
    with capture_logs() as logs:
        announcer.tell(outcome())
        for _ in range(3):
            announcer.tell(outcome(source=CommitId("0123456789abcdef" * 2)))
    assert [entry["line"] for entry in logs] == ["main is now at 0123456789ab"]


def rolled(ailing: RolloutFailure | None = None, arrived: str = "", now: datetime = NOW) -> Outcome:
    seen = inputs()
    signs = RolloutSigns.of(seen.ledger, seen.observed, seen.desired.fleet, seen.now)
    path = placement().path
    ward = ClusterRollouts(arrived={path: arrived} if arrived else {}, ailing={path: ailing} if ailing else {})
    known = Rollouts.of({placement().cluster: ward}, signs)
    told = outcome(now=now)
    return replace(told, decision=replace(told.decision, inputs=replace(told.decision.inputs, rollouts=known)))


def ailment(state: EngineState, message: str = "2 of 3 ready") -> RolloutFailure:
    return RolloutFailure(digest="sha256-a", state=state, message=message, since=NOW)


def lines(announcer: Announcer, *outcomes: Outcome) -> list[str]:
    with capture_logs() as logs:
        for one in outcomes:
            announcer.tell(one)
    return [entry["line"].removeprefix(f"{placement().path}: ") for entry in logs]


def test_placement_that_arrives_is_a_line_and_that_it_is_on_its_way_is_none(announcer: Announcer) -> None:
    way = rolled(ailment(EngineState.PENDING)), rolled(ailment(EngineState.PROGRESSING)), rolled(arrived="sha256-a")
    assert lines(announcer, rolled(), *way, rolled(arrived="sha256-a")) == ["healthy"]


def test_placement_that_ails_is_a_line_when_it_begins_and_when_it_ends(announcer: Announcer) -> None:
    ails = rolled(ailment(EngineState.PROGRESSING), arrived="sha256-a")
    worse = rolled(ailment(EngineState.PROGRESSING, "1 of 3 ready"), arrived="sha256-a")
    well = rolled(arrived="sha256-a")
    assert lines(announcer, well, ails, worse, well) == ["Progressing: 2 of 3 ready", "healthy"]


def test_placement_that_is_given_up_is_a_line_and_what_is_so_at_the_start_is_none(announcer: Announcer) -> None:
    failed = rolled(ailment(EngineState.FAILED, "timed out"))
    assert lines(announcer, failed, rolled(), failed) == ["Failed: timed out"]


def test_resize_that_its_engine_takes_up_by_polling_is_no_warning(announcer: Announcer) -> None:
    way = [rolled(ailment(EngineState.PENDING), now=NOW + seconds(after)) for after in (0, 1, 239)]
    taken = rolled(ailment(EngineState.PROGRESSING), now=NOW + seconds(240))
    assert lines(announcer, rolled(arrived="sha256-old"), *way, taken, rolled(arrived="sha256-a")) == ["healthy"]


def test_resize_that_its_engine_had_at_once_is_no_warning_while_pods_come(announcer: Announcer) -> None:
    coming = rolled(ailment(EngineState.PROGRESSING))
    assert lines(announcer, rolled(arrived="sha256-old"), coming, rolled(arrived="sha256-a")) == ["healthy"]


def test_resize_that_its_engine_does_not_take_up_is_told_once_after_four_minutes(announcer: Announcer) -> None:
    first = rolled(ailment(EngineState.PENDING, "its engine has not taken this version up"))
    late = []
    for after in (239, 240, 300):
        inputs = replace(first.decision.inputs, now=NOW + seconds(after))
        late.append(replace(first, decision=replace(first.decision, inputs=inputs)))
    told = ["Pending: its engine has not taken this version up"]
    assert lines(announcer, rolled(arrived="sha256-old"), first, *late) == told
