"""What the log of the output branch says about each placement, read back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.history import BurstHistory, as_they_stand, bursts, reasons_in_body
from reconciler.model.end_reason import EndReason
from reconciler.model.ledger import Drift, Ledger, Placements
from reconciler.model.tree import Identity, LoggedCommit
from tests.builders.changes import (
    EXTEND,
    HISTORY,
    HOLD,
    IN_SUBSET,
    LONGER,
    MOVE,
    PLACE,
    RELEASE,
    RESIZE,
    RESTORE,
    REVERT,
    SHRINK,
    logged,
)
from tests.builders.placement_records import START

MINUTE = timedelta(minutes=1)


def test_a_burst_is_told_from_its_first_commit_to_its_end():
    log = (logged(REVERT, 41, HISTORY), *HISTORY)
    (burst,) = bursts(log)
    assert (burst.id, burst.workload, burst.cluster) == ("llm/vllm-7f3a90c1", "llm/vllm", "worker-2")
    assert (burst.started_at, burst.ended_at, burst.why) == (START + MINUTE, START + 41 * MINUTE, EndReason.EXPIRED)
    assert burst.expires_at == LONGER.expires_at
    assert [step.action for step in burst.steps] == ["Place", "Resize", "Extend", "Revert"]
    assert burst.commits == tuple(commit.id for commit in reversed(log))
    assert burst.steps[0].subject == "burst(llm/vllm): 3 replicas on worker-2 for 10m"


def test_a_burst_of_a_subset_says_so_and_a_move_out_of_it_does_too():
    (burst,) = bursts((logged(IN_SUBSET, 1),))
    assert (burst.where, burst.subset) == ("worker-2/h100", "h100")
    same = replace(MOVE, after=replace(MOVE.after, name=IN_SUBSET.placement.name))
    (burst,) = bursts((logged(same, 9), logged(IN_SUBSET, 1)))
    assert burst.where == "worker-3"


def test_each_step_has_its_reasons_without_trailers_and_lists_of_commits():
    (burst,) = bursts((logged(REVERT, 41, HISTORY), *HISTORY))
    assert burst.steps[0].reasons.split("\n") == [
        "3 pods unschedulable on worker-1 for 45s (nvidia.com/gpu, H100).",
        "worker-2 chosen: 6 GPUs free, 4 replicas fit, 2.99 $/GPU-h. worker-3 refused: region eu-only.",
    ]
    assert burst.steps[-1].reasons.split("\n") == [
        "Expired: its 40m are over.",
        "Nothing new on any cluster until 2026-11-20T10:50:00Z.",
    ]


def test_a_burst_that_stands_has_no_end():
    (burst,) = bursts(HISTORY)
    assert (burst.ended_at, burst.why) == (None, "")


def test_a_step_that_takes_replicas_away_says_why_and_ends_nothing():
    (burst,) = bursts((logged(SHRINK, 4), *HISTORY))
    assert [step.why for step in burst.steps] == ["", "", "", EndReason.DEMAND_GONE]
    assert (burst.ended_at, burst.why) == (None, "")


def test_a_deleted_placement_ends_with_its_hold():
    (burst,) = bursts((logged(HOLD, 3), *HISTORY[1:]))
    assert (burst.ended_at, burst.why) == (START + 3 * MINUTE, "deleted")
    assert burst.expires_at == START + 10 * MINUTE


def test_a_move_ends_one_placement_and_begins_the_next():
    new, old = bursts((logged(MOVE, 9), *HISTORY))
    assert (old.id, old.cluster, old.why) == ("llm/vllm-7f3a90c1", "worker-2", "moved")
    assert (new.id, new.cluster, new.ended_at) == ("llm/vllm-0b2e44d1", "worker-3", None)
    assert old.ended_at == new.started_at == START + 9 * MINUTE
    assert old.commits[-1] == new.commits[0]


def test_a_move_under_the_same_name_goes_on():
    same = replace(MOVE, after=replace(MOVE.after, name=LONGER.name))
    (burst,) = bursts((logged(same, 9), *HISTORY))
    assert (burst.cluster, burst.started_at, burst.ended_at) == ("worker-3", START + MINUTE, None)


def test_the_placement_that_began_last_comes_first():
    other = replace(PLACE, after=replace(PLACE.placement, name="vllm-2"))
    assert [burst.id for burst in bursts((logged(other, 5), *HISTORY))] == ["llm/vllm-2", "llm/vllm-7f3a90c1"]


def test_a_placement_that_was_put_back_is_one_placement_still():
    log = (logged(REVERT, 60), logged(RESIZE, 50), logged(REVERT, 41), logged(PLACE, 1))
    (burst,) = bursts(log)
    assert (burst.started_at, burst.ended_at, burst.put_back) == (START + MINUTE, START + 60 * MINUTE, True)
    assert [step.action for step in burst.steps] == ["Place", "Revert", "Resize", "Revert"]
    (standing,) = bursts(log[1:])
    assert (standing.ended_at, standing.why, standing.put_back) == (None, "", True)


def test_a_placement_that_stands_after_its_revert_was_put_back():
    log = (logged(REVERT, 41, HISTORY), *HISTORY)
    ledger = Ledger(commit=log[0].id, placements=Placements({LONGER.path: LONGER}))
    (burst,) = as_they_stand(bursts(log), ledger, START + 50 * MINUTE)
    assert (burst.ended_at, burst.why, burst.expires_at, burst.put_back) == (None, "", LONGER.expires_at, True)
    (untouched,) = as_they_stand(bursts(HISTORY), ledger, START + 50 * MINUTE)
    assert untouched == bursts(HISTORY)[0]


def test_a_placement_that_was_deleted_since_our_last_commit_has_ended():
    deleted = Drift(placement=LONGER, removed=True, files={})
    ledger = Ledger(commit=HISTORY[0].id, drifted=(deleted,))
    (burst,) = as_they_stand(bursts(HISTORY), ledger, START + 50 * MINUTE)
    assert (burst.ended_at, burst.why) == (START + 50 * MINUTE, "deleted")
    edited = replace(ledger, drifted=(replace(deleted, removed=False),))
    assert as_they_stand(bursts(HISTORY), edited, START) == bursts(HISTORY)


def test_a_log_that_begins_later_says_so():
    (burst,) = bursts((logged(REVERT, 41), logged(EXTEND, 3)))
    assert burst.started_at is None
    assert burst.why == EndReason.EXPIRED


@pytest.mark.parametrize("change", [RELEASE])
def test_what_is_about_no_placement_is_passed_over(change):
    assert bursts((logged(change, 1),)) == ()


def test_peoples_commits_are_passed_over():
    ann = Identity(name="Ann", email="ann@example.com")
    by_hand = LoggedCommit(id=HISTORY[0].id, at=START, author=ann, committer=ann, subject="Fix", body="")
    assert bursts((by_hand, *HISTORY)) == bursts(HISTORY)


def test_a_restore_is_a_step_of_its_placement():
    (burst,) = bursts((logged(RESTORE, 7), *HISTORY))
    assert isinstance(burst, BurstHistory)
    assert burst.steps[-1].reasons.startswith("Its files were edited by hand.\n")


def test_a_body_without_trailers_is_all_reasons():
    assert (
        reasons_in_body("One line.\n\nAnother: with a colon in it\nand more")
        == "One line.\nAnother: with a colon in it and more"
    )
    assert reasons_in_body("It was wrapped\nhere. It goes on.\nA second one.\n") == (
        "It was wrapped here. It goes on.\nA second one."
    )
    assert reasons_in_body("") == ""
    assert reasons_in_body("\n\nKey: value\n") == ""
