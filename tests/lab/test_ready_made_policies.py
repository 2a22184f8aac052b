"""Each policy in policies/ does what its name and its first lines say, in the simulated world."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import pytest

from reconciler.lab.controllers import OverspillController
from reconciler.lab.demand import flap, plateau
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.scenario import ClusterScenario, DemandScenario, Scenario, Series
from reconciler.lab.simulation import Result, simulate
from reconciler.model.ids import ClusterName

POLICIES = Path(__file__).parents[2] / "policies"
HOUR = 3600
DEAR, CHEAP = ClusterName("worker-2"), ClusterName("worker-3")
DELAYS = 20 + 120
"""The engine's, and the start of a pod."""


@cache
def policy(name: str) -> bytes:
    return (POLICIES / f"{name}.yaml").read_bytes()


def world(wanted: Series, *clusters: ClusterScenario, length: int = 2 * HOUR) -> Scenario:
    default = (
        ClusterScenario(name=DEAR, nodes=1, price=3.0, region="eu-west"),
        ClusterScenario(name=CHEAP, nodes=1, price=1.0, region="eu-central", capacity_type="spot"),
    )
    demands = (DemandScenario(name="vllm", wanted=wanted, home=2),)
    return Scenario(name="small", about="", length=length, demands=demands, clusters=clusters or default)


def play(name: str, scenario: Scenario) -> Result:
    return simulate(scenario, partial(OverspillController, files=fleet_files(scenario, policy(name))))


def most(result: Result, cluster: ClusterName) -> int:
    return max(sample.gpus.get(cluster, 0) for sample in result.samples)


def over(replicas: int, *, minutes: int = 60) -> Series:
    return plateau(2, replicas, begin=600, end=600 + 60 * minutes)


def test_every_ready_made_policy_has_its_test() -> None:
    text = Path(__file__).read_text()
    assert [path.stem for path in sorted(POLICIES.iterdir()) if f'"{path.stem}"' not in text] == []


def test_cheapest_first_pays_the_lowest_price() -> None:
    result = play("cheapest-first", world(over(6)))
    assert (most(result, DEAR), most(result, CHEAP)) == (0, 6)
    assert result.money == pytest.approx(result.gpu_hours * 1.0)


def test_cheapest_first_fills_the_next_one_when_the_cheapest_is_full() -> None:
    result = play("cheapest-first", world(over(12)))
    assert (most(result, CHEAP), most(result, DEAR)) == (8, 4)


def test_spiky_inference_bursts_after_fifteen_seconds_and_again_at_once() -> None:
    result = play("spiky-inference", world(flap(2, 4, period=1200, high=600, length=2 * HOUR)))
    assert result.time_to_serve_p50 == 15 + DELAYS
    assert result.lost.keys() == {"StartUp", "EngineDelay", "ScaleUpWindow"}


def test_spiky_inference_learns_where_pods_are_ready_soonest() -> None:
    clusters = (
        ClusterScenario(name=DEAR, nodes=1, start_up=900),
        ClusterScenario(name=CHEAP, nodes=1, start_up=30),
    )
    result = play(
        "spiky-inference", world(flap(2, 4, period=1800, high=900, length=3 * HOUR), *clusters, length=3 * HOUR)
    )
    cold = [sample for sample in result.samples if sample.gpus.get(DEAR) and sample.second > 2400]
    assert not cold
    assert result.time_to_serve_p50 == 15 + 20 + 30


def test_steady_serving_moves_nothing_at_a_dip() -> None:
    dip = Series.of([(0, 2), (600, 6), (2 * HOUR, 2), (2 * HOUR + 1200, 6), (4 * HOUR, 2)])
    result = play("steady-serving", world(dip, length=5 * HOUR))
    assert (result.starts, result.ended_while_needed) == (4, 0)
    assert result.time_to_serve_p99 == 120 + DELAYS


def test_batch_overnight_waits_for_ten_minutes_and_takes_interruptible_clusters_only() -> None:
    result = play("batch-overnight", world(over(12, minutes=300), length=6 * HOUR))
    assert (most(result, DEAR), most(result, CHEAP)) == (0, 8)
    assert result.time_to_serve_p50 == 600 + DELAYS
    assert (result.starts, result.ended_while_needed) == (8, 0)


def test_one_region_stays_in_its_region() -> None:
    result = play("one-region", world(over(12)))
    assert (most(result, DEAR), most(result, CHEAP)) == (8, 0)


def test_two_regions_has_replicas_in_both() -> None:
    result = play("two-regions", world(over(6)))
    assert (most(result, DEAR), most(result, CHEAP)) == (3, 3)


def test_planned_hours_serves_from_the_first_minute() -> None:
    # Eight in the morning in Berlin is seven in UTC, and the plan begins ten minutes earlier.
    wanted = Series.of([(0, 2), (7 * HOUR, 5), (10 * HOUR, 2)])
    result = play("planned-hours", world(wanted, length=11 * HOUR))
    assert result.unmet == 0
    assert result.starts == 3


def test_tight_budget_has_two_replicas_for_half_an_hour_and_a_rest() -> None:
    result = play("tight-budget", world(over(6, minutes=100), ClusterScenario(name=CHEAP, nodes=1, price=1.0)))
    assert max(sum(sample.gpus.values()) for sample in result.samples) == 2
    assert result.gpu_hours == pytest.approx(2 * 2 * 0.5, rel=0.1)
    assert "CoolingDown" in result.lost


def test_tight_budget_takes_the_cheapest_cluster() -> None:
    result = play("tight-budget", world(over(6, minutes=30)))
    assert (most(result, DEAR), most(result, CHEAP)) == (0, 2)


@pytest.mark.parametrize(("name", "bound", "window"), [("vllm-queue", 8, 60), ("triton-latency", 4, 120)])
def test_policies_with_signals_burst_for_unschedulable_pods_as_well(name: str, bound: int, window: int) -> None:
    result = play(name, world(over(10)))
    assert max(sum(sample.gpus.values()) for sample in result.samples) == bound
    assert result.time_to_serve_p50 == window + DELAYS
