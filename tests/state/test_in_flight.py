"""What has no node yet takes room, and is counted once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.observe.rollouts import ClusterRollouts, Rollouts
from reconciler.model.action import Action
from reconciler.model.capacity import NonGpuPods, PendingPods, ReplicaShape
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.plan import Change
from reconciler.model.units import Resources
from tests.builders.inputs import NOW, free, inputs, ledger, placement, shape, short

HERE, THERE = ClusterName("worker-2"), ClusterName("worker-3")


def test_what_is_in_flight_is_counted_anew_only_where_something_changed() -> None:
    """A full fleet refuses each workload on each cluster: to count all placements for each refusal takes seconds."""
    burst_before, other = placement("worker-2", 4), placement("worker-3", 2)
    working_plan = WorkingPlan(
        inputs(short(9), free("worker-2", 8), free("worker-3", 8), there=ledger(burst_before, other))
    )
    here, there = working_plan.in_flight(HERE), working_plan.in_flight(THERE)
    assert (here.total, there.total) == (4, 2)
    assert working_plan.in_flight(HERE) is here
    grown = replace(burst_before, replicas=6)
    working_plan.change(Change(action=Action.RESIZE, before=burst_before, after=grown, detail=""))
    assert working_plan.in_flight(HERE).total == 6
    assert working_plan.in_flight(THERE) is there
    working_plan.change(Change(action=Action.REVERT, before=grown, why=EndReason.EXPIRED, detail=""))
    assert working_plan.in_flight(HERE).total == 0
    assert working_plan.in_flight(THERE) is there


def test_replicas_in_flight_end_with_the_first_that_times_out() -> None:
    older = placement("worker-2", 2, created=NOW - timedelta(minutes=4))
    newer = placement("worker-2", 2, created=NOW - timedelta(minutes=1))
    working_plan = WorkingPlan(inputs(free("worker-2", 8), there=ledger(newer, older)))
    assert working_plan.in_flight(HERE).until == NOW + timedelta(minutes=6)


def lost(burst_before: Placement, waiting: int, *, arrived: bool, bound: int = 0) -> WorkingPlan:
    """See so many pods of a placement wait for a node, in a cluster with eight GPUs free."""
    pending_pods = {burst_before.name: PendingPods(replicas=waiting, shape=shape())} if waiting else {}
    cluster = free("worker-2", 8, pending_pods=pending_pods, bound={burst_before.name: bound})
    made = inputs(short(9), cluster, there=ledger(burst_before))
    ward = ClusterRollouts(arrived={burst_before.path: burst_before.digest} if arrived else {})
    return WorkingPlan(replace(made, rollouts=Rollouts.of({HERE: ward})))


def test_pods_that_had_arrived_and_lost_their_node_take_the_next_room() -> None:
    burst_before = placement(
        "worker-2", 3, digest="sha256-ours", created=NOW - timedelta(hours=1), lasting=timedelta(hours=9)
    )
    working_plan = lost(burst_before, 2, arrived=True, bound=1)
    assert working_plan.in_flight(HERE).replicas == ((burst_before, 2),)
    assert working_plan.in_flight(HERE).until is None, "the time alone brings them no node"
    assert lost(burst_before, 0, arrived=True, bound=1).in_flight(HERE).total == 0


def test_pods_that_wait_are_among_the_replicas_in_flight() -> None:
    burst_before = placement("worker-2", 3)
    assert lost(burst_before, 2, arrived=False).in_flight(HERE).total == 3
    assert lost(burst_before, 5, arrived=False).in_flight(HERE).total == 3, (
        "they are no more replicas than were committed"
    )


def test_router_on_cpus_is_no_replica_of_what_needs_devices() -> None:
    """Flux labels every Deployment of a chart: one bound router would let another burst have the replica's GPUs."""
    gpus, cpus = placement("worker-2", 3), replace(placement("worker-2", 3), shape=ReplicaShape(requests=Resources()))
    for burst_before, flying in ((gpus, 2), (cpus, 1)):
        cluster = free(
            "worker-2", 8, bound={burst_before.name: 2}, non_gpu_pods={burst_before.name: NonGpuPods(bound=1)}
        )
        assert WorkingPlan(inputs(cluster, there=ledger(burst_before))).in_flight(HERE).total == flying
    old = replace(gpus, created_at=NOW - timedelta(hours=1), changed_at=NOW - timedelta(hours=1))
    router = PendingPods(replicas=1, shape=ReplicaShape(requests=Resources()), helping=True)
    seen = inputs(free("worker-2", 8, pending_pods={old.name: router}), there=ledger(old))
    assert WorkingPlan(seen).in_flight(HERE).total == 0
