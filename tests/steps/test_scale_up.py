"""A lasting deficit becomes placements, in the policy's order, as far as they fit."""

from dataclasses import replace
from datetime import timedelta

from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Reason
from reconciler.model.policy import Availability, Fleet
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    ledger,
    ordering,
    placement,
    plan,
    seconds,
    shape,
    short,
)
from tests.builders.plans import begun

OTHER = WorkloadId(WorkspaceName("llm"), TemplateName("zephyr"))


def placed(made) -> list[tuple[str, int]]:
    return [(placement.cluster, placement.replicas) for placement in begun(made)]


def refusals(made) -> dict[str, Reason]:
    return {refusal.cluster: refusal.reason for one in made.suppressed for refusal in one.refusals}


def test_first_cluster_is_filled_before_the_next() -> None:
    made = plan(short(3), free("worker-2", 2), free("worker-3", 8))
    assert placed(made) == [("worker-2", 2), ("worker-3", 1)]


def test_maximum_of_a_cluster_is_respected() -> None:
    wanted = desired(ordering(("worker-2", 1), "worker-3"))
    made = plan(short(3), free("worker-2", 8), free("worker-3", 8), wanted=wanted)
    assert placed(made) == [("worker-2", 1), ("worker-3", 2)]


def test_placement_expires_after_the_templates_burst_duration() -> None:
    (change,) = plan(short(1), free("worker-2", 8)).changes
    assert change.action is Action.PLACE
    assert change.placement.expires_at == NOW + timedelta(minutes=10)


def test_policys_maximum_cuts_a_longer_burst_short() -> None:
    wanted = desired(ordering("worker-2", max_duration=timedelta(minutes=2)))
    (change,) = plan(short(1), free("worker-2", 8), wanted=wanted).changes
    assert change.action is Action.PLACE
    assert change.placement.expires_at == NOW + timedelta(minutes=2)


def test_nothing_is_placed_before_the_window_is_over() -> None:
    made = plan(short(3, since=NOW - seconds(20)), free("worker-2", 8))
    assert made.changes == ()
    assert [one.reason for one in made.suppressed] == [Reason.SCALE_UP_WINDOW]
    assert made.wake_at == NOW + seconds(10)


def test_growth_on_the_same_cluster_is_a_resize_that_keeps_the_expiry() -> None:
    there = placement("worker-2", 2)
    made = plan(short(5), free("worker-2", 8, bound={there.name: 2}), there=ledger(there))
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert (change.before.replicas, change.after.replicas) == (2, 5)
    assert change.after.expires_at == there.expires_at


def test_replicas_in_flight_are_taken_off_what_is_free() -> None:
    elsewhere = placement("worker-2", 4, workload=OTHER)
    wanted = desired(workloads=(VLLM, OTHER))
    made = plan(short(3), free("worker-2", 6), free("worker-3", 8), wanted=wanted, there=ledger(elsewhere))
    assert placed(made)[:2] == [("worker-2", 2), ("worker-3", 1)]


def test_replicas_that_are_bound_are_not_taken_off_twice() -> None:
    elsewhere = placement("worker-2", 4, workload=OTHER)
    wanted = desired(workloads=(VLLM, OTHER))
    seen = free("worker-2", 3, bound={elsewhere.name: 4})
    assert placed(plan(short(3), seen, wanted=wanted, there=ledger(elsewhere))) == [("worker-2", 3)]


def test_replicas_in_flight_for_too_long_block_nobody() -> None:
    stuck = placement("worker-2", 4, workload=OTHER, created=NOW - timedelta(minutes=10), lasting=timedelta(hours=1))
    wanted = desired(workloads=(VLLM, OTHER))
    assert placed(plan(short(3), free("worker-2", 6), wanted=wanted, there=ledger(stuck))) == [("worker-2", 3)]


def both_short() -> ClusterObservation:
    """Observe a primary on which both workloads lack three replicas, the other one for longer."""
    longer = short(3, workload=OTHER, since=NOW - seconds(90))
    return replace(short(3), workloads=short(3).workloads + longer.workloads)


def test_two_workloads_never_get_the_same_room() -> None:
    wanted = desired(ordering("worker-2"), workloads=(VLLM, OTHER))
    made = plan(both_short(), free("worker-2", 4), wanted=wanted)
    assert [(change.placement.workload, change.placement.replicas) for change in made.changes] == [
        (OTHER, 2),
        (VLLM, 2),
    ]


def test_priority_comes_before_waiting_time() -> None:
    urgent = ordering("worker-2", priority=10)
    wanted = desired(workloads=(VLLM, OTHER), policies={VLLM: urgent, OTHER: ordering("worker-2")})
    made = plan(both_short(), free("worker-2", 4), wanted=wanted)
    assert made.changes[0].placement.workload == VLLM


