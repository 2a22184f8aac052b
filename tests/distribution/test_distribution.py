"""Replicas shared out and given back: what holds for every strategy, and what each of them is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.distribution import ClusterShare, SortedShares, choose, reachable, share_out
from reconciler.core.decide.distribution.divide import precedence, preference
from reconciler.model.ids import ClusterName
from reconciler.model.policy import STRATEGIES, Distribution, SpreadConstraint, StrategyName
from tests.builders.cluster_shares import CLUSTERS, MANY, spread_over, stays, target

NAMES = tuple(ClusterName(f"worker-{number}") for number in range(2, 9))
GROUPS = ("eu", "us", "asia")
ZONES = ("a", "b", "c", "d")


@st.composite
def _targets(draw: st.DrawFn, *, begun: bool = True) -> tuple[ClusterShare, ...]:
    """Draw clusters with something that stands there, room for more, and what a policy says of them."""
    made = []
    for rank, name in enumerate(draw(st.permutations(NAMES))[: draw(st.integers(0, 6))], start=1):
        keeps = draw(st.integers(0, 6)) if begun else 0
        most = keeps + draw(st.integers(0, 9))
        made.append(
            ClusterShare(
                cluster=name,
                rank=rank,
                keeps=keeps,
                most=most,
                capacity=most,
                least=draw(st.integers(0, 4)),
                weight=draw(st.integers(0, 5)),
                groups=(draw(st.sampled_from(GROUPS)), draw(st.sampled_from(ZONES))),
                tier=draw(st.integers(0, 1)),
            )
        )
    return tuple(made)


def _constraint(draw: st.DrawFn, label: str) -> SpreadConstraint:
    least = draw(st.integers(0, 3))
    return SpreadConstraint(label=label, min_groups=least, max_groups=draw(st.none() | st.integers(max(1, least), 3)))


def _bounded(draw: st.DrawFn) -> dict[str, object]:
    low, labels = draw(st.integers(0, 3)), draw(st.sampled_from([(), ("region",), ("region", "zone")]))
    constraints = tuple(_constraint(draw, label) for label in labels)
    least = max((low, 1, *(bound.min_groups for bound in constraints)))
    return {
        "min_clusters": low,
        "max_clusters": draw(st.none() | st.integers(least, 6)),
        "spread_constraints": constraints,
    }


@st.composite
def _distributions(draw: st.DrawFn) -> Distribution:
    strategy = draw(st.sampled_from(StrategyName))
    return Distribution(strategy=strategy, **_bounded(draw))


PLAIN = st.sampled_from([Distribution(strategy=strategy) for strategy in StrategyName])
TOTALS = st.integers(0, 60)


def held(targets: tuple[ClusterShare, ...]) -> int:
    return sum(target.keeps for target in targets)


def growing(targets: tuple[ClusterShare, ...], counts: dict[ClusterName, int]) -> tuple[ClusterShare, ...]:
    """Let what was shared out stand."""
    return tuple(target._replace(keeps=counts.get(target.cluster, 0)) for target in targets)


def working_plan(targets: tuple[ClusterShare, ...]) -> tuple[ClusterShare, ...]:
    """Make of what is kept for certain what may be given back."""
    return tuple(target._replace(keeps=0, most=target.keeps) for target in targets)


@given(_targets(), TOTALS, _distributions())
def test_what_runs_stays_and_never_more_than_fits_comes_to_it(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    counts = share_out(total, targets, distribution).counts
    assert {*counts} <= {target.cluster for target in targets}
    for one in targets:
        assert one.keeps <= counts.get(one.cluster, 0) <= one.most


@given(_targets(), TOTALS, _distributions())
def test_never_more_than_wanted(targets: tuple[ClusterShare, ...], total: int, distribution: Distribution) -> None:
    assert sum(share_out(total, targets, distribution).counts.values()) <= max(total, held(targets))


@given(_targets(), TOTALS, PLAIN)
def test_all_that_is_wanted_is_placed_where_it_fits_and_nothing_bounds_it(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    weighty = tuple(target._replace(weight=target.weight + 1) for target in targets)
    placed = sum(share_out(total, weighty, distribution).counts.values())
    assert placed == max(held(weighty), min(total, sum(target.most for target in weighty)))


@given(_targets(), TOTALS, st.integers(0, 20), _distributions())
def test_more_wanted_never_takes_any_away_from_what_came_of_less(
    targets: tuple[ClusterShare, ...], total: int, more: int, distribution: Distribution
) -> None:
    counts = dict(share_out(total, targets, distribution).counts)
    later = share_out(total + more, growing(targets, counts), distribution).counts
    assert all(later[cluster] >= replicas for cluster, replicas in counts.items())


@given(_targets(), TOTALS, st.sampled_from([one for one in StrategyName if one is not StrategyName.AGGREGATED]))
def test_a_larger_total_gives_each_cluster_at_least_as_many_shared_out_anew(
    targets: tuple[ClusterShare, ...], total: int, strategy: StrategyName
) -> None:
    distribution = Distribution(strategy=strategy)
    less, more = (share_out(one, targets, distribution).counts for one in (total, total + 1))
    assert all(more[cluster] >= replicas for cluster, replicas in less.items())


@given(_targets(begun=False), TOTALS)
def test_a_larger_total_is_never_on_fewer_clusters_or_placed_less_when_aggregated(
    targets: tuple[ClusterShare, ...], total: int
) -> None:
    distribution = Distribution(strategy=StrategyName.AGGREGATED)
    bare = tuple(target._replace(least=0) for target in targets)
    less, more = (share_out(one, bare, distribution).counts for one in (total, total + 1))
    assert sum(less.values()) <= sum(more.values())


@given(_targets(), TOTALS, _distributions(), st.randoms())
def test_the_order_in_which_clusters_are_given_does_not_matter(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution, random: object
) -> None:
    shuffled = list(targets)
    random.shuffle(shuffled)
    assert share_out(total, shuffled, distribution) == share_out(total, targets, distribution)
    there = working_plan(targets)
    again = [next(one for one in there if one.cluster == target.cluster) for target in shuffled]
    assert stays(total, again, distribution) == stays(total, there, distribution)


@given(_targets(begun=False), _distributions())
def test_minimums_are_met_before_anybody_gets_more_where_there_is_room(
    targets: tuple[ClusterShare, ...], distribution: Distribution
) -> None:
    plain = Distribution(strategy=distribution.strategy)
    floors = {target.cluster: min(target.least, target.most) for target in targets}
    counts = share_out(sum(floors.values()), targets, plain).counts
    assert counts == {cluster: floor for cluster, floor in floors.items() if floor}


@given(_targets(), TOTALS, _distributions())
def test_nothing_new_goes_beyond_the_bounds(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    counts = share_out(total, targets, distribution).counts
    bounds = [(distribution.max_clusters, attrgetter("cluster"))]
    bounds += [
        (bound.max_groups, lambda target, index=index: target.groups[index])
        for index, bound in enumerate(distribution.spread_constraints)
    ]
    for most, of in bounds:
        before = {of(target) for target in targets if target.keeps}
        after = {of(target) for target in targets if counts.get(target.cluster)}
        assert most is None or len(after) <= max(most, len(before))


@given(_targets(begun=False), TOTALS, st.sampled_from(StrategyName), st.integers(1, 6))
def test_as_many_are_placed_as_any_so_many_clusters_hold(
    targets: tuple[ClusterShare, ...], total: int, strategy: StrategyName, most: int
) -> None:
    weighty = tuple(target._replace(weight=target.weight + 1) for target in targets)
    placed = sum(share_out(total, weighty, Distribution(strategy=strategy, max_clusters=most)).counts.values())
    largest = sorted((target.most for target in targets), reverse=True)[:most]
    assert placed == min(total, sum(largest))


@given(_targets(begun=False), TOTALS, _distributions())
def test_lower_bounds_are_reached_or_told_and_then_no_group_gets_a_second_replica(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    division = share_out(total, targets, distribution)
    there = [target for target in targets if division.counts.get(target.cluster)]
    if division.out_of_reach is not None:
        assert set(division.counts.values()) <= {1}
        return
    # Of labels that cross, so few replicas may reach each bound and not both.
    placed, crossed = sum(division.counts.values()), len(distribution.spread_constraints) > 1
    enough = not crossed or placed >= sum(bound.min_groups for bound in distribution.spread_constraints)
    for index, bound in enumerate(distribution.spread_constraints if enough else ()):
        assert len({target.groups[index] for target in there}) >= min(bound.min_groups, placed)
    assert len(there) >= min(distribution.min_clusters, placed)


@given(_targets(), TOTALS, _distributions())
def test_exactly_what_is_too_much_is_given_back(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    there = working_plan(targets)
    kept = stays(total, there, distribution)
    assert sum(kept.values()) == min(total, held(targets))
    assert all(0 <= kept[target.cluster] <= target.most for target in there)


@given(_targets(), TOTALS, PLAIN)
def test_giving_back_one_more_never_lets_another_cluster_grow(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    there = working_plan(targets)
    fewer, more = stays(total, there, distribution), stays(total + 1, there, distribution)
    assert all(fewer[cluster] <= replicas for cluster, replicas in more.items())


@given(_targets(), TOTALS, PLAIN, st.data())
def test_no_replica_stays_in_place_of_one_that_serves_better(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution, data: st.DataObject
) -> None:
    there = [
        target._replace(least=0, weight=1, serving=(data.draw(st.integers(0, target.most)), target.most))
        for target in working_plan(targets)
    ]
    kept = stays(total, there, distribution)
    assert sum(kept.values()) == min(total, held(targets))
    waits = any(kept[target.cluster] > target.serving[0] for target in there)
    assert not waits or all(kept[target.cluster] >= target.serving[0] for target in there)


@given(_targets(), TOTALS, _distributions(), st.data())
def test_guarantees_do_not_depend_on_how_replicas_serve(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution, data: st.DataObject
) -> None:
    there = [
        target._replace(weight=1, serving=(data.draw(st.integers(0, target.most)), target.most))
        for target in working_plan(targets)
        if target.most
    ]
    kept = stays(total, there, distribution)
    left = [target for target in there if kept[target.cluster]]
    assert len(left) >= min(distribution.min_clusters, total, len(there))
    for index, bound in enumerate(distribution.spread_constraints[:1]):
        groups = {target.groups[index] for target in there}
        assert len({target.groups[index] for target in left}) >= min(bound.min_groups, total, len(groups))
    floors = [min(target.least, target.most) for target in there]
    if not distribution.is_bounded and total >= sum(floors):
        assert all(kept[target.cluster] >= floor for target, floor in zip(there, floors, strict=True))


@given(_targets(), _distributions())
def test_minimums_are_given_back_last(targets: tuple[ClusterShare, ...], distribution: Distribution) -> None:
    there = working_plan(targets)
    floors = {target.cluster: min(target.least, target.most) for target in there}
    kept = stays(sum(floors.values()), there, Distribution(strategy=distribution.strategy))
    assert kept == floors


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (StrategyName.ORDERED, {"worker-2": 6, "worker-3": 3}),
        (StrategyName.WEIGHTED, {"worker-2": 3, "worker-3": 2, "worker-4": 4}),
        (StrategyName.BALANCED, {"worker-2": 3, "worker-3": 1, "worker-4": 5}),
        (StrategyName.AGGREGATED, {"worker-4": 9}),
    ],
)
def test_nine_replicas_go_where_the_strategy_has_them(strategy: StrategyName, expected: dict[str, int]) -> None:
    assert share_out(MANY, CLUSTERS, Distribution(strategy=strategy)).counts == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (StrategyName.ORDERED, {"worker-2": 4, "worker-3": 1, "worker-4": 0}),
        (StrategyName.WEIGHTED, {"worker-2": 1, "worker-3": 1, "worker-4": 3}),
        (StrategyName.BALANCED, {"worker-2": 1, "worker-3": 1, "worker-4": 3}),
        (StrategyName.AGGREGATED, {"worker-2": 0, "worker-3": 0, "worker-4": 5}),
    ],
)
def test_giving_back_is_the_reverse_of_sharing_out(strategy: StrategyName, expected: dict[str, int]) -> None:
    clusters = (
        target("2", 4)._replace(capacity=4),
        target("3", 2)._replace(capacity=6),
        target("4", 6, weight=3)._replace(capacity=14),
    )
    assert stays(5, clusters, Distribution(strategy=strategy)) == expected


def test_a_cluster_with_more_than_its_share_waits_for_the_others() -> None:
    clusters = (target("2", 20, keeps=8), target("3", 20), target("4", 20))
    counts = share_out(14, clusters, Distribution(strategy=StrategyName.WEIGHTED)).counts
    assert counts == {"worker-2": 8, "worker-3": 3, "worker-4": 3}


def test_what_a_cluster_cannot_hold_of_its_share_goes_to_the_others() -> None:
    clusters = (target("2", 1, weight=10), target("3", 9), target("4", 9))
    counts = share_out(9, clusters, Distribution(strategy=StrategyName.WEIGHTED)).counts
    assert counts == {"worker-2": 1, "worker-3": 4, "worker-4": 4}


def test_the_roomiest_cluster_takes_the_place_of_the_last_where_the_first_ones_do_not_hold_all() -> None:
    clusters = (target("2", 5), target("3", 1), target("4", 4), target("5", 9))
    counts = share_out(12, clusters, Distribution(max_clusters=2)).counts
    assert counts == {"worker-2": 5, "worker-5": 7}


def test_of_groups_that_suffice_the_one_is_taken_that_the_strategy_prefers() -> None:
    """Karmada takes the group with the best clusters; the roomiest may be the dearest."""
    rooms = {"worker-2": 4, "worker-3": 4, "worker-4": 4, "worker-5": 9, "worker-6": 9}
    regions = {"worker-2": "eu", "worker-3": "us", "worker-4": "us", "worker-5": "asia", "worker-6": "asia"}
    targets = [
        ClusterShare(cluster=ClusterName(name), rank=rank, most=room, capacity=room, groups=(regions[name],))
        for rank, (name, room) in enumerate(rooms.items(), start=1)
    ]
    bounds = Distribution(spread_constraints=spread_over("region", min_groups=2, max_groups=2), min_clusters=3)
    assert share_out(10, targets, bounds).counts.keys() == {"worker-2", "worker-3", "worker-4"}
    assert share_out(20, targets, bounds).counts.keys() == {"worker-2", "worker-5", "worker-6"}


def _choices(targets: Sequence[ClusterShare], distribution: Distribution) -> Iterator[tuple[ClusterShare, ...]]:
    """Yield every choice of clusters within the upper bounds; those that have replicas are part of each."""
    begun = tuple(target for target in targets if target.keeps)
    others = [target for target in targets if target.most and not target.keeps]
    for number in range(len(others) + 1):
        for new in combinations(others, number):
            chosen = (*begun, *new)
            clusters = distribution.max_clusters is None or all(
                len(chosen) + kept <= distribution.max_clusters for kept in (0, *_kept_places(begun, new, distribution))
            )
            within = (
                bound.max_groups is None
                or len({each.groups[index] for each in chosen})
                <= max(bound.max_groups, len({each.groups[index] for each in begun}))
                for index, bound in enumerate(distribution.spread_constraints)
            )
            if not new or (clusters and all(within)):
                yield chosen


def _kept_places(
    begun: Sequence[ClusterShare], new: Sequence[ClusterShare], distribution: Distribution
) -> Iterator[int]:
    """Yield the places that are kept for missing values of each label, where a cluster takes one for a known value."""
    for index, bound in enumerate(distribution.spread_constraints):
        before, after = ({each.groups[index] for each in shares} for shares in (begun, (*begun, *new)))
        if len(new) > len(after) - len(before):
            yield max(0, bound.min_groups - len(after))


def _worth(chosen: Sequence[ClusterShare], more: int, distribution: Distribution) -> tuple[int, ...]:
    groups = (
        min(bound.min_groups, len({each.groups[index] for each in chosen}))
        for index, bound in enumerate(distribution.spread_constraints)
    )
    return *groups, min(len(chosen), distribution.min_clusters), min(more, sum(each.free for each in chosen))


@given(_targets(), TOTALS, _distributions())
def test_first_choice_is_made_of_those_that_reach_and_hold_most(
    targets: tuple[ClusterShare, ...], more: int, distribution: Distribution
) -> None:
    if len(distribution.spread_constraints) > 1:
        # Where labels cross, and clusters are bounded as well, the search may end before the very best choice.
        distribution = replace(distribution, max_clusters=None)
    prefers, choices = preference(distribution.strategy), [*_choices(targets, distribution)]
    chosen = choose(more, targets, distribution, prefers)
    most = max(_worth(choice, more, distribution) for choice in choices)
    assert _worth(chosen, more, distribution) == most
    places = {share: place for place, share in enumerate(sorted(targets, key=prefers))}
    best = (choice for choice in choices if _worth(choice, more, distribution) == most)
    # Of two of which one begins with the other, the longer one is first.
    ordered = ([*sorted(places[share] for share in choice), len(places)] for choice in best)
    assert [*(places[share] for share in chosen), len(places)] == min(ordered)


EU_OR_US = [target("2", 1, group="eu"), *(target(name, 5, group="us") for name in ("3", "4"))]


def test_first_choice_that_suffices_is_made_as_the_page_shows() -> None:
    clusters = [*EU_OR_US, target("5", 20, group="ap")]
    one_region = Distribution(spread_constraints=spread_over("region", max_groups=1))
    assert share_out(10, clusters, one_region).counts == {"worker-3": 5, "worker-4": 5}
    assert share_out(11, clusters, one_region).counts == {"worker-5": 11}
    assert share_out(10, clusters, Distribution(max_clusters=2)).counts == {"worker-2": 1, "worker-5": 9}


def test_scores_choose_the_group_of_clusters_before_the_room_that_a_strategy_prefers() -> None:
    scored = [share._replace(preference=share.rank) for share in (*EU_OR_US, target("5", 40, group="eu"))]
    one = Distribution(strategy=StrategyName.BALANCED, spread_constraints=spread_over("region", max_groups=1))
    assert share_out(5, scored[1:], one).counts == {"worker-3": 3, "worker-4": 2}
    assert share_out(11, scored[1:], one).counts == {"worker-5": 11}
    unscored = [share._replace(preference=0) for share in scored[1:]]
    assert share_out(5, unscored, one).counts == {"worker-5": 5}


def test_constraints_on_several_labels_hold_at_the_same_time() -> None:
    sites = {"2": ("eu", "eu-1"), "3": ("eu", "eu-2"), "4": ("eu", "eu-3"), "5": ("us", "us-1"), "6": ("us", "us-2")}
    clusters = [target(name, 4)._replace(groups=groups) for name, groups in sites.items()]
    two_regions = SpreadConstraint(label="region", min_groups=2)
    three_zones = SpreadConstraint(label="zone", max_groups=3)
    both = Distribution(spread_constraints=(two_regions, three_zones))
    assert share_out(9, clusters, both).counts == {"worker-2": 4, "worker-3": 4, "worker-5": 1}
    four = replace(both, spread_constraints=(two_regions, replace(three_zones, min_groups=3, max_groups=None)))
    assert share_out(3, clusters, four).counts == {"worker-2": 1, "worker-3": 1, "worker-5": 1}
    one_region = SpreadConstraint(label="region", max_groups=1)
    short = share_out(
        9, clusters[2:], Distribution(spread_constraints=(one_region, replace(two_regions, label="zone")))
    )
    assert short.counts == {"worker-5": 4, "worker-6": 4}


def test_the_region_that_holds_all_is_taken_where_there_may_be_one_only() -> None:
    eu = [target(name, 3, group="eu") for name in ("2", "3")]
    us = [target(name, 5, group="us") for name in ("4", "5")]
    one = Distribution(spread_constraints=spread_over("region", max_groups=1))
    assert share_out(6, [*eu, *us], one).counts == {"worker-2": 3, "worker-3": 3}
    assert share_out(8, [*eu, *us], one).counts == {"worker-4": 5, "worker-5": 3}


OWN = (target("2", 6), target("3", 3))
RENTED = (target("4", 20)._replace(tier=1), target("5", 20)._replace(tier=1))


@pytest.mark.parametrize("strategy", [StrategyName.BALANCED, StrategyName.WEIGHTED])
def test_tier_is_filled_before_the_next_which_is_divided_by_the_strategy(strategy: StrategyName) -> None:
    tiers = Distribution(strategy=strategy, tiers=True)
    assert share_out(6, [*OWN, *RENTED], tiers).counts.keys() == {"worker-2", "worker-3"}
    division = share_out(13, [*OWN, *RENTED], tiers)
    assert division.counts == {"worker-2": 6, "worker-3": 3, "worker-4": 2, "worker-5": 2}
    because = "20 of 40 free" if strategy is StrategyName.BALANCED else "weight 1 of 2"
    assert division.because["worker-5"] == f"{strategy}: {because}"


def test_last_tier_gives_back_first() -> None:
    tiers = Distribution(strategy=StrategyName.BALANCED, tiers=True)
    held = [target("2", 6), target("3", 3), *(target(name, 2)._replace(tier=1) for name in ("4", "5"))]
    assert stays(10, held, tiers) == {"worker-2": 6, "worker-3": 3, "worker-4": 1, "worker-5": 0}
    assert sum(stays(6, held, tiers)[name] for name in ("worker-4", "worker-5")) == 0


def test_each_region_that_there_has_to_be_gets_one_before_the_first_cluster_gets_more() -> None:
    clusters = (target("2", 9, group="eu"), target("3", 9, group="eu"), target("4", 9, group="us"))
    two = Distribution(spread_constraints=spread_over("region", min_groups=2))
    assert share_out(5, clusters, two).counts == {"worker-2": 4, "worker-4": 1}


def test_without_enough_regions_there_is_one_replica_for_each_and_it_is_told() -> None:
    clusters = (target("2", 9, group="eu"), target("3", 9, group="eu"))
    division = share_out(5, clusters, Distribution(spread_constraints=spread_over("region", min_groups=2)))
    assert division.counts == {"worker-2": 1}
    assert division.out_of_reach == (2, (1,))
    assert division.left_out == ()


def _plain(share: ClusterShare) -> ClusterShare:
    """Give a share that keeps nothing room, a weight, and no minimum."""
    return share._replace(keeps=0, least=0, most=share.most + 1, capacity=share.most + 1, weight=share.weight + 1)


@given(_targets(), st.sets(st.sampled_from(NAMES)), st.integers(0, 12), PLAIN | _distributions())
def test_shares_beyond_the_reach_of_the_replicas_count_in_reasons_alone(
    targets: tuple[ClusterShare, ...], new: set[ClusterName], more: int, distribution: Distribution
) -> None:
    begun = [target for target in targets if target.cluster not in new]
    rest = [_plain(target) for target in targets if target.cluster in new]
    rest.sort(key=precedence(distribution.strategy))
    reached = reachable(more, rest, distribution)
    total = held(targets) - sum(target.keeps for target in targets if target.cluster in new) + more
    division = share_out(total, [*begun, *rest[:reached]], distribution, beyond=rest[reached:])
    assert division == share_out(total, [*begun, *rest], distribution)


def _shrunk(strategy: StrategyName, **second: int) -> dict[ClusterName, int]:
    """Take six of twelve replicas back from two clusters that differ in nothing but what is given of the second."""
    shares = [target("2", 6), target("3", 6)]
    return dict(stays(6, [shares[0], shares[1]._replace(**second)], Distribution(strategy=strategy)))


@pytest.mark.parametrize("strategy", StrategyName)
def test_traits_of_a_strategy_are_those_of_its_divisions(strategy: StrategyName) -> None:
    traits, distribution = STRATEGIES[strategy], Distribution(strategy=strategy)
    shares = [target("2", 6), target("3", 9)]
    divided = share_out(6, shares, distribution).counts
    heavier = [shares[0], shares[1]._replace(weight=5)]
    assert (share_out(6, heavier, distribution).counts != divided) is traits.uses_weight
    assert (_shrunk(strategy, capacity=60) != _shrunk(strategy, capacity=6)) is traits.shrinks_by_room
    tiers = [shares[0], shares[1]._replace(tier=1)]
    assert (share_out(6, tiers, distribution).counts == divided) is traits.fills_in_order


@given(_targets(begun=False), st.lists(_targets(begun=False), max_size=4), st.sampled_from(StrategyName))
def test_sorted_shares_are_those_of_the_last_change_by_precedence(
    first: tuple[ClusterShare, ...], later: list[tuple[ClusterShare, ...]], strategy: StrategyName
) -> None:
    ranks = {name: rank for rank, name in enumerate(NAMES)}
    shares, known = SortedShares(strategy), dict[ClusterName, ClusterShare]()
    for changed in (first, *later):
        new = {target.cluster: target._replace(rank=ranks[target.cluster]) for target in changed}
        closed = {name for name in new if not new[name].most}
        known = {name: share for name, share in {**known, **new}.items() if name not in closed}
        shares.replace(new, [share for name, share in new.items() if name not in closed])
    assert list(shares.shares) == sorted(known.values(), key=precedence(strategy))


@given(_targets(), TOTALS, _distributions())
def test_without_an_upper_bound_nobody_with_room_is_left_out(
    targets: tuple[ClusterShare, ...], total: int, distribution: Distribution
) -> None:
    constraints = tuple(replace(bound, max_groups=None) for bound in distribution.spread_constraints)
    unbounded = replace(distribution, max_clusters=None, spread_constraints=constraints)
    assert all(one.most == 0 for one in share_out(total, targets, unbounded).left_out)
