"""Bursts that are renewed while they are needed, and those that are not."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.decide.decide import sweep
from reconciler.model.action import Action
from reconciler.model.demand import Sample
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import Renewal
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, plan, short

MINUTE = timedelta(minutes=1)
JUST_BEGUN = {VLLM: (Sample(at=NOW - MINUTE, missing=0),)}
"""A daemon that has not watched for the whole scale-down window."""


def ending(left: timedelta, name: str = "worker-2", replicas: int = 3, **fields: object) -> Placement:
    """Make a placement of ten minutes with this much time left."""
    return placement(name, replicas, created=NOW + left - 10 * MINUTE, **fields)


def renewing(*placements: Placement, missing: int = 3, limits: WorkspaceLimits | None = None, **policy: object) -> Plan:
    fields = {"renew": Renewal.WHILE_NEEDED, "default_duration": 10 * MINUTE, **policy}
    wanted = desired(ordering("worker-2", "worker-3", **fields))
    template = wanted.templates[VLLM]
    wanted = replace(
        wanted,
        templates={VLLM: replace(template, spec=replace(template.spec, burst_duration=None))},
        limits={} if limits is None else {VLLM.workspace: limits},
    )
    clusters = (short(missing), free("worker-2", 8), free("worker-3", 8))
    return plan(*clusters, there=ledger(*placements), wanted=wanted, history=JUST_BEGUN)


def ends(made: Plan) -> list[tuple[str, datetime]]:
    assert all(change.action is Action.EXTEND for change in made.changes), made.changes
    return [(change.after.cluster, change.after.expires_at) for change in made.changes]


def test_burst_that_is_needed_lasts_for_its_own_time_again() -> None:
    made = renewing(ending(2 * MINUTE))
    assert ends(made) == [("worker-2", NOW + 12 * MINUTE)]
    assert made.changes[0].detail == "3 replicas are still missing on worker-1"


def test_renewal_is_due_when_a_quarter_of_the_time_is_left() -> None:
    assert renewing(ending(timedelta(seconds=151))).changes == ()
    assert renewing(ending(timedelta(seconds=151))).wake_at == NOW + timedelta(seconds=1)
    assert ends(renewing(ending(timedelta(seconds=150))))


def test_renewal_of_a_long_burst_is_due_ten_minutes_before_its_end() -> None:
    day = placement(created=NOW - timedelta(hours=23), lasting=timedelta(hours=24))
    made = renewing(day, default_duration=timedelta(hours=24))
    assert (made.changes, made.wake_at) == ((), NOW + 50 * MINUTE)


def test_new_burst_wakes_the_daemon_for_its_renewal() -> None:
    made = renewing(scale_up_window=timedelta())
    assert [change.action for change in made.changes] == [Action.PLACE]
    assert made.wake_at == NOW + 7.5 * MINUTE


@pytest.mark.parametrize("left", [MINUTE, timedelta()])
def test_policy_that_does_not_renew_lets_a_burst_lapse(left: timedelta) -> None:
    made = renewing(ending(left), renew=Renewal.NEVER)
    assert not any(change.action is Action.EXTEND for change in made.changes)


def test_only_what_is_needed_is_renewed() -> None:
    kept, home = ending(MINUTE, "worker-2"), ending(MINUTE, "worker-3")
    made = renewing(kept, home, missing=2)
    assert ends(made) == [("worker-2", NOW + 11 * MINUTE)]


def test_demand_of_the_scale_down_window_counts() -> None:
    history = {VLLM: (Sample(at=NOW - 4 * MINUTE, missing=3), Sample(at=NOW - 2 * MINUTE, missing=0))}
    wanted = desired(ordering("worker-2", renew=Renewal.WHILE_NEEDED))
    made = plan(short(0), free("worker-2", 8), there=ledger(ending(MINUTE)), wanted=wanted, history=history)
    # Nobody watched for the whole window of five minutes, so only what is missing now is known to be needed.
    assert made.changes == ()
    history[VLLM] = (Sample(at=NOW - 6 * MINUTE, missing=3), *history[VLLM][1:])
    made = plan(short(0), free("worker-2", 8), there=ledger(ending(MINUTE)), wanted=wanted, history=history)
    assert [change.detail for change in made.changes] == ["up to 3 replicas were missing on worker-1 in the last 5m"]


def test_burst_is_renewed_up_to_the_longest_time_and_rests_on_that_cluster_then() -> None:
    made = renewing(ending(MINUTE), max_duration=15 * MINUTE)
    assert ends(made) == [("worker-2", NOW + 6 * MINUTE)]
    assert made.changes[0].detail.endswith("it may last until 2026-11-20T10:11:00Z")
    oldest = placement(created=NOW - 15 * MINUTE, lasting=15 * MINUTE)
    ended, begun = renewing(oldest, max_duration=15 * MINUTE).changes
    assert ended.action is Action.REVERT
    assert ended.detail == "its 15m are over; it may not last longer"
    assert ended.restraint is not None
    assert ended.restraint.cluster == "worker-2"
    assert begun.action is Action.PLACE
    assert begun.placement.cluster == "worker-3"


def test_limit_of_the_workspace_bounds_renewals() -> None:
    limits = WorkspaceLimits(workspace=VLLM.workspace, longest=12 * MINUTE)
    assert ends(renewing(ending(MINUTE), limits=limits)) == [("worker-2", NOW + 3 * MINUTE)]


def test_end_that_a_person_set_is_not_moved() -> None:
    assert renewing(ending(MINUTE, fixed_end=True)).changes == ()
    ended = renewing(ending(timedelta(), fixed_end=True)).changes[0]
    assert ended.action is Action.REVERT
    assert ended.detail.endswith("; a person set that end")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (3, "; no pass ran in time to renew it, and 3 replicas are still missing on worker-1"),
        (0, "; no replica is missing on worker-1 any more"),
    ],
)
def test_burst_that_lapsed_says_why_it_was_not_renewed(missing: int, reason: str) -> None:
    ended = renewing(ending(timedelta()), missing=missing).changes[0]
    assert ended.action is Action.REVERT
    assert (ended.why, ended.detail) == (EndReason.EXPIRED, f"its 10m are over{reason}")


def test_burst_that_lapsed_beside_others_that_serve_what_is_missing_says_so() -> None:
    ended = renewing(ending(timedelta(), "worker-3"), placement("worker-2", 3), missing=3).changes[0]
    detail = "its 10m are over; its others are as many as are missing on worker-1"
    assert (ended.placement.cluster, ended.detail) == ("worker-3", detail)


def test_burst_of_an_unseen_primary_lapses_and_says_so() -> None:
    wanted = desired(ordering("worker-2", renew=Renewal.WHILE_NEEDED))
    assert plan(there=ledger(ending(MINUTE)), wanted=wanted).changes == ()
    (ended,) = plan(there=ledger(ending(timedelta())), wanted=wanted).changes
    assert ended.detail == "its 10m are over; not renewed, since worker-1 has not been observed"


def test_sweep_ends_what_nobody_renewed() -> None:
    wanted = desired(ordering("worker-2", renew=Renewal.WHILE_NEEDED))
    (ended,) = sweep(inputs(there=ledger(ending(timedelta())), wanted=wanted)).changes
    assert ended.action is Action.REVERT
