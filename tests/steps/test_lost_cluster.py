"""Bursts leave a cluster that has been lost for too long: groups whole, other replicas as far as others have room."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.commits.messages import message
from reconciler.core.decide.decide import decide
from reconciler.core.decide.steps.lost_cluster import lost_since
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName, CommitId, PlacementName
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Change, Plan, Reason
from reconciler.model.policy import Availability, Desired, Distribution, Fleet, MoveBudget
from reconciler.model.workload import Json
from tests.builders.group_bursts import SET, burst, fleet, lacks
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, ordering, placement, shape, short
from tests.builders.requests import deployment, holds, manifests, placed, record, request, wants
from tests.builders.workload_kinds import lws

LOST = ClusterName("worker-2")
MINUTE = timedelta(minutes=1)
LONG = NOW - 15 * MINUTE


def decided(
    *seen: ClusterObservation, wanted: Desired, there: Ledger, since: datetime = LONG, cluster: ClusterName = LOST
) -> Plan:
    made = inputs(*seen, wanted=wanted, there=there)
    return decide(replace(made, lost={cluster: since}))


def moved(of: Plan) -> Change:
    (change,) = of.changes
    assert change.action is Action.MOVE
    return change


def there(name: str = "worker-2", groups: int = 2, **fields: object) -> Placement:
    return burst(name, groups, lasting=timedelta(hours=2), **fields)


def asked(*clusters: str, made: Json | None = None, placements: int | None = 1) -> tuple[Desired, Ledger]:
    """Place a request on worker-2 that may go to one of these clusters."""
    one = request(*clusters, spec=manifests(made or lws(2, 4)), placements=placements)
    return wants(one), holds(
        record(one, began_at=NOW - MINUTE), placed=[placed("worker-2", replicas=8, shape=shape(8))]
    )


def test_a_set_moves_with_all_of_its_groups_in_one_change_and_keeps_its_end() -> None:
    before = there()
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(before))
    change = moved(made)
    assert (change.before, change.after.cluster, change.after.replicas) == (before, "worker-3", 2)
    assert (change.after.expires_at, change.after.shape) == (before.expires_at, before.shape)
    assert change.why is EndReason.CLUSTER_LOST
    assert change.detail == "worker-2 has not been observed, which has lasted for 15m"


def test_what_was_spread_before_it_ran_in_groups_is_in_no_subset_where_it_goes() -> None:
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(there(subset="spot")))
    assert moved(made).after.where == "worker-3"


def test_the_cluster_that_it_has_left_gets_nothing_of_it_for_as_long_again() -> None:
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(there()))
    restraint = moved(made).restraint
    assert restraint is not None
    assert (restraint.kind, restraint.cluster, restraint.until) == (RestraintKind.COOL_DOWN, LOST, NOW + 15 * MINUTE)
    said = message(moved(made), source=CommitId("5" * 40))
    assert said.startswith("move(llm/vllm): 2 replicas from worker-2 to worker-3\n")
    assert "Nothing new on worker-2 until 2026-11-20T10:20:00Z." in said


def test_it_stays_until_the_time_is_over_and_is_looked_at_then() -> None:
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(there()), since=LONG + MINUTE)
    assert made.changes == ()
    assert made.wake_at == NOW + MINUTE


def test_a_fleet_may_give_it_another_time() -> None:
    wanted = replace(fleet(SET), fleet=Fleet(worker_lost_timeout=20 * MINUTE))
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=wanted, there=ledger(there()))
    assert (made.changes, made.wake_at) == ((), NOW + 5 * MINUTE)


def test_what_fits_nowhere_else_as_a_whole_stays_and_says_so() -> None:
    made = decided(lacks(8), free("worker-3", *[8] * 7), wanted=fleet(SET), there=ledger(there()))
    assert made.changes == ()
    (held,) = (one for one in made.suppressed if one.reason is Reason.CLUSTER_LOST)
    assert held.message == (
        "worker-2 has not been observed, which has lasted for 15m, and no other cluster has room for all of it: it"
        " stays there; worker-3: needs 8 GPUs for each of 8 pods, has room for 7 (free or add nodes there)"
    )


def test_a_cluster_that_says_it_is_unwell_is_lost_as_well() -> None:
    ill = free("worker-2", *[8] * 8, healthy=False, message="etcd has no leader")
    made = decided(lacks(8), ill, free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(there()))
    assert moved(made).detail == "worker-2: etcd has no leader, which has lasted for 15m"


def test_set_does_not_move_back_within_back_after() -> None:
    left = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=ClusterName("worker-3"),
        since=NOW - 8 * MINUTE,
        until=NOW - 3 * MINUTE,
        reason="it was moved away",
        placement=PlacementName("vllm-1"),
        move=True,
    )
    seen = lacks(8), free("worker-3", *[8] * 8)
    made = decided(*seen, wanted=fleet(SET), there=ledger(there(), restraints={VLLM: (left,)}))
    assert made.changes == ()
    (held,) = (held for held in made.suppressed if held.reason is Reason.CLUSTER_LOST)
    assert [refusal.reason for refusal in held.refusals] == [Reason.COOLING_DOWN]
    longer = replace(left, since=NOW - 12 * MINUTE)
    again = decided(*seen, wanted=fleet(SET), there=ledger(there(), restraints={VLLM: (longer,)}))
    assert moved(again).after.cluster == "worker-3"


def test_set_stays_while_a_file_of_it_on_the_output_branch_cannot_be_read() -> None:
    unread = replace(ledger(there()), blocked=frozenset({VLLM}))
    assert decided(lacks(8), free("worker-3", *[8] * 8), wanted=fleet(SET), there=unread).changes == ()


def test_set_of_which_nothing_is_missing_any_more_does_not_follow() -> None:
    made = decided(lacks(0, running=16), free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(there()))
    assert made.changes == ()


def test_set_whose_policy_may_be_in_a_broken_file_stays() -> None:
    wanted = replace(fleet(SET), policies={}, incomplete=True)
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=wanted, there=ledger(there()))
    assert (made.changes, made.bugs) == ((), ())


def test_when_the_cluster_is_back_the_set_stays_where_it_has_gone() -> None:
    before = there("worker-3")
    seen = [free("worker-2", *[8] * 8), free("worker-3", bound={before.name: 8}, ready={before.name: 8})]
    made = decide(inputs(lacks(8), *seen, wanted=fleet(SET), there=ledger(before)))
    assert made.changes == ()


def serving(*seen: ClusterObservation, lost_for: int = 5, **fields: object) -> Plan:
    """Decide about three replicas that run each for themselves on a cluster that is out of sight."""
    wanted = fields.pop("wanted", None) or desired(fields.pop("policy", None))
    before = ledger(fields.pop("there", None) or placement(lasting=timedelta(hours=2)), **fields)
    return decided(
        *(seen or (short(3), free("worker-3", 8))), wanted=wanted, there=before, since=NOW - lost_for * MINUTE
    )


def test_replicas_that_run_each_for_themselves_leave_after_five_minutes_and_keep_their_end() -> None:
    before = placement(lasting=timedelta(hours=2))
    change = moved(serving(there=before))
    assert (change.after.cluster, change.after.replicas, change.why) == ("worker-3", 3, EndReason.CLUSTER_LOST)
    assert (change.after.created_at, change.after.expires_at) == (before.created_at, before.expires_at)
    assert change.restraint is not None
    assert (change.restraint.move, change.restraint.until) == (True, NOW + 5 * MINUTE)
    assert serving(lost_for=4).changes == ()
    assert serving(lost_for=4).wake_at == NOW + MINUTE


@pytest.mark.parametrize(("timeout", "moves"), [(1, True), (20, False)])
def test_a_policy_may_give_its_bursts_another_time(timeout: int, moves: bool) -> None:
    own = ordering("worker-2", "worker-3", worker_lost_timeout=timeout * MINUTE)
    assert bool(serving(policy=own).changes) is moves
    gang = decided(
        lacks(8),
        free("worker-3", *[8] * 8),
        wanted=fleet(SET, policy=own),
        there=ledger(there()),
        since=NOW - 5 * MINUTE,
    )
    assert bool(gang.changes) is moves


def test_as_many_replicas_leave_as_other_clusters_have_room_for() -> None:
    made = serving(short(3), free("worker-3", 2))
    shrunk, begun = made.changes
    assert shrunk.action is Action.RESIZE
    assert begun.action is Action.PLACE
    assert (shrunk.after.cluster, shrunk.after.replicas) == (LOST, 1)
    assert (begun.placement.cluster, begun.placement.replicas) == ("worker-3", 2)
    assert begun.placement.expires_at == shrunk.before.expires_at
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.CLUSTER_LOST, 1)
    assert held.message.startswith("worker-2 has not been observed, which has lasted for 5m, and no other cluster has")


def test_no_cluster_that_is_allowed_one_cluster_is_left_in_parts() -> None:
    alone = ordering("worker-2", "worker-3", distribution=Distribution(max_clusters=1))
    assert serving(short(3), free("worker-3", 2), policy=alone).changes == ()
    assert moved(serving(short(3), free("worker-3", 3), policy=alone)).after.cluster == "worker-3"


def test_what_serves_nobody_any_more_does_not_follow() -> None:
    shrunk, begun = serving(short(2), free("worker-3", 8)).changes
    assert shrunk.action is Action.RESIZE
    assert begun.action is Action.PLACE
    assert (shrunk.after.replicas, begun.placement.replicas) == (1, 2)


def test_copy_of_which_a_part_is_needed_leaves_a_lost_cluster_whole() -> None:
    wanted = desired()
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], copy=3, uses_replicas=False)})
    assert moved(serving(short(2), free("worker-3", 8), wanted=wanted)).after.replicas == 3


def test_what_runs_once_stays_since_it_may_still_run_there() -> None:
    wanted = desired()
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    made = serving(short(3, running=0), free("worker-3", 8), wanted=wanted)
    assert made.changes == ()
    assert "it runs once, and may still run there: 3 stay there" in {
        held.message.partition(", and ")[2] for held in made.suppressed if held.reason is Reason.CLUSTER_LOST
    }


def test_nothing_leaves_while_the_primary_is_out_of_sight_as_well() -> None:
    assert serving(free("worker-3", 8)).changes == ()


def test_a_workload_moves_only_so_often_within_an_hour() -> None:
    own = ordering("worker-2", "worker-3", moves=MoveBudget(most_per_hour=1))
    earlier = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=ClusterName("worker-4"),
        since=NOW - 40 * MINUTE,
        until=NOW - 35 * MINUTE,
        reason="it was moved away",
        placement=PlacementName("vllm-1"),
        move=True,
    )
    made = serving(policy=own, restraints={VLLM: (earlier,)})
    assert made.changes == ()
    (held,) = made.suppressed
    assert (held.reason, held.replicas, held.until) == (Reason.MOVE_BUDGET, 3, NOW + 20 * MINUTE)
    assert held.message == (
        "worker-2 has not been observed, which has lasted for 5m; what is there stays until 2026-11-20T10:25:00Z, since"
        " policy gpu allows 1 move an hour (moves.maxPerHour)"
    )
    older = replace(earlier, since=NOW - 60 * MINUTE)
    assert serving(policy=own, restraints={VLLM: (older,)}).changes


def test_a_request_in_groups_moves_where_it_may_choose() -> None:
    wanted, before = asked("worker-2", "worker-3")
    change = moved(decided(free("worker-1"), free("worker-3", *[8] * 8), wanted=wanted, there=before))
    assert (change.after.cluster, change.after.replicas, change.restraint) == ("worker-3", 8, None)
    said = message(change, source=CommitId("5" * 40))
    assert "Overspill-Request: llm/bookinfo" in said


@pytest.mark.parametrize("clusters", [("worker-2",), ("worker-2", "worker-3")])
def test_a_request_that_names_its_clusters_has_no_other_to_go_to(clusters: tuple[str, ...]) -> None:
    wanted, before = asked(*clusters, placements=None)
    if len(clusters) > 1:
        there_too = placed("worker-3", replicas=8, shape=shape(8))
        before = holds(*before.requests.values(), placed=[*before.placements.values(), there_too])
    made = decided(free("worker-1"), free("worker-3", *[8] * 8), wanted=wanted, there=before)
    assert made.changes == ()
    assert Reason.CLUSTER_LOST in {one.reason for one in made.suppressed}


def test_a_request_without_groups_stays() -> None:
    wanted, before = asked("worker-2", "worker-3", made=deployment(2))
    assert decided(free("worker-1"), free("worker-3", *[8] * 8), wanted=wanted, there=before).changes == ()


def test_a_move_needs_no_gpr_beyond_the_one_that_it_has() -> None:
    limits = WorkspaceLimits(workspace=VLLM.workspace, most=1)
    wanted = replace(fleet(SET), limits={VLLM.workspace: limits})
    made = decided(lacks(8), free("worker-3", *[8] * 8), wanted=wanted, there=ledger(there()))
    assert moved(made).after.cluster == "worker-3"


def test_what_people_drain_leaves_at_once_as_a_whole_or_ends() -> None:
    clusters = (cluster("worker-1"), cluster("worker-2", availability=Availability.DRAINING), cluster("worker-3"))
    wanted = fleet(SET, clusters=clusters)
    full = inputs(lacks(8), free("worker-2"), free("worker-3", *[8] * 8), wanted=wanted, there=ledger(there()))
    assert moved(decide(full)).why is EndReason.POLICY
    small = inputs(lacks(8), free("worker-2"), free("worker-3", *[8] * 7), wanted=wanted, there=ledger(there()))
    assert [change.action for change in decide(small).changes] == ["Revert"]


def test_a_cluster_is_lost_since_it_was_missed_first_until_it_is_back() -> None:
    wanted = fleet(SET, policy=ordering("worker-2"), clusters=(cluster("worker-1"), cluster("worker-2")))

    def seen(at: datetime) -> Observed:
        return Observed(clusters={name: free(name, at=at) for name in wanted.clusters})

    assert lost_since({}, wanted, seen(NOW), NOW) == {}
    first = lost_since({}, wanted, seen(NOW), NOW + 3 * MINUTE)
    assert first == dict.fromkeys(wanted.clusters, NOW + 3 * MINUTE)
    assert lost_since(first, wanted, seen(NOW), NOW + 4 * MINUTE) is first
    assert lost_since(first, wanted, seen(NOW + 4 * MINUTE), NOW + 4 * MINUTE) == {}


def test_a_clock_that_is_ahead_loses_no_cluster() -> None:
    wanted = fleet(SET, clusters=(cluster("worker-2"),))
    ahead = Observed(clusters={LOST: free("worker-2", at=NOW + timedelta(hours=1))})
    assert lost_since({}, wanted, ahead, NOW) == {}


@pytest.mark.parametrize(("missing", "left"), [(0, 0), (4, 1)])
def test_what_is_not_needed_any_more_ends_where_it_is_and_only_the_rest_moves(missing: int, left: int) -> None:
    fewer = lacks(missing, running=0, deficit_since=NOW - 15 * MINUTE)
    made = decided(fewer, free("worker-3", *[8] * 8), wanted=fleet(SET), there=ledger(there()))
    if not left:
        (ended,) = made.changes
        assert ended.action is Action.REVERT
        assert (ended.placement.cluster, ended.why) == (LOST, EndReason.DEMAND_GONE)
        return
    shrunk, gone = made.changes
    assert shrunk.action is Action.RESIZE
    assert gone.action is Action.MOVE
    assert (shrunk.after.cluster, shrunk.after.replicas) == (LOST, left)
    assert (gone.after.cluster, gone.after.replicas) == ("worker-3", left)
