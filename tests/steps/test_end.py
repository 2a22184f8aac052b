"""Bursts end: by time, by falling demand, by people's word; and what ended stays ended for a while."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.ledger import lifecycle
from reconciler.model.action import Action
from reconciler.model.demand import Sample
from reconciler.model.end_reason import ENDS, EndReason
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Drift
from reconciler.model.placement import LifecycleEvent, Phase, Restraint, RestraintKind
from reconciler.model.plan import Reason
from reconciler.model.policy import Availability
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    seconds,
    short,
)
from tests.builders.requests import BOOKINFO

WATCHED = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=0),)}


def test_expired_burst_is_reverted_though_the_demand_lasts_and_what_is_missing_is_placed_anew() -> None:
    old = placement(created=NOW - timedelta(minutes=10))
    made = plan(short(3), free("worker-2", 8), free("worker-3", 8), there=ledger(old))
    ended, begun = made.changes
    assert ended.action is Action.REVERT
    assert (ended.why, ended.detail, ended.restraint) == (EndReason.EXPIRED, "its 10m are over", None)
    assert begun.action is Action.PLACE
    assert (begun.placement.cluster, begun.placement.replicas) == ("worker-2", 3)
    assert begun.placement.path != old.path


def test_expired_burst_is_reverted_though_nothing_can_be_seen() -> None:
    made = plan(there=ledger(placement(created=NOW - timedelta(days=30))))
    (change,) = made.changes
    assert change.action is Action.REVERT
    assert "29d23h50m late" in change.detail


def test_nothing_is_given_back_before_the_window_is_over() -> None:
    made = plan(short(0), there=ledger(placement()))
    assert made.changes == ()
    assert made.suppressed[0].reason is Reason.SCALE_DOWN_WINDOW
    assert made.suppressed[0].until == NOW + timedelta(minutes=5)


def test_last_cluster_drains_first_and_the_newest_placement_within_it() -> None:
    first = placement("worker-2", 3)
    older = placement("worker-3", 2, created=NOW - timedelta(minutes=5))
    newer = placement("worker-3", 2, created=NOW - timedelta(minutes=2))
    history = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=4),)}
    made = plan(short(4), there=ledger(first, older, newer), history=history)
    ended, shrunk = made.changes
    assert ended.action is Action.REVERT
    assert (ended.placement, ended.why) == (newer, EndReason.DEMAND_GONE)
    assert shrunk.action is Action.RESIZE
    assert (shrunk.before, shrunk.after.replicas) == (older, 1)


def test_a_cluster_that_left_the_order_drains_before_all_others() -> None:
    there = ledger(placement("worker-2", 3), placement("worker-3", 3))
    history = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=3),)}
    wanted = replace(desired(ordering("worker-3")), incomplete=True)
    made = plan(short(3), free("worker-3", 0), there=there, history=history, wanted=wanted)
    assert made.changes[0].placement.cluster == "worker-2"


def test_a_primary_that_cannot_be_seen_keeps_every_placement() -> None:
    blind = short(0, at=NOW - timedelta(minutes=10))
    made = plan(blind, there=ledger(placement()), history=WATCHED)
    assert made.changes == ()
    assert made.suppressed[0].reason is Reason.PRIMARY_UNSEEN


def test_an_unseen_target_cluster_keeps_what_it_has() -> None:
    made = plan(short(3), there=ledger(placement("worker-2", 3)))
    assert made.changes == ()


def test_template_that_is_gone_takes_its_placements_with_it() -> None:
    wanted = desired(workloads=())
    (change,) = plan(there=ledger(placement()), wanted=wanted).changes
    assert change.action is Action.REVERT
    assert change.why is EndReason.POLICY


def test_absence_proves_nothing_while_a_file_is_broken() -> None:
    wanted = desired(workloads=(), incomplete=True)
    assert plan(there=ledger(placement()), wanted=wanted).changes == ()


def test_draining_a_cluster_moves_its_placement_in_one_change() -> None:
    draining = cluster("worker-2", availability=Availability.DRAINING)
    wanted = desired(clusters=(cluster("worker-1"), draining, cluster("worker-3")))
    there = placement("worker-2", 3)
    (change,) = plan(short(3), free("worker-3", 8), there=ledger(there), wanted=wanted).changes
    assert change.action is Action.MOVE
    assert (change.before, change.after.cluster, change.after.replicas) == (there, "worker-3", 3)
    assert change.after.expires_at == there.expires_at


def test_a_move_says_which_clusters_could_not_have_all_of_it() -> None:
    clusters = (cluster("worker-1"), cluster("worker-2", availability=Availability.DRAINING))
    clusters += tuple(map(cluster, ("worker-3", "worker-4", "worker-5")))
    wanted = desired(ordering("worker-2", ("worker-3", 2), "worker-4", "worker-5"), clusters=clusters)
    seen = (short(3), free("worker-3", 8), free("worker-4", 1), free("worker-5", 8))
    (change,) = plan(*seen, there=ledger(placement("worker-2", 3)), wanted=wanted).changes
    assert change.action is Action.MOVE
    assert change.after.cluster == "worker-5"
    assert [(one.cluster, one.reason, one.message) for one in change.refused] == [
        ("worker-3", Reason.CLUSTER_LIMIT, "may have 2 at most, and its 3 replicas move together"),
        ("worker-4", Reason.NO_CAPACITY, "has room for 1 of 3 replicas, which move together"),
    ]


def test_a_placement_with_nowhere_to_move_is_reverted_and_cools_down_on_its_cluster_alone() -> None:
    draining = cluster("worker-2", availability=Availability.DRAINING)
    wanted = desired(clusters=(cluster("worker-1"), draining, cluster("worker-3")))
    made = plan(short(3), free("worker-3", 2), there=ledger(placement("worker-2", 3)), wanted=wanted)
    change, instead = made.changes
    assert change.action is Action.REVERT
    assert change.why is EndReason.POLICY
    assert change.restraint is not None
    assert change.restraint.cluster == "worker-2"
    assert instead.action is Action.PLACE
    assert (instead.placement.cluster, instead.placement.replicas) == ("worker-3", 2)


def test_what_nobody_needs_any_more_ends_on_a_draining_cluster_and_only_the_rest_moves() -> None:
    draining = cluster("worker-2", availability=Availability.DRAINING)
    wanted = desired(clusters=(cluster("worker-1"), draining, cluster("worker-3")))
    there = placement("worker-2", 3)
    (ended,) = plan(short(0), free("worker-3", 8), there=ledger(there), wanted=wanted, history=WATCHED).changes
    assert ended.action is Action.REVERT
    assert (ended.placement, ended.why) == (there, EndReason.DEMAND_GONE)
    shrunk, gone = plan(short(1), free("worker-3", 1), there=ledger(there), wanted=wanted, history=WATCHED).changes
    assert shrunk.action is Action.RESIZE
    assert gone.action is Action.MOVE
    assert (shrunk.after.cluster, shrunk.after.replicas) == ("worker-2", 1)
    assert (gone.after.cluster, gone.after.replicas) == ("worker-3", 1)


def test_lowered_limit_is_carried_out_without_waiting() -> None:
    wanted = desired(ordering("worker-2", max_replicas=1))
    (change,) = plan(short(3), there=ledger(placement("worker-2", 3)), wanted=wanted).changes
    assert change.action is Action.RESIZE
    assert change.after.replicas == 1


def test_deletion_by_hand_holds_the_workload_back_on_that_cluster() -> None:
    gone = placement("worker-2", 3)
    there = ledger(drifted=(Drift(placement=gone, removed=True, files={}),))
    held, placed = plan(short(3), free("worker-2", 8), free("worker-3", 8), there=there).changes
    assert held.action is Action.HOLD
    assert held.restraint.until == NOW + timedelta(hours=1)
    assert placed.action is Action.PLACE
    assert placed.placement.cluster == "worker-3"
    assert placed.refused[0].reason is Reason.HELD
    assert placed.refused[0].remedy == "wait, or `overspill release llm/vllm --cluster worker-2`"


def test_explain_refuses_a_cluster_from_the_moment_at_which_a_person_deletes_what_is_there() -> None:
    there = ledger(drifted=(Drift(placement=placement("worker-2", 3), removed=True, files={}),))
    told = inputs(short(3), free("worker-2", 8), free("worker-3", 8), there=there)
    refusals = {one.cluster: one.refusal for one in explain(VLLM, told, decide(told)).assessments}
    assert refusals["worker-2"].reason is Reason.HELD
    assert refusals["worker-3"] is None


def test_hold_ends_when_the_demand_has_gone_once() -> None:
    hold = lifecycle.hold(placement(), ordering(), NOW - timedelta(minutes=30))
    there = ledger(restraints={VLLM: (hold,)})
    assert plan(short(3), free("worker-2", 8), there=there, history=WATCHED).changes == ()
    (change,) = plan(short(0), there=there, history=WATCHED).changes
    assert change.action is Action.RELEASE


def test_hold_outlasts_demand_that_is_away_for_less_than_the_scale_down_window() -> None:
    """A rolling restart on the primary makes the waiting pods anew, and for a moment nobody has looked at them."""
    hold = lifecycle.hold(placement(), ordering(), NOW - timedelta(minutes=30))
    history = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=3), Sample(at=NOW - timedelta(minutes=2), missing=0))}
    made = plan(short(0), there=ledger(restraints={VLLM: (hold,)}), history=history)
    assert made.changes == ()
    assert made.wake_at == NOW + timedelta(minutes=3)
    assert plan(short(0), there=ledger(restraints={VLLM: (hold,)})).changes == ()  # nobody has watched so far


def test_hold_runs_out() -> None:
    hold = lifecycle.hold(placement(), ordering(), NOW - timedelta(hours=1))
    made = plan(short(3), free("worker-2", 8), there=ledger(restraints={VLLM: (hold,)}))
    assert [change.action for change in made.changes] == [Action.PLACE]


def test_edit_by_hand_is_put_right() -> None:
    edited = placement("worker-2", 3)
    there = ledger(edited, drifted=(Drift(placement=edited, removed=False, files={"a": "b"}),))
    (change,) = plan(short(3), there=there).changes
    assert change.action is Action.RESTORE


def test_wake_up_is_the_next_expiry() -> None:
    there = placement("worker-2", 3)
    assert plan(short(3), there=ledger(there)).wake_at == there.expires_at


def test_failed_cluster_alone_cools_down() -> None:
    failed = lifecycle.cool_down(placement(), ordering(), EndReason.FAILED, NOW)
    assert failed is not None
    assert failed.cluster == "worker-2"


def test_a_pair_that_is_not_in_the_transition_table_is_an_error() -> None:
    with pytest.raises(KeyError):
        lifecycle.advance(Phase.COMPLETED, LifecycleEvent.HEALTHY)
    assert lifecycle.final_phase(placement(replicas=2), 2, EndReason.FAILED) is Phase.FAILED


def test_placement_names_are_short_unique_and_the_same_for_the_same_pass() -> None:
    long = WorkloadId(WorkspaceName("llm"), TemplateName("a" * 63))
    name = lifecycle.placement_name(long, "worker-2", NOW)
    assert len(name) <= 50
    assert name == lifecycle.placement_name(long, "worker-2", NOW)
    assert name != lifecycle.placement_name(long, "worker-3", NOW)
    assert name != lifecycle.placement_name(long, "worker-2", NOW + seconds(1))


@pytest.mark.parametrize(
    ("why", "cluster"),
    [
        (EndReason.FAILED, "worker-2"),
        (EndReason.PREEMPTED, "worker-2"),
        (EndReason.POLICY, "worker-2"),
        (EndReason.IDLE, None),
    ],
)
def test_a_cool_down_names_what_ended_and_why(why: EndReason, cluster: str | None) -> None:
    restraint = lifecycle.cool_down(placement(), ordering(), why, NOW)
    assert isinstance(restraint, Restraint)
    assert (restraint.kind, restraint.cluster) == (RestraintKind.COOL_DOWN, cluster)
    assert restraint.reason.endswith(f"on worker-2 ended: {why}")


def test_a_request_leaves_no_restraint() -> None:
    """Its record stands for them, and the file that they would be in is that of a template of the same name."""
    asked = placement(workload=BOOKINFO)
    left = [
        *(lifecycle.cool_down(asked, ordering(), why, NOW) for why in EndReason),
        *(lifecycle.run_hold(asked, why, NOW) for why in EndReason if ENDS[why].over),
        lifecycle.hold(asked, ordering(), NOW),
        lifecycle.turn(asked, EndReason.EXPIRED, NOW, NOW),
        lifecycle.move_restraint(asked, NOW),
        lifecycle.move_restraint(asked, NOW, subset="reserved"),
    ]
    assert {*left} == {None}


@pytest.mark.parametrize("why", [EndReason.EXPIRED, EndReason.DEMAND_GONE])
def test_no_cool_down_follows_time_or_demand_that_are_over(why: EndReason) -> None:
    assert lifecycle.cool_down(placement(), ordering(), why, NOW) is None
