"""Bursts that clusters answer alike share the answers, and get no other plan than each by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.decide import decide
from reconciler.core.decide.distribution.webster import Claim, apportion
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.observe.demand import measure, next_history
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import Observed
from reconciler.model.cluster import ScalableNodes
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, Distribution, StrategyName
from reconciler.model.score import Score, ScorerName, ScorerWeight
from tests.builders.examples import examples
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
    seconds,
    shape,
    short,
    tenants,
)

WORKERS = ("worker-2", "worker-3", "worker-4")
WORKLOADS = tenants(4)


@st.composite
def policies(draw: st.DrawFn, name: str) -> BurstPolicy:
    limit = draw(st.sampled_from([None, None, 1, 3]))
    names = draw(st.permutations(WORKERS))
    least, most = draw(st.sampled_from([(0, None), (0, None), (0, 1), (0, 2), (2, None), (2, 2)]))
    strategy = draw(st.sampled_from(list(StrategyName)))
    distribution = Distribution(strategy=strategy, min_clusters=least, max_clusters=most)
    tolerations = (Toleration(key="team", operator="Exists"),)
    return ordering(
        *((name, limit) if limit else name for name in names),
        name=name,
        distribution=distribution,
        tolerations=draw(st.sampled_from([(), tolerations])),
        require_labels=draw(st.sampled_from([{}, {}, {"tier": "gold"}])),
        priority=draw(st.sampled_from([0, 0, 10])),
    )


@st.composite
def restraints(draw: st.DrawFn, workload: WorkloadId) -> tuple[Restraint, ...]:
    if not draw(st.integers(0, 3)):
        until, where = NOW + timedelta(minutes=5), ClusterName(draw(st.sampled_from(WORKERS)))
        own = Restraint(
            kind=RestraintKind.COOL_DOWN,
            cluster=where,
            since=NOW,
            until=until,
            reason="it failed",
            placement=PlacementName(workload.name),
        )
        return (own,)
    return ()


@st.composite
def situations(draw: st.DrawFn) -> PassInput:
    drawn = [draw(policies(f"policy-{number}")) for number in range(3)]
    governed = {workload: draw(st.sampled_from(drawn)) for workload in WORKLOADS}
    clusters = (
        cluster("worker-1"),
        cluster("worker-2", labels={"tier": "gold"}),
        cluster("worker-3", taints=draw(st.sampled_from([(), (Taint(key="team"),)]))),
        cluster("worker-4", labels={"tier": "gold"}),
    )
    wanted: Desired = desired(clusters=clusters, workloads=WORKLOADS, policies=governed)
    if draw(st.booleans()):
        name = WorkspaceName("vision")
        wanted = replace(
            wanted, limits={name: WorkspaceLimits(workspace=name, most=draw(st.integers(1, 4)), highest=300)}
        )
    shapes = [shape(1), shape(2), shape(1, node_selector={"gpu": "h100"})]
    home = replace(
        short(0),
        workloads=tuple(
            short(
                draw(st.integers(0, 6)),
                workload=workload,
                since=NOW - seconds(draw(st.sampled_from([45, 60, 90]))),
                replica=draw(st.sampled_from(shapes)),
            ).workloads[0]
            for workload in WORKLOADS
        ),
    )
    there = [
        placement(draw(st.sampled_from(WORKERS)), draw(st.integers(1, 3)), workload=workload)
        for workload in WORKLOADS
        if draw(st.booleans())
    ]
    nodes = st.lists(st.sampled_from([0, 0, 1, 2, 8]), min_size=1, max_size=3)
    seen = [free(name, *draw(nodes), bound={one.name: one.replicas for one in there}) for name in WORKERS]
    if draw(st.booleans()):
        seen[1] = replace(seen[1], healthy=False, message="etcd is down")
    held = {workload: own for workload in WORKLOADS if (own := draw(restraints(workload)))}
    return inputs(home, *seen, wanted=wanted, there=ledger(*there, restraints=held))


def apart(situation: PassInput) -> Plan:
    """Decide without any answer that workloads share."""
    with patch.object(CandidateFinder, "burst_kind", lambda *_: None):
        return decide(situation)


@given(situations())
@examples(2)
def test_shared_answers_change_no_plan(situation: PassInput) -> None:
    assert decide(situation) == apart(situation)


def test_burst_out_of_reach_of_its_bounds_says_so_after_one_like_it_that_lacks_room_alone() -> None:
    distribution = Distribution(strategy=StrategyName.WEIGHTED, min_clusters=2)
    policy = replace(ordering("worker-2", "worker-3"), distribution=distribution)
    large, small = WORKLOADS[0], WORKLOADS[2]
    wanted = desired(workloads=(large, small), policies=dict.fromkeys((large, small), policy))
    home = replace(short(0), workloads=(*short(40, workload=large).workloads, *short(4, workload=small).workloads))
    there = [placement(name, 1, workload=large) for name in ("worker-2", "worker-3")]
    there.append(placement("worker-3", 1, workload=small))
    seen = [
        free(name, 0, bound={own.name: own.replicas for own in there if own.cluster == name})
        for name in ("worker-2", "worker-3")
    ]
    plan = decide(inputs(home, *seen, wanted=wanted, there=ledger(*there)))
    assert {held.workload: held.reason for held in plan.suppressed} == {
        large: Reason.NOTHING_FITS,
        small: Reason.SPREAD_LIMIT,
    }


CHANGES = {
    "nodes": lambda seen, nodes: replace(seen, pools=free(seen.cluster, *nodes).pools),
    "health": lambda seen, _: replace(seen, healthy=not seen.healthy),
    "defaults": lambda seen, _: replace(seen, limit_ranges={"demo": gpus(1)}),
    "bound": lambda seen, _: replace(seen, bound={}),
}


@st.composite
def later(draw: st.DrawFn, before: PassInput) -> PassInput:
    """Draw what the next pass sees: most clusters as they were, some with other nodes, unwell, or not seen again."""
    now, clusters = before.now + seconds(draw(st.sampled_from([10, 60, 119]))), {}
    for name, seen in before.observed.clusters.items():
        seen_at = draw(st.sampled_from([now, now, now, seen.observed_at - seconds(5)]))
        change = draw(st.sampled_from([None, None, None, *CHANGES]))
        nodes = draw(st.lists(st.sampled_from([0, 1, 8]), min_size=1, max_size=3))
        changed = CHANGES[change](seen, nodes) if change is not None else seen
        clusters[name] = replace(changed, observed_at=seen_at)
    observed = Observed(clusters=clusters)
    demands = measure(before.desired, observed, next_history(before.demands), now)
    return replace(before, now=now, observed=observed, demands=demands)


def enrolled(situation: PassInput) -> PassInput:
    """Have a fleet in force as a daemon has, which keeps what follows from its files alone."""
    enrolment = Enrolment(situation.desired, situation.ledger.requests)
    return replace(situation, enrolment=enrolment, desired=enrolment.desired, reach=enrolment.reach)


@given(situations(), st.data())
@examples(2)
def test_refusals_that_are_kept_change_no_later_plan(situation: PassInput, data: st.DataObject) -> None:
    kept, memory = enrolled(situation), PassMemory()
    decide(kept, memory)
    after = data.draw(later(kept))
    assert decide(after, memory) == decide(enrolled(after))


def test_many_that_wait_ask_each_cluster_once() -> None:
    names = tuple(WorkloadId(WorkspaceName("llm"), TemplateName(f"vllm-{number:02d}")) for number in range(30))
    wanted = desired(workloads=names)
    home = replace(short(0), workloads=tuple(short(2, workload=name).workloads[0] for name in names))
    counted = []
    count = ClusterCapacity.count

    def counting(room: ClusterCapacity, *asked: object) -> int:
        counted.append(asked)
        return count(room, *asked)

    with patch.object(ClusterCapacity, "count", counting):
        plan = decide(inputs(home, free("worker-2", 0), free("worker-3", 0), wanted=wanted))
    assert len(plan.suppressed) == len(names)
    assert len(counted) == 2


SEEN = WORKERS[:2]


def balanced(*names: str) -> BurstPolicy:
    return replace(ordering(*names), distribution=Distribution(strategy=StrategyName.BALANCED))


def test_a_turn_asks_only_clusters_whose_room_has_changed() -> None:
    names = tuple(WorkloadId(WorkspaceName("llm"), TemplateName(f"vllm-{number:02d}")) for number in range(12))
    wanted = desired(workloads=names, policies=dict.fromkeys(names, balanced(*SEEN)))
    home = replace(short(0), workloads=tuple(short(1, workload=name).workloads[0] for name in names))
    counted, count = list[object](), ClusterCapacity.count

    def counting(room: ClusterCapacity, *asked: object) -> int:
        counted.append(asked)
        return count(room, *asked)

    with patch.object(ClusterCapacity, "count", counting):
        plan = decide(inputs(home, *(free(name, 8) for name in SEEN), wanted=wanted))
    assert len(plan.changes) == len(names)
    assert len(counted) == len(SEEN) + len(names) - 1


def test_a_bug_is_no_answer_to_others_of_the_kind() -> None:
    names = tuple(WorkloadId(WorkspaceName("llm"), TemplateName(f"vllm-{number}")) for number in range(2))
    wanted = desired(workloads=names, policies=dict.fromkeys(names, balanced(*SEEN)))
    home = replace(short(0), workloads=tuple(short(1, workload=name).workloads[0] for name in names))
    counted, count = list[object](), ClusterCapacity.count

    def failing_once(room: ClusterCapacity, *asked: object) -> int:
        counted.append(asked)
        return count(room, *asked) if len(counted) > 1 else 1 // 0

    with patch.object(ClusterCapacity, "count", failing_once):
        plan = decide(inputs(home, free("worker-2", 8), free("worker-3", 4), wanted=wanted))
    places = [change for change in plan.changes if change.action is Action.PLACE]
    assert [(change.placement.workload, change.placement.cluster) for change in places] == [
        (names[0], "worker-3"),
        (names[1], "worker-2"),
    ]
    assert [[refusal.reason for refusal in change.refused] for change in places] == [[Reason.BUG], []]


def test_next_pass_asks_no_cluster_that_has_not_changed() -> None:
    first, memory = enrolled(inputs(short(2), free("worker-2", 0), free("worker-3", 0))), PassMemory()
    decide(first, memory)
    seen = {name: replace(seen, observed_at=NOW + seconds(5)) for name, seen in first.observed.clusters.items()}
    seen[ClusterName("worker-3")] = free("worker-3", 0, 0)
    rooms = []
    with patch.object(ClusterCapacity, "count", lambda room, *_: rooms.append(room) or 0):
        decide(replace(first, now=NOW + seconds(5), observed=Observed(clusters=seen)), memory)
    assert len(rooms) == 1


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 50), st.integers(0, 5)), min_size=1, max_size=8),
    st.integers(0, 60),
)
def test_seats_go_to_the_largest_exact_claim(drawn: list[tuple[int, int, int]], more: int) -> None:
    claims = [
        Claim(weight=weight, most=most, rank=rank, seats=min(seats, most))
        for rank, (weight, most, seats) in enumerate(drawn)
    ]
    seats = [claim.seats for claim in claims]
    for _ in range(more):
        open_to = [place for place, claim in enumerate(claims) if claim.weight and seats[place] < claim.most]
        if not open_to:
            break
        bids = {
            place: (Fraction(-claims[place].weight, 2 * seats[place] + 1), seats[place], place) for place in open_to
        }
        seats[min(open_to, key=bids.__getitem__)] += 1
    assert apportion(more, claims) == tuple(seats)


def test_candidate_with_room_or_replicas_keeps_every_other_field() -> None:
    full = Candidate(
        cluster=ClusterName("worker-2"),
        subset="h100",
        rank=3,
        limit=4,
        least=1,
        weight=2,
        groups=("eu",),
        scores=(Score(scorer=ScorerName.PRICE, weight=1, value=50.0, detail="1 $"),),
        start=((shape(2), 1),),
        replicas=2,
        because="weight 2 of 3",
    )
    assert full.with_room(shape(1), 7, 4) == full._replace(shape=shape(1), fits=7, room=4)
    assert full.with_replicas(5, "weight 1 of 3") == full._replace(replicas=5, because="weight 1 of 3")


def test_bursts_in_other_orders_are_of_other_kinds_while_added_nodes_count() -> None:
    added = ScalableNodes(labels={}, taints=(), allocatable=gpus(8), most=2, delay=timedelta(minutes=5))
    growing = (cluster("worker-1"), *(cluster(name, autoscaling=(added,)) for name in WORKERS))
    policy = replace(ordering(*WORKERS), scoring=(ScorerWeight(name=ScorerName.CURRENT_CLUSTER),))
    workloads = tuple(workload for workload in WORKLOADS if workload.workspace == "llm")
    wanted = desired(clusters=growing, workloads=workloads, policies=dict.fromkeys(workloads, policy))
    there = [placement(name, 1, workload=workload) for name, workload in zip(WORKERS, workloads, strict=False)]
    situation = inputs(short(2), *(free(name, 0) for name in WORKERS), wanted=wanted, there=ledger(*there))
    finder = CandidateFinder(situation, WorkingPlan(situation))
    with finder.capacity.grown():
        kinds = [finder.burst_kind(wanted.templates[workload], shape(1)) for workload in workloads]
        again = [finder.burst_kind(wanted.templates[workload], shape(1)) for workload in workloads]
    assert len(set(kinds)) == len(workloads)
    assert kinds == again


def test_a_burst_whose_source_cannot_be_read_answers_for_no_other() -> None:
    wanted = desired()
    template = replace(wanted.templates[VLLM], unread="no manifest lies at apps/vllm")
    unread = inputs(wanted=replace(wanted, templates={VLLM: template}))
    assert CandidateFinder(unread, WorkingPlan(unread)).burst_kind(template, shape(1)) is None
