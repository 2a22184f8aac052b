"""Subsets in order: what holds however replicas are shared out over them and given back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.distribution.subsets import Counts, Layer, give_back, share_out
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Distribution, StrategyName

TOTALS, STRATEGIES = st.integers(0, 40), st.sampled_from(StrategyName)
Layers = tuple[Layer, ...]


@st.composite
def _layers(draw: st.DrawFn, *, begun: bool = True) -> Layers:
    """Draw subsets with their clusters: something that stands there, room for more, minimums and maximums."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        targets = []
        for rank in draw(st.permutations(range(1, 4)))[: draw(st.integers(0, 3))]:
            keeps = draw(st.integers(0, 5)) if begun else 0
            most = keeps + draw(st.integers(0, 6))
            name = ClusterName(f"worker-{number}-{rank}")
            targets.append(ClusterShare(cluster=name, rank=rank, keeps=keeps, most=most, capacity=most))
        most = draw(st.none() | st.integers(0, 12))
        least = draw(st.integers(0, 4 if most is None else min(4, most)))
        found.append(Layer(shares=tuple(targets), most=most, least=least))
    return tuple(found)


def there(layers: Layers) -> Layers:
    """Make of what is kept for certain what may be given back."""
    return tuple(
        replace(layer, shares=tuple(one._replace(keeps=0, most=one.keeps) for one in layer.shares)) for layer in layers
    )


def working_plan(layers: Layers, counts: Counts) -> Layers:
    """Let what was shared out stand."""
    return tuple(
        replace(layer, shares=tuple(one._replace(keeps=has) for one, has in zip(layer.shares, row, strict=True)))
        for layer, row in zip(layers, counts, strict=True)
    )


def held(layers: Layers) -> int:
    return sum(target.keeps for layer in layers for target in layer.shares)


def summed(counts: Counts) -> int:
    return sum(map(sum, counts))


def pairs(layers: Layers, counts: Counts):
    return [
        (target, has)
        for layer, row in zip(layers, counts, strict=True)
        for target, has in zip(layer.shares, row, strict=True)
    ]


@given(_layers(), TOTALS, STRATEGIES)
def test_what_runs_stays_and_never_more_than_fits_comes_to_it(
    layers: Layers, total: int, strategy: StrategyName
) -> None:
    assert all(target.keeps <= has <= target.most for target, has in pairs(layers, share_out(total, layers, strategy)))


@given(_layers(), TOTALS, STRATEGIES)
def test_never_more_than_wanted(layers: Layers, total: int, strategy: StrategyName) -> None:
    assert summed(share_out(total, layers, strategy)) <= max(total, held(layers))


@given(_layers(), TOTALS, STRATEGIES)
def test_no_subset_grows_beyond_its_maximum(layers: Layers, total: int, strategy: StrategyName) -> None:
    for layer, row in zip(layers, share_out(total, layers, strategy), strict=True):
        has = sum(target.keeps for target in layer.shares)
        assert layer.most is None or sum(row) <= max(has, layer.most)


@given(_layers(begun=False), TOTALS, STRATEGIES)
def test_as_many_are_placed_as_the_subsets_may_hold(layers: Layers, total: int, strategy: StrategyName) -> None:
    able = [sum(target.most for target in layer.shares) for layer in layers]
    most = [room if layer.most is None else min(room, layer.most) for room, layer in zip(able, layers, strict=True)]
    assert summed(share_out(total, layers, strategy)) == min(total, sum(most))


@given(_layers(), TOTALS, STRATEGIES, st.integers(0, 9))
def test_more_wanted_never_takes_any_away(layers: Layers, total: int, strategy: StrategyName, more: int) -> None:
    fewer = share_out(total, layers, strategy)
    for later in (
        share_out(total + more, layers, strategy),
        share_out(total + more, working_plan(layers, fewer), strategy),
    ):
        for (_, has), (_, then) in zip(pairs(layers, fewer), pairs(layers, later), strict=True):
            assert has <= then


@given(_layers(), TOTALS, STRATEGIES, st.randoms())
def test_the_order_in_which_clusters_of_a_subset_are_given_does_not_matter(
    layers: Layers, total: int, strategy: StrategyName, random: object
) -> None:
    shuffled = []
    for layer in layers:
        targets = list(layer.shares)
        random.shuffle(targets)
        shuffled.append(replace(layer, shares=tuple(targets)))
    distribution = Distribution(strategy=strategy)
    ways = ((share_out, strategy, tuple), (give_back, distribution, lambda given: there(tuple(given))))
    for divide, by, these in ways:
        first, second = these(layers), these(shuffled)
        counts = {target.cluster: has for target, has in pairs(first, divide(total, first, by))}
        assert counts == {target.cluster: has for target, has in pairs(second, divide(total, second, by))}


