"""The parts of a long run that need no cluster: schedules, moments, the verdict, figures, and the daemon's clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.long_run import clock, demand, faults
from tests.e2e.long_run.clock import ShiftedClock
from tests.e2e.long_run.daemon import MemoryReading
from tests.e2e.long_run.demand import DemandPlayer, Rise
from tests.e2e.long_run.faults import Fault, FaultPlayer, FaultTime, PlayedFault
from tests.e2e.long_run.journal import REST, Burst, Deployed, Journal
from tests.e2e.long_run.report import STEPS, Report, latencies, over_time, percentile
from tests.e2e.long_run.scale import Scale, read_order
from tests.e2e.long_run.verdict import Verdict, differences, disturbed, early_reverts, late_reverts
from tests.e2e.long_run.watches import PlacedObject

HOUR = Scale()
SMALL = Scale(nodes=150, pods=900, bursts=24, minutes=3)
AWAY = "worker-2"


@pytest.mark.parametrize("scale", [HOUR, SMALL, Scale(bursts=1, minutes=0.5), Scale(bursts=7, minutes=10)])
def test_schedule_has_as_many_rises_as_bursts_and_no_two_of_a_workload_at_once(scale: Scale) -> None:
    rises = demand.schedule(scale)
    assert len(rises) == scale.bursts
    assert {rise.workload for rise in rises} == {*demand.workloads(scale)}
    until: dict[str, float | None] = {}
    for rise in rises:
        before = until.get(rise.workload, 0.0)
        assert before is not None
        assert before <= rise.at < scale.seconds
        until[rise.workload] = None if rise.lasts is None else rise.at + rise.lasts
    assert None in until.values(), "nothing stands in the end"


def test_schedules_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    other = Scale(bursts=24, minutes=3, seed=2)
    assert demand.schedule(SMALL) == demand.schedule(SMALL)
    assert demand.schedule(SMALL) != demand.schedule(other)


def nothing() -> None:
    """Begin or end nothing."""


def kinds(number: int) -> list[Fault]:
    return [Fault(name=f"kind {each}", begin=nothing, end=nothing, lasts=(6, 20)) for each in range(number)]


@pytest.mark.parametrize("scale", [HOUR, SMALL])
def test_faults_are_of_every_kind_and_none_begins_while_another_lasts(scale: Scale) -> None:
    times = faults.schedule(scale, kinds(12))
    assert {each.fault.name for each in times} == {f"kind {number}" for number in range(12)}
    for before, after in pairwise(times):
        assert before.at + before.lasts <= after.at
    assert times[-1].at + times[-1].lasts <= scale.seconds


def test_fault_that_cannot_be_played_is_told() -> None:
    def fail() -> None:
        raise OSError("no such process")

    fault = Fault(name="engine away", begin=fail, end=nothing, lasts=(0, 0))
    player = FaultPlayer([FaultTime(at=0, fault=fault, lasts=0)])
    player.play(threading.Event())
    assert player.failures == ["engine away: OSError: no such process"]


def test_demand_that_home_does_not_take_is_tried_again() -> None:
    journal, told = Journal(), list[tuple[str, int]]()
    answers: list[Callable[[], None]] = [lambda: (_ for _ in ()).throw(OSError("away")), nothing, nothing]

    def scale_to(workload: str, more: int) -> None:
        answers.pop(0)()
        told.append((workload, more))

    rises = (Rise(at=0, workload="load-000", replicas=2, lasts=0),)
    DemandPlayer(rises, journal, scale_to).play(0.5, threading.Event())
    assert told == [("load-000", 2), ("load-000", 0)]
    (burst,) = journal.bursts()
    assert burst.fallen is not None


def test_rises_of_a_workload_that_are_due_together_come_one_after_another() -> None:
    told = list[int]()
    rises = tuple(Rise(at=0, workload="load-000", replicas=replicas, lasts=0.1) for replicas in (4, 1))
    journal = Journal()
    DemandPlayer(rises, journal, lambda _, more: told.append(more)).play(0.5, threading.Event())
    assert told == [4, 0]
    assert len(journal.bursts()) == 1


def test_moments_of_a_burst_are_the_first_of_their_kind() -> None:
    journal = Journal()
    journal.rises("load-000", 2, 100)
    journal.sees_short(frozenset({"load-000", "other"}), 101)
    journal.sees_short(frozenset({"load-000"}), 102)
    journal.sees_branch({(AWAY, "load-000"): 2}, 103)
    journal.sees_cluster(AWAY, {"load-000": Deployed(replicas=2, ready=1)}, 105)
    journal.sees_cluster(AWAY, {"load-000": Deployed(replicas=2, ready=2)}, 106)
    assert journal.is_open("load-000")
    journal.falls("load-000", 119, 120)
    journal.sees_branch({}, 124)
    assert journal.is_open("load-000"), "its object is still there"
    journal.sees_cluster(AWAY, {}, 129)
    assert not journal.is_open("load-000")
    (burst,) = journal.bursts()
    assert [latencies([burst])[step] for step in STEPS] == [[2], [2], [1], [4], [5]]


def test_burst_stays_open_while_a_commit_may_still_land() -> None:
    journal = Journal()
    journal.rises("load-000", 1, 100)
    journal.falls("load-000", 101, 101)
    journal.sees_branch({}, 101 + REST - 1)
    assert journal.is_open("load-000")
    journal.sees_branch({}, 101 + REST)
    assert not journal.is_open("load-000")


def test_placement_that_moves_and_comes_back_is_reverted_at_the_last_time() -> None:
    journal = Journal()
    journal.rises("load-000", 1, 100)
    for at, placed in ((103, True), (110, False), (112, True), (130, False)):
        journal.sees_branch({(AWAY, "load-000"): 1} if placed else {}, at)
    (burst,) = journal.bursts()
    assert (burst.committed, burst.reverted) == ({AWAY: 103}, {AWAY: 130})
    assert burst.reverts == [(AWAY, 110), (AWAY, 130)]


def burst(fallen: float | None, reverted: float | None) -> Burst:
    made = Burst("load-000", 1, 100, falling=fallen, fallen=fallen, committed={AWAY: 110.0})
    if reverted is not None:
        made.reverted[AWAY] = reverted
        made.reverts.append((AWAY, reverted))
    return made


@pytest.mark.parametrize(
    ("fallen", "reverted", "late"),
    [(200.0, 263.0, False), (200.0, 264.0, True), (200.0, None, True), (None, None, False), (105.0, 173.0, False)],
)
def test_revert_is_late_beyond_window_and_allowance(fallen: float | None, reverted: float | None, late: bool) -> None:
    told = late_reverts([burst(fallen, reverted)], [], window=3, late=60, now=1000)
    assert bool(told) == late


def test_time_of_faults_makes_no_revert_late() -> None:
    played = [PlayedFault(name="git server away", began=190, ended=220), PlayedFault(name="x", began=250, ended=260)]
    assert disturbed(played, 200, 255) == 25
    assert not late_reverts([burst(200.0, 285.0)], played, window=3, late=60, now=1000)
    assert late_reverts([burst(200.0, 296.0)], played, window=3, late=60, now=1000)


@pytest.mark.parametrize(
    ("fallen", "reverted", "early"),
    [(200.0, 202.9, True), (200.0, 203.0, False), (200.0, 199.0, True), (200.0, None, False), (None, 150.0, True)],
    ids=["in the window", "after it", "while wanted", "not yet", "still wanted"],
)
def test_revert_is_early_before_the_window_is_over(fallen: float | None, reverted: float | None, early: bool) -> None:
    assert bool(early_reverts([burst(fallen, reverted)], window=5)) == early


def test_each_revert_of_a_burst_is_judged() -> None:
    moved = burst(200.0, 206.0)
    assert early_reverts([moved], window=5) == ()
    moved.reverts.insert(0, (AWAY, 150.0))
    (told,) = early_reverts([moved], window=5)
    assert told.endswith("reverted while its demand stood")


def test_a_window_begins_no_later_than_home_was_asked() -> None:
    slow = burst(200.0, 202.0)
    slow.falling = 197.0
    assert early_reverts([slow], window=5) == ()
    assert early_reverts([slow], window=8) != ()


PLACED = PlacedObject(name="load-000-ab", cluster=AWAY, workload="load-000", replicas=2)
THERE = {AWAY: {"load-000-ab": frozenset({"deployments/load-000"})}}


@pytest.mark.parametrize(
    ("placements", "objects", "replicas", "told"),
    [
        ([PLACED], THERE, 2, ""),
        ([], {AWAY: {}}, None, ""),
        ([PLACED], {AWAY: {}}, None, "has no object"),
        ([PLACED], THERE, 3, "has 3 replicas, and 2 on the branch"),
        ([], THERE, 2, "which is not on the branch"),
    ],
    ids=["alike", "nothing", "not applied", "other replicas", "left behind"],
)
def test_branch_and_clusters_are_compared_both_ways(
    placements: list[PlacedObject], objects: dict[str, dict[str, frozenset[str]]], replicas: int | None, told: str
) -> None:
    deployments = {AWAY: {} if replicas is None else {"load-000": Deployed(replicas=replicas, ready=0)}}
    assert [told in each for each in differences(placements, objects, deployments)] == ([True] if told else [])


def test_report_has_the_same_figures_as_table_and_as_json() -> None:
    memory = [MemoryReading(at=each, megabytes=100 + each, process=7) for each in range(25)]
    report = Report(
        scale=SMALL,
        bursts=[burst(200.0, 204.0), Burst("load-001", 1, 100)],
        faults=[PlayedFault(name="git server away", began=1, ended=9)],
        left_out=["clocks apart: no C compiler (cc)"],
        memory=memory,
        commits=3,
        stood=1,
        verdict=Verdict(left=("worker-2: Deployment vllm-demo/load-000",)),
    )
    text, figures = report.text(), json.loads(report.json())
    assert "1 placed of 2 rises, in 3 commits" in text
    assert "left out: clocks apart" in text
    assert "FAILED" in text
    assert figures["verdict"] == {
        "left": ["worker-2: Deployment vllm-demo/load-000"],
        "late": [],
        "early": [],
        "unexplained": [],
        "broken": [],
        "passed": False,
    }
    assert figures["seconds"]["demand gone to revert"] == {"number": 1, "p50": 4.0, "p99": 4.0}
    assert figures["seconds"]["revert to gone"] == {"number": 0}
    assert figures["memory"][-1] == 124


def test_percentiles_are_times_that_were_measured() -> None:
    times = [float(each) for each in range(1, 101)]
    assert [percentile(times, percent) for percent in (50, 99)] == [50, 99]
    assert percentile([3.0], 99) == 3
    assert over_time([]) == ()


def test_flags_go_before_variables_and_those_before_what_is_usual() -> None:
    order = read_order(["--nodes", "30"], {"NODES": "60", "MINUTES": "2.5"})
    assert (order.scale.nodes, order.scale.minutes, order.scale.pods) == (30, 2.5, 20_000)


@pytest.mark.parametrize("arguments", [["--nodes", "2"], ["--bursts", "0"], ["--minutes", "0"], ["--pods", "x"]])
def test_scale_without_anything_to_play_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_order(arguments, {})
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.skipif(bool(clock.missing()), reason=clock.missing())
@pytest.mark.parametrize("ahead", [75, -45])
def test_shifted_clock_moves_the_time_of_day_and_nothing_else(tmp_path: Path, ahead: int) -> None:
    shifted = ShiftedClock(tmp_path / "clock")
    shifted.put(ahead)
    asked = "import time; print(time.time(), time.monotonic())"
    environment = {**os.environ, **shifted.environment}
    earliest, begun = time.time(), time.monotonic()
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    latest, ended = time.time(), time.monotonic()
    day, steady = map(float, done.stdout.split())
    assert earliest <= day - ahead <= latest
    assert begun <= steady <= ended
