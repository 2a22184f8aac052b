"""What a workload has elsewhere by a WorkloadSpread, shared out again: its subsets in order, as if nothing stood."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.spread.placement_subset import replicas_by_subset
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.approval import ApprovalRule
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.workload_spread import Bound, Subset
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Change, Plan
from reconciler.model.policy import Desired
from tests.assign.test_spread_passes import NUMBERS, PERCENTAGES, Case, after, cases
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, plan, seconds, shape, short
from tests.builders.subsets import OWN, RENTED, TIER, adaptive, fleet, named, numbered, stands, subset, wanted_before


def total(there: tuple[Placement, ...]) -> int:
    return sum(one.replicas for one in there)


def rebalanced(case: Case) -> tuple[Placement, ...]:
    """Rebalance what stands, while just so many are missing; a case where some would have no place is none."""
    try:
        return after(case.there, rebalance(settled(case).seen(), VLLM, by="Ann"))
    except InvalidInput:
        reject()


def settled(case: Case) -> Case:
    return replace(case, missing=total(case.there))


def counts(there: tuple[Placement, ...]) -> Counter[str]:
    found = Counter[str]()
    for one in there:
        found[one.cluster] += one.replicas
    return found


@given(cases())
def test_the_total_stays_within_what_fits_and_what_each_subset_may_hold(case: Case) -> None:
    now, before = rebalanced(case), counts(case.there)
    assert total(now) == total(case.there)
    assert all(has <= before[name] + sum(case.rooms[name].values()) for name, has in counts(now).items())
    policy = case.wanted.policies[VLLM]
    held = replicas_by_subset(now, policy, case.wanted.clusters)
    for quota in quotas(settled(case).seen(), VLLM, total(now)):
        has = sum(replicas for (_, name), replicas in held.items() if name == quota.subset.name)
        assert quota.elsewhere is None or has <= quota.elsewhere


@given(cases())
def test_no_commit_has_more_replicas_than_there_were(case: Case) -> None:
    try:
        made = rebalance(settled(case).seen(), VLLM, by="Ann")
    except InvalidInput:
        reject()
    for number in range(len(made.changes)):
        assert total(after(case.there, Plan(changes=made.changes[:number]))) <= total(case.there)


@given(cases())
def test_no_later_pass_undoes_it(case: Case) -> None:
    assert decide(settled(case).seen(rebalanced(case))).changes == ()


@st.composite
def apart(draw: st.DrawFn) -> tuple[Desired, dict[str, int], dict[str, int]]:
    """Draw a spread over subsets of a cluster each, what each cluster has of it, and what more fits there."""
    subsets, has, rooms = list[Subset](), dict[str, int](), dict[str, int]()
    for name in draw(st.permutations(["worker-2", "worker-3", "worker-4"])):
        most: Bound | None = draw(st.none() | NUMBERS | PERCENTAGES)
        least = draw(st.integers(0, 2 if most is None or most.percent else min(2, most.number)))
        subsets.append(Subset(name=name, required=named(name), most=most, least=least))
        has[name], rooms[name] = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    return fleet(*subsets), has, rooms


@given(apart())
def test_it_is_what_comes_of_nothing_and_once_more_changes_nothing(
    made: tuple[Desired, dict[str, int], dict[str, int]],
) -> None:
    wanted, has, rooms = made
    there = tuple(stands(name, replicas, name) for name, replicas in has.items() if replicas)
    missing = total(there)
    running = {one.name: one.replicas for one in there}
    seen = [free(name, room, bound=running) for name, room in rooms.items()]
    told = {"wanted": wanted, "history": wanted_before(missing)}
    begun = plan(short(missing), *(free(name, room + has[name]) for name, room in rooms.items()), **told)
    from_nothing = counts(after((), begun))
    now = inputs(short(missing), *seen, there=ledger(*there), **told)
    if from_nothing.total() < missing:
        with pytest.raises(InvalidInput, match=r"would have a place within WorkloadSpread demo/pools"):
            rebalance(now, VLLM, by="Ann")
        return
    stands_now = after(there, rebalance(now, VLLM, by="Ann"))
    assert counts(stands_now) == from_nothing
    running = {one.name: one.replicas for one in stands_now}
    seen = [free(name, room + has[name] - from_nothing[name], bound=running) for name, room in rooms.items()]
    assert rebalance(inputs(short(missing), *seen, there=ledger(*stands_now), **told), VLLM, by="Ann") == Plan()


def made(wanted: Desired, there: Ledger, *observed: ClusterObservation) -> Plan:
    seen = inputs(short(total(tuple(there.placements.values()))), *observed, wanted=wanted, there=there)
    return rebalance(seen, VLLM, by="Ann")


def summary(change: Change) -> tuple[str, str, int]:
    return change.action, change.placement.where, change.replicas_after


def test_a_subset_that_has_room_again_takes_from_later_ones_and_each_commit_says_what_it_had() -> None:
    there = ledger(stands("worker-4", 5, "rented", lasting=timedelta(minutes=30)))
    plan = made(fleet(OWN, RENTED), there, free("worker-2", 9), free("worker-4", 0))
    assert list(map(summary, plan.changes)) == [("Resize", "worker-4/rented", 1), ("Place", "worker-2/own", 4)]
    shrunk, begun = plan.changes
    (left,) = there.placements.values()
    assert shrunk.action is Action.RESIZE
    assert begun.action is Action.PLACE
    assert shrunk.detail == "rebalanced by Ann: worker-4/rented had 5 of 5 replicas and gets 1"
    assert begun.detail == (
        "rebalanced by Ann: worker-2/own had none of 5 replicas and gets 4;"
        f" it ends when {left.name} on worker-4/rented would have"
    )
    assert begun.choice.because == "subset own then has 4 of at most 4"
    assert (begun.placement.created_at, begun.placement.expires_at) == (left.created_at, left.expires_at)


def test_nothing_goes_to_a_cluster_that_nobody_has_approved() -> None:
    wanted = fleet(OWN, RENTED)
    rule = ApprovalRule(clusters=frozenset({ClusterName("worker-2")}))
    asking = replace(wanted, policies={VLLM: replace(wanted.policies[VLLM], approval=rule)})
    there = ledger(stands("worker-4", 5, "rented"))
    rooms = free("worker-2", 9), free("worker-3", 2), free("worker-4", 0)
    assert list(map(summary, made(asking, there, *rooms).changes)) == [
        ("Resize", "worker-4/rented", 3),
        ("Place", "worker-3/own", 2),
    ]


def test_what_is_in_no_subset_any_more_goes_to_one_that_is() -> None:
    gone, moved = stands("worker-2", 2, "gone"), stands("worker-4", 1, "own")
    plan = made(fleet(OWN, RENTED), ledger(gone, moved), free("worker-2", 2), free("worker-3", 4), free("worker-4", 4))
    assert list(map(summary, plan.changes)) == [
        ("Revert", "worker-2/gone", 0),
        ("Revert", "worker-4/own", 0),
        ("Place", "worker-3/own", 3),
    ]
    assert [one.detail.partition("(")[2] for one in plan.changes if one.action is Action.REVERT] == [
        "in no subset of WorkloadSpread demo/pools any more)",
        "not in subset own of WorkloadSpread demo/pools any more)",
    ]


def test_minimums_and_maximums_hold_and_what_runs_on_the_primary_counts() -> None:
    tiers = Requirements(labels=(Requirement(key=TIER, operator="In", values=("home", "own")),))
    wanted = fleet(subset("near", tiers, most=7), replace(RENTED, least=1))  # five run on the primary
    there = ledger(stands("worker-4", 4, "rented"))
    plan = made(wanted, there, free("worker-2", 9), free("worker-4", 0))
    assert list(map(summary, plan.changes)) == [("Resize", "worker-4/rented", 2), ("Place", "worker-2/near", 2)]


def found_no_node(there: Placement) -> Restraint:
    return Restraint(
        kind=RestraintKind.UNSCHEDULABLE,
        cluster=there.cluster,
        subset=there.subset,
        since=NOW,
        until=NOW + seconds(60),
        reason=f"3 of 4 replicas on {there.where} had no node for 30s",
        placement=there.name,
    )


def test_a_subset_that_is_held_back_keeps_what_it_has_and_gets_no_more() -> None:
    own, rented = stands("worker-2", 1, "own"), stands("worker-4", 3, "rented")
    there = ledger(own, rented, restraints={VLLM: (found_no_node(own),)})
    assert made(adaptive(OWN, RENTED), there, free("worker-2", 9), free("worker-4", 9)) == Plan()


def test_a_subset_that_is_held_back_gives_up_to_an_earlier_one_with_room_and_to_no_later_one() -> None:
    first = subset("first", named("worker-3"))
    own, rented = stands("worker-2", 2, "own"), stands("worker-4", 3, "rented")
    there = ledger(own, rented, restraints={VLLM: (found_no_node(own),)})
    plan = made(adaptive(first, OWN, RENTED), there, free("worker-2", 9), free("worker-3", 4), free("worker-4", 9))
    assert list(map(summary, plan.changes)) == [
        ("Revert", "worker-4/rented", 0),
        ("Resize", "worker-2/own", 1),
        ("Place", "worker-3/first", 4),
    ]


def test_replicas_that_wait_for_a_node_where_there_is_none_go_to_a_later_subset() -> None:
    stuck = stands("worker-2", 4, "own", created=NOW - timedelta(minutes=5))
    pending_pods = {stuck.name: PendingPods(shape=shape(), replicas=3)}
    full = free("worker-2", 0, bound={stuck.name: 1}, pending_pods=pending_pods)
    plan = made(fleet(OWN, RENTED), ledger(stuck), full, free("worker-4", 4))
    assert list(map(summary, plan.changes)) == [("Resize", "worker-2/own", 1), ("Place", "worker-4/rented", 3)]


def test_ordinals_of_a_stateful_set_stay_with_the_cluster_that_has_them() -> None:
    first = stands("worker-3", 1, "own")
    there = ledger(first, stands("worker-4", 3, "rented"))
    seen = free("worker-2", 9), free("worker-3", 2, bound={first.name: 1}), free("worker-4", 0)
    plan = made(numbered(OWN, RENTED), there, *seen)
    assert list(map(summary, plan.changes)) == [("Resize", "worker-4/rented", 1), ("Resize", "worker-3/own", 3)]


def test_the_most_gprs_of_a_workspace_are_counted_after_what_ends() -> None:
    there, seen = ledger(stands("worker-4", 4, "rented")), (free("worker-2", 3), free("worker-3", 2))
    for most, expected in (
        (2, [("Revert", "worker-4/rented", 0), ("Place", "worker-2/own", 3), ("Place", "worker-3/own", 1)]),
        (1, []),
    ):
        limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, most=most)}
        plan = made(replace(fleet(OWN, RENTED), limits=limits), there, *seen)
        assert list(map(summary, plan.changes)) == expected


def test_it_is_refused_while_nobody_sees_what_runs_on_the_primary_and_counts() -> None:
    there = ledger(stands("worker-4", 5, "rented"))
    blind = inputs(free("worker-2", 9), free("worker-4", 0), wanted=fleet(OWN, RENTED), there=there)
    with pytest.raises(InvalidInput, match=r"worker-1 .*, so the limits of its subsets are unknown"):
        rebalance(blind, VLLM, by="Ann")


def test_where_some_would_have_no_place_it_is_refused_with_what_would_change_that() -> None:
    there = ledger(stands("worker-4", 5, "gone"))
    with pytest.raises(InvalidInput, match=r"4 of its 5 replicas would have a place within WorkloadSpread demo/pools"):
        made(fleet(OWN), there, free("worker-2", 9), free("worker-4", 9))
