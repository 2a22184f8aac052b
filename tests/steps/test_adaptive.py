"""An Adaptive WorkloadSpread: what finds no node in time goes to another subset, and nothing moves back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.commits.messages import line, message
from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.ledger.read import RestraintsRecord, read_record
from reconciler.core.ledger.restraints import ledger_path, write_restraints
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import CommitId
from reconciler.model.placement import Placement, RestraintKind
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import MoveBudget
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, plan, seconds, shape, short
from tests.builders.subsets import OWN, RENTED, adaptive, fleet, kept, out, stands, wanted_before


def stuck(there: Placement, *, bound: int, since: int, room: int = 0) -> ClusterObservation:
    """Observe that the replicas of a placement beyond those that have a node have had none for so many seconds."""
    waiting = PendingPods(replicas=there.replicas - bound, shape=shape(), since=NOW - seconds(since))
    return free(there.cluster, room, bound={there.name: bound}, pending_pods={there.name: waiting})


def decided(there: Placement, seen: ClusterObservation, *others: ClusterObservation, **fields: object) -> Plan:
    wanted = adaptive(replace(OWN, most=None), RENTED)
    return plan(short(4), seen, *others, wanted=wanted, there=ledger(there), **fields)


def test_what_has_had_no_node_for_too_long_goes_to_a_later_subset() -> None:
    there = stands("worker-2", 4, "own")
    made = decided(there, stuck(there, bound=1, since=30), free("worker-4", 8))
    assert kept(made) == [("worker-2/own", 1)]
    assert out(made) == {"worker-4/rented": 3}
    resize = made.changes[0]
    assert resize.action is Action.RESIZE
    assert resize.detail == "3 of 4 replicas on worker-2/own had no node for 30s"
    assert (resize.restraint.kind, resize.restraint.until - NOW) == (RestraintKind.UNSCHEDULABLE, timedelta(minutes=5))


def test_what_goes_to_one_cluster_whole_is_moved_in_one_commit() -> None:
    there = stands("worker-2", 4, "own")
    (move,) = decided(there, stuck(there, bound=0, since=30), free("worker-4", 8)).changes
    assert move.action is Action.MOVE
    assert (move.after.where, move.after.replicas, move.why) == ("worker-4/rented", 4, EndReason.FAILED)
    text = message(move, source=CommitId("5" * 40))
    assert text.startswith("move(llm/vllm): 4 replicas from worker-2/own to worker-4/rented\n")
    assert "Nothing new on worker-2/own until 2026-11-20T10:10:00Z." in text


def limited(number: int, *others: ClusterObservation, there: Placement, bound: int) -> Plan:
    """Decide about what finds no node in a workspace that may have so many GPRs."""
    llm = VLLM.workspace
    wanted = replace(
        adaptive(replace(OWN, most=None), RENTED), limits={llm: WorkspaceLimits(workspace=llm, most=number)}
    )
    return plan(short(4), stuck(there, bound=bound, since=30), *others, wanted=wanted, there=ledger(there))


def test_what_moves_on_whole_begins_no_new_gpr() -> None:
    there = stands("worker-2", 4, "own")
    (move,) = limited(1, free("worker-4", 8), there=there, bound=0).changes
    assert move.action is Action.MOVE
    assert (move.after.where, move.after.replicas) == ("worker-4/rented", 4)


def test_what_leaves_some_behind_begins_one() -> None:
    there = stands("worker-2", 4, "own")
    assert limited(1, free("worker-4", 8), there=there, bound=1).changes == ()
    assert limited(1, free("worker-4", 2), there=there, bound=0).changes == ()
    assert out(limited(2, free("worker-4", 2), there=there, bound=0)) == {"worker-4/rented": 2}


def test_before_its_time_it_waits_and_is_looked_at_again_then() -> None:
    there = stands("worker-2", 4, "own")
    made = decided(there, stuck(there, bound=1, since=20), free("worker-4", 8))
    assert made.changes == ()
    assert made.wake_at == NOW + seconds(10)


def test_what_has_a_node_stays_and_what_nobody_else_takes_waits_on() -> None:
    there = stands("worker-2", 4, "own")
    made = decided(there, stuck(there, bound=1, since=60), free("worker-4", 2))
    assert kept(made) == [("worker-2/own", 2)]
    assert out(made) == {"worker-4/rented": 2}
    made = decided(there, stuck(there, bound=1, since=60), free("worker-4", 0))
    assert made.changes == ()
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.NO_CAPACITY, 3)


def test_the_last_subset_is_never_unschedulable() -> None:
    there = stands("worker-4", 4, "rented")
    assert decided(there, stuck(there, bound=1, since=600), free("worker-2", 8)).changes == ()


def test_a_spread_that_is_fixed_lets_them_wait() -> None:
    there = stands("worker-2", 4, "own")
    seen = stuck(there, bound=1, since=600)
    made = plan(short(4), seen, free("worker-4", 8), wanted=fleet(OWN, RENTED), there=ledger(there))
    assert made.changes == ()


def test_until_it_recovers_a_subset_gets_nothing_and_then_takes_again_without_moving_anything_back() -> None:
    first = stands("worker-2", 4, "own")
    made = decided(first, stuck(first, bound=1, since=30), free("worker-4", 8))
    placed = next(one.placement for one in made.changes if one.action is Action.PLACE)
    (resize,) = [one for one in made.changes if one.action is Action.RESIZE]
    written = write_restraints(VLLM, (resize.restraint,))
    read = read_record(written, ledger_path(VLLM))
    assert isinstance(read, RestraintsRecord)
    there = ledger(resize.after, placed, restraints={VLLM: read.restraints})
    wanted, roomy = adaptive(replace(OWN, most=None), RENTED), free("worker-2", 8, bound={resize.after.name: 1})
    held = plan(short(6), roomy, free("worker-4", 8), wanted=wanted, there=there, history=wanted_before(6))
    assert kept(held) == [("worker-4/rented", 5)]
    later = NOW + timedelta(minutes=6)
    seen = [replace(one, observed_at=later) for one in (roomy, free("worker-4", 8))]
    again = plan(short(6, at=later), *seen, wanted=wanted, there=there, now=later, history=wanted_before(6))
    assert kept(again) == [("worker-2/own", 3)]


def test_a_hold_ends_where_the_spread_is_fixed_or_the_subset_becomes_the_last() -> None:
    there = stands("worker-2", 4, "own")
    (resize, *_) = decided(there, stuck(there, bound=1, since=60), free("worker-4", 3)).changes
    seen = (short(4), free("worker-2", 8), free("worker-4", 0))
    held = ledger(resize.after, restraints={VLLM: (resize.restraint,)})
    own = replace(OWN, most=None)
    for wanted in (fleet(own, RENTED), adaptive(RENTED, own), adaptive(own)):
        assert kept(plan(*seen, wanted=wanted, there=held)) == [("worker-2/own", 4)]
        told = explain(VLLM, inputs(*seen, wanted=wanted, there=held), plan(*seen, wanted=wanted, there=held))
        assert told.restraints == ()
    assert kept(plan(*seen, wanted=adaptive(own, RENTED), there=held)) == []


def test_pods_that_an_engine_has_yet_to_take_away_take_no_more_replicas_with_them() -> None:
    before = stands("worker-2", 4, "own")
    after = replace(before, replicas=1, changed_at=NOW - seconds(5))
    seen = stuck(before, bound=1, since=60)
    there = ledger(after, stands("worker-4", 3, "rented"))
    made = plan(
        short(4), seen, free("worker-4", 8), wanted=adaptive(OWN, RENTED), there=there, history=wanted_before(4)
    )
    assert made.changes == ()


def test_a_commit_says_that_what_goes_there_found_no_node_where_it_was() -> None:
    there, other = stands("worker-2", 4, "own"), stands("worker-4", 1, "rented")
    seen = stuck(there, bound=1, since=30), free("worker-4", 8, bound={other.name: 1})
    wanted = adaptive(replace(OWN, most=None), RENTED)
    why = "3 of 4 replicas on worker-2/own had no node for 30s; 3 of them move here"
    _, grown = plan(short(5), *seen, wanted=wanted, there=ledger(there, other), history=wanted_before(5)).changes
    assert line(grown) == f"resize(llm/vllm): 1 to 4 replicas on worker-4/rented ({why})"
    _, begun = decided(there, stuck(there, bound=1, since=30), free("worker-4", 8)).changes
    assert line(begun) == f"burst(llm/vllm): 3 replicas on worker-4/rented for 10m ({why})"


def test_what_home_is_missing_beside_what_moves_on_is_told_apart() -> None:
    there, other = stands("worker-2", 4, "own"), stands("worker-4", 1, "rented")
    seen = stuck(there, bound=1, since=30), free("worker-4", 8, bound={other.name: 1})
    wanted = adaptive(replace(OWN, most=None), RENTED)
    _, moved, grown = plan(short(7), *seen, wanted=wanted, there=ledger(there, other), history=wanted_before(7)).changes
    assert moved.action is Action.RESIZE
    assert (moved.before.replicas, moved.after.replicas) == (1, 4)
    assert grown.action is Action.RESIZE
    assert (grown.after.replicas, grown.detail) == (6, "2 of 2 more replicas that worker-1 is missing")


def test_replicas_stay_where_the_hour_has_had_all_of_its_moves() -> None:
    there = stands("worker-2", 4, "own")
    wanted = adaptive(replace(OWN, most=None), RENTED)
    none = replace(wanted.policies[VLLM], moves=MoveBudget(most_per_hour=0))
    seen = short(4), stuck(there, bound=1, since=30), free("worker-4", 8)
    made = plan(*seen, wanted=replace(wanted, policies={VLLM: none}), there=ledger(there))
    assert made.changes == ()
    assert [held.reason for held in made.suppressed] == [Reason.MOVE_BUDGET]
    (left, _) = plan(*seen, wanted=wanted, there=ledger(there)).changes
    assert left.action is Action.RESIZE
    assert left.restraint is not None
    assert left.restraint.move


def test_explain_tells_what_waits_elsewhere_from_what_runs_there_and_what_moves_on() -> None:
    there = stands("worker-2", 4, "own")
    wanted = adaptive(replace(OWN, most=None), RENTED)
    seen = inputs(short(4), stuck(there, bound=1, since=30), free("worker-4", 2), wanted=wanted, there=ledger(there))
    told = explain(VLLM, seen, decide(seen)).conclusion
    assert "1 runs elsewhere, 3 waiting for a node on worker-2/own." in told[0]
    assert told[0].startswith("Nothing more is missing: ")
    moves = "3 of 4 replicas on worker-2/own had no node for 30s; 2 of worker-2/own move on to another subset now."
    assert moves in told
