"""Demand, made up and read from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.recording_files import RecordingFiles
from reconciler.core.recording.pass_record import PassRecord
from reconciler.errors import InvalidInput
from reconciler.lab import demand
from reconciler.lab.scenario import Series
from reconciler.model.ids import ClusterName
from tests.builders.recorded_passes import recorded


def test_series_leaves_out_what_changes_nothing() -> None:
    series = Series.of([(0, 2), (5, 2), (9, 3), (9, 4), (12, 2)])
    assert series.points == ((0, 2), (9, 4), (12, 2))
    assert [series.at(second) for second in (0, 8, 9, 11, 12, 99)] == [2, 2, 4, 4, 2, 2]
    assert (series.next_change(0), series.next_change(9), series.next_change(12)) == (9, 12, None)


def test_load_is_the_work_of_the_last_window(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.9799600,1000,20\n"
        "2023-11-16 18:17:13.9799600,2000,0\n"
    )
    throughput = demand.Throughput(context_tokens=100, generated_tokens=10, window=10)
    loads = demand.load(demand.read_requests(log), throughput)
    # 10 s to read and 2 s to write, over a window of 10 s; then 20 s to read.
    assert [round(value, 2) for value in loads] == [1.2] * 10 + [2.0]
    assert demand.wanted_replicas(loads).points == ((0, 2),)


def test_rows_of_a_log_may_be_in_any_order(tmp_path: Path) -> None:
    rows = ("2023-11-16 18:17:03.9,1000,20", "2023-11-16 18:15:03.9,2000,0", "2023-11-16 18:16:03.9,1,1")
    read = []
    for order in (rows, sorted(rows)):
        log = tmp_path / "log.csv"
        log.write_text("\n".join(("TIMESTAMP,ContextTokens,GeneratedTokens", *order)))
        read.append(demand.read_requests(log))
    assert read[0] == read[1]
    assert [request.second for request in read[0]] == [0, 60, 120]
    assert demand.load(read[0], demand.Throughput(context_tokens=100, generated_tokens=10))[0] > 0


def test_scaled_load_has_its_peak_above_the_room_at_home() -> None:
    loads, home = demand.scaled([1.0, 2.0, 3.0, 5.0], home_share=0.5, peak=4)
    assert (loads, home) == ([2.0, 4.0, 6.0, 10.0], 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " is empty (its first line names the columns: second,replicas)"),
        (
            "second,wanted\n0,4\n",
            (
                ":1: column replicas is missing, there are second, wanted"
                " (its first line names the columns: second,replicas)"
            ),
        ),
        ("second,replicas\n", " has no row below its columns (try another file)"),
        ("second,replicas\n0,4\n5,x\n", ":3: 'x' (a whole number is needed)"),
        ("second,replicas\n0\n", ":2: a cell is empty (a whole number is needed)"),
        ("second,replicas\n5,4\n0,4\n", ":3: '0,4' (seconds go up from 0, and replicas are not negative)"),
    ],
)
def test_fault_of_a_table_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wanted.csv").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        demand.read_wanted(tmp_path / "wanted.csv")
    assert str(refused.value) == f"{tmp_path}/wanted.csv{message}"


def test_table_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    (tmp_path / "wanted.csv").write_bytes(b"\xef\xbb\xbfsecond,replicas\r\n0,4\r\n")
    assert demand.read_wanted(tmp_path / "wanted.csv").points == ((0, 4),)


@pytest.fixture(scope="module")
def passes() -> Sequence[PassRecord]:
    return recorded()[1]


def record(directory: Path, passes: Sequence[PassRecord]) -> Path:
    recording = RecordingFiles(directory)
    for one in passes:
        recording.append(one)
    recording.close()
    return directory


def on_two_clusters(passes: Sequence[PassRecord]) -> list[PassRecord]:
    """Have a second cluster report the objects of the first, of which it wants seven."""
    made = []
    for one in passes:
        (home,) = (seen for seen in one.observed.clusters.values() if seen.workloads)
        workloads = tuple(replace(workload, wanted=7) for workload in home.workloads)
        other = replace(home, cluster=ClusterName("elsewhere"), workloads=workloads)
        clusters = {**one.observed.clusters, other.cluster: other}
        ages = {**one.ages, other.cluster: timedelta()}
        made.append(replace(one, observed=replace(one.observed, clusters=clusters), ages=ages))
    return made


def test_recorded_demand_is_what_the_object_wanted_from_pass_to_pass(
    passes: Sequence[PassRecord], tmp_path: Path
) -> None:
    (home, workload) = next(
        (seen.cluster, workload.ref) for seen in passes[0].observed.clusters.values() for workload in seen.workloads
    )
    meant = Series.of(
        (
            int((one.at - passes[0].at).total_seconds()),
            next(seen.wanted for seen in one.observed.clusters[home].workloads if seen.ref == workload),
        )
        for one in passes
    )
    name = f"{workload.namespace}/{workload.name}"
    place = record(tmp_path / "passes", passes)
    assert demand.read_recorded(place, name) == meant
    assert len(meant.points) > 4
    later = demand.read_recorded(place, name, begin=passes[0].at + timedelta(seconds=45))
    assert [later.at(second) for second in range(300)] == [meant.at(second + 45) for second in range(300)]
    twice = record(tmp_path / "twice", on_two_clusters(passes))
    assert demand.read_recorded(twice, name, cluster=home) == meant
    assert demand.read_recorded(twice, name, cluster="elsewhere").points == ((0, 7),)
    with pytest.raises(InvalidInput, match=rf"is on elsewhere, {home} \(name its primary as cluster\)"):
        demand.read_recorded(twice, name)


def test_demand_that_is_not_in_the_recording_is_told(passes: Sequence[PassRecord], tmp_path: Path) -> None:
    place = record(tmp_path / "passes", passes)
    (name,) = {
        f"{workload.ref.namespace}/{workload.ref.name}"
        for seen in passes[0].observed.clusters.values()
        for workload in seen.workloads
    }
    with pytest.raises(InvalidInput, match=f"no pass saw {name}x .try '{name}'"):
        demand.read_recorded(place, f"{name}x")
    with pytest.raises(InvalidInput, match=r"is not in it \(its passes are from 2026-11-20T10:00:00Z to"):
        demand.read_recorded(place, name, begin=passes[0].at - timedelta(seconds=1))
    with pytest.raises(InvalidInput, match="holds none"):
        demand.read_recorded(tmp_path / "none", name)


def test_damaged_recording_is_no_demand_and_one_that_is_cut_off_is(
    passes: Sequence[PassRecord], tmp_path: Path
) -> None:
    ref = next(workload.ref for seen in passes[0].observed.clusters.values() for workload in seen.workloads)
    for name, spoil in (("cut", lambda data: data[:-9]), ("damaged", lambda data: data[:50] + b"x" * 99 + data[149:])):
        (file,) = record(tmp_path / name, passes).iterdir()
        file.write_bytes(spoil(file.read_bytes()))
    assert demand.read_recorded(tmp_path / "cut", f"{ref.namespace}/{ref.name}").most
    with pytest.raises(InvalidInput, match="is damaged from here on"):
        demand.read_recorded(tmp_path / "damaged", f"{ref.namespace}/{ref.name}")


def test_made_up_demands_are_what_they_say() -> None:
    assert demand.plateau(4, 6, begin=600, end=1200).points == ((0, 4), (600, 10), (1200, 4))
    assert demand.flap(4, 6, period=100, high=30, length=200).points == (
        (0, 0), (70, 10), (100, 4), (170, 10), (200, 4)
    )  # fmt: skip # pairs, side by side
    up_and_down = [value for _, value in demand.ramp(4, 2, length=600).points]
    assert up_and_down == [4, 5, 6, 5, 4]
    day = demand.diurnal(4, 6, length=24 * 3600)
    assert day.at(14 * 3600) == day.most == 10
    assert day.at(2 * 3600) == 0
    assert demand.by_day(8, length=2 * 24 * 3600).points == (
        (0, 0), (32400, 8), (64800, 0), (118800, 8), (151200, 0)
    )  # fmt: skip # pairs, side by side
