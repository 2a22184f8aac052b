"""Replicas of a burst that find no node on their cluster move to one with room, after the scale-up window."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.messages import message
from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, PendingPods, SucceededPods
from reconciler.model.cluster import ScalableNodes
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, MoveBudget
from reconciler.model.rollout import EngineState
from reconciler.text.wording import count
from tests.builders.gangs import torch
from tests.builders.group_bursts import SET, fleet, lacks
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    seconds,
    shape,
    short,
)

MINUTE = timedelta(minutes=1)
HERE = ClusterName("worker-2")


def there(**fields: object) -> Placement:
    return placement("worker-2", 4, created=NOW - 20 * MINUTE, lasting=timedelta(hours=2), digest="d", **fields)


def evicted(burst: Placement, *, bound: int = 2, since: float = 30, room: int = 0) -> ClusterObservation:
    """Observe that the replicas of a burst beyond those that have a node have had none for so many seconds."""
    waiting = PendingPods(replicas=burst.replicas - bound, shape=shape(), since=NOW - seconds(since))
    pods = {burst.name: bound}
    return free(burst.cluster, room, bound=pods, ready=pods, pending_pods={burst.name: waiting})


def decided(*others: ClusterObservation, policy: BurstPolicy | None = None, bound: int = 2, since: float = 30) -> Plan:
    burst = there()
    seen = evicted(burst, bound=bound, since=since)
    return plan(short(4, since=NOW - 20 * MINUTE), seen, *others, wanted=desired(policy), there=ledger(burst))


def left(cluster: str, ago: timedelta) -> Restraint:
    """Make the restraint of a move off a cluster whose rest is over."""
    return Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=ClusterName(cluster),
        since=NOW - ago,
        until=NOW - ago + 5 * MINUTE,
        reason="4 of 4 replicas had no node",
        placement=PlacementName("vllm-1"),
        move=True,
    )


def test_evicted_replicas_move_after_the_scale_up_window_and_the_others_stay() -> None:
    shrunk, begun = decided(free("worker-3", 8)).changes
    assert shrunk.action is Action.RESIZE
    assert begun.action is Action.PLACE
    assert (shrunk.after.cluster, shrunk.after.replicas) == (HERE, 2)
    assert (begun.placement.cluster, begun.placement.replicas) == ("worker-3", 2)
    assert (begun.placement.created_at, begun.placement.expires_at) == (there().created_at, there().expires_at)
    text = message(shrunk, source=CommitId("5" * 40))
    assert "2 of 4 replicas on worker-2 had no node for 30s." in text
    assert "Nothing new on worker-2 until 2026-11-20T10:10:00Z." in text


def test_a_burst_without_any_node_moves_in_one_commit() -> None:
    (move,) = decided(free("worker-3", 8), bound=0).changes
    assert move.action is Action.MOVE
    assert (move.after.cluster, move.after.replicas, move.after.expires_at) == ("worker-3", 4, there().expires_at)


def test_before_the_window_is_over_nothing_moves_and_a_pass_is_due_then() -> None:
    made = decided(free("worker-3", 8), since=20)
    assert (made.changes, made.wake_at) == ((), NOW + seconds(10))


@pytest.mark.parametrize(("window", "moves"), [(0, True), (120, False)])
def test_the_window_is_that_of_the_policy_and_thirty_seconds_at_least(window: int, moves: bool) -> None:
    own = ordering("worker-2", "worker-3", scale_up_window=seconds(window))
    assert bool(decided(free("worker-3", 8), policy=own).changes) is moves
    assert decided(free("worker-3", 8), policy=own, since=29).changes == ()


def test_the_autoscaler_of_the_cluster_has_its_time() -> None:
    nodes = ScalableNodes(labels={"pool": "gpu"}, taints=(), allocatable=gpus(8), most=4, delay=10 * MINUTE)
    wanted = desired(clusters=(cluster("worker-1"), cluster("worker-2", autoscaling=(nodes,)), cluster("worker-3")))
    made = plan(
        short(4, since=NOW - 20 * MINUTE), evicted(there()), free("worker-3", 8), wanted=wanted, there=ledger(there())
    )
    assert (made.changes, made.wake_at) == ((), NOW + 10 * MINUTE)


def test_where_no_other_cluster_has_room_they_stay_and_say_so() -> None:
    made = decided(free("worker-3", 0))
    assert made.changes == ()
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.NO_CAPACITY, 2)
    assert held.message == (
        "2 of 4 replicas on worker-2 had no node for 30s, and no other cluster has room: 2 stay there; worker-3:"
        " needs 1 GPU on one node; its only eligible node has none free (free or add nodes there)"
    )


def test_as_many_move_as_have_room() -> None:
    made = decided(free("worker-3", 1))
    assert [change.after.replicas for change in made.changes if change.action is Action.RESIZE] == [3]
    assert [change.placement.replicas for change in made.changes if change.action is Action.PLACE] == [1]
    assert [(held.reason, held.replicas) for held in made.suppressed] == [(Reason.NO_CAPACITY, 1)]


def test_they_join_the_replicas_that_the_other_cluster_has_already() -> None:
    burst, other = there(), placement("worker-3", 1, lasting=timedelta(hours=2))
    seen = free("worker-3", 8, bound={other.name: 1}, ready={other.name: 1})
    made = plan(short(5, since=NOW - 20 * MINUTE), evicted(burst), seen, there=ledger(burst, other))
    sizes = [(change.after.cluster, change.after.replicas) for change in made.changes if change.action is Action.RESIZE]
    assert sizes == [("worker-2", 2), ("worker-3", 3)]


def test_all_of_a_burst_joins_the_replicas_that_the_other_cluster_has_in_one_commit() -> None:
    burst, other = there(), placement("worker-3", 1, lasting=timedelta(hours=2))
    seen = free("worker-3", 8, bound={other.name: 1}, ready={other.name: 1})
    made = plan(short(5, since=NOW - 20 * MINUTE), evicted(burst, bound=0), seen, there=ledger(burst, other))
    (move,) = made.changes
    assert (move.action, move.before, move.joined) == (Action.MOVE, burst, other)
    assert (move.after.path, move.after.replicas, move.after.expires_at) == (other.path, 5, other.expires_at)


def test_copy_of_which_a_part_has_no_node_stays_whole_and_says_so() -> None:
    wanted = desired()
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], copy=4, uses_replicas=False)})
    seen = (short(4, since=NOW - 20 * MINUTE), evicted(there()), free("worker-3", 8))
    made = plan(*seen, wanted=wanted, there=ledger(there()))
    assert made.changes == ()
    (held,) = made.suppressed
    assert held.message == (
        "2 of 4 replicas on worker-2 had no node for 30s, and its 4 replicas go together or not at all: 2 stay there"
    )


def test_what_is_held_back_everywhere_stays_where_it_has_no_node() -> None:
    idle = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=None,
        since=NOW - MINUTE,
        until=NOW + MINUTE,
        reason="vllm-1 on worker-4 ended: idle",
        placement=PlacementName("vllm-1"),
    )
    seen = (short(4, since=NOW - 20 * MINUTE), evicted(there()), free("worker-3", 8))
    assert plan(*seen, there=ledger(there(), restraints={VLLM: (idle,)})).changes == ()


def test_what_runs_once_stays() -> None:
    wanted = desired()
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    seen = (short(4, running=0, since=NOW - 20 * MINUTE), evicted(there(), bound=0), free("worker-3", 8))
    assert plan(*seen, wanted=wanted, there=ledger(there())).changes == ()


def test_no_workload_moves_back_to_a_cluster_that_it_left_within_the_last_ten_minutes() -> None:
    burst = there()
    seen = (short(4, since=NOW - 20 * MINUTE), evicted(burst), free("worker-3", 8))
    stays = plan(*seen, there=ledger(burst, restraints={VLLM: (left("worker-3", 8 * MINUTE),)}))
    assert stays.changes == ()
    (held,) = stays.suppressed
    assert [refusal.message for refusal in held.refusals] == [
        "it moved away from there at 2026-11-20T09:57:00Z, and moves back after 10m at the earliest (moves.backAfter)"
    ]
    assert plan(*seen, there=ledger(burst, restraints={VLLM: (left("worker-3", 11 * MINUTE),)})).changes


def test_a_budget_of_no_moves_keeps_all_of_them_where_they_are() -> None:
    made = decided(free("worker-3", 8), policy=ordering("worker-2", "worker-3", moves=MoveBudget(most_per_hour=0)))
    assert made.changes == ()
    (held,) = made.suppressed
    assert (held.reason, held.until) == (Reason.MOVE_BUDGET, None)


@pytest.mark.parametrize(("room", "goes"), [(0, []), (8, [("other", "worker-2")])])
def test_what_waits_in_vain_of_one_workload_holds_for_another_unless_the_other_has_somewhere_to_go(
    room: int, goes: list[tuple[str, str]]
) -> None:
    other = WorkloadId(VLLM.workspace, TemplateName("other"))
    first, second = there(), replace(there(), name=PlacementName("other-1"), cluster=ClusterName("worker-3"))
    second = replace(second, workload=other)
    home = short(4, since=NOW - 20 * MINUTE)
    both = (*home.workloads, *short(4, since=NOW - 20 * MINUTE, workload=other).workloads)
    seen = (replace(home, workloads=both), evicted(first, room=room), evicted(second))
    made = plan(*seen, wanted=desired(workloads=(VLLM, other)), there=ledger(first, second))
    placed = [change.placement for change in made.changes if change.action is Action.PLACE]
    assert [(burst.workload.name, burst.cluster) for burst in placed] == goes
    assert {held.workload for held in made.suppressed} == ({VLLM} if room else {VLLM, other})


def test_explain_tells_what_moves() -> None:
    made = inputs(short(4, since=NOW - 20 * MINUTE), evicted(there()), free("worker-3", 8), there=ledger(there()))
    conclusion = explain(VLLM, made, decide(made)).conclusion
    assert (
        "2 of 4 replicas on worker-2 had no node for 30s; 2 of worker-2 move on to another cluster now." in conclusion
    )


@pytest.mark.parametrize("waits", [True, False])
def test_the_rollout_timeout_ends_no_burst_that_was_healthy_and_only_lacks_nodes(waits: bool) -> None:
    burst = there()
    seen = (short(4, since=NOW - 20 * MINUTE), evicted(burst), free("worker-3", 0))
    failure = RolloutFailure(
        digest="d", state=EngineState.PROGRESSING, message="", since=NOW - 16 * MINUTE, waits=waits
    )
    health = ClusterRollouts(arrived={burst.path: "d"}, ailing={burst.path: failure})
    rollouts = Rollouts.of({HERE: health})
    changes = decide(replace(inputs(*seen, there=ledger(burst)), rollouts=rollouts)).changes
    assert [change.action for change in changes] == ([] if waits else [Action.REVERT])


def test_a_burst_that_waits_for_quota_moves_after_the_window_and_says_so_in_the_words_of_its_queue() -> None:
    burst, words = there(), "kueue queue-a has not admitted it: insufficient unused quota"
    seen = replace(evicted(burst, bound=0), unadmitted={burst.name: words})
    (moved,) = plan(short(4), seen, free("worker-3", 8), wanted=desired(), there=ledger(burst)).changes
    assert moved.action is Action.MOVE
    assert moved.detail == f"4 of 4 replicas on worker-2 had no node for 30s: {words}"


def test_a_burst_that_its_cluster_refuses_moves_after_the_window_and_says_why() -> None:
    burst, words = there(), "refused: quota exceeded"
    waiting = PendingPods(replicas=2, uncreated=2, shape=shape(), since=NOW - seconds(30))
    seen = replace(evicted(burst), pending_pods={burst.name: waiting}, refused={burst.name: words})
    shrunk, begun = plan(short(4), seen, free("worker-3", 8), wanted=desired(), there=ledger(burst)).changes
    assert (shrunk.action, shrunk.after.replicas, begun.action) == (Action.RESIZE, 2, Action.PLACE)
    assert shrunk.detail == f"2 of 4 replicas on worker-2 had no node for 30s: {words}"


EVICTIONS = ["Preempted", "PodsReadyTimeout", "AdmissionCheck", "ClusterQueueStopped", "NodeFailures", "Deactivated"]
"""Reasons of the condition Evicted, in `apis/kueue/v1beta2/workload_types.go` of Kueue."""


def units(kind: str) -> tuple[Desired, Placement]:
    """Make a fleet of one workload, and a burst of it, that is four replicas, a Job, a training job or two groups."""
    if kind == "replicas":
        return desired(), there()
    if kind == "Job":
        made = desired()
        once = {VLLM: replace(made.templates[VLLM], runs_once=True)}
        return replace(made, templates=once), there(runs_once=True)
    if kind == "PyTorchJob":
        made = fleet(torch(2), policy=ordering("worker-2", "worker-3"), reads_replicas=False)
        once = {VLLM: replace(made.templates[VLLM], runs_once=True)}
        size = shape(8, group_size=3)
        return replace(made, templates=once), replace(there(runs_once=True), replicas=1, shape=size)
    return fleet(SET), replace(there(), replicas=2, shape=shape(8, group_size=4))


def ended(burst: Placement, reason: str, *, bound: int = 0, since: float = 0) -> ClusterObservation:
    """Observe that Kueue has evicted a burst just now, some of whose pods still have a node."""
    words = f"kueue queue-a evicted it ({reason})"
    pods = burst.replicas * burst.shape.group_size
    seen = evicted(replace(burst, replicas=pods), bound=bound, since=since)
    return replace(seen, unadmitted={burst.name: words}, evicted={burst.name: words})


@pytest.mark.parametrize("reason", EVICTIONS)
@pytest.mark.parametrize("kind", ["replicas", "Job", "PyTorchJob", "groups"])
def test_what_kueue_has_evicted_moves_at_once_and_stays_away_for_a_while(kind: str, reason: str) -> None:
    wanted, burst = units(kind)
    home = lacks(8, running=0, held=True) if kind in ("PyTorchJob", "groups") else short(4, running=0, held=True)
    seen = ended(burst, reason)
    (moved,) = plan(home, seen, free("worker-3", *[8] * 9), wanted=wanted, there=ledger(burst)).changes
    assert (moved.action, moved.after.cluster, moved.after.replicas) == (Action.MOVE, "worker-3", burst.replicas)
    number = f"{burst.replicas} of {count(burst.replicas, 'replica')}"
    assert moved.detail == f"{number} on worker-2 lost its quota: kueue queue-a evicted it ({reason})"
    assert moved.restraint is not None
    assert (moved.restraint.cluster, moved.restraint.move) == (HERE, True)
    assert moved.restraint.until > NOW


@pytest.mark.parametrize("kind", ["Job", "PyTorchJob", "groups"])
def test_what_goes_together_stays_while_a_pod_of_it_has_a_node_though_kueue_has_evicted_others(kind: str) -> None:
    wanted, burst = units(kind)
    home = lacks(8, running=0, held=True) if kind != "Job" else short(4, running=0, held=True)
    seen = ended(burst, "Preempted", bound=1)
    assert plan(home, seen, free("worker-3", *[8] * 9), wanted=wanted, there=ledger(burst)).changes == ()


@pytest.mark.parametrize("kind", ["replicas", "Job", "PyTorchJob", "groups"])
def test_what_kueue_has_evicted_stays_where_no_other_cluster_has_room(kind: str) -> None:
    wanted, burst = units(kind)
    home = lacks(8, running=0, held=True) if kind in ("PyTorchJob", "groups") else short(4, running=0, held=True)
    made = plan(home, ended(burst, "Preempted"), free("worker-3", 0), wanted=wanted, there=ledger(burst))
    assert made.changes == ()
    said = "lost its quota: kueue queue-a evicted it (Preempted), and no other cluster has room"
    assert said in made.suppressed[0].message


def test_a_job_of_which_pods_have_done_their_part_stays_where_kueue_has_evicted_the_others() -> None:
    wanted, burst = units("Job")
    done = {burst.name: SucceededPods(pods=1, at=NOW)}
    seen = replace(ended(burst, "Preempted"), succeeded=done)
    home = short(4, running=0, held=True)
    assert plan(home, seen, free("worker-3", 8), wanted=wanted, there=ledger(burst)).changes == ()


@pytest.mark.parametrize(("kind", "goes"), [("Job", False), ("PyTorchJob", False), ("groups", True)])
def test_a_set_without_any_node_moves_after_the_window_and_a_run_does_not(kind: str, goes: bool) -> None:
    wanted, burst = units(kind)
    home = lacks(8, running=0, held=True) if kind != "Job" else short(4, running=0, held=True)
    pods = replace(burst, replicas=burst.replicas * burst.shape.group_size)
    seen = (home, evicted(pods, bound=0), free("worker-3", *[8] * 9))
    assert bool(plan(*seen, wanted=wanted, there=ledger(burst)).changes) is goes
