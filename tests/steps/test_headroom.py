"""Spare replicas elsewhere, as long as any is missing."""

from __future__ import annotations

from datetime import timedelta

from reconciler.core.signals.merge import with_headroom
from reconciler.model.action import Action
from reconciler.model.capacity import MissingReplicas
from reconciler.model.demand import Sample
from reconciler.model.plan import Plan
from tests.builders.inputs import NOW, VLLM, desired, free, ledger, ordering, placement, plan, seconds, short

WATCHED = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=0),)}


def decided(missing: int, *, there: int = 0, since: float = 45, room: int = 8, **fields: object) -> Plan:
    wanted = desired(ordering("worker-2", "worker-3", headroom=2, **fields))
    placed = ledger(placement("worker-2", there)) if there else ledger()
    clusters = (short(missing, since=NOW - seconds(since)), free("worker-2", room), free("worker-3", 8))
    return plan(*clusters, there=placed, wanted=wanted, history=WATCHED)


def test_spare_replicas_are_placed_with_those_that_are_missing() -> None:
    (begun,) = decided(3).changes
    assert begun.action is Action.PLACE
    assert begun.placement.replicas == 5
    assert begun.shortage is not None
    assert "headroom keeps 2 replicas spare" in begun.shortage.asks
    assert begun.shortage.unschedulable == 3


def test_nothing_is_spare_where_nothing_is_missing() -> None:
    assert decided(0).changes == ()
    (ended,) = decided(0, there=2).changes
    assert ended.action is Action.REVERT


def test_spare_replicas_wait_for_the_window_of_the_first_that_is_missing() -> None:
    assert decided(3, since=10).changes == ()
    steps = (MissingReplicas(replicas=1, since=NOW - seconds(9)), MissingReplicas(replicas=2, since=NOW))
    *_, spare = with_headroom(steps, 1, None, NOW)
    assert (spare.replicas, spare.since, spare.signal) == (1, NOW - seconds(9), "headroom")


def test_spare_replicas_are_kept_while_any_is_missing() -> None:
    assert decided(3, there=5).changes == ()


def test_limit_of_the_policy_bounds_them() -> None:
    (begun,) = decided(3, max_replicas=4).changes
    assert begun.placement.replicas == 4


def test_steady_demand_keeps_nothing_spare() -> None:
    hour = timedelta(hours=1)
    growing = decided(3, there=5, since=3599, headroom_duration=hour)
    assert growing.changes == ()
    assert growing.wake_at == NOW + seconds(1)
    (given_back,) = decided(3, there=5, since=3600, headroom_duration=hour).changes
    assert given_back.action is Action.RESIZE
    assert (given_back.before.replicas, given_back.after.replicas) == (5, 3)