def test_what_fits_nowhere_is_told_with_each_clusters_reason() -> None:
    wanted = desired(
        ordering(
            "worker-2", "worker-3", "worker-4", "worker-5", "worker-6", "worker-7", require_labels={"tier": "gold"}
        ),
        clusters=(
            cluster("worker-1"),
            cluster("worker-2", labels={"tier": "gold"}),
            cluster("worker-3"),
            cluster("worker-4", labels={"tier": "gold"}, availability=Availability.CORDONED),
            cluster("worker-5", labels={"tier": "gold"}, taints=(Taint(key="team", value="x"),)),
            cluster("worker-6", labels={"tier": "gold"}),
        ),
    )
    unwell = free("worker-6", 8, healthy=False, message="API server does not answer")
    made = plan(short(2), free("worker-2", 0), free("worker-5", 8), unwell, wanted=wanted)
    assert made.changes == ()
    assert refusals(made) == {
        "worker-2": Reason.NO_CAPACITY,
        "worker-3": Reason.LABELS,
        "worker-4": Reason.CORDONED,
        "worker-5": Reason.TAINTED,
        "worker-6": Reason.UNHEALTHY,
        "worker-7": Reason.UNKNOWN_CLUSTER,
    }
    assert made.suppressed[0].message == "2 replicas of 2 fit on no cluster"


def test_policys_toleration_opens_a_tainted_cluster() -> None:
    tainted = cluster("worker-2", taints=(Taint(key="team", value="x"),))
    policy = ordering("worker-2", tolerations=(Toleration(key="team", value="x"),))
    wanted = desired(policy, clusters=(cluster("worker-1"), tainted))
    assert placed(plan(short(1), free("worker-2", 1), wanted=wanted)) == [("worker-2", 1)]


def test_a_cluster_that_cannot_be_seen_gets_nothing_new() -> None:
    old = free("worker-2", 8, at=NOW - timedelta(minutes=5))
    made = plan(short(1), old, free("worker-3", 8))
    assert placed(made) == [("worker-3", 1)]
    assert made.changes[0].refused[0].reason is Reason.UNSEEN


def test_an_older_observation_is_enough_where_the_fleet_says_so() -> None:
    wanted = desired(fleet=Fleet(observation_max_age=timedelta(hours=1)))
    old = free("worker-2", 8, at=NOW - timedelta(minutes=5))
    assert placed(plan(short(1), old, wanted=wanted)) == [("worker-2", 1)]


def test_policy_limit_bounds_all_clusters_together() -> None:
    wanted = desired(ordering("worker-2", "worker-3", max_replicas=3))
    made = plan(short(5), free("worker-2", 2), free("worker-3", 8), wanted=wanted)
    assert placed(made) == [("worker-2", 2), ("worker-3", 1)]
    assert made.suppressed[0].reason is Reason.POLICY_LIMIT
    assert made.suppressed[0].replicas == 2


def test_cooling_down_places_nothing_until_it_is_over() -> None:
    cooling = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=None,
        since=NOW - seconds(60),
        until=NOW + seconds(60),
        reason="vllm-1 on worker-2 ended: expired",
        placement="vllm-1",
    )
    there = ledger(restraints={VLLM: (cooling,)})
    made = plan(short(3), free("worker-2", 8), there=there)
    assert made.changes == ()
    assert made.suppressed[0].reason is Reason.COOLING_DOWN
    assert made.wake_at == cooling.until
    later = NOW + seconds(61)
    assert placed(plan(short(3, at=later), free("worker-2", 8, at=later), there=there, now=later)) == [("worker-2", 3)]


def test_a_workload_whose_ledger_file_is_broken_gets_nothing_new() -> None:
    made = plan(short(3), free("worker-2", 8), there=ledger(blocked=frozenset({VLLM})))
    assert made.changes == ()
    assert made.suppressed[0].reason is Reason.LEDGER_UNREADABLE


def test_an_unknown_shape_of_a_replica_is_refused_and_said() -> None:
    seen = short(3)
    workload = seen.workloads[0]
    unknown = type(workload)(ref=workload.ref, wanted=8, running=5, waiting=workload.waiting)
    made = plan(type(seen)(cluster=seen.cluster, observed_at=NOW, workloads=(unknown,)), free("worker-2", 8))
    assert made.suppressed[0].reason is Reason.NO_SHAPE
    assert made.suppressed[0].message == (
        "the observation of worker-1 does not say what one replica requests (add it as workloads[].replica)"
    )


def test_shape_travels_with_the_placement() -> None:
    made = plan(short(1, replica=shape(2)), free("worker-2", 8))
    assert made.changes[0].placement.shape == shape(2)


def test_refusals_that_came_after_the_chosen_cluster_explain_nothing() -> None:
    made = plan(short(4), free("worker-2", 3))
    assert placed(made) == [("worker-2", 3)]
    assert made.changes[0].refused == ()
    assert refusals(made) == {"worker-3": Reason.UNSEEN}
