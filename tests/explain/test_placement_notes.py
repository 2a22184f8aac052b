"""`explain` says of a placement what its subset changes in its pods, and when it leaves a cluster that is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.explain.workload import explain
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.kubernetes.workload_spread import PreferredTerm
from reconciler.model.manifest_source import MadeFrom
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired
from tests.builders.group_bursts import SET, burst
from tests.builders.group_bursts import fleet as grouping
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, placement, short
from tests.builders.subsets import POOL, TIER, fleet, numbered, subset, term

MINUTE = timedelta(minutes=1)
NOTHING = Plan(changes=(), suppressed=())


def noted(wanted: Desired, *there: Placement, lost: datetime | None = None) -> list[str]:
    """Return what is noted of placements, where worker-2 may be lost since then."""
    seen = inputs(short(4), free("worker-3", 8), wanted=wanted, there=ledger(*there))
    seen = replace(seen, lost={} if lost is None else {ClusterName("worker-2"): lost})
    return [note for notes in explain(VLLM, seen, NOTHING).notes.values() for note in notes]


def test_the_patch_of_its_subset_is_told_with_all_else_that_it_changes() -> None:
    spot = subset(
        "spot",
        term(**{TIER: "own", POOL: "spot"}),
        tolerations=(Toleration(key="capacity", value="spot", effect="NoSchedule"), Toleration(operator="Exists")),
        preferred=(PreferredTerm(weight=1, term=Requirements(labels=(Requirement(key="disk", operator="Exists"),))),),
        patch={"metadata": {"labels": {"capacity": "spot"}}, "spec": {"priorityClassName": "low"}},
    )
    (told,) = noted(fleet(spot), placement("worker-2", 2, subset="spot"))
    assert told == (
        "subset spot of WorkloadSpread demo/pools changes its pods: tolerates capacity=spot, tolerates every taint, "
        "prefers nodes with disk, requires nodes with pool=spot and patches metadata.labels and spec.priorityClassName"
    )


def test_what_a_placement_was_made_from_is_told() -> None:
    made_from = MadeFrom(text="Deployment/demo/vllm@sha256-b81c", digest="sha256-b81c", images="vllm:1.1")
    (told,) = noted(fleet(subset("own")), replace(placement("worker-2", 2), made_from=made_from))
    assert told == "made from Deployment/demo/vllm@sha256-b81c, with vllm:1.1"


def test_of_two_placements_of_one_cluster_each_is_told_its_own_patch() -> None:
    first, second = (subset(name, patch={"metadata": {"labels": {"pool": name}}}) for name in ("a", "b"))
    there = [placement("worker-2", 1, created=NOW - age * MINUTE, subset=name) for age, name in ((2, "a"), (1, "b"))]
    assert [note.split()[1] for note in noted(fleet(first, second, pools=True), *there)] == ["a", "b"]


def test_nothing_is_told_of_a_subset_that_changes_nothing_or_is_none_any_more() -> None:
    assert noted(fleet(subset("own", term(**{TIER: "own"}))), placement("worker-2", 2, subset="own")) == []
    patched = subset("spot", patch={"spec": {"priorityClassName": "low"}})
    assert noted(fleet(patched), placement("worker-2", 2, subset="gone")) == []
    assert noted(fleet(patched), placement("worker-2", 2)) == []


def test_where_the_ordinals_of_a_subset_begin_is_told() -> None:
    (told,) = noted(numbered(subset("first", most=5), subset("rest")), placement("worker-2", 2, subset="rest"))
    assert told.endswith("changes its pods: counts from ordinal 5")


@pytest.mark.parametrize(
    ("ago", "told"),
    [
        (5, "has been lost since 2026-11-20T10:00:00Z: all of it moves at 2026-11-20T10:15:00Z if that lasts, after"),
        (20, "for longer than the Fleet's workerLostTimeout of 15m: all of it moves as soon as another cluster has"),
        (0, "all of it moves once that has lasted for the Fleet's workerLostTimeout of 15m, counted from when the"),
    ],
)
def test_a_set_on_a_lost_cluster_is_told_when_it_moves(ago: int, told: str) -> None:
    (note,) = noted(grouping(SET), burst("worker-2", 2), lost=NOW - ago * MINUTE)
    assert told in note


def test_what_has_no_groups_leaves_a_lost_cluster_sooner_and_is_told_when() -> None:
    (note,) = noted(fleet(subset("own")), placement("worker-2", 2), lost=NOW - 4 * MINUTE)
    assert note.endswith(
        "its replicas move at 2026-11-20T10:06:00Z if that lasts, after a policy's workerLostTimeout of 5m"
    )


def test_of_a_cluster_that_is_not_lost_nothing_is_told() -> None:
    assert noted(grouping(SET), burst("worker-2", 2)) == []
    assert noted(grouping(SET), burst("worker-3", 2), lost=NOW - 20 * MINUTE) == []
