"""Who is more urgent gets the GPUs of who is less urgent and lets them go; of the fewest, and never back and forth."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import GprTerms, GpuAsk, WorkspaceLimits
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger, Placements
from reconciler.model.placement import Origin, Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired
from reconciler.model.request import Provisioning, RequestRecord
from tests.builders.gprs import LLM, binding, gpr_template, record, request, reservation
from tests.builders.inputs import NOW, VLLM, desired, free, gpus, inputs, ledger, ordering, placement, shape, short
from tests.builders.plans import begun


def asks(
    name: str, gpus: int = 4, *, priority: int = 50, evictable: bool = True, requeue: bool = True, **fields: object
) -> RequestRecord:
    terms = GprTerms(priority=priority, evictable=evictable, requeue=requeue)
    return record(request(name, ask=GpuAsk(gpus=gpus), terms=terms, **fields), received=NOW - timedelta(minutes=5))


def runs(known: RequestRecord, cluster: str = "worker-2", *, age: int = 60) -> tuple[RequestRecord, Placement]:
    """Let a request have been placed so many seconds ago."""
    began = NOW - timedelta(seconds=age)
    there = placement(
        cluster,
        1,
        workload=known.workload,
        shape=shape(known.request.ask.gpus if known.request.ask else 1),
        created=began,
        lasting=timedelta(days=7),
        origin=Origin.REQUEST,
    )
    return replace(known, began_at=began), there


def holding(*running: tuple[RequestRecord, Placement], waiting: Iterable[RequestRecord] = ()) -> Ledger:
    known = [*(one for one, _ in running), *waiting]
    return ledger(*(there for _, there in running), requests={one.workload: one for one in known})


def full(name: str, there: Ledger, *nodes: int) -> ClusterObservation:
    """Observe a cluster where everything that is placed has its nodes, and nodes have so much free."""
    mine = there.placements.on(ClusterName(name)).placements
    used = sum(one.replicas * (one.shape.requests.amounts["nvidia.com/gpu"] // 10**9) for one in mine)
    made = [Node(name="busy", free=gpus(0), allocatable=gpus(used))]
    made += [
        Node(name=f"node-{index}", free=gpus(free_gpus), allocatable=gpus(8)) for index, free_gpus in enumerate(nodes)
    ]
    bound = {one.name: one.replicas for one in mine}
    return ClusterObservation(
        cluster=ClusterName(name), observed_at=NOW, pools=(Pool(name="p", nodes=tuple(made)),), bound=bound
    )


def evicted(plan: Plan) -> list[str]:
    return [
        one.placement.workload.name
        for one in plan.changes
        if one.action is Action.REVERT and one.why is EndReason.PREEMPTED
    ]


def placed(plan: Plan) -> list[tuple[str, str]]:
    return [(placement.workload.name, placement.cluster) for placement in begun(plan)]


def after(
    there: Ledger, *nodes: int, wanted: Desired | None = None, others: tuple[ClusterObservation, ...] = ()
) -> Plan:
    return decide(inputs(full("worker-2", there, *nodes), *others, wanted=wanted, there=there))


def test_a_more_urgent_request_takes_the_gpus_of_one_that_lets_them_go() -> None:
    there = holding(runs(asks("low")), waiting=[asks("high", priority=250)])
    made = after(there)
    revert, amend, place = made.changes
    assert revert.action is Action.REVERT
    assert (revert.why, revert.detail) == (
        EndReason.PREEMPTED,
        "its priority is 50, and it makes room for llm/high of priority 250",
    )
    assert amend.action is Action.AMEND
    assert (amend.record.evicted_by, amend.record.began_at, amend.record.attempts) == ("llm/high", None, 1)
    assert place.action is Action.PLACE
    assert place.placement.workload.name == "high"
    assert {one.workload.name for one in made.suppressed} >= {"low"}


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (asks("low", evictable=False), asks("high", priority=250)),
        (asks("low", priority=250), asks("high", priority=250)),
        (asks("low", priority=251), asks("high", priority=250)),
        (asks("low"), asks("high", 8, priority=250)),
    ],
    ids=["it does not let them go", "it is as urgent", "it is more urgent", "it has too little"],
)
def test_nobody_is_evicted_when(low: RequestRecord, high: RequestRecord) -> None:
    assert not evicted(after(holding(runs(low), waiting=[high])))


def test_nobody_is_evicted_where_there_is_room() -> None:
    made = after(holding(runs(asks("low")), waiting=[asks("high", priority=250)]), 4)
    assert not evicted(made)
    assert placed(made) == [("high", "worker-2")]


@pytest.mark.parametrize(("evicts", "gone"), [(True, ["low"]), (False, [])])
def test_a_workspace_says_whether_its_gprs_evict(evicts: bool, gone: list[str]) -> None:
    wanted = desired(limits={LLM: WorkspaceLimits(workspace=LLM, evicts=evicts, most=100)})
    there = holding(runs(asks("low")), waiting=[asks("high", priority=250)])
    assert evicted(after(there, wanted=wanted)) == gone


def test_the_least_urgent_and_youngest_goes_first() -> None:
    running = [
        runs(asks("urgent", priority=90)),
        runs(asks("old", priority=10), age=90),
        runs(asks("young", priority=10), age=30),
    ]
    assert evicted(after(holding(*running, waiting=[asks("high", priority=250)]))) == ["young"]


def test_of_one_priority_the_one_that_serves_least_goes_before_a_younger_one() -> None:
    there = holding(runs(asks("old"), age=90), runs(asks("young"), age=60), waiting=[asks("urgent", priority=90)])
    ready = {each.name: int(each.workload.name == "young") for each in there.placements.values()}
    seen = replace(full("worker-2", there), ready=ready)
    made = decide(inputs(free("worker-1"), seen, there=there).with_requests(there.requests))
    assert evicted(made) == ["old"]


def test_as_few_as_possible_go() -> None:
    running = [runs(asks("small", 2, priority=10)), runs(asks("large", 8, priority=90))]
    assert evicted(after(holding(*running, waiting=[asks("high", 8, priority=250)]))) == ["large"]


def test_several_go_where_it_takes_several_and_none_that_it_does_not() -> None:
    running = [
        runs(asks("a", 2, priority=10), age=10),
        runs(asks("b", 4, priority=20), age=20),
        runs(asks("c", 4, priority=30)),
    ]
    made = after(holding(*running, waiting=[asks("high", 8, priority=250)]))
    assert sorted(evicted(made)) == ["b", "c"]
    assert placed(made) == [("high", "worker-2")]
    detail = next(one.detail for one in made.changes if one.action is Action.REVERT)
    assert "makes room with 1 other for llm/high" in detail


def test_what_is_evicted_moves_where_there_is_room_in_the_same_pass() -> None:
    low = asks("low", clusters=("worker-2", "worker-3"), placements=1)
    there = holding(runs(low), waiting=[asks("high", priority=250)])
    made = after(there, others=(free("worker-3", 4),))
    assert evicted(made) == ["low"]
    assert placed(made) == [("high", "worker-2"), ("low", "worker-3")]


def test_what_may_not_wait_and_finds_no_other_place_has_failed() -> None:
    made = after(holding(runs(asks("low", requeue=False)), waiting=[asks("high", priority=250)]))
    (close,) = [one for one in made.changes if one.action is Action.CLOSE]
    assert close.record.ended is not None
    assert (close.record.ended.status, close.record.ended.message) == (
        Provisioning.FAILED,
        "evicted by llm/high, and no other cluster has room",
    )
    assert "low" not in {one.workload.name for one in made.suppressed}


def test_what_waits_again_comes_back_when_there_is_room() -> None:
    low = replace(asks("low"), evicted_by="llm/high", attempts=1)
    there = holding(runs(asks("high", priority=250)), waiting=[low])
    assert not placed(after(there))
    assert placed(after(there, 4)) == [("low", "worker-2")]


def test_the_middle_evicts_the_lowest_when_the_highest_evicts_it() -> None:
    middle = asks("middle", priority=150, clusters=("worker-2", "worker-3"), placements=1)
    low = asks("low", priority=10, clusters=("worker-3",))
    there = holding(runs(middle), runs(low, "worker-3"), waiting=[asks("high", priority=250)])
    made = after(there, others=(full("worker-3", there),))
    assert evicted(made) == ["middle", "low"]
    assert placed(made) == [("high", "worker-2"), ("middle", "worker-3")]


def test_a_burst_evicts_as_its_gpr_template_says_and_for_all_that_it_lacks() -> None:
    wanted = desired(
        ordering("worker-2"),
        gpr_templates={"h100": gpr_template(priority=250)},
        bindings=binding({"worker-2": "h100"}),
    )
    there = holding(runs(asks("a", 4)), runs(asks("b", 4), age=30))
    primary = short(2, replica=shape(4))
    made = after(there, wanted=wanted, others=(primary,))
    assert sorted(evicted(made)) == ["a", "b"]
    (change,) = [one for one in made.changes if one.action is Action.PLACE]
    assert (change.placement.workload, change.placement.replicas) == (VLLM, 2)


def test_an_evicted_burst_stays_away_from_that_cluster_for_its_cool_down_and_from_no_other() -> None:
    wanted = desired(
        gpr_templates={"h100": gpr_template(priority=20, evictable=True)}, bindings=binding({"worker-2": "h100"})
    )
    there = ledger(placement(replicas=1, shape=shape(4)))
    waiting = asks("high", priority=250)
    there = replace(there, requests={waiting.workload: waiting})
    made = after(there, wanted=wanted, others=(short(1, replica=shape(4)),))
    (revert,) = [one for one in made.changes if one.action is Action.REVERT]
    assert revert.restraint is not None
    assert revert.restraint.cluster == "worker-2"


ASKS = st.builds(
    lambda gpus, priority, evictable, requeue, anywhere: (gpus, priority, evictable, requeue, anywhere),
    st.integers(1, 8),
    st.sampled_from([10, 60, 110, 160, 210, 260]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(ASKS, min_size=1, max_size=7), st.lists(st.integers(1, 8), min_size=2, max_size=4))
def test_eviction_comes_to_an_end_whoever_asks_for_what(
    wanted: list[tuple[int, int, bool, bool, bool]], sizes: list[int]
) -> None:
    """Requests come one a pass and get their nodes at once; then passes go on until one changes nothing."""
    there = ledger()
    asked = [
        asks(
            f"r{index}",
            number,
            priority=priority,
            evictable=evictable,
            requeue=requeue,
            clusters=("worker-2", "worker-3") if anywhere else ("worker-2",),
            placements=1,
        )
        for index, (number, priority, evictable, requeue, anywhere) in enumerate(wanted)
    ]
    half = max(1, len(sizes) // 2)
    clusters = {ClusterName("worker-2"): sizes[:half], ClusterName("worker-3"): sizes[half:]}
    evictions = quiet = 0
    for number in range(len(asked) * (len(asked) + 2) + 2):
        now = NOW + timedelta(seconds=number)
        if number < len(asked):
            new = asked[number]
            there = replace(there, requests={**there.requests, new.workload: new})
        seen = [crowded(name, nodes, there.placements, now) for name, nodes in clusters.items()]
        given = inputs(*seen, wanted=desired(policies={}), there=there, now=now)
        made = decide(given)
        for change in made.changes:
            if change.action is Action.REVERT:
                assert change.why is EndReason.PREEMPTED
                assert urgency(there, change.placement.workload) < max(urgency(there, one) for one in there.requests)
        evictions += len(evicted(made))
        there = WorkingPlan.after(given, made).ledger()
        quiet = 0 if made.changes or number < len(asked) else quiet + 1
        if quiet:
            break
    assert quiet, "it never came to rest"
    assert evictions <= len(asked) * len(asked)


def urgency(there: Ledger, workload: WorkloadId) -> int:
    return there.requests[workload].request.terms.priority


def crowded(name: ClusterName, sizes: list[int], placements: Placements, now: object) -> ClusterObservation:
    """Observe nodes of these sizes with the placements bound first-fit; what has no room there is not bound."""
    free_gpus, bound = list(sizes), {}
    for one in placements.on(name).placements:
        needed = one.shape.requests.amounts["nvidia.com/gpu"] // 10**9
        index = next((at for at, free in enumerate(free_gpus) if free >= needed), None)
        if index is not None:
            free_gpus[index] -= needed
            bound[one.name] = 1
    nodes = (
        Node(name=f"n{index}", free=gpus(free), allocatable=gpus(sizes[index])) for index, free in enumerate(free_gpus)
    )
    pool = Pool(name="p", nodes=tuple(nodes))
    return ClusterObservation(cluster=name, observed_at=now, pools=(pool,), bound=bound)


def test_a_reservation_takes_the_gpus_of_who_lets_them_go() -> None:
    asked = reservation(gpus=4)
    waiting = record(replace(asked, terms=GprTerms(priority=250, exit_duration=timedelta(hours=1))))
    made = after(holding(runs(asks("low")), waiting=[waiting]))
    assert evicted(made) == ["low"]
    reserved = [one.record.cluster for one in made.changes if one.action is Action.AMEND and one.record.cluster]
    assert reserved == ["worker-2"]


def test_a_reservation_evicts_on_the_primary_which_it_may_use_as_any_cluster() -> None:
    """The primary need not be among `spec.clusters`, and a reservation that names none may be there all the same."""
    terms = GprTerms(priority=250, exit_duration=timedelta(hours=1))
    asked = record(replace(reservation(gpus=4), clusters=(), terms=terms))
    low, there = runs(asks("low"))
    low = replace(low, request=replace(low.request, workspace=WorkspaceName("vision")))
    there = replace(there, workload=low.workload)
    wanted = desired(workloads=(VLLM, low.workload._replace(request=False)), policies={})
    tenant = replace(wanted.workspaces[LLM], primary=ClusterName("worker-2"), clusters=(ClusterName("worker-3"),))
    wanted = replace(wanted, workspaces={**wanted.workspaces, LLM: tenant})
    made = after(holding((low, there), waiting=[asked]), wanted=wanted)
    assert evicted(made) == ["low"]
    assert [one.record.cluster for one in made.changes if one.action is Action.AMEND][-1] == "worker-2"


@pytest.mark.parametrize(("free_beside", "gone"), [(4, []), (8, ["low"])], ids=["its own first one holds it", "enough"])
def test_a_reservation_evicts_nobody_for_room_that_another_of_its_workspace_holds(
    free_beside: int, gone: list[str]
) -> None:
    hour = timedelta(hours=1)
    first = replace(reservation("held", gpus=4), terms=GprTerms(exit_duration=hour))
    held = record(first, began_at=NOW - timedelta(minutes=2), cluster=ClusterName("worker-2"))
    more = record(replace(reservation("more", gpus=8), terms=GprTerms(priority=250, exit_duration=hour)))
    low, there = runs(asks("low"))
    low = replace(low, request=replace(low.request, workspace=WorkspaceName("vision")))
    there = replace(there, workload=low.workload)
    known = holding((low, there), waiting=[held, more])
    shared = Node(name="shared", free=gpus(free_beside), allocatable=gpus(free_beside + 4))
    seen = ClusterObservation(
        cluster=ClusterName("worker-2"),
        observed_at=NOW,
        pools=(Pool(name="p", nodes=(shared,)),),
        bound={there.name: 1},
    )
    wanted = desired(workloads=(VLLM, low.workload._replace(request=False)), policies={})
    assert evicted(decide(inputs(seen, wanted=wanted, there=known))) == gone


@pytest.mark.parametrize("lets_go", [True, False])
def test_what_fits_goes_before_who_is_more_urgent_and_does_not_fit_until_it_is_evicted(lets_go: bool) -> None:
    seen = ClusterObservation(
        cluster=ClusterName("worker-2"),
        observed_at=NOW,
        pools=(Pool(name="p", nodes=(Node(name="half", free=gpus(4), allocatable=gpus(8)),)),),
    )
    small, big = asks("small", 4, evictable=lets_go), asks("big", 8, priority=250)
    assert placed(decide(inputs(seen, there=holding(waiting=[big, small])))) == [("small", "worker-2")]
    assert evicted(after(holding(runs(small), runs(asks("other", 4)), waiting=[big]))) == (
        ["small", "other"] if lets_go else []
    )


@pytest.mark.parametrize(
    ("nodes", "low", "high", "gone"),
    [
        ([(4, 8), (0, 8)], [4], 8, []),
        ([(4, 8), (8, 8)], [4], 16, []),
        ([(4, 8), (8, 16)], [8], 16, ["low0"]),
        ([(0, 8), (0, 8)], [8], 8, ["low0"]),
        ([(4, 8), (4, 8)], [4], 8, ["low0"]),
        ([(4, 8), (4, 8), (0, 8)], [4], 8, []),
        ([(0, 8), (0, 8)], [4, 4], 8, []),
        ([(0, 8)], [4, 4], 8, ["low0", "low1"]),
        ([(0, 8), (0, 8)], [4, 4, 4], 8, ["low0", "low1", "low2"]),
    ],
    ids=[
        "it may be on the other node", "no node is large enough", "there is one node that it can be on",
        "wherever it is", "wherever it is, with what is free there", "one of the nodes has too little beside it",
        "they may be on two nodes", "they are on one node", "two of three are on one node",
    ],
)  # fmt: skip # a table, a row a line
def test_who_is_evicted_makes_room_wherever_it_was(
    nodes: list[tuple[int, int]], low: list[int], high: int, gone: list[str]
) -> None:
    running = [runs(asks(f"low{index}", number)) for index, number in enumerate(low)]
    there = holding(*running, waiting=[asks("high", high, priority=250)])
    made = tuple(
        Node(name=f"node-{index}", free=gpus(free_gpus), allocatable=gpus(of))
        for index, (free_gpus, of) in enumerate(nodes)
    )
    bound = {one.name: 1 for _, one in running}
    pools = (Pool(name="p", nodes=made),)
    seen = ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=pools, bound=bound)
    plan = decide(inputs(seen, there=there))
    assert sorted(evicted(plan)) == gone
    assert placed(plan) == ([("high", "worker-2")] if gone else [])
