"""Scores at work: the policy of `init` in worlds of dear, scarce and slow clusters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reconciler.lab.controllers import OverspillController
from reconciler.lab.demand import plateau
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.scenario import Scenario
from reconciler.lab.simulation import Result, simulate
from reconciler.lab.standard import MADE_UP

POLICY = (Path(__file__).parents[2] / "repo-layout" / "policies" / "serving.yaml").read_bytes()


def play(scenario: Scenario) -> Result:
    return simulate(scenario, partial(OverspillController, files=fleet_files(scenario, POLICY)))


@pytest.mark.parametrize(
    ("name", "unmet"), [("scarce-model", 0.02), ("cold-and-warm", 0.14), ("ramp", 0.03), ("diurnal", 0.015)]
)
@pytest.mark.exhaustive(one_in=4)
def test_policy_of_init_serves_for_little_money(name: str, unmet: float) -> None:
    scenario = MADE_UP[name]()
    result = play(scenario)
    cheapest = min(each.price for each in scenario.clusters if each.price is not None)
    assert result.unmet <= unmet
    assert result.money <= 1.4 * result.gpu_hours * cheapest


def test_scarce_model_goes_to_who_needs_it_whichever_comes_first() -> None:
    scenario = MADE_UP["scarce-model"]()
    some, picky = scenario.demands
    late = replace(some, wanted=plateau(1, 8, begin=1500, end=scenario.length))
    for demands in ((some, picky), (late, picky)):
        assert play(replace(scenario, demands=demands)).unmet <= 0.02


def test_second_burst_goes_to_the_cluster_that_was_measured_to_be_warm() -> None:
    result = play(MADE_UP["cold-and-warm"]())
    begun = [
        sample.second
        for before, sample in zip(result.samples, result.samples[1:], strict=False)
        if sample.gpus["worker-2"] > before.gpus["worker-2"]
    ]
    assert begun
    assert max(begun) < 2400


def test_first_burst_goes_to_the_cluster_that_is_declared_to_be_warm() -> None:
    scenario = MADE_UP["cold-and-warm"]()
    declared = replace(scenario, clusters=tuple(replace(each, declared=each.start_up) for each in scenario.clusters))
    result = play(declared)
    assert not any(sample.gpus["worker-2"] for sample in result.samples)
    assert result.unmet <= 0.09
