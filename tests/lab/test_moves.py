"""Bursts leave clusters that are lost or full, and clusters that come and go do not chase them about."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from reconciler.lab.controllers import OverspillController
from reconciler.lab.demand import plateau
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.scenario import ClusterScenario, DemandScenario, Outage, Scenario, Series
from reconciler.lab.simulation import Result, simulate
from reconciler.model.ids import ClusterName

MINUTE, HOUR = 60, 3600
SERVING = (Path(__file__).parents[2] / "repo-layout" / "policies" / "serving.yaml").read_bytes()
FREE = SERVING.replace(b"    maxReplicas: 4\n", b"")
"""The same policy without a bound for one cluster."""


def run(*clusters: ClusterScenario, policy: bytes = FREE, hours: int = 4) -> Result:
    scenario = Scenario(
        name="moves",
        about="four replicas too many, and clusters that come and go",
        length=hours * HOUR,
        demands=(DemandScenario(name="vllm", wanted=plateau(1, 4, begin=600, end=hours * HOUR), home=1),),
        clusters=clusters,
    )
    return simulate(scenario, partial(OverspillController, files=fleet_files(scenario, policy)))


def hosting(number: int, **fields: object) -> ClusterScenario:
    return ClusterScenario(name=ClusterName(f"worker-{number}"), nodes=1, price=1.0, **fields)


def by_turns(*, period: int, hours: int, first: bool) -> Series:
    """Take all of a cluster in every other period."""
    return Series.of((second, 8 * ((second // period + first) % 2)) for second in range(0, hours * HOUR, period))


@pytest.mark.parametrize(("seen", "most"), [(True, 0.03), (False, 0.06)])
def test_a_cluster_that_is_gone_for_two_hours_costs_minutes(seen: bool, most: float) -> None:
    away = Outage(begin=HOUR, end=3 * HOUR, seen=seen)
    result = run(hosting(2, outages=(away,)), hosting(3))
    assert result.unmet < most
    assert (result.moves, result.lost.get("NothingFits")) == (1, None)


def test_owners_who_take_their_room_back_cost_one_start_and_the_burst_does_not_return() -> None:
    result = run(hosting(2, owners=by_turns(period=HOUR, hours=8, first=False)), hosting(3), hours=8)
    assert (result.moves, result.starts) == (1, 10)
    assert result.unmet < 0.02


def test_replicas_without_another_cluster_wait_for_their_owners_to_leave() -> None:
    full = hosting(3, owners=Series.of([(0, 8)]))
    result = run(hosting(2, owners=by_turns(period=HOUR, hours=8, first=False)), full, hours=8)
    assert (result.moves, result.lost.get("NothingFits"), result.lost.get("CoolingDown")) == (0, None, None)
    # The owners are there for four of these hours; beside that each return costs the start-up alone.
    assert result.unmet < (4 * HOUR + 5 * 3 * MINUTE) / (470 * MINUTE)


@pytest.mark.parametrize(("allowed", "budget"), [(b"", 6), (b"  moves: {maxPerHour: 2, backAfter: 0s}\n", 2)])
def test_owners_who_take_turns_every_ten_minutes_cause_no_more_moves_than_the_budget(
    allowed: bytes, budget: int
) -> None:
    policy = FREE.replace(b"  scaleUp:\n", allowed + b"  scaleUp:\n")
    clusters = (hosting(2 + first, owners=by_turns(period=600, hours=4, first=bool(first))) for first in (0, 1))
    result = run(*clusters, policy=policy)
    assert 0 < result.moves <= 4 * budget
