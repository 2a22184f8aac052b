"""Random fleets of all kinds of units, followed through chains of passes: what holds of each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import invariants
from tests.oracle.chains import BURSTS, MOST, chains
from tests.oracle.world import Pass, Unit

Rule = Callable[[Pass], Iterator[str]]
ChainRule = Callable[[Sequence[Pass]], Iterator[str]]

OF_A_PASS: tuple[Rule, ...] = (
    invariants.no_bugs,
    invariants.within_limits,
    invariants.within_room,
    invariants.never_more_than_missing,
    invariants.nothing_outlives_its_end,
    invariants.units_stay_whole,
    invariants.one_living_copy,
    invariants.newcomers_are_admitted,
    invariants.approved_first,
    invariants.nothing_stays_where_it_may_not,
    invariants.nothing_forbidden_is_renewed,
    invariants.lower_bounds_hold_or_are_told,
    invariants.upper_bounds_hold,
    invariants.what_waits_is_told,
    invariants.what_shrinks_says_why,
)
OF_A_CHAIN: tuple[ChainRule, ...] = (
    invariants.moves_keep_to_the_budget,
    invariants.time_alone_begins_no_second_run,
)


def broken(passes: Sequence[Pass]) -> list[str]:
    """List what breaks a rule in the first pass of a chain that breaks any, with all that a reader needs."""
    for number, made in enumerate(passes, start=1):
        told = [f"{rule.__name__}: {words}" for rule in OF_A_PASS for words in rule(made)]
        told += [f"{rule.__name__}: {words}" for rule in OF_A_CHAIN for words in rule(passes[:number])]
        if told:
            return [*told, str(made)]
    return []


@pytest.mark.parametrize("unit", BURSTS, ids=lambda unit: unit.name)
@MOST
@given(st.data())
def test_every_rule_holds_of_every_pass(unit: Unit, data: st.DataObject) -> None:
    assert broken(data.draw(chains(units=(unit,)))) == []


@MOST
@given(chains())
def test_every_rule_holds_where_kinds_of_units_are_mixed(passes: list[Pass]) -> None:
    assert broken(passes) == []


@MOST
@given(chains(people=True))
def test_every_rule_holds_where_people_approve_bursts_and_end_some(passes: list[Pass]) -> None:
    assert broken(passes) == []
