"""The work of a pass is bounded by what can be placed, whatever numbers clusters and tenants state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.node import separate_groups
from reconciler.core.decide.candidates.own_objects import OwnObjects
from reconciler.core.decide.decide import decide
from reconciler.core.decide.distribution.webster import Claim, apportion
from reconciler.core.decide.state.pass_input import given_up
from reconciler.model.capacity import ClusterObservation, MissingReplicas, Node, Pool, ReplicaShape, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.plan import UNTRIED, Plan
from reconciler.model.policy import Distribution, Renewal, StrategyName
from reconciler.model.units import Resources
from reconciler.model.workload import WorkloadRef
from tests.builders.counted_work import TooMuchWork, within
from tests.builders.inputs import NOW, desired, free, gpus, inputs, ledger, ordering, placement, shape, tenants
from tests.builders.requests import deployment, holds, manifests, record, request, wants

MOST = 2**31 - 1
NUMBERS = st.sampled_from([0, 1, 3, 200, MOST, MOST + 1, 10**18])
MINUTE = timedelta(minutes=1)
NAMES = tenants(2)[::2] + tenants(1)[1:]


def short_by(missing: Sequence[int], of: ReplicaShape) -> ClusterObservation:
    """Observe a full primary that misses so many replicas of each workload."""
    workloads = tuple(
        WorkloadObservation(
            ref=WorkloadRef(namespace="demo", name=name.name),
            wanted=1 + number,
            running=1,
            waiting=(MissingReplicas(replicas=number, since=NOW - 60 * MINUTE),),
            shape=of,
        )
        for name, number in zip(NAMES, missing, strict=False)
    )
    return ClusterObservation(cluster=ClusterName("worker-1"), observed_at=NOW, workloads=workloads)


def decided(missing: Sequence[int], has: int, *, strategy: StrategyName, copy: int | None, empty: bool) -> Plan:
    names = NAMES[: len(missing)]
    of = replace(shape(), requests=Resources()) if empty else shape()
    policy = ordering("worker-2", "worker-3", renew=Renewal.WHILE_NEEDED)
    policy = replace(policy, distribution=Distribution(strategy=strategy))
    wanted = desired(workloads=list(names), policies=dict.fromkeys(names, policy))
    templates = {name: replace(template, copy=copy) for name, template in wanted.templates.items()}
    stands = placement("worker-2", has, workload=names[0], created=NOW - 8 * MINUTE) if has else None
    there = [replace(stands, shape=of, expires_at=NOW + 2 * MINUTE)] if stands is not None else []
    node = Node(name="node-0", free=gpus(4), allocatable=gpus(16))
    target = replace(
        free("worker-2", bound={each.name: has for each in there}), pools=(Pool(name="gpu", nodes=(node,)),)
    )
    seen = (short_by(missing, of), target, free("worker-3", 8))
    return decide(inputs(*seen, wanted=replace(wanted, templates=templates), there=ledger(*there)))


@settings(max_examples=25, deadline=None)
@given(
    missing=st.lists(NUMBERS, min_size=1, max_size=3),
    has=NUMBERS,
    strategy=st.sampled_from(StrategyName),
    copy=st.sampled_from([None, 1, 2, MOST]),
    empty=st.booleans(),
)
@example(missing=[MOST], has=0, strategy=StrategyName.WEIGHTED, copy=None, empty=True)
@example(missing=[MOST, MOST, 1], has=MOST, strategy=StrategyName.ORDERED, copy=1, empty=True)
@example(missing=[10**18] * 3, has=0, strategy=StrategyName.AGGREGATED, copy=None, empty=True)
def test_work_of_a_pass_does_not_follow_the_numbers_that_are_asked_for(
    missing: list[int], has: int, strategy: StrategyName, copy: int | None, empty: bool
) -> None:
    made = within(400_000, lambda: decided(missing, has, strategy=strategy, copy=copy, empty=empty))
    assert not made.bugs


def test_work_that_follows_a_number_is_noticed() -> None:
    with pytest.raises(TooMuchWork):
        within(1000, lambda: next(filter(_never, range(MOST)), None))


def test_work_is_noticed_behind_a_bulkhead() -> None:
    with pytest.raises(TooMuchWork):
        within(1000, lambda: attempt(Seam.OBJECTS, "all", lambda: next(filter(_never, range(MOST)), None)))


def _never(_number: int) -> bool:
    return False


def one_by_one(more: int, claims: Sequence[Claim]) -> tuple[int, ...]:
    """Hand out seats as the definition of the method has it."""
    seats = [claim.seats for claim in claims]
    for _ in range(more):
        open_ = [place for place, claim in enumerate(claims) if claim.weight > 0 and seats[place] < claim.most]
        if not open_:
            break
        place = min(
            open_,
            key=lambda place: (
                -((claims[place].weight << 64) // (2 * seats[place] + 1)),
                seats[place],
                claims[place].rank,
            ),
        )
        seats[place] += 1
    return tuple(seats)


CLAIMS = st.lists(
    st.builds(
        lambda weight, seats, more: (weight, seats, seats + more),
        st.integers(0, 9),
        st.integers(0, 40),
        st.integers(0, 300),
    ),
    min_size=1,
    max_size=3,
).map(
    lambda drawn: [
        Claim(weight=weight, most=most, rank=rank, seats=seats) for rank, (weight, seats, most) in enumerate(drawn)
    ]
)


@settings(deadline=None, max_examples=60)
@given(more=st.integers(0, 500), claims=CLAIMS)
def test_many_seats_go_where_they_would_go_one_by_one(more: int, claims: list[Claim]) -> None:
    assert apportion(more, claims) == one_by_one(more, claims)


@given(held=st.lists(st.integers(0, 12), max_size=6), size=st.integers(1, 7), limit=st.integers(0, 40))
def test_groups_apart_are_as_many_as_nodes_hold(held: list[int], size: int, limit: int) -> None:
    fitting = [n for n in range(limit + 1) if sum(min(pods, n) for pods in held) >= n * size]
    assert separate_groups(held, size, limit) == max(fitting)


def test_large_groups_apart_are_counted_in_a_few_steps() -> None:
    assert within(20_000, lambda: separate_groups([MOST] * 99, 100, MOST)) == 0


@pytest.mark.parametrize(
    "listed",
    [
        [WorkloadRef(namespace="demo", name=f"own-{index}", kind="Deployment") for index in range(2_000)],
        [WorkloadRef(namespace="demo", name="vllm-0", kind=f"Own{index}") for index in range(2_000)],
    ],
    ids=["many names", "one name of many kinds"],
)
def test_work_on_what_a_cluster_runs_itself_does_not_grow_with_its_placements(listed: Sequence[WorkloadRef]) -> None:
    """Each entry was compared with all that each placement of the cluster makes."""
    names = tenants(100)
    placed = [placement("worker-2", 1, workload=name) for name in names]
    seen = replace(free("worker-2", 8), unplaced=(*listed, WorkloadRef(namespace="demo", name="db")))
    given = inputs(seen, wanted=desired(workloads=names), there=ledger(*placed))
    own, asked = OwnObjects(given), [("apps/Deployment", "demo", str(name.name)) for name in names]
    assert within(100_000, lambda: [own.is_seen(object_id) for object_id in asked]) == [False] * len(names)
    assert own.is_seen(("apps/StatefulSet", "demo", "db"))


def test_work_on_failures_does_not_grow_with_those_that_are_known() -> None:
    """The message of each was looked for among all that any workload could not be written for."""
    names = tenants(30)
    known = {(name, f"cluster-{index}"): UNTRIED for name in names for index in range(300)}
    failures = {(name, f"worker-{index}"): f"no label {index}" for name in names for index in range(2, 5)}
    fleet = inputs(free("worker-2", 8), wanted=desired(workloads=names))
    together = within(100_000, lambda: given_up(replace(fleet, unwritable=known), failures))
    assert together == {**known, **failures}


def test_work_on_requests_that_wait_does_not_grow_with_the_failures_of_others() -> None:
    """Each request was looked for among all that any workload could not be written for."""
    asked = [request("worker-2", name=f"r{index}", spec=manifests(deployment(2, gpus=8))) for index in range(100)]
    waiting = inputs(free("worker-2", 1), wanted=wants(*asked), there=holds(*map(record, asked)))
    known = {(name, f"worker-{index}"): UNTRIED for name in tenants(20) for index in range(500)}
    plan = within(500_000, lambda: decide(replace(waiting, unwritable=known)))
    assert len(plan.suppressed) == len(asked)
