"""What is asked for by name is taken, placed, run and closed, and begins no more than once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import sweep
from reconciler.core.ledger.request_record import digest_of
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import GprTerms
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Drift
from reconciler.model.placement import Origin
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Availability, Desired
from reconciler.model.request import Ended, Provisioning
from reconciler.model.workload import DeletionPolicy
from tests.builders.inputs import NOW, SOURCE, cluster, desired, free, inputs, ordering, plan, seconds, short
from tests.builders.plans import begun
from tests.builders.requests import (
    BOOKINFO,
    LASTING,
    deployment,
    gpus,
    holds,
    manifests,
    placed,
    record,
    request,
    wants,
)

ENDED = Ended(status=Provisioning.COMPLETED, at=NOW, message="its 15m are over")
BEGAN = NOW - timedelta(minutes=1)


def kinds(of: Plan) -> list[str]:
    return [change.action for change in of.changes]


def first_placed(of: Plan) -> str:
    return next(change.placement.workload.name for change in of.changes if change.action is Action.PLACE)


def test_a_request_of_a_file_is_received_and_placed_in_the_same_pass():
    decided = plan(free("worker-2", 4), wanted=wants(request("worker-2")))
    receive, place = decided.changes
    assert receive.action is Action.RECEIVE
    assert receive.record.asked == digest_of(request("worker-2"))
    assert place.action is Action.PLACE
    assert place.shortage is None
    assert place.placement.origin is Origin.REQUEST
    assert place.placement.workload == BOOKINFO
    assert (place.placement.replicas, place.placement.expires_at) == (2, NOW + LASTING)
    assert place.record is None, "the commit that takes it in says when it began"
    assert receive.record.began_at == NOW


def test_a_request_may_use_the_primary():
    decided = plan(free("worker-1", 4), wanted=wants(request("worker-1")))
    assert [placement.cluster for placement in begun(decided)] == ["worker-1"]


def test_of_a_tainted_cluster_it_is_told_that_the_pods_have_to_tolerate_it():
    spot = Taint(key="capacity", value="spot", effect="NoSchedule")
    asked = wants(request("worker-2"), clusters=(cluster("worker-1"), cluster("worker-2", taints=(spot,))))
    [held] = plan(free("worker-2", 4), wanted=asked).suppressed
    assert [refusal.remedy for refusal in held.refusals] == ["add a toleration for it to its pods"]


def test_a_primary_that_takes_no_requests_is_refused_with_the_way_out():
    wanted = wants(request("worker-1"))
    spaces = {name: replace(one, requests_on_primary=False) for name, one in wanted.workspaces.items()}
    decided = plan(free("worker-1", 4), wanted=replace(wanted, workspaces=spaces))
    assert kinds(decided) == ["Receive"]
    (held,) = decided.suppressed
    assert "the primary of workspace llm, which takes no requests" in held.message
    assert "set spec.requestsOnPrimary: true in workspace llm" in held.message
    anywhere = replace(wants(request(placements=1)), workspaces=spaces)
    assert kinds(plan(free("worker-1", 4), free("worker-3", 0), wanted=anywhere)) == ["Receive"]


def test_what_is_on_a_primary_that_takes_no_requests_any_more_leaves_it():
    asked = request("worker-1")
    wanted = wants(asked)
    spaces = {name: replace(one, requests_on_primary=False) for name, one in wanted.workspaces.items()}
    there = holds(record(asked, began_at=BEGAN), placed=[placed("worker-1", created=BEGAN)])
    decided = plan(free("worker-1", 4), wanted=replace(wanted, workspaces=spaces), there=there)
    (revert,) = (change for change in decided.changes if change.action is Action.REVERT)
    assert "takes no requests" in revert.detail


def test_each_named_cluster_gets_one():
    decided = plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(request("worker-3", "worker-2")))
    places = begun(decided)
    assert [place.cluster for place in places] == ["worker-3", "worker-2"]
    assert len({place.expires_at for place in places}) == 1


def test_of_many_clusters_the_first_with_room_are_taken():
    asked = request("worker-1", "worker-2", "worker-3", placements=1)
    decided = plan(free("worker-1", 1), free("worker-2", 2), free("worker-3", 4), wanted=wants(asked))
    (place,) = [change for change in decided.changes if change.action is Action.PLACE]
    assert place.placement.cluster == "worker-2"
    assert [refusal.cluster for refusal in place.refused] == ["worker-1"]


def narrower(wanted: Desired) -> Desired:
    """Take worker-2 away from the workspace."""
    spaces = wanted.workspaces.items()
    fewer = {name: replace(one, clusters=tuple({*one.clusters} - {ClusterName("worker-2")})) for name, one in spaces}
    return replace(wanted, workspaces=fewer)


@pytest.mark.parametrize(("redistributes", "goes"), [(True, ["worker-2"]), (False, [])])
def test_what_does_not_redistribute_keeps_to_the_clusters_of_its_receipt(redistributes: bool, goes: list[str]):
    asked = request(placements=1, redistributes=redistributes)
    seen = (free("worker-1", 0), free("worker-2", 4), free("worker-3", 0))
    (receive,) = plan(*seen, wanted=narrower(wants(asked))).changes
    assert receive.action is Action.RECEIVE
    assert receive.record.observed == (() if redistributes else ("worker-1", "worker-3"))
    after = plan(*seen, wanted=wants(asked), there=holds(receive.record))
    assert [placement.cluster for placement in begun(after)] == goes


def test_a_change_of_what_waits_does_not_add_clusters_to_what_does_not_redistribute():
    asked = request(placements=1, redistributes=False)
    known = record(asked, observed=(ClusterName("worker-3"),))
    longer = replace(asked, spec=manifests(deployment(), lasting=2 * LASTING))
    (amend,) = plan(free("worker-2", 4), free("worker-3", 0), wanted=wants(longer), there=holds(known)).changes
    assert amend.action is Action.AMEND
    assert amend.record.observed == ("worker-3",)
    named = request("worker-2", redistributes=False)
    amend, place = plan(free("worker-2", 4), wanted=wants(named), there=holds(known)).changes
    assert amend.action is Action.AMEND
    assert amend.record.observed == ()
    assert place.action is Action.PLACE


def test_what_has_no_room_for_the_whole_waits_and_says_what_would_change_it():
    asked = request("worker-2")
    decided = plan(free("worker-2", 1), wanted=wants(asked), there=holds(record(asked)))
    assert decided.changes == ()
    (held,) = decided.suppressed
    assert (held.workload, held.reason, held.replicas) == (BOOKINFO, Reason.NOTHING_FITS, 2)
    assert held.message == (
        "it fits on no cluster; worker-2: needs 1 GPU for each of 2 pods, has room for 1 (free or add nodes there)"
    )


def test_the_second_placement_ends_when_the_first_does():
    asked = request("worker-2", "worker-3")
    there = holds(record(asked, began_at=BEGAN), placed=[placed("worker-2")])
    (place,) = plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(asked), there=there).changes
    assert place.action is Action.PLACE
    assert (place.placement.cluster, place.placement.expires_at) == ("worker-3", BEGAN + LASTING)
    assert place.record is None


def test_time_ends_it_for_good():
    asked = request("worker-2")
    began = NOW - timedelta(minutes=16)
    there = holds(record(asked, began_at=began), placed=[placed("worker-2", created=began)])
    revert, close = plan(free("worker-2", 4), wanted=wants(asked), there=there).changes
    assert revert.action is Action.REVERT
    assert (revert.why, revert.restraint) == (EndReason.EXPIRED, None)
    assert close.action is Action.CLOSE
    assert close.record.ended == Ended(status=Provisioning.COMPLETED, at=NOW, message="its 15m are over, 1m late")
    later = NOW + timedelta(days=31)
    assert plan(free("worker-2", 4), wanted=wants(asked), there=holds(close.record), now=later).changes == ()


def test_a_sweep_ends_it_for_good_as_well_without_any_file():
    began = NOW - timedelta(minutes=16)
    there = holds(record(request("worker-2"), began_at=began), placed=[placed("worker-2", created=began)])
    nothing = Desired(commit=SOURCE, incomplete=True)
    assert kinds(sweep(inputs(wanted=nothing, there=there))) == ["Revert", "Close"]


def test_what_lost_its_placement_and_its_time_is_closed():
    asked = request("worker-2")
    there = holds(record(asked, began_at=NOW - LASTING))
    (close,) = plan(free("worker-2", 4), wanted=wants(asked), there=there).changes
    assert close.action is Action.CLOSE


def test_what_waits_for_another_place_is_looked_at_again_when_its_time_is_over():
    asked = request("worker-2")
    decided = plan(free("worker-2", 1), wanted=wants(asked), there=holds(record(asked, began_at=BEGAN)))
    assert (decided.changes, decided.wake_at) == ((), BEGAN + LASTING)


def test_a_file_that_is_gone_takes_everything_along():
    there = holds(record(request("worker-2"), began_at=BEGAN), placed=[placed("worker-2")])
    revert, forget = plan(free("worker-2", 4), wanted=wants(), there=there).changes
    assert revert.action is Action.REVERT
    assert (revert.why, revert.detail) == (EndReason.REQUESTED, "its file is gone from the fleet repository")
    assert forget.action is Action.FORGET


def test_a_file_that_cannot_be_read_is_not_gone():
    there = holds(record(request("worker-2"), began_at=BEGAN), placed=[placed("worker-2")])
    assert plan(free("worker-2", 4), wanted=wants(incomplete=True), there=there).changes == ()


def test_a_request_that_waits_may_be_changed_whole():
    before, after = request("worker-2"), request("worker-3")
    amend, place = plan(
        free("worker-2", 1), free("worker-3", 4), wanted=wants(after), there=holds(record(before))
    ).changes
    assert amend.action is Action.AMEND
    assert amend.detail == "its file has changed: clusterNames"
    assert place.action is Action.PLACE
    assert place.placement.cluster == "worker-3"


def test_a_file_that_says_the_same_in_other_words_does_not_bring_failed_clusters_back():
    asked = request("worker-2", "worker-3", placements=1)
    failed = replace(record(asked, avoids=(ClusterName("worker-2"),), attempts=1), asked="sha256-0")
    amend = plan(free("worker-2", 4), wanted=wants(asked), there=holds(failed)).changes[0]
    assert amend.action is Action.AMEND
    assert (amend.record.avoids, amend.record.attempts) == (("worker-2",), 1)
    assert amend.detail == "its file says the same in other words"


def test_of_a_placed_request_the_end_and_the_deletion_policy_may_change():
    before = request("worker-2")
    spec = replace(before.spec, burst_duration=timedelta(hours=1), deletion_policy=DeletionPolicy.RETAIN)
    there = holds(record(before, began_at=BEGAN), placed=[placed("worker-2")])
    amend, extend = plan(free("worker-2", 4), wanted=wants(replace(before, spec=spec)), there=there).changes
    assert amend.action is Action.AMEND
    assert extend.action is Action.EXTEND
    assert extend.after.expires_at == BEGAN + timedelta(hours=1)
    assert extend.after.deletion_policy is DeletionPolicy.RETAIN


def test_an_end_that_has_passed_already_ends_it_at_once():
    before = request("worker-2")
    shorter = replace(before, spec=replace(before.spec, burst_duration=timedelta(seconds=30)))
    there = holds(record(before, began_at=BEGAN), placed=[placed("worker-2")])
    assert kinds(plan(free("worker-2", 4), wanted=wants(shorter), there=there)) == ["Amend", "Revert", "Close"]


@pytest.mark.parametrize(("minutes", "changes"), [(20, ["Amend", "Extend"]), (16, ["Amend", "Revert", "Close"])])
def test_what_lapsed_unseen_ends_once_and_goes_on_where_its_file_says_so_by_now(minutes: int, changes: list[str]):
    began = NOW - timedelta(minutes=17)
    known = record(request("worker-2"), began_at=began)
    asked = request("worker-2", spec=manifests(deployment(), lasting=timedelta(minutes=minutes)))
    there = holds(known, placed=[placed("worker-2", created=began)])
    assert kinds(plan(free("worker-2", 4), wanted=wants(asked), there=there)) == changes


def test_what_lapsed_unseen_and_is_asked_for_no_more_ends_once():
    began = NOW - timedelta(minutes=17)
    there = holds(record(request("worker-2"), began_at=began), placed=[placed("worker-2", created=began)])
    assert kinds(plan(free("worker-2", 4), wanted=wants(), there=there)) == ["Revert", "Forget"]


def test_a_file_that_moves_the_end_just_after_it_has_passed_goes_on():
    before, began = request("worker-2"), NOW - LASTING - timedelta(minutes=1)
    longer = replace(before, spec=replace(before.spec, burst_duration=timedelta(hours=2)))
    there = holds(record(before, began_at=began), placed=[placed("worker-2", created=began)])
    assert kinds(plan(free("worker-2", 4), wanted=wants(longer), there=there)) == ["Amend", "Extend"]


def test_anything_else_of_a_placed_request_is_told_and_left():
    before = request("worker-2")
    after = replace(before, clusters=(ClusterName("worker-3"),), terms=GprTerms(priority=250))
    there = holds(record(before, began_at=BEGAN), placed=[placed("worker-2")])
    decided = plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(after), there=there)
    assert decided.changes == ()
    (held,) = decided.suppressed
    assert held.reason is Reason.REQUEST_FIXED
    assert "clusterNames and gprDetails.priority cannot change" in held.message


def test_a_mended_duration_beside_a_fixed_field_is_taken_once():
    before = request("worker-2")
    after = replace(request("worker-3"), spec=replace(before.spec, burst_duration=timedelta(hours=1)))
    there = holds(record(before, began_at=BEGAN), placed=[placed("worker-2")])
    amend, extend = plan(free("worker-2", 4), wanted=wants(after), there=there).changes
    assert amend.action is Action.AMEND
    assert extend.action is Action.EXTEND
    again = plan(free("worker-2", 4), wanted=wants(after), there=holds(amend.record, placed=[extend.after]))
    assert again.changes == ()
    assert [held.reason for held in again.suppressed] == [Reason.REQUEST_FIXED]


def test_an_ended_request_does_not_change():
    before = request("worker-2")
    decided = plan(
        free("worker-2", 4),
        free("worker-3", 4),
        wanted=wants(request("worker-3")),
        there=holds(record(before, ended=ENDED)),
    )
    assert decided.changes == ()
    assert [held.reason for held in decided.suppressed] == [Reason.REQUEST_FIXED]


def test_what_a_person_deleted_is_completed():
    asked = request("worker-2")
    drifted = Drift(placement=placed("worker-2"), removed=True, files={})
    there = holds(record(asked, began_at=BEGAN), drifted=(drifted,))
    revert, close = plan(free("worker-2", 4), wanted=wants(asked), there=there).changes
    assert revert.action is Action.REVERT
    assert close.action is Action.CLOSE
    assert close.record.ended == Ended(status=Provisioning.COMPLETED, at=NOW, message="deleted by hand on worker-2")


def test_what_a_person_deleted_on_one_cluster_goes_on_on_the_other():
    asked = request("worker-2", "worker-3")
    drifted = Drift(placement=placed("worker-2"), removed=True, files={})
    there = holds(record(asked, began_at=BEGAN), placed=[placed("worker-3")], drifted=(drifted,))
    revert, amend = plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(asked), there=there).changes
    assert revert.action is Action.REVERT
    assert amend.action is Action.AMEND
    assert amend.record.avoids == ("worker-2",)
    after = holds(amend.record, placed=[placed("worker-3")])
    assert plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(asked), there=after).changes == ()


DRAINED = (cluster("worker-1"), cluster("worker-2", availability=Availability.DRAINING), cluster("worker-3"))


def test_where_it_may_not_stay_it_leaves_for_the_next_cluster_in_one_commit_with_the_same_end():
    asked = request("worker-2", "worker-3", placements=1)
    there = holds(record(asked, began_at=BEGAN), placed=[placed("worker-2")])
    (move,) = plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(asked, clusters=DRAINED), there=there).changes
    assert move.action is Action.MOVE
    assert (move.before.cluster, move.why) == ("worker-2", EndReason.POLICY)
    assert (move.after.cluster, move.after.expires_at) == ("worker-3", BEGAN + LASTING)


def test_where_it_may_not_stay_and_no_other_has_room_for_all_of_it_it_ends_there_and_waits():
    asked = request("worker-2", "worker-3", placements=1)
    there = holds(record(asked, began_at=BEGAN), placed=[placed("worker-2")])
    made = plan(free("worker-2", 4), free("worker-3"), wanted=wants(asked, clusters=DRAINED), there=there)
    (revert,) = made.changes
    assert revert.action is Action.REVERT
    assert revert.why is EndReason.POLICY
    assert [held.reason for held in made.suppressed] == [Reason.NOTHING_FITS]


def test_where_it_may_not_stay_it_does_not_go_where_it_has_another_placement():
    asked = request("worker-2", "worker-3", placements=2)
    there = holds(record(asked, began_at=BEGAN), placed=[placed("worker-2"), placed("worker-3")])
    made = plan(free("worker-2", 4), free("worker-3", 4), wanted=wants(asked, clusters=DRAINED), there=there)
    assert kinds(made) == ["Revert"]


def test_a_record_that_cannot_be_read_holds_its_own_request_up_and_no_other():
    other = request("worker-2", name="other")
    decided = plan(
        free("worker-2", 4),
        wanted=wants(request("worker-2"), other),
        there=holds(blocked=frozenset({BOOKINFO}), placed=[placed("worker-3")]),
    )
    assert kinds(decided) == ["Receive", "Place"]
    assert decided.changes[0].record.request.name == "other"
    assert [held.reason for held in decided.suppressed] == [Reason.LEDGER_UNREADABLE]


def test_a_record_that_a_person_deleted_is_written_anew_while_its_file_stands():
    asked = request("worker-2")
    (receive,) = plan(free("worker-2", 4), wanted=wants(asked), there=holds(placed=[placed("worker-2")])).changes
    assert receive.action is Action.RECEIVE
    assert receive.record.began_at == BEGAN


def test_without_a_record_and_a_file_nobody_asks_for_a_placement():
    (revert,) = plan(free("worker-2", 4), wanted=wants(), there=holds(placed=[placed("worker-2")])).changes
    assert revert.action is Action.REVERT
    assert revert.detail == "request llm/bookinfo is no longer in the ledger"


def test_a_reservation_is_received_and_reserved():
    reserved = request("worker-2", spec=manifests(), ask=gpus(2))
    assert kinds(plan(free("worker-2", 4), wanted=wants(reserved))) == ["Receive", "Amend"]


def test_of_requests_the_urgent_goes_first():
    urgent = request("worker-2", name="urgent", terms=GprTerms(priority=200), spec=manifests(deployment(1)))
    low = request("worker-2", name="low", terms=GprTerms(priority=1), spec=manifests(deployment(1)))
    assert first_placed(plan(free("worker-2", 1), wanted=wants(low, urgent))) == "urgent"


@pytest.mark.parametrize(("priority", "first"), [(100, "bookinfo"), (102, "vllm")])
def test_bursts_and_requests_wait_in_one_queue(priority: int, first: str):
    asked = request("worker-2", spec=manifests(deployment(1)))
    bursting = desired(ordering("worker-2", priority=priority))
    wanted = replace(wants(asked), templates=bursting.templates, policies=bursting.policies)
    assert first_placed(plan(short(1), free("worker-2", 1), wanted=wanted)) == first


def test_of_equal_priority_who_came_first_is_first():
    older = record(request("worker-2", name="z"), at=NOW - seconds(60))
    newer = record(request("worker-2", name="a"), at=NOW)
    decided = plan(free("worker-2", 2), wanted=wants(older.request, newer.request), there=holds(newer, older))
    assert first_placed(decided) == "z"
