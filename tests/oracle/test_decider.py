"""The product decides what a naive decider does, which shares no rule's code with it, on random fleets of all units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.candidates import filter as cluster_filter
from reconciler.core.decide.distribution import aggregated, balanced, cluster_bounds, divide, ordered, subsets, weighted
from reconciler.core.decide.steps import scale_down, scale_up
from reconciler.model.kubernetes.workload_spread import Bound
from tests.oracle.chains import BURSTS, MOST, chain, chains
from tests.oracle.decider import differences
from tests.oracle.world import Pass, Unit


def differing(passes: list[Pass]) -> list[str]:
    """List the differences of the first pass that has any, with all that a reader needs."""
    for made in passes:
        told = differences(made)
        if told:
            return [*told, str(made)]
    return []


@pytest.mark.parametrize("unit", BURSTS, ids=lambda unit: unit.name)
@MOST
@given(st.data())
def test_naive_decider_decides_the_same_of_each_unit(unit: Unit, data: st.DataObject) -> None:
    assert differing(data.draw(chains((unit,), calm=True))) == []


@MOST
@given(chains(calm=True))
def test_naive_decider_decides_the_same_where_units_are_mixed(passes: list[Pass]) -> None:
    assert differing(passes) == []


def drawn(number: int, *units: Unit) -> Iterator[list[Pass]]:
    """Draw a number of chains, the same in each run."""
    for seed in range(number):
        yield chain(Random(seed), units=units or BURSTS, calm=True)


def test_most_passes_are_compared() -> None:
    compared = [differences(made) is not None for passes in drawn(20) for made in passes]
    assert sum(compared) > 0.8 * len(compared)


BROKEN: dict[str, tuple[object, str, Callable[..., object]]] = {
    "the scale-up window": (scale_up, "replicas_due", lambda demand, *_: demand.missing),
    "the scale-down window": (scale_down, "peak_missing", lambda demand, *_: demand.missing),
    "taints": (cluster_filter, "untolerated_taint", lambda *_: None),
    "cool-downs": (cluster_filter, "_held_back", lambda *_: None),
    "weights": (weighted, "grow", balanced.grow),
    "balance": (balanced, "grow", weighted.grow),
    "the fewest clusters": (aggregated, "grow", balanced.grow),
    "bounds on labels and clusters": (cluster_bounds._Reaching, "may_add", lambda *_: True),
    "tiers": (divide, "_by_tier", lambda strategy, more, shares: strategy(more, shares)),
    "the strategy within a subset": (subsets, "grow", lambda more, shares, _: ordered.grow(more, shares)),
    "maximums of subsets": (Bound, "of", lambda bound, _: bound.number + 1),
}
"""Rules of the product, each with what is put in its place."""


@pytest.mark.exhaustive(one_in=4)
@pytest.mark.parametrize("rule", BROKEN)
def test_broken_rule_is_noticed(rule: str) -> None:
    owner, name, instead = BROKEN[rule]
    with patch.object(owner, name, instead):
        assert any(differing(passes) for passes in drawn(150, Unit.REPLICA, Unit.SUBSET))
