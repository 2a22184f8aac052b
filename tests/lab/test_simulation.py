"""Whole runs: the production pass, peers' rules and the optimum on one made-up demand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from reconciler.lab.controllers import RULES, OverspillController
from reconciler.lab.demand import plateau
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.optimum import optimum
from reconciler.lab.scenario import ClusterScenario, DemandScenario, Scenario
from reconciler.lab.simulation import Result, simulate
from reconciler.model.ids import ClusterName

SCENARIO = Scenario(
    name="hour",
    about="four replicas too many for an hour",
    length=5400,
    demands=(DemandScenario(name="vllm", wanted=plateau(2, 4, begin=600, end=4200), home=2),),
    clusters=(
        ClusterScenario(name=ClusterName("worker-2"), nodes=1, gpus=2, price=3.0),
        ClusterScenario(name=ClusterName("worker-3"), nodes=1, gpus=8, price=1.0),
    ),
)
POLICY = b"""\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {name: serving}
spec:
  clusters: [{name: worker-2, maxReplicas: 4}, {name: worker-3}]
  maxReplicas: 12
  scaleUp: {window: 30s}
  scaleDown: {window: 5m}
  duration: {renew: WhileNeeded}
"""


@pytest.fixture(scope="module")
def production() -> Result:
    return simulate(SCENARIO, partial(OverspillController, files=fleet_files(SCENARIO, POLICY)))


def test_what_was_not_served_is_lost_to_the_window_the_engine_and_the_start(production: Result) -> None:
    # 4 replicas for an hour, of which 30 s are the window, 20 s the engine's delay, and 120 s the start-up.
    assert production.unmet == pytest.approx(170 / 3600)
    assert production.lost == pytest.approx(
        {"StartUp": 120 / 3600, "ScaleUpWindow": 30 / 3600, "EngineDelay": 20 / 3600}
    )
    assert sum(production.lost.values()) == pytest.approx(production.unmet)


def test_bursts_are_paid_from_their_nodes_to_the_end_of_the_scale_down_window(production: Result) -> None:
    seconds = (4200 + 300 + 20) - (600 + 30 + 20)
    assert production.gpu_hours == pytest.approx(4 * seconds / 3600)
    assert production.money == pytest.approx((2 * 3.0 + 2 * 1.0) * seconds / 3600)
    assert (production.starts, production.ended_while_needed, production.moves) == (4, 0, 0)


def test_times_to_serve_are_those_of_each_replica(production: Result) -> None:
    assert (production.time_to_serve_p50, production.time_to_serve_p99) == (170, 170)
    assert (production.longest_unserved, production.never_served, production.fairness) == (170, 0, 1.0)


def test_same_scenario_gives_the_same_figures(production: Result) -> None:
    assert simulate(SCENARIO, partial(OverspillController, files=fleet_files(SCENARIO, POLICY))) == production


def test_peers_overflow_at_once_and_hold_on_for_their_window() -> None:
    overflow, window, cheapest, peak = (simulate(SCENARIO, make) for make in RULES.values())
    assert overflow.unmet == window.unmet == cheapest.unmet == pytest.approx(140 / 3600)
    assert window.gpu_hours - overflow.gpu_hours == pytest.approx(4 * 300 / 3600)
    assert cheapest.money == pytest.approx(cheapest.gpu_hours * 1.0)
    assert (peak.unmet, peak.commits) == (0.0, 1)


def test_optimum_serves_all_for_the_least_money_and_nobody_beats_it(production: Result) -> None:
    best = optimum(SCENARIO)
    assert best.unmet == pytest.approx(0.0, abs=1e-6)
    # It starts the four in time on the cheap cluster, and ends them at once.
    assert best.gpu_hours == pytest.approx(4 * 3720 / 3600, rel=0.01)
    assert best.money == pytest.approx(best.gpu_hours)
    assert best.starts == pytest.approx(4)
    assert best.unmet <= production.unmet
    assert best.money <= production.money


def test_ten_that_need_more_than_there_is_share_it() -> None:
    demands = tuple(
        DemandScenario(name=f"vllm-{index}", wanted=plateau(1, 1 + index % 3, begin=60 * index, end=7200), home=1)
        for index in range(10)
    )
    clusters = tuple(ClusterScenario(name=ClusterName(f"worker-{number}"), nodes=1, gpus=4) for number in (2, 3))
    crowd = Scenario(name="crowd", about="ten on two fifths", length=7200, demands=demands, clusters=clusters)
    shared = simulate(crowd, partial(OverspillController, files=fleet_files(crowd, POLICY)))
    assert shared.never_served == 0
    assert shared.longest_unserved < 30 * 60
    assert shared.fairness >= 0.97
    # Nobody gives anything back where there is room for all.
    assert shared.gpu_hours > 0.9 * 8 * 2 * 0.9


def test_spare_replicas_cost_nothing_once_a_demand_is_steady() -> None:
    steady = replace(
        SCENARIO,
        length=4 * 3600,
        demands=(replace(SCENARIO.demands[0], wanted=plateau(2, 4, begin=600, end=4 * 3600)),),
    )
    hours = [
        simulate(steady, partial(OverspillController, files=fleet_files(steady, POLICY + fields))).gpu_hours
        for fields in (b"", b"  headroom: 1\n", b"  headroom: 1\n  headroomDuration: 30m\n")
    ]
    # Half an hour, and the scale-down window.
    assert [more - hours[0] for more in hours[1:]] == pytest.approx([13750 / 3600, 0.5 + 300 / 3600], abs=0.05)
