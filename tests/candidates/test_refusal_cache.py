"""Many that wait are told what others like them were told; that is quicker, and never another story."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.decide.candidates.finder import CandidateFinder, RefusalCache, why_not
from reconciler.core.decide.candidates.free_capacity import FleetCapacity, Mark
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.burst_turns import burst_turns
from reconciler.core.decide.steps.place_requests import request_turns
from reconciler.core.decide.steps.preempt import Preemption
from reconciler.core.decide.steps.reserve import reservation_turns
from reconciler.core.decide.turns.fair_share import FairShares
from reconciler.core.decide.turns.queue import serve
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.gpr import GprTerms, WorkspaceLimits
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.placement import Origin, Placement
from reconciler.model.plan import Plan, Reason, Refusal
from reconciler.model.policy import Availability, Workspace
from reconciler.model.request import Request, RequestRecord
from reconciler.model.workload import DeploySpec
from tests.builders.examples import examples
from tests.builders.inputs import NOW, cluster, free, inputs, ordering, placement, shape, short, template
from tests.builders.requests import deployment, gpus, holds, manifests, record, request, wants

CLUSTERS = tuple(ClusterName(f"worker-{number}") for number in (1, 2, 3))
SPACES = (WorkspaceName("llm"), WorkspaceName("vision"))


class Unshared(FleetCapacity):
    """Capacity of which no cluster has answered before."""

    def moment(self, cluster: ClusterName) -> Hashable:
        return object()

    @property
    def mark(self) -> Mark:
        return next(self._marks), 0, 0

    def changed_since(self, mark: Mark) -> None:
        return None

    _marks = count()

    def room(self, *asked: Any, **without: Any) -> ClusterCapacity:
        return super().room(*asked, **without).copy()


class Forgetful(CandidateFinder):
    """A finder that works everything out anew: no two states are the same to it."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        super().__init__(inputs, working_plan)
        self.capacity = Unshared(inputs, working_plan)

    def state(self, cluster: ClusterName, workspace: WorkspaceName | None = None) -> Hashable:
        return object()

    def moment(self) -> Hashable:
        return object()


class Watched(FleetCapacity):
    """Rooms that count how often one is worked out without those who would have to go."""

    looks = 0

    def room(self, *asked: Any, **without: Any) -> ClusterCapacity:
        self.looks += bool(without.get("without"))
        return super().room(*asked, **without)


def waits_out(
    one: PassInput, growing: type[CandidateFinder], rooms: type[FleetCapacity] | None = None
) -> tuple[Plan, FleetCapacity]:
    """Give out what is free to all who wait, as a pass does; the rooms are those that it was given out of."""
    one = one.with_requests(one.ledger.requests)
    working_plan = WorkingPlan(one)
    finder = growing(one, working_plan)
    finder.capacity = rooms(one, working_plan) if rooms is not None else finder.capacity
    shares = FairShares(one, working_plan)
    waiting = [
        *burst_turns(one, working_plan, finder, shares),
        *request_turns(one, working_plan, finder),
        *reservation_turns(one, working_plan, finder),
    ]
    preemption = Preemption(inputs=one, working_plan=working_plan, finder=finder, shares=shares)
    serve(waiting, preemption.make_room)
    return working_plan.plan(), finder.capacity


terms = st.builds(GprTerms, priority=st.sampled_from([50, 101, 200]), evictable=st.booleans(), requeue=st.booleans())
named = st.lists(st.sampled_from(CLUSTERS), unique=True, max_size=3).map(tuple)
specs = st.sampled_from([manifests(deployment(1, 1)), manifests(deployment(2, 1)), manifests(deployment(1, 4))])
asks = st.sampled_from([None, gpus(1), gpus(2, 2), gpus(4)])


@st.composite
def asked(draw: st.DrawFn, name: str) -> Request:
    clusters = draw(named)
    return request(
        *clusters,
        name=name,
        workspace=draw(st.sampled_from(SPACES)),
        spec=draw(specs),
        ask=draw(asks),
        terms=draw(terms),
        placements=draw(st.sampled_from([None, 1, 2])) if clusters else 1,
    )


def of_its_own(one: Request) -> Request:
    """Have a request deploy an object of its own name, so that others may be where it is."""
    (made,) = one.spec.manifests
    manifest = {**made.manifest, "metadata": {**made.manifest["metadata"], "name": one.name}}
    return replace(one, spec=manifests(manifest))


