"""Files of kind LabScenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.adapters.recording_files import RecordingFiles
from reconciler.errors import InvalidInput
from reconciler.lab.demand import read_recorded
from reconciler.lab.scenario import AddedNodes, Outage
from reconciler.lab.scenario_file import read_scenario
from tests.builders.recorded_passes import recorded

FILE = """\
apiVersion: overspill.dev/v1alpha1
kind: LabScenario
metadata: {name: ours}
spec:
  duration: 2h
  workloads:
  - name: vllm
    home: 4
    demand:
      steps: [{at: 0s, count: 4}, {at: 10m, count: 8}]
  - name: batch
    home: 0
    gpus: 8
    demand: {table: wanted.csv}
  clusters:
  - name: worker-2
    nodes: 2
    pricePerGPUHour: 2.99
    startUp: 90s
    owners: [{at: 1h, count: 8}]
    outages: [{begin: 30m, end: 40m, seen: false}]
    autoscaling: {maxNodes: 2, delay: 5m}
"""


def read(tmp_path: Path, text: str = FILE) -> object:
    (tmp_path / "wanted.csv").write_text("second,replicas\n0,1\n")
    (tmp_path / "ours.yaml").write_text(text)
    return read_scenario(tmp_path / "ours.yaml")


def test_every_field_is_read(tmp_path: Path) -> None:
    scenario = read(tmp_path)
    vllm, batch = scenario.demands
    assert (scenario.name, scenario.length, scenario.engine_delay) == ("ours", 7200, 20)
    assert (vllm.wanted.points, vllm.home, vllm.gpus) == (((0, 4), (600, 8)), 4, 1)
    assert (batch.wanted.points, batch.gpus) == (((0, 1),), 8)
    (cluster,) = scenario.clusters
    assert (cluster.nodes, cluster.price, cluster.start_up) == (2, 2.99, 90)
    assert cluster.owners.points == ((0, 0), (3600, 8))
    assert cluster.outages == (Outage(begin=1800, end=2400, seen=False),)
    assert cluster.added == AddedNodes(most=2, delay=300, idle=600)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("home: 4", "hom: 4", "ours.yaml:8: spec.workloads[0].hom: unknown field"),
        ("{table: wanted.csv}", "{}", "ours.yaml:14: spec.workloads[1].demand: needs exactly one of steps, table"),
        (
            "{table: wanted.csv}",
            "{recording: {passes: p, workload: a/b, begin: today}}",
            "ours.yaml:14: spec.workloads[1].demand.recording.begin:",
        ),
        ("duration: 2h", "duration: 2", "ours.yaml:5: spec.duration: 2 has no unit"),
        ("name: batch", "name: vllm", "ours.yaml:6: spec.workloads: has vllm twice (try another name)"),
        ("name: worker-2", "name: worker-1", "ours.yaml:15: spec.clusters: worker-1 is the primary (say what it has"),
        ("end: 40m", "end: 30m", "ours.yaml:21: spec.clusters[0].outages[0]: end is not after begin (try end: 1h30m)"),
        (
            "{table: wanted.csv}",
            "{table: nix.csv}",
            "ours.yaml:14: spec.workloads[1].demand.table: reading {folder}/nix.csv: No such file or directory (try",
        ),
        (
            "{table: wanted.csv}",
            "{requests: {log: wanted.csv, contextTokensPerSecond: 1, generatedTokensPerSecond: 1}}",
            "ours.yaml:14: spec.workloads[1].demand.requests.log: {folder}/wanted.csv:1: column TIMESTAMP is missing",
        ),
        (
            "{table: wanted.csv}",
            "{recording: {passes: p, workload: a/b}}",
            "ours.yaml:14: spec.workloads[1].demand.recording: reading the recording: {folder}/p holds none (try",
        ),
    ],
)
def test_fault_is_told_with_its_line_and_field(tmp_path: Path, good: str, bad: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(tmp_path, FILE.replace(good, bad, 1))
    assert message.replace("{folder}", str(tmp_path)) in str(error.value)


def test_faults_of_all_demands_are_told_at_once(tmp_path: Path) -> None:
    text = FILE.replace("steps: [{at: 0s, count: 4}, {at: 10m, count: 8}]", "table: a.csv").replace(
        "wanted.csv", "b.csv"
    )
    with pytest.raises(InvalidInput) as error:
        read(tmp_path, text)
    fields = [(problem.line, problem.field) for problem in error.value.problems]
    assert fields == [(10, "spec.workloads[0].demand.table"), (14, "spec.workloads[1].demand.table")]


def test_demand_is_read_from_logs_of_requests_and_from_recorded_passes(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,600,0\n")
    log = "{requests: {log: log.csv, contextTokensPerSecond: 1, generatedTokensPerSecond: 1}}"
    _, batch = read(tmp_path, FILE.replace("{table: wanted.csv}", log)).demands
    assert batch.wanted.most == 10  # 600 tokens within a minute
    recording = RecordingFiles(tmp_path / "passes")
    records = recorded()[1]
    for one in records:
        recording.append(one)
    recording.close()
    primary, ref = next(
        (seen.cluster, workload.ref) for seen in records[0].observed.clusters.values() for workload in seen.workloads
    )
    passes = (
        f"{{passes: passes, workload: {ref.namespace}/{ref.name}, cluster: {primary}, begin: {records[1].at:%FT%TZ}}}"
    )
    _, batch = read(tmp_path, FILE.replace("{table: wanted.csv}", f"{{recording: {passes}}}")).demands
    assert batch.wanted == read_recorded(
        tmp_path / "passes", f"{ref.namespace}/{ref.name}", cluster=primary, begin=records[1].at
    )


def test_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_scenario(tmp_path / "none.yaml")
