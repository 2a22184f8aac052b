"""Replicas of several shapes on one cluster: those with the fewest nodes to go to have theirs first."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.best_fit import count_beside
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.action import Action
from reconciler.model.capacity import Node, Pool, ReplicaShape
from reconciler.model.ids import PlacementName
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired
from reconciler.model.units import ONE, Quantity, Resources
from tests.builders.gangs import burst, placed, volcano
from tests.builders.inputs import GPU, free, inputs, ledger, shape, short
from tests.builders.pod_rules import HOST, apart, node, pod, seen
from tests.builders.subsets import POOL, fleet, out, pooled, stands, subset, term, wanted_before

ANY, PICKY = subset("any", term(tier="rented"), most=1), subset("picky", term(tier="rented", pool="x"))


def quantities(**amounts: int) -> Resources:
    return Resources(amounts={name: Quantity(number * ONE) for name, number in amounts.items()})


def waits(missing: int, *there: Placement, wanted: Desired) -> PassInput:
    """Let so many be missing, with room for one on each of two pools."""
    rented = replace(pooled("worker-4", x=1, y=1), bound={})
    return inputs(short(missing), rented, wanted=wanted, there=ledger(*there), history=wanted_before(missing))


def test_a_subset_that_any_node_will_do_for_leaves_the_only_node_of_another_to_it() -> None:
    assert out(decide(waits(2, wanted=fleet(ANY, PICKY, pools=True)))) == {"worker-4/any": 1, "worker-4/picky": 1}


def test_what_is_on_its_way_is_counted_on_the_nodes_that_all_of_it_can_have() -> None:
    wanted = fleet(replace(ANY, most=None), PICKY, pools=True)
    there = tuple(
        replace(stands("worker-4", 1, name), name=PlacementName(f"vllm-{name}"), shape=one)
        for name, one in (("any", shape()), ("picky", replace(shape(), node_terms=(term(pool="x"),))))
    )
    assert decide(waits(3, *there, wanted=wanted)).changes == ()
    assert decide(waits(3, *reversed(there), wanted=wanted)).changes == ()


def test_a_minimum_has_its_room_and_nothing_is_given_on_top_of_it() -> None:
    wanted = fleet(replace(ANY, most=None), replace(PICKY, least=1), pools=True)
    made = decide(waits(3, wanted=wanted))
    assert out(made) == {"worker-4/any": 1, "worker-4/picky": 1}
    begun = tuple(one.placement for one in made.changes if one.action is Action.PLACE)
    assert decide(waits(3, *begun, wanted=wanted)).changes == ()


def test_a_subset_that_leaves_room_to_another_is_not_said_to_be_limited() -> None:
    wanted = fleet(replace(ANY, most=None), replace(PICKY, least=1), pools=True)
    (_, last) = decide(waits(3, wanted=wanted)).changes
    assert last.action is Action.PLACE
    told = [refusal.message for refusal in last.refused if refusal.cluster == "worker-4"]
    assert told == ["took 1 replica and has no room for more"]


def test_what_is_proven_to_fit_is_never_counted_lower() -> None:
    # Two of `a` leave node n1 to one of `c`. One of them leaves it to `b`, and `c` finds too little.
    sizes = {"n1": {GPU: 2, "cpu": 6}, "n2": {GPU: 1, "cpu": 4}, "n3": {"cpu": 4}}
    pools = [
        Pool(name=name, labels={"node": name}, nodes=(Node(name=name, free=quantities(**size)),))
        for name, size in sizes.items()
    ]
    room = ClusterCapacity(replace(free("worker-2"), pools=tuple(pools)))
    a = ReplicaShape(requests=quantities(cpu=1, **{GPU: 1}), node_terms=(term(node="n1"),))
    b = ReplicaShape(requests=quantities(cpu=4, **{GPU: 1}), node_terms=(term(node="n1"), term(node="n2")))
    c = ReplicaShape(requests=quantities(cpu=4), node_terms=(term(node="n1"), term(node="n3")))
    pods = [(a, 2), (b, 1), (c, 2)]
    assert room.fitting_in_order(pods) == 3
    assert room.fitting_in_order([(a, 1), *pods[1:]]) == 2
    assert count_beside(room, pods, 0, 3) == 2


def test_a_gang_leaves_the_only_node_of_a_role_to_it() -> None:
    job = volcano((1, 1, None), (1, 1, None))
    job["spec"]["tasks"][1]["template"]["spec"]["nodeSelector"] = {POOL: "x"}
    assert placed(burst(pooled("worker-2", x=1, y=1), made=job, missing=2)).placement.cluster == "worker-2"


def test_pods_that_are_not_there_keep_none_off() -> None:
    alone = pod(**apart(HOST))  # with no other pod of these labels on its node
    kinds = [
        replica_shape(each["spec"], {key: each[key] for key in ("labels", "namespace")}) for each in (alone, pod())
    ]
    room = ClusterCapacity(seen([node("a", 2)]))
    assert [room.fitting_in_order(zip(kinds, numbers, strict=True)) for numbers in ((1, 1), (0, 1))] == [1, 2]


@given(
    st.lists(st.integers(0, 8), max_size=5),
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 5)), max_size=4),
)
def test_as_many_parts_fit_together_as_find_room_one_after_the_other(nodes: list[int], parts: list[tuple[int, int]]):
    wanted = [(shape(gpus), replicas) for gpus, replicas in parts]
    room, fitting = ClusterCapacity(free("worker-2", *nodes)), 0
    for one, replicas in wanted:
        if room.count(one, replicas) < replicas:
            break
        room.take(one, replicas)
        fitting += 1
    fresh = ClusterCapacity(free("worker-2", *nodes))
    assert fresh.fitting_in_order(wanted) == fitting
    assert fresh.free(shape()) == ClusterCapacity(free("worker-2", *nodes)).free(shape())
