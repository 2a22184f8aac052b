"""A change of a plan: which fields it has by its action, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.action import TRAITS, Action
from reconciler.model.end_reason import EndReason
from reconciler.model.plan import Change
from tests.builders.changes import (
    ALL,
    AMEND,
    CHOICE,
    END_PROPOSAL,
    EXTEND,
    GROWN,
    HOLD,
    MOVE,
    MOVED,
    PLACE,
    PROPOSAL,
    RECEIVE,
    RELEASE,
    RESIZE,
    RESTORE,
    REVERT,
    SHORTAGE,
    SHRINK,
    VLLM,
)
from tests.builders.placement_records import PLACEMENT

of_every_action = pytest.mark.parametrize("change", ALL, ids=lambda change: change.action)


def test_there_is_a_change_of_every_action_that_a_plan_decides_on() -> None:
    assert [change.action for change in ALL] == [*TRAITS]
    assert {*Action} - {*TRAITS} == {Action.START, Action.FOLLOW, Action.DISCARD}


@of_every_action
def test_a_required_field_cannot_be_left_out(change: Change) -> None:
    for name in TRAITS[change.action].required.values():
        if isinstance(getattr(change, name), (str, tuple)) or name == "shortage":
            continue  # an empty reason is a reason, and a request has no shortage
        with pytest.raises(ValueError, match=f"a {change.action} needs .*{name}"):
            replace(change, **{name: None})


@of_every_action
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("joined", GROWN),
        ("choice", CHOICE),
        ("proposal", PROPOSAL),
        ("approvals", ("path",)),
        ("notes", ("note",)),
        ("shortage", SHORTAGE),
    ],
)
def test_a_field_that_changes_of_the_action_do_not_have_is_refused(change: Change, name: str, value: object) -> None:
    if name in TRAITS[change.action].published.values():
        assert getattr(replace(change, **{name: value}), name) == value
        return
    with pytest.raises(ValueError, match=f"a {change.action} has no {name}"):
        replace(change, **{name: value})


def test_a_revert_leaves_no_placement() -> None:
    with pytest.raises(ValueError, match="a Revert has no after"):
        Change(action=Action.REVERT, before=PLACEMENT, after=GROWN, why=EndReason.EXPIRED)


def test_a_plan_does_not_begin_branches() -> None:
    with pytest.raises(ValueError, match="a plan does not decide on Start"):
        Change(action=Action.START)


def test_a_change_is_about_the_workload_of_its_placement_request_or_proposal() -> None:
    assert {change.workload.name for change in ALL} == {"vllm", "bookinfo"}
    assert RELEASE.workload == VLLM


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [(PLACE, 0, 3), (RESIZE, 3, 5), (SHRINK, 5, 3), (EXTEND, 5, 5), (MOVE, 5, 5), (REVERT, 5, 0), (HOLD, 5, 0),
     (RESTORE, 5, 5), (RELEASE, 0, 0), (AMEND, 0, 0), (END_PROPOSAL, 0, 0)],
)  # fmt: skip # a table
def test_replicas_before_and_after_follow_from_the_placement(change: Change, before: int, after: int) -> None:
    assert (change.replicas_before, change.replicas_after) == (before, after)
    assert (change.growth, change.grows) == (after - before, after > before)


def test_a_move_adds_nothing_to_the_placement_that_it_joins() -> None:
    joined = replace(MOVED, replicas=2)
    change = replace(MOVE, after=replace(MOVED, replicas=7), joined=joined)
    assert (change.replicas_before, change.replicas_after, change.growth) == (5, 5, 0)


def test_clusters_are_those_that_a_change_is_about() -> None:
    assert MOVE.clusters == ("worker-2", "worker-3")
    assert [change.clusters for change in (PLACE, REVERT, RELEASE, RECEIVE, END_PROPOSAL)] == [("worker-2",)] * 5


def test_what_is_about_no_placement_has_none() -> None:
    for change in (RECEIVE, RELEASE, END_PROPOSAL):
        with pytest.raises(ValueError, match="is about no placement"):
            _ = change.placement
    with pytest.raises(ValueError, match="begins with no placement"):
        _ = PLACE.former
