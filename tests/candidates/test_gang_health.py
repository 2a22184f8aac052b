"""A gang that has started with its minimum stays: its other pods wait there, and take no room but their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.messages import line
from reconciler.core.decide.decide import decide
from reconciler.core.explain.request_state import placement_phase, state_of_request
from reconciler.core.explain.workload import explain
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Plan, Reason
from reconciler.model.rollout import EngineState
from tests.builders.gangs import JOB, burst, placed
from tests.builders.group_bursts import fleet, lacks
from tests.builders.inputs import (
    NOW,
    VLLM,
    free,
    inputs,
    ledger,
    placement,
    plan,
    shape,
)
from tests.builders.requests import deployment, holds, manifests, record, request, wants
from tests.builders.requests import placed as asked_for

MINUTE = timedelta(minutes=1)
OURS = "sha256-ours"


def standing_job(*, ago: timedelta = 2 * MINUTE, digest: str = "") -> Placement:
    """Return what stands of the job on worker-2."""
    size = shape(8, group_size=5)
    return placement("worker-2", 1, shape=size, created=NOW - ago, lasting=600 * MINUTE, digest=digest)


def holding(there: Placement, bound: int, waiting: int, *nodes: int) -> ClusterObservation:
    """Observe worker-2, where so many pods of the job have a node and so many wait for one."""
    pending_pods = {there.name: PendingPods(replicas=waiting, shape=shape(8), since=NOW - MINUTE)} if waiting else {}
    return free("worker-2", *nodes, bound={there.name: bound}, ready={there.name: bound}, pending_pods=pending_pods)


@pytest.mark.parametrize(("bound", "waiting"), [(0, 0), (3, 2), (4, 1), (5, 0)])
@pytest.mark.parametrize("ago", [MINUTE, 60 * MINUTE], ids=["just placed", "an hour later"])
def test_no_later_pass_moves_it_or_decides_it_anew(bound: int, waiting: int, ago: timedelta) -> None:
    there = standing_job(ago=ago)
    made = burst(holding(there, bound, waiting), free("worker-3", *[8] * 9), there=there)
    assert (made.changes, made.suppressed) == ((), ())


def test_it_goes_to_a_cluster_with_room_once_none_of_its_pods_has_found_a_node_for_the_window() -> None:
    there = standing_job()
    (moved,) = burst(holding(there, 0, 5), free("worker-3", *[8] * 9), there=there).changes
    assert (moved.action, moved.after.cluster, moved.after.replicas) == (Action.MOVE, "worker-3", 1)


def test_the_pass_after_it_has_been_placed_finds_nothing_to_do() -> None:
    nodes = free("worker-2", *[8] * 4)
    change = placed(burst(nodes, free("worker-3", 8, 8)))
    later = burst(nodes, free("worker-3", *[8] * 9), there=change.placement)
    assert (later.changes, later.suppressed) == ((), ())


def beside(there: Placement, bound: int, waiting: int, *nodes: int) -> int:
    """Count the placements that worker-2 would take beside it of a request of one pod."""
    asked = request("worker-2", name="next", spec=manifests(deployment(1, 8)))
    wanted = replace(fleet(JOB, reads_replicas=False), requests={asked.workload: asked})
    held = replace(ledger(there), requests={asked.workload: record(asked)})
    seen = holding(there, bound, waiting, *nodes)
    return len(plan(lacks(5, running=0), seen, wanted=wanted, there=held).changes)


def test_until_they_come_the_room_of_the_pods_that_fit_is_nobody_elses() -> None:
    there = standing_job()
    assert beside(there, 0, 0, *[8] * 4) == 0
    assert beside(there, 0, 0, *[8] * 6) == 1


def test_once_some_have_come_only_the_others_still_take_room() -> None:
    there = standing_job()
    assert beside(there, 3, 2, 8, 8) == 0
    assert beside(there, 3, 2, 8, 8, 8) == 1
    assert beside(there, 5, 0, 8) == 1


def ailing(ready: int) -> tuple[Plan, Placement, Phase]:
    """Decide an hour after its engine has called the job unhealthy, while so many of its pods serve."""
    there = standing_job(ago=60 * MINUTE, digest=OURS)
    wanted = fleet(JOB, reads_replicas=False)
    seen = inputs(lacks(5, running=0), holding(there, ready, 5 - ready), wanted=wanted, there=ledger(there))
    ill = RolloutFailure(digest=OURS, state=EngineState.PROGRESSING, message="", since=NOW - 50 * MINUTE)
    seen = replace(seen, rollouts=Rollouts.of({there.cluster: ClusterRollouts(ailing={there.path: ill})}))
    return decide(seen), there, placement_phase(there, seen)


def test_a_gang_whose_minimum_serves_runs_however_long_the_others_wait() -> None:
    made, _, phase = ailing(3)
    assert (made.changes, phase) == ((), Phase.RUNNING)


def test_a_gang_whose_minimum_does_not_come_in_its_time_is_taken_back() -> None:
    made, there, phase = ailing(2)
    (change, *_) = made.changes
    assert change.action is Action.REVERT
    assert (change.placement, phase) == (there, Phase.PENDING)


def test_what_serves_with_all_of_its_pods_and_is_not_healthy_is_taken_back_as_ever() -> None:
    (change, *_) = ailing(5)[0].changes
    assert change.action is Action.REVERT


def lost(*nodes: int) -> Plan:
    there = standing_job(ago=60 * MINUTE)
    wanted = fleet(JOB, reads_replicas=False)
    seen = inputs(lacks(5, running=0), free("worker-3", *nodes), wanted=wanted, there=ledger(there))
    return decide(replace(seen, lost={there.cluster: NOW - 15 * MINUTE}))


def test_a_gang_leaves_a_lost_cluster_for_one_with_room_for_its_minimum_in_one_commit() -> None:
    (change,) = lost(8, 8, 8).changes
    assert change.action is Action.MOVE
    assert change.after.cluster == "worker-3"
    assert line(change).endswith("; 3 of its 5 pods fit now: its minimum of 3 starts, and the others wait there)")


def test_where_no_other_cluster_has_room_for_the_minimum_a_gang_stays_and_that_is_told() -> None:
    made = lost(8, 8)
    assert made.changes == ()
    (held,) = (one for one in made.suppressed if one.reason is Reason.CLUSTER_LOST)
    assert "no other cluster has room for all of it, nor for its minimum of 3 of 5 pods: it stays there" in held.message


def test_a_request_says_that_it_runs_with_its_minimum() -> None:
    asked = request("worker-2", spec=manifests(JOB))
    open_ = record(asked, began_at=NOW - MINUTE)
    there = asked_for(replicas=5, shape=shape(8))
    seen = inputs(holding(there, 3, 2), wanted=wants(asked), there=holds(open_, placed=[there]))
    stands = state_of_request(open_, seen.with_requests({asked.workload: open_}))
    said = "worker-2: 3 of its 5 pods serve, its minimum is 3, and the others wait there"
    assert (stands.phase, stands.message) == (Phase.RUNNING, said)


def test_explain_calls_a_gang_that_runs_with_its_minimum_healthy() -> None:
    wanted = fleet(JOB, reads_replicas=False)
    there = replace(standing_job(), digest="d")
    for engine, told in (EngineState.PROGRESSING, False), (EngineState.FAILED, True):
        ailment = RolloutFailure(digest="d", state=engine, message="0 of 1 ready", since=NOW)
        seen = inputs(lacks(5, running=0), holding(there, 3, 2), wanted=wanted, there=ledger(there))
        seen = replace(seen, rollouts=Rollouts(ailing={there.path: ailment}))
        assert (there.path in explain(VLLM, seen, decide(seen)).ailing) == told


def test_explain_says_that_it_runs_with_its_minimum() -> None:
    wanted = fleet(JOB, reads_replicas=False)
    there = standing_job()
    seen = inputs(lacks(5, running=0), holding(there, 3, 2), wanted=wanted, there=ledger(there))
    assert (
        f"Of {there.name} on worker-2, 3 of its 5 pods serve, its minimum is 3, and the others wait there."
        in explain(VLLM, seen, decide(seen)).conclusion
    )
