"""A budget bounds the money of a day, and says what was lost to it."""

from __future__ import annotations

from functools import partial

import pytest

from reconciler.lab.controllers import OverspillController
from reconciler.lab.demand import plateau
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.scenario import DemandScenario, Scenario
from reconciler.lab.simulation import Result, simulate
from tests.lab.test_moves import FREE, HOUR, hosting


def run(budget: str, *, length: int = 60 * HOUR) -> Result:
    """Miss four GPUs at 1 $ for two days and a half: 96 $ a day."""
    scenario = Scenario(
        name="budget",
        about="four replicas too many, and money for a part of the day",
        length=length,
        demands=(DemandScenario(name="vllm", wanted=plateau(1, 4, begin=0, end=length), home=1),),
        clusters=(hosting(2), hosting(3)),
    )
    policy = FREE + f"  budget: {budget}\n".encode()
    return simulate(scenario, partial(OverspillController, files=fleet_files(scenario, policy)))


def test_a_budget_bounds_the_money_of_each_day_but_for_what_runs_to_its_end() -> None:
    result = run("{perDay: 32}")
    # Three days have begun. A burst that runs when the budget is used up lasts for a quarter of an hour at most.
    assert 3 * 31 < result.money < 3 * (32 + 4 * 0.26)
    assert result.lost["OverBudget"] > 0.55


def test_a_budget_of_a_month_does_not_begin_anew_with_the_day() -> None:
    assert 31 < run("{perMonth: 32}").money < 32 + 4 * 0.26


@pytest.mark.exhaustive(one_in=None)
def test_a_budget_that_suffices_changes_nothing() -> None:
    kept, free = (run(budget, length=30 * HOUR) for budget in ("{perDay: 100}", "{perMonth: 100000}"))
    assert (kept.money, kept.unmet, kept.starts) == (free.money, free.unmet, free.starts)