@given(_layers(), TOTALS, STRATEGIES)
def test_exactly_what_is_too_much_is_given_back(layers: Layers, total: int, strategy: StrategyName) -> None:
    stands = there(layers)
    stays = give_back(total, stands, Distribution(strategy=strategy))
    assert summed(stays) == min(total, held(layers))
    assert all(0 <= has <= target.most for target, has in pairs(stands, stays))


@given(_layers(), TOTALS, STRATEGIES)
def test_giving_back_one_more_lets_nothing_grow(layers: Layers, total: int, strategy: StrategyName) -> None:
    stands = there(layers)
    distribution = Distribution(strategy=strategy)
    fewer, more = give_back(total, stands, distribution), give_back(total + 1, stands, distribution)
    assert all(less <= has for (_, less), (_, has) in zip(pairs(stands, fewer), pairs(stands, more), strict=True))


@given(_layers(begun=False), TOTALS, STRATEGIES, TOTALS)
def test_what_goes_out_comes_back_as_if_fewer_had_been_wanted(
    layers: Layers, total: int, strategy: StrategyName, fewer: int
) -> None:
    stands = there(working_plan(layers, share_out(total, layers, strategy)))
    back = give_back(min(fewer, total), stands, Distribution(strategy=strategy))
    wanted = share_out(min(fewer, total), layers, strategy)
    # Strategies other than Ordered go by the room, of which nothing is known once it is taken.
    assert [sum(row) for row in back] == [sum(row) for row in wanted]
    assert strategy is not StrategyName.ORDERED or back == wanted


def layer(has: int, *, most: int | None = None, least: int = 0, room: int = 0) -> Layer:
    target = ClusterShare(cluster=ClusterName("worker-2"), rank=1, keeps=has, most=has + room, capacity=has + room)
    return Layer(shares=(target,), most=most, least=least)


def test_all_minimums_come_before_the_first_subset_gets_more() -> None:
    layers = (layer(0, room=9, least=1), layer(0, room=9, least=3), layer(0, room=9))
    assert share_out(5, layers, StrategyName.ORDERED) == ((2,), (3,), (0,))
    assert share_out(2, layers, StrategyName.ORDERED) == ((1,), (1,), (0,))


def test_what_is_above_a_maximum_comes_home_first_the_last_subsets_before_all() -> None:
    stands = there((layer(5, most=2), layer(4, most=3), layer(6)))
    one_less = [give_back(total, stands, Distribution()) for total in range(14, 8, -1)]
    assert one_less == [
        ((5,), (3,), (6,)),
        ((4,), (3,), (6,)),
        ((3,), (3,), (6,)),
        ((2,), (3,), (6,)),
        ((2,), (3,), (5,)),
        ((2,), (3,), (4,)),
    ]


def test_what_is_in_no_subset_comes_home_before_all_else() -> None:
    stands = there((layer(5, most=2), layer(3), layer(2, most=0)))
    assert give_back(8, stands, Distribution()) == ((5,), (3,), (0,))
    assert give_back(7, stands, Distribution()) == ((4,), (3,), (0,))


@pytest.mark.parametrize("strategy", StrategyName)
def test_what_a_cluster_has_at_home_and_beside_it_are_two_shares(strategy: StrategyName) -> None:
    home = ClusterShare(cluster=ClusterName("worker-1"), rank=0, keeps=4, most=4, capacity=4, tier=-1)
    beside = [home._replace(rank=rank, keeps=has, most=has, capacity=has, tier=1) for rank, has in ((1, 1), (2, 2))]
    layers = (Layer(shares=(home, *beside)),)
    assert share_out(9, layers, strategy) == ((4, 1, 2),)
    assert give_back(6, there(layers), Distribution(strategy=strategy)) in {((4, 1, 1),), ((4, 0, 2),)}


@pytest.mark.parametrize("strategy", StrategyName)
def test_of_equal_replicas_those_of_a_cluster_without_a_weight_go_first_and_no_others(strategy: StrategyName) -> None:
    weightless = ClusterShare(cluster=ClusterName("worker-2"), rank=1, most=3, capacity=3, weight=0)
    other = weightless._replace(cluster=ClusterName("worker-3"), rank=2, weight=1)
    layers = (Layer(shares=(weightless, other)),)
    assert give_back(3, layers, Distribution(strategy=strategy)) == ((0, 3),)
    waits = (Layer(shares=(weightless._replace(serving=(3, 3)), other._replace(serving=(0, 3)))),)
    assert give_back(3, waits, Distribution(strategy=strategy)) == ((3, 0),)
