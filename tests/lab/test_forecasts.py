"""Forecasts in the lab: what they serve of a demand that comes back each day, and what they cost."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from reconciler.lab.controllers import OverspillController
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.scenario import Scenario
from reconciler.lab.simulation import Result, simulate
from reconciler.lab.standard import MADE_UP

DIURNAL = MADE_UP["diurnal"]()
SERVING = (Path(__file__).parents[2] / "repo-layout" / "policies" / "serving.yaml").read_bytes()
BARE = SERVING.replace(b"headroom: 1 ", b"headroom: 0 ")


def run(method: str = "", scenario: Scenario = DIURNAL) -> Result:
    policy = BARE + (f"  signals: [{{name: usual, forecast: {method}}}]\n".encode() if method else b"")
    return simulate(scenario, partial(OverspillController, files=fleet_files(scenario, policy)))


@pytest.fixture(scope="module")
def without() -> Result:
    return run()


@pytest.mark.parametrize(
    ("method", "left"), [("{method: SameTimeYesterday}", 0.36), ("{method: Trend, window: 1h}", 0.51)]
)
@pytest.mark.exhaustive(one_in=None)
def test_forecast_serves_replicas_as_soon_as_they_are_missing(without: Result, method: str, left: float) -> None:
    result = run(method)
    # Of three days the first has no yesterday, and each rise first replicas without a trend.
    assert result.unmet <= left * without.unmet
    assert (without.time_to_serve_p50, result.time_to_serve_p50) == (150, 0)
    assert result.money <= 1.06 * without.money


def test_trend_costs_nothing_where_a_demand_jumps() -> None:
    plateau = MADE_UP["plateau"]()
    jumped, plain = (run(method, plateau) for method in ("{method: Trend}", ""))
    assert (jumped.starts, jumped.money) == (plain.starts, plain.money)
