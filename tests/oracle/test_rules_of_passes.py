"""Random fleets of all kinds of units, followed through chains of passes: what holds of each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import faults, invariants
from tests.oracle.chains import BURSTS, chains
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
    invariants.nothing_stays_where_it_may_not,
    invariants.nothing_forbidden_is_renewed,
    invariants.lower_bounds_hold_or_are_told,
    invariants.what_waits_is_told,
)
OF_A_CHAIN: tuple[ChainRule, ...] = (
    invariants.moves_keep_to_the_budget,
    invariants.time_alone_begins_no_second_run,
)

EXCUSES: tuple[tuple[Rule | ChainRule, str, tuple[faults.Story, ...]], ...] = (
    (invariants.one_living_copy, Unit.RUN_COPY, (faults.run_with_fixed_number_begins_once,)),
    (invariants.time_alone_begins_no_second_run, Unit.WHOLE, (faults.job_is_not_begun_again,)),
    (invariants.time_alone_begins_no_second_run, Unit.RUN_GANG, (faults.training_job_is_not_begun_again,)),
    (
        invariants.time_alone_begins_no_second_run,
        Unit.RUN_COPY,
        (faults.copy_of_run_is_not_begun_again, faults.run_with_fixed_number_begins_once),
    ),
)
"""What of a rule the product is known to break, by words of what it yields, until these stories are mended."""


def is_excused(rule: Rule | ChainRule, words: str) -> bool:
    stories = (story for of, part, known in EXCUSES if of is rule and part in words for story in known)
    return not all(map(faults.is_mended, stories))


def broken(passes: Sequence[Pass]) -> list[str]:
    """List what breaks a rule in a chain and is no known fault."""
    told = [(rule, words) for made in passes for rule in OF_A_PASS for words in rule(made)]
    told += [(rule, words) for rule in OF_A_CHAIN for words in rule(passes)]
    return [f"{rule.__name__}: {words}" for rule, words in told if not is_excused(rule, words)]


@pytest.mark.parametrize("unit", BURSTS, ids=lambda unit: unit.name)
@given(st.data())
def test_every_rule_holds_of_every_pass(unit: Unit, data: st.DataObject) -> None:
    assert broken(data.draw(chains(units=(unit,)))) == []


@given(chains())
def test_every_rule_holds_where_kinds_of_units_are_mixed(passes: list[Pass]) -> None:
    assert broken(passes) == []