@st.composite
def records(draw: st.DrawFn) -> tuple[RequestRecord, ...]:
    """Draw requests that wait, of which many are alike, and reservations."""
    found = []
    kinds = [draw(asked("kind")) for _ in range(draw(st.integers(1, 3)))]
    for number in range(draw(st.integers(2, 12))):
        one = replace(draw(st.sampled_from(kinds)), name=TemplateName(f"r-{number}"), terms=draw(terms))
        one = of_its_own(one) if draw(st.booleans()) else one
        since = NOW - timedelta(seconds=draw(st.integers(0, 3)))
        avoids = draw(st.sampled_from([(), (), (), CLUSTERS[:1], CLUSTERS[1:2]]))
        found.append(record(one, at=since, avoids=avoids, attempts=len(avoids)))
    for number in range(draw(st.integers(0, 2))):
        where, began = draw(st.sampled_from(CLUSTERS)), draw(st.booleans())
        hold = request(
            where, name=f"hold-{number}", workspace=draw(st.sampled_from(SPACES)), spec=DeploySpec(), ask=gpus(2)
        )
        held = {"cluster": where, "began_at": NOW - timedelta(minutes=1)} if began else {}
        found.append(record(replace(hold, placements=1), at=NOW - timedelta(minutes=2), **held))
    return tuple(found)


@st.composite
def standing_ones(draw: st.DrawFn) -> tuple[tuple[RequestRecord, ...], tuple[Placement, ...]]:
    """Draw requests that have a placement, of which some give way to others."""
    known, placed = [], []
    for number in range(draw(st.integers(0, 8))):
        one = replace(draw(asked(f"s-{number}")), spec=manifests(deployment(1, 1)), ask=None)
        where = draw(st.sampled_from(CLUSTERS))
        one = of_its_own(replace(one, clusters=(where,), placements=1))
        known.append(record(one, at=NOW - timedelta(minutes=5), began_at=NOW - timedelta(minutes=2)))
        made = placement(where, 1, workload=one.workload, lasting=timedelta(minutes=9), origin=Origin.REQUEST)
        placed.append(made)
    return tuple(known), tuple(placed)


def used(seen: ClusterObservation) -> ClusterObservation:
    """Have what is not free of nodes of eight GPUs be used, so that it comes free when somebody goes."""
    pools = (replace(pool, nodes=tuple(map(of_eight, pool.nodes))) for pool in seen.pools)
    return replace(seen, pools=tuple(pools))


def of_eight(node: Node) -> Node:
    return replace(node, allocatable=shape(8).requests)


@st.composite
def situations(draw: st.DrawFn) -> PassInput:
    waiting, (placed, there) = draw(records()), draw(standing_ones())
    bursts = [WorkloadId(SPACES[0], TemplateName(name)) for name in ("burst-a", "burst-b")]
    taints = draw(st.sampled_from([(), (Taint(key="team"),)]))
    availability = draw(st.sampled_from([Availability.ACTIVE, Availability.CORDONED]))
    clusters = (
        cluster(CLUSTERS[0]),
        cluster(CLUSTERS[1], taints=taints),
        cluster(CLUSTERS[2], availability=availability),
    )
    workspaces = {name: Workspace(name=name, primary=CLUSTERS[0], clusters=CLUSTERS) for name in SPACES}
    limits = {SPACES[0]: WorkspaceLimits(workspace=SPACES[0], most=draw(st.integers(1, 6)), highest=300)}
    wanted = replace(
        wants(*(one.request for one in (*waiting, *placed)), clusters=clusters),
        workspaces=workspaces,
        limits=limits if draw(st.booleans()) else {},
        templates={one: template(one) for one in bursts},
        policies=dict.fromkeys(bursts, ordering("worker-2", "worker-3")),
    )
    nodes = st.lists(st.sampled_from([0, 0, 0, 0, 1, 2, 8]), min_size=1, max_size=3)
    home = replace(
        short(1, workload=bursts[0]),
        workloads=tuple(short(draw(st.integers(0, 3)), workload=one).workloads[0] for one in bursts),
        pools=free("worker-1", *draw(nodes)).pools,
    )
    bound = {one.name: 1 for one in there}
    seen = [used(one) for one in (home, *(free(name, *draw(nodes)) for name in CLUSTERS[1:]))]
    if draw(st.booleans()):
        seen[2] = replace(seen[2], healthy=False)
    seen = [replace(one, bound=bound) for one in seen]
    return inputs(*seen, wanted=wanted, there=holds(*waiting, *placed, placed=there))


