"""What the changes of a plan cost by the hour: what begins, less what ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.daemon.answers.plan_report import cost_of
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.plan import Change
from tests.builders.changes import (
    ALL,
    EXTEND,
    HOLD,
    LONGER,
    MOVE,
    MOVED,
    PLACE,
    RESIZE,
    RESTORE,
    REVERT,
    SHRINK,
    UPDATE,
    gpus,
)
from tests.builders.inputs import cluster
from tests.builders.placement_records import START

CLUSTERS = {ClusterName(name): cluster(name) for name in ("worker-1", "worker-2", "worker-3")}
MERGED = replace(MOVE, after=replace(MOVED, replicas=7), joined=replace(MOVED, replicas=2))


def with_gpu(value: Any) -> Any:
    return replace(value, shape=replace(value.shape, requests=gpus(1))) if isinstance(value, Placement) else value


def gpus_of(change: Change) -> int:
    """Count the GPUs that a change adds, where each replica has one."""
    if change.drifted is not None:
        change = replace(change, drifted=replace(change.drifted, placement=with_gpu(change.drifted.placement)))
    parts = {name: with_gpu(getattr(change, name)) for name in ("before", "after", "joined")}
    return cost_of([replace(change, **parts)], CLUSTERS, START).gpus


@pytest.mark.parametrize(
    ("change", "more"),
    [(PLACE, 3), (RESIZE, 2), (SHRINK, -2), (REVERT, -LONGER.replicas)],
    ids=["begins", "grows", "shrinks", "ends"],
)
def test_what_begins_is_added_and_what_ends_is_taken_off(change: Change, more: int) -> None:
    assert gpus_of(change) == more


@pytest.mark.parametrize("change", [UPDATE, EXTEND, MOVE, MERGED, RESTORE], ids=lambda change: change.action)
def test_what_goes_on_costs_nothing_more(change: Change) -> None:
    assert gpus_of(change) == 0


def test_what_a_person_deleted_and_what_is_no_placement_costs_nothing_more() -> None:
    for change in (HOLD, *(each for each in ALL if each.after is None and each.before is None)):
        assert gpus_of(change) == 0
