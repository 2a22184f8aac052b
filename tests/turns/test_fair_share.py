"""Room that is short: who gets it, who gives it back, and since when workloads count as waiting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.decide.turns.queue import Turn, _joined, _Rival
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import DemandHistory
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, MissingReplicas, Node, Pool, WorkloadObservation
from reconciler.model.demand import Sample
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement, RestraintKind
from reconciler.model.plan import Plan
from reconciler.model.policy import BurstPolicy, Renewal
from reconciler.model.workload import WorkloadRef
from tests.builders.gprs import binding, gpr_template
from tests.builders.inputs import NOW, desired, free, gpus, ledger, ordering, placement, plan, shape

MINUTE = timedelta(minutes=1)


def named(name: str) -> WorkloadId:
    """Name a workload of workspace `llm`, or of another one: ``other_name``."""
    workspace, _, workload = name.rpartition("_")
    return WorkloadId(WorkspaceName(workspace or "llm"), TemplateName(workload))


def crowd(**missing: tuple[int, timedelta]) -> ClusterObservation:
    """Observe a full primary by the missing replicas of each workload and their age; several ages in order."""
    seen = tuple(
        WorkloadObservation(
            ref=WorkloadRef(namespace="demo", name=name),
            wanted=1 + replicas,
            running=1,
            waiting=(MissingReplicas(replicas=replicas, since=NOW - age),),
            shape=shape(),
        )
        for name, (replicas, age) in missing.items()
    )
    return ClusterObservation(cluster=ClusterName("worker-1"), observed_at=NOW, workloads=seen)


def decided(
    primary: ClusterObservation,
    room: int,
    *there: Placement,
    policies: Mapping[str, BurstPolicy] | None = None,
    restraints: Mapping[WorkloadId, tuple[object, ...]] | None = None,
    bound: Mapping[str, int] | None = None,
    ready: Mapping[str, int] | None = None,
    workspaces: Mapping[str, Mapping[str, object]] | None = None,
    history: DemandHistory | None = None,
    runs: Collection[str] = (),
    **fields: object,
) -> Plan:
    workloads = [named(seen.ref.name) for seen in primary.workloads]
    usual = ordering("worker-2", renew=Renewal.WHILE_NEEDED)
    chosen = {workload: (policies or {}).get(workload.name, usual) for workload in workloads}
    running = {placed.name: placed.replicas for placed in there} if bound is None else bound
    node = Node(name="node-0", free=gpus(room), allocatable=gpus(16))
    seen = tuple(replace(seen, ref=replace(seen.ref, name=named(seen.ref.name).name)) for seen in primary.workloads)
    wanted = desired(workloads=workloads, policies=chosen, **fields)
    tenants = {name: replace(tenant, **(workspaces or {}).get(name, {})) for name, tenant in wanted.workspaces.items()}
    templates = {
        workload: replace(template, runs_once=workload.name in runs) for workload, template in wanted.templates.items()
    }
    return plan(
        replace(primary, workloads=seen),
        replace(free("worker-2", bound=running, ready=ready or {}), pools=(Pool(name="gpu", nodes=(node,)),)),
        wanted=replace(wanted, workspaces=tenants, templates=templates),
        there=ledger(*there, restraints=restraints or {}),
        history=history or {},
    )


def placed(made: Plan) -> dict[str, int]:
    """Return the replicas that each workload got."""
    gained: dict[str, int] = {}
    for change in made.changes:
        if change.action in (Action.PLACE, Action.RESIZE):
            gained[change.workload.name] = gained.get(change.workload.name, 0) + change.growth
    return gained


def ending(name: str, replicas: int, *, since: timedelta = 8 * MINUTE) -> Placement:
    """Make a burst of ten minutes that is due for renewal."""
    begun = placement("worker-2", replicas, workload=named(name), created=NOW - since)
    return replace(begun, expires_at=NOW + 2 * MINUTE)


def test_all_get_some_beside_one_that_wants_more_than_there_is() -> None:
    small = {f"small-{number}": (1, MINUTE) for number in range(8)}
    made = decided(crowd(hog=(12, 60 * MINUTE), **small), 10)
    assert placed(made) == {"hog": 2, **dict.fromkeys(small, 1)}
    assert len(made.changes) == 9
    reasons = {change.placement.workload.name: change.choice.because for change in made.changes}
    assert reasons == dict.fromkeys(["hog", *small], "room is shared with others that wait")
    (held,) = made.suppressed
    assert (held.workload.name, held.replicas) == ("hog", 10)


def test_where_there_is_room_for_all_each_goes_at_once_in_the_order_of_its_wait() -> None:
    made = decided(crowd(young=(3, MINUTE), old=(5, 60 * MINUTE)), 8)
    assert [(change.placement.workload.name, change.placement.replicas) for change in made.changes] == [
        ("old", 5),
        ("young", 3),
    ]
    assert not any(change.choice.because for change in made.changes)


def test_room_goes_to_who_has_least_of_what_it_needs() -> None:
    hog = placement("worker-2", 4, workload=named("hog"))
    made = decided(crowd(hog=(8, 60 * MINUTE), late=(4, 20 * MINUTE)), 4, hog)
    # Late gets two until both have half; then the hog, of which the fifth replica has waited longer, and late again.
    assert placed(made) == {"hog": 1, "late": 3}


def test_weight_of_a_policy_counts() -> None:
    policies = {"heavy": ordering("worker-2", weight=3)}
    made = decided(crowd(heavy=(12, MINUTE), light=(12, MINUTE)), 8, policies=policies)
    assert placed(made) == {"heavy": 6, "light": 2}


def test_priority_goes_before_shares() -> None:
    policies = {"first": ordering("worker-2", priority=1)}
    assert placed(decided(crowd(first=(6, MINUTE), other=(6, 60 * MINUTE)), 5, policies=policies)) == {"first": 5}


def test_who_had_its_turn_waits_from_then_on() -> None:
    primary = crowd(hog=(4, 120 * MINUTE), late=(4, 119 * MINUTE))
    assert placed(decided(primary, 1)) == {"hog": 1}
    turn = lifecycle.turn(ending("hog", 4), EndReason.EXPIRED, NOW - 5 * MINUTE, NOW - 5 * MINUTE)
    assert placed(decided(primary, 1, restraints={named("hog"): (turn,)})) == {"late": 1}
    # It holds nothing back.
    assert placed(decided(primary, 8, restraints={named("hog"): (turn,)})) == {"hog": 4, "late": 4}


@pytest.mark.parametrize(("others", "kinds"), [(2, [RestraintKind.TURN]), (0, [])])
def test_lapse_ends_a_turn_where_others_wait(others: int, kinds: list[RestraintKind]) -> None:
    over = replace(ending("hog", 1), expires_at=NOW)
    policies = {"hog": ordering("worker-2")}
    made = decided(crowd(hog=(1, 60 * MINUTE), other=(others, 5 * MINUTE)), 0, over, policies=policies)
    (ended,) = [change for change in made.changes if change.action is Action.REVERT]
    assert ended.why is EndReason.EXPIRED
    assert [ended.restraint.kind for _ in kinds if ended.restraint is not None] == kinds


def test_renewal_gives_back_what_others_have_less_of() -> None:
    made = decided(crowd(rich=(4, 60 * MINUTE), poor=(4, 5 * MINUTE)), 0, ending("rich", 4))
    shrunk, renewed = made.changes
    assert shrunk.action is Action.RESIZE
    assert (shrunk.before.replicas, shrunk.after.replicas) == (4, 2)
    assert shrunk.detail == "llm/rich has 4 of 4, and 2 replicas make room for llm/poor, which has 0 of 4"
    assert renewed.action is Action.EXTEND
    assert renewed.before == shrunk.after
    assert renewed.after.expires_at == NOW + 12 * MINUTE


def test_renewal_of_what_runs_once_gives_nothing_back() -> None:
    primary = crowd(has=(1, 600 * MINUTE), waits=(1, 5 * MINUTE))
    run, other = primary.workloads
    primary = replace(primary, workloads=(replace(run, running=0, held=True), other))
    made = decided(primary, 0, ending("has", 1, since=10 * MINUTE), runs=["has"])
    assert [change.action for change in made.changes] == [Action.EXTEND]


@pytest.mark.parametrize("serves", [0, 1])
def test_renewal_gives_back_what_serves_least(serves: int) -> None:
    bursts = ending("rich", 2), replace(ending("rich", 2, since=7 * MINUTE), expires_at=NOW + MINUTE)
    ready = {each.name: 2 if index == serves else 0 for index, each in enumerate(bursts)}
    made = decided(crowd(rich=(4, 60 * MINUTE), poor=(4, 5 * MINUTE)), 0, *bursts, ready=ready)
    (ended,) = [change for change in made.changes if change.action is Action.REVERT]
    assert ended.placement == bursts[1 - serves]
    (renewed,) = [change for change in made.changes if change.action is Action.EXTEND]
    assert renewed.before == bursts[serves]


def test_renewal_gives_nothing_back_for_those_who_get_the_room_of_pods_that_leave() -> None:
    primary = crowd(rich=(4, 60 * MINUTE), poor=(4, 5 * MINUTE))
    rich = ending("rich", 4)
    made = decided(primary, 0, rich, bound={rich.name: 4, "gone-12345678": 3})
    assert [change.action for change in made.changes] == [Action.EXTEND]


def test_renewal_gives_nothing_to_who_has_room() -> None:
    made = decided(crowd(rich=(4, 60 * MINUTE), poor=(2, 5 * MINUTE)), 2, ending("rich", 4))
    assert sorted(change.action for change in made.changes) == ["Extend", "Place"]


def turns(has: int, needs: int, *, begun: timedelta, waited: timedelta = 5 * MINUTE) -> Plan:
    primary = crowd(has=(needs, 600 * MINUTE), waits=(1, waited))
    return decided(primary, 0, ending("has", has, since=begun))


def test_two_that_cannot_divide_a_replica_take_turns() -> None:
    (ended,) = turns(1, 1, begun=10 * MINUTE).changes
    assert ended.action is Action.REVERT
    assert ended.why is EndReason.FAIR_SHARE
    assert ended.detail.endswith("1 replica makes room for llm/waits, which has 0 of 1; they take turns")
    assert ended.restraint is not None
    # One replica for two: it has had ten minutes, which are its part of twenty.
    assert (ended.restraint.kind, ended.restraint.until) == (RestraintKind.TURN, NOW + 10 * MINUTE)


def test_turn_lasts_until_it_is_as_much_ahead_as_a_turn_lasts() -> None:
    assert [change.action for change in turns(1, 1, begun=8 * MINUTE).changes] == [Action.EXTEND]


def test_nobody_with_nothing_waits_for_more_than_two_turns() -> None:
    assert [change.action for change in turns(1, 1, begun=8 * MINUTE, waited=20 * MINUTE).changes] == [Action.REVERT]


def test_who_has_no_more_than_its_share_does_not_yield() -> None:
    primary = crowd(large=(8, 600 * MINUTE), small=(1, 600 * MINUTE), waits=(1, 60 * MINUTE))
    small = placement("worker-2", 1, workload=named("small"))
    made = decided(primary, 0, ending("large", 1, since=60 * MINUTE), small)
    # One of eight is less than the fifth that all together have, however long the third one waits.
    assert [change.action for change in made.changes] == [Action.EXTEND]


@pytest.mark.parametrize("begun", [timedelta(), 8 * MINUTE, timedelta(days=10_000)])
@pytest.mark.parametrize("others", [1, 4, 2**31 - 1])
def test_burst_in_its_scale_down_window_keeps_its_last_replica_beside_those_that_have_nothing(
    begun: timedelta, others: int
) -> None:
    # The fair share is nothing, since none of those that miss replicas has any; scale-down ends the burst soon.
    lately = {named("has"): (Sample(at=NOW - 60 * MINUTE, missing=1),)}
    primary = crowd(has=(0, MINUTE), waits=(others, 60 * MINUTE))
    made = decided(primary, 0, ending("has", 1, since=begun), history=lately)
    assert not made.bugs
    assert [change.action for change in made.changes] == [Action.EXTEND]


def test_share_far_beyond_the_fair_one_is_ahead_by_the_longest_time() -> None:
    # The quotient of one and one of 2**31 makes more years of it than a date has.
    primary = crowd(has=(1, 600 * MINUTE), large=(2**31 - 1, 60 * MINUTE), waits=(1, 60 * MINUTE))
    made = decided(primary, 0, ending("has", 1, since=timedelta(days=10_000)))
    assert not made.bugs
    (ended,) = [change for change in made.changes if change.action is Action.REVERT]
    assert ended.restraint is not None
    assert ended.restraint.until == NOW + 60 * MINUTE


def test_time_of_an_end_is_kept_by_a_turn_that_lies_behind_it() -> None:
    begun: datetime = NOW - MINUTE
    assert lifecycle.turn(ending("has", 1), EndReason.FAIR_SHARE, NOW, begun).until == NOW


def test_workspaces_get_equal_room_whatever_their_workloads_ask_for() -> None:
    made = decided(crowd(a=(4, 60 * MINUTE), b=(4, 60 * MINUTE), c=(4, 60 * MINUTE), sim_run=(9, MINUTE)), 6)
    assert placed(made) == {"a": 1, "b": 1, "c": 1, "run": 3}


def test_weight_of_a_workspace_counts() -> None:
    made = decided(crowd(vllm=(9, 60 * MINUTE), sim_run=(9, MINUTE)), 8, workspaces={"sim": {"weight": 3}})
    assert placed(made) == {"vllm": 2, "run": 6}


def test_workspace_gets_its_quota_before_others_borrow() -> None:
    made = decided(crowd(vllm=(9, 60 * MINUTE), sim_run=(9, MINUTE)), 8, workspaces={"sim": {"quota": gpus(6)}})
    # Six are its own, and of the two beyond each gets one.
    assert placed(made) == {"vllm": 1, "run": 7}


def test_quota_that_is_not_used_is_borrowed() -> None:
    made = decided(crowd(vllm=(9, 60 * MINUTE), sim_run=(1, MINUTE)), 8, workspaces={"sim": {"quota": gpus(6)}})
    assert placed(made) == {"vllm": 7, "run": 1}


def test_borrowed_room_is_given_back_at_the_next_renewal() -> None:
    quotas = {"sim": {"quota": gpus(2)}, "llm": {"quota": gpus(2)}}
    primary = crowd(vllm=(4, 60 * MINUTE), sim_run=(4, MINUTE))
    made = decided(primary, 0, ending("vllm", 4), workspaces=quotas)
    assert placed(made) == {"vllm": -2}
    # Without a renewal that is due the loan stays, since it is not evictable.
    assert decided(primary, 0, placement("worker-2", 4, workload=named("vllm")), workspaces=quotas).changes == ()


def test_evictable_loan_is_given_back_at_once() -> None:
    quotas = {"sim": {"quota": gpus(2)}, "llm": {"quota": gpus(2)}}
    primary = crowd(one=(2, 60 * MINUTE), two=(2, 60 * MINUTE), sim_run=(4, MINUTE))
    there = [placement("worker-2", 2, workload=named(name), created=NOW - MINUTE) for name in ("one", "two")]
    tenants = (WorkspaceName("llm"), WorkspaceName("sim"))
    terms = {
        "gpr_templates": {"h100": gpr_template(priority=150, evictable=True)},
        "bindings": {name: replace(binding({"worker-2": "h100"})["llm"], workspace=name) for name in tenants},
    }
    made = decided(primary, 0, *there, workspaces=quotas, **terms)
    ends = [change for change in made.changes if change.action is Action.REVERT]
    assert [change.placement.workload.name for change in ends] == ["two"]
    assert ends[0].why is EndReason.PREEMPTED
    assert ends[0].detail == "llm has borrowed room that the quota of sim has a right to; it goes to sim/run"
    assert placed(made) == {"run": 2}


def test_no_more_than_the_loan_is_given_back_while_the_demand_of_the_borrower_is_unknown() -> None:
    quotas = {"sim": {"quota": gpus(4)}, "llm": {"quota": gpus(2), "primary": ClusterName("worker-3")}}
    there = [placement("worker-2", 2, workload=named(name), created=NOW - MINUTE) for name in ("one", "two")]
    tenants = (WorkspaceName("llm"), WorkspaceName("sim"))
    terms = {
        "gpr_templates": {"h100": gpr_template(priority=150, evictable=True)},
        "bindings": {name: replace(binding({"worker-2": "h100"})["llm"], workspace=name) for name in tenants},
    }
    primary = crowd(one=(2, 60 * MINUTE), two=(2, 60 * MINUTE), sim_run=(4, MINUTE))
    made = decided(primary, 0, *there, workspaces=quotas, **terms)
    assert placed(made) == {"run": 2}


class Hashed(str):  # noqa: SLOT000 -- texts have no slots
    """A name with a hash of its own, as each process gives it another one."""

    number: int

    def __hash__(self) -> int:
        return self.number


def hashed(name: str, number: int) -> ClusterName:
    made = Hashed(name)
    made.number = number
    return ClusterName(made)


@pytest.mark.parametrize("hashes", [(1, 2), (2, 1)])
def test_rivals_come_in_the_same_order_in_each_process(hashes: tuple[int, int]) -> None:
    west, east = map(hashed, ("west", "east"), hashes)

    def rival(name: str, *clusters: ClusterName) -> _Rival:
        turn = Turn(priority=0, since=NOW, workload=named(name), take=lambda: None)
        return _Rival(turn=turn, gained=0, short=1, clusters=frozenset(clusters))

    rivals = [rival("first", west), rival("second", east), rival("third", west, east)]
    (group,) = _joined({(0, each.clusters): [each] for each in rivals})
    assert [each.turn.workload.name for each in group] == ["second", "first", "third"]