@given(situations())
@examples(3)
def test_what_others_were_told_changes_no_plan(one: PassInput):
    assert waits_out(one, CandidateFinder)[0] == waits_out(one, Forgetful)[0]


def evicting(clusters: int, urgent: int) -> int:
    """Count the looks at rooms without others where so many are urgent, and each cluster is full of who is not."""
    names = tuple(f"worker-{number}" for number in range(2, 2 + clusters))

    def ask(name: str, priority: int) -> Request:
        terms = GprTerms(priority=priority, evictable=priority < 200, requeue=True)
        return of_its_own(request(*names, name=name, ask=gpus(4), terms=terms, placements=1))

    low = [ask(f"low-{name}-{number}", 50) for name in names for number in range(4)]
    running = [
        placement(name, 1, workload=one.workload, shape=shape(4), lasting=timedelta(days=1), origin=Origin.REQUEST)
        for one, name in zip(low, [name for name in names for _ in range(4)], strict=True)
    ]
    waiting = [record(ask(f"high-{number}", 250)) for number in range(urgent)]
    known = [*(record(one, began_at=NOW - timedelta(minutes=1)) for one in low), *waiting]
    made = [cluster("worker-1"), *(cluster(name) for name in names)]
    full = [Node(name=f"n-{one}", free=shape(0).requests, allocatable=shape(4).requests) for one in "abcd"]
    seen = [
        replace(
            free(name),
            pools=(Pool(name="p", nodes=tuple(full)),),
            bound={one.name: 1 for one in running if one.cluster == name},
        )
        for name in names
    ]
    wanted = wants(*(one.request for one in known), clusters=made)
    plan, rooms = waits_out(inputs(*seen, wanted=wanted, there=holds(*known, placed=running)), CandidateFinder, Watched)
    assert len({change.placement.path for change in plan.changes if change.action is Action.REVERT}) == urgent
    assert isinstance(rooms, Watched)
    return rooms.looks


def test_an_eviction_has_no_other_cluster_looked_at_again() -> None:
    more = {clusters: evicting(clusters, 4) - evicting(clusters, 1) for clusters in (5, 10)}
    assert more[5] == more[10] > 0


@st.composite
def doings(draw: st.DrawFn) -> list[tuple[str, ReplicaShape, int]]:
    shapes = st.builds(shape, st.integers(1, 4), group_size=st.integers(1, 2), apart=st.booleans())
    return draw(st.lists(st.tuples(st.sampled_from(["take", "give", "ask"]), shapes, st.integers(1, 5)), max_size=12))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=4), doings())
def test_a_room_answers_as_one_that_was_never_asked_before(nodes: list[int], done: list[tuple[str, ReplicaShape, int]]):
    seen: ClusterObservation = free("worker-2", *nodes)
    room, again = ClusterCapacity(seen), ClusterCapacity(replace(seen, pools=tuple(seen.pools)))
    for what, wanted, number in done:
        if what == "take":
            room.take(wanted, number)
        elif what == "give":
            room.release(wanted, number)
        fresh = room.copy()
        assert room.count(wanted, number) == fresh.count(wanted, number) == room.count(wanted, number)
        assert room.shortfall(wanted) == fresh.shortfall(wanted) == room.shortfall(wanted)
    # What was taken of one room is not missing in another one of the same nodes.
    for _, wanted, number in done:
        assert again.count(wanted, number) == ClusterCapacity(free("worker-2", *nodes)).count(wanted, number)


refused = st.builds(
    Refusal,
    cluster=st.sampled_from(CLUSTERS),
    reason=st.sampled_from([Reason.NO_CAPACITY, Reason.GPR_LIMIT, Reason.HELD, Reason.COOLING_DOWN, Reason.CORDONED]),
    message=st.sampled_from(["a", "b"]),
)


@given(st.lists(refused, max_size=3).map(tuple), st.lists(st.sampled_from(["1 of 2 fit", "2 of 2 fit"]), max_size=3))
def test_shared_refusals_have_the_same_words_for_each_workload(refusals: tuple[Refusal, ...], each: list[str]) -> None:
    cache = RefusalCache()
    assert [cache.why_not(refusals, otherwise) for otherwise in each] == [why_not(refusals, words) for words in each]
