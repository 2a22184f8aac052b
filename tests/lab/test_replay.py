"""Recorded passes are decided again: the same, or told where they part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from reconciler.core.decide.state.order import Order, Ruling
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps import scale_up
from reconciler.core.ledger.proposal_record import approval_path, write_approval
from reconciler.core.recording.json_patch import patched
from reconciler.core.recording.pass_record import RECORD, PassKind, PassRecord, read_record
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.source import SourceReader
from reconciler.errors import Problem
from reconciler.lab.replay import Parting, Replay, Replayed, parting
from reconciler.model.action import Action
from reconciler.model.ids import CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Reason
from reconciler.model.request import Verb
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.recorded_passes import Kept, recorded
from tests.daemon.test_untried_subsets import spreading
from tests.fakes.memory_repository import OURS, MemoryRepository

Run = tuple[MemoryRepository, list[PassRecord]]


@pytest.fixture(scope="module")
def run() -> Run:
    return recorded()


def through_files(records: Sequence[PassRecord]) -> list[PassRecord]:
    """Write the passes as a recording does, and read them back."""
    document, read = None, []
    for before, record in zip((None, *records), records, strict=False):
        operations: list[dict[str, object]] = []
        if before is None:
            document = json.loads(json.dumps(RECORD.encode(record)))
        else:
            RECORD.difference(before, record, "", operations)
            document = patched(document, json.loads(json.dumps(operations)))
        read.append(read_record(document))
    return read


def replayed(repository: MemoryRepository, records: Sequence[PassRecord]) -> list[Replayed | Problem]:
    return [*Replay(repository, SourceReader(repository), BranchReader(repository), OURS).run(records)]


def test_recorded_passes_are_decided_the_same_again(run: Run) -> None:
    repository, records = run
    again = replayed(repository, through_files(records))
    changes = {change.action for one in again if isinstance(one, Replayed) for change in one.plan.changes}
    assert changes >= {Action.PLACE, Action.RESIZE, Action.REVERT}
    assert [one.parting for one in again if isinstance(one, Replayed)] == [None] * len(records)


def test_passes_that_propose_and_hear_the_host_are_decided_the_same_again() -> None:
    policy = SOURCE_FILES["policies.yaml"] + "  approval: PullRequest\n"
    repository, kept = MemoryRepository({**SOURCE_FILES, "policies.yaml": policy}), Kept()
    passes = Passes(repository)
    passes.recording, passes.missing = kept, 3
    passes.run()
    (proposal,) = BranchReader(repository).ledger(repository.tips().output).proposals.values()
    repository.commit_as_person("output", {approval_path(proposal): write_approval(proposal)})
    passes.run()
    passes.missing = 5
    passes.advance(40)
    passes.run()
    workload = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
    ruling = Ruling(workload=workload, reason="https://git.example.com/1 was closed")
    passes.orders = (
        Order(number=1, verb=Verb.REJECT, name="vllm", workspace=None, author=OURS, within=None, ruling=ruling),
    )
    passes.run_once()
    again = replayed(repository, through_files(kept.records))
    changes = {change.action for one in again if isinstance(one, Replayed) for change in one.plan.changes}
    assert changes >= {Action.PROPOSE, Action.END_PROPOSAL, Action.PLACE}
    assert [one.parting for one in again if isinstance(one, Replayed)] == [None] * len(kept.records)


def test_each_pass_is_decided_from_what_was_recorded_of_it_alone(run: Run) -> None:
    repository, records = run
    again = replayed(repository, [*reversed(through_files(records))])
    assert all(isinstance(one, Replayed) and one.parting is None for one in again)


@pytest.mark.parametrize("restarts", [False, True])
def test_pass_at_a_moment_is_decided_with_the_subsets_that_earlier_ones_have_rendered(restarts: bool) -> None:
    passes, kept = spreading(), Kept()
    passes.recording = kept
    passes.run_once()
    if restarts:
        passes.restart()
    passes.advance(30)
    passes.run_once()
    repository, records = passes.repository, through_files(kept.records)
    again = Replay(repository, SourceReader(repository), BranchReader(repository), OURS).latest(records, passes.moment)
    assert isinstance(again, Replayed)
    assert (again.record, again.parting) == (records[-1], None)
    assert bool(again.plan.changes) != restarts  # the last subset is rendered in the second pass
    assert [one.parting for one in replayed(repository, records) if isinstance(one, Replayed)] == [None] * 2


def test_what_was_spent_of_a_budget_is_read_from_git_again() -> None:
    priced = SOURCE_FILES["clusters.yaml"].replace("spec: {}", "spec: {pricePerGPUHour: 60}")
    budget = SOURCE_FILES["workspaces.yaml"].replace("[demo]}", "[demo], budget: {perDay: 3}}")
    repository, records = recorded({**SOURCE_FILES, "clusters.yaml": priced, "workspaces.yaml": budget})
    held = {held.reason for record in records for held in record.plan.suppressed}
    assert Reason.OVER_BUDGET in held
    for order in (records, [*reversed(records)]):
        again = replayed(repository, through_files(order))
        assert all(isinstance(one, Replayed) and one.parting is None for one in again)


def test_other_window_is_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, records = run
    due = scale_up.replicas_due
    monkeypatch.setattr(scale_up, "replicas_due", lambda demand, window, now: due(demand, 100 * window, now))
    parted = [one for one in replayed(repository, records) if isinstance(one, Replayed) and one.parting]
    bursts = [one for one in records if any(change.action is Action.PLACE for change in one.plan.changes)]
    assert parted[0].record is bursts[0]
    assert parted[0].parting is not None
    assert (parted[0].parting.subject, parted[0].parting.now) == (
        f"Place {parted[0].record.plan.changes[0].placement.name}",
        "(none)",
    )


def test_parting_names_the_first_field_that_differs(run: Run) -> None:
    _, records = run
    plan = next(one.plan for one in records if any(change.action is Action.PLACE for change in one.plan.changes))
    place = plan.changes[0]
    assert place.action is Action.PLACE
    later = replace(place, after=replace(place.placement, replicas=9))
    assert parting(plan, replace(plan, changes=(later, *plan.changes[1:]))) == Parting(
        subject=f"Place {place.placement.name}",
        field="placement.replicas",
        recorded=str(place.placement.replicas),
        now="9",
    )
    wake_at = place.placement.expires_at + timedelta(days=1)
    assert parting(replace(plan, wake_at=None), replace(plan, wake_at=wake_at)) == Parting(
        subject="", field="wakeAt", recorded="(none)", now=wake_at.isoformat()
    )


def test_pass_whose_commit_is_gone_is_told_and_left_out(run: Run) -> None:
    repository, records = run
    (problem,) = replayed(repository, [replace(records[0], source=CommitId("9" * 40))])
    assert isinstance(problem, Problem)
    assert str(problem) == (
        "pass of 2026-11-20T10:00:00Z: is not decided again: its source commit 999999999999 is not in the repository"
    )


def test_pass_whose_order_held_a_credential_is_left_out(run: Run) -> None:
    repository, records = run
    (problem,) = replayed(repository, [replace(records[0], orders_redacted=True)])
    assert isinstance(problem, Problem)
    assert "an order held a credential" in problem.message


def test_receiving_pass_is_compared_by_what_it_received(run: Run) -> None:
    repository, records = run
    received = replace(records[0], kind=PassKind.RECEIVE, plan=replace(records[0].plan, suppressed=(), wake_at=None))
    (again,) = replayed(repository, [received])
    assert isinstance(again, Replayed)
    assert again.parting is None


def test_every_input_of_a_pass_is_recorded_or_follows_from_what_is() -> None:
    recorded = {"observed", "now", "history", "past", "begun", "unwritable", "rollouts", "orders", "lost"}
    recorded |= {"track_record"}
    in_git = {"desired", "ledger", "obstacles"}
    derived = {"demands", "reach", "drafted", "enrolment", "deletion", "budgets"}
    assert {field.name for field in fields(PassInput)} == recorded | in_git | derived
