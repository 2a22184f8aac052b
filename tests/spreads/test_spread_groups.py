"""What goes whole and is spread over subsets is in one of them, within what that may hold and where its nodes are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide import decide
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.plan import Move, Reason, Resize
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from reconciler.model.workloadspread import Subset
from tests.kinds.bursting import SET, grouped, lacks, lent, roomy
from tests.kinds.samples import lws
from tests.situations import NOW, VLLM, gpus, ledger, plan, situation
from tests.subsets import POOL, TIER, fleet, kept, out, subset, term

OWN, RENTED = subset("own", term(**{TIER: "own"}), most=1), subset("rented", term(**{TIER: "rented"}))


def spread(*subsets: Subset, made: Json = SET) -> Desired:
    return replace(fleet(*subsets), templates={VLLM: grouped(made)})


def there(name: str, groups: int, in_: str, size: int = 4) -> Placement:
    return lent(name, groups, size=size, lasting=timedelta(hours=2), subset=in_)


def pools(**nodes: tuple[int, ...]) -> ClusterObservation:
    """Observe a cluster whose pools have nodes of so many free GPUs."""
    made = tuple(
        Pool(
            name=name,
            nodes=tuple(Node(name=f"{name}-{index}", free=gpus(count)) for index, count in enumerate(each)),
            labels={POOL: name},
        )
        for name, each in nodes.items()
    )
    return ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=made)


def test_a_set_goes_to_the_first_subset_that_may_hold_all_of_it() -> None:
    seen = roomy("worker-2", *[8] * 8), roomy("worker-4", *[8] * 8)
    assert out(plan(lacks(8), *seen, wanted=spread(OWN, RENTED))) == {"worker-4/rented": 2}
    assert out(plan(lacks(4), *seen, wanted=spread(OWN, RENTED))) == {"worker-2/own": 1}


def test_a_set_does_not_grow_beyond_what_its_subset_may_hold() -> None:
    one, two = there("worker-2", 1, "own"), there("worker-2", 2, "own")
    room = roomy("worker-2", *[8] * 4, bound={one.name: 4}), roomy("worker-4", *[8] * 8)
    made = plan(lacks(8), *room, wanted=spread(OWN, RENTED), there=ledger(one))
    assert made.changes == ()
    assert [held.reason for held in made.suppressed] == [Reason.SPREAD_LIMIT]
    assert kept(plan(lacks(8), *room, wanted=spread(OWN, RENTED), there=ledger(two))) == [("worker-2/own", 1)]


def test_a_set_grows_in_the_subset_that_it_is_in() -> None:
    first, second = subset("first", term(pool="first")), subset("second", term(pool="second"))
    stands = there("worker-2", 1, "second")
    seen = replace(pools(first=(8,) * 4, second=(8,) * 4), bound={stands.name: 4})
    (change,) = plan(lacks(8), seen, wanted=spread(first, second), there=ledger(stands)).changes
    assert isinstance(change, Resize)
    assert (change.after.where, change.after.replicas) == ("worker-2/second", 2)


def test_all_pods_of_a_group_need_nodes_that_its_subset_asks_for() -> None:
    made = spread(subset("one", term(pool="one")), made=lws("{{ replicas }}", 3, leader=2))
    assert out(plan(lacks(3), pools(one=(8, 8), other=(8,)), wanted=made)) == {}
    assert out(plan(lacks(3), pools(one=(8, 8, 2), other=(8,)), wanted=made)) == {"worker-2/one": 1}


def test_what_is_on_its_way_to_a_subset_keeps_the_room_of_that_alone() -> None:
    one, other = subset("one", term(pool="one")), subset("other", term(pool="other"))
    stands = there("worker-2", 1, "other", size=1)
    made = spread(one, other, made=lws("{{ replicas }}", 1))
    seen = pools(one=(8,), other=(8,))
    assert plan(lacks(2), seen, wanted=made, there=ledger(stands)).changes == ()


def test_a_set_that_leaves_a_lost_cluster_is_in_the_subset_where_it_comes_to() -> None:
    stands = there("worker-2", 1, "own")
    seen = situation(lacks(4), roomy("worker-4", *[8] * 8), wanted=spread(OWN, RENTED), there=ledger(stands))
    lost = {ClusterName("worker-2"): NOW - timedelta(hours=1)}
    (change,) = decide(replace(seen, lost=lost)).changes
    assert isinstance(change, Move)
    assert change.after.where == "worker-4/rented"
    small = situation(lacks(4), roomy("worker-3", *[8] * 8), wanted=spread(OWN, RENTED), there=ledger(stands))
    (change,) = decide(replace(small, lost=lost)).changes
    assert isinstance(change, Move)
    assert change.after.where == "worker-3/own"
