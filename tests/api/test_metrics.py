"""/metrics: what Prometheus scrapes of a daemon is what its status and its branch say."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format
from prometheus_client.samples import Sample

from reconciler.daemon.loop import PassResult
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.model.events.event import Push
from reconciler.model.ids import CommitId
from tests.builders.daemon import OWNER, PATH, VIEWER, Daemon, small

ACCEPT = "application/openmetrics-text; version=1.0.0"
_ROW = re.compile(r"^\| `(overspill_\w+)` \| ?([\w, ]*?) ?\| (.*) \|$", re.MULTILINE)
PUSH = Push(branch="placements", old=None, new=CommitId("7" * 40), commits=2, repo_url="", paths=None)
VLLM = {"workspace": "llm", "workload": "vllm"}


def scrape(daemon: Daemon, token: str = OWNER, accept: str = ACCEPT) -> tuple[str, str]:
    """Return the content type and the text."""
    headers = {"Authorization": f"Bearer {token}", "Accept": accept}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.headers["Content-Type"], response.read().decode()


def families(text: str) -> Mapping[str, Metric]:
    return {family.name: family for family in openmetrics(text)}


def sample(text: str, name: str, **labels: str) -> Sample:
    (found,) = [
        each
        for family in openmetrics(text)
        for each in family.samples
        if each.name == name and labels.items() <= each.labels.items()
    ]
    return found


@pytest.fixture
def bursting(running: Daemon) -> Daemon:
    """Let three replicas be missing until they are placed."""
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: "burst(" in running.remote.git("log", "--format=%s", "--all"))
    running.until(lambda: sample(scrape(running)[1], "overspill_workload_placed_replicas", **VLLM).value)
    return running


def test_figures_of_a_burst_are_those_of_status_and_its_commit(bursting: Daemon) -> None:
    kind, text = scrape(bursting)
    assert kind.startswith("application/openmetrics-text")
    status = bursting.call("GET", "/api/v1/status").body["data"]
    (row,) = [each for each in status["workloads"] if each["workload"] == "llm/vllm"]
    (row_placed,) = status["placements"]
    for name, value in (
        ("wanted", row["wanted"]), ("running", row["running"]), ("missing", row["deficit"]), ("placed", row["placed"]),
        ("unserved", 3),
    ):  # fmt: skip # a list of words
        assert sample(text, f"overspill_workload_{name}_replicas", **VLLM).value == value, name
    burst = {**VLLM, "cluster": row_placed["placement"]["cluster"]}
    assert sample(text, "overspill_burst_replicas", **burst).value == 3
    assert sample(text, "overspill_burst_gpus", **burst).value == 3
    assert sample(text, "overspill_workload_missing_gpus", **VLLM).value == 3
    assert sample(text, "overspill_workload_unserved_gpus", **VLLM).value == 3
    assert sample(text, "overspill_git_calls_total", command="push", result="ok").value == bursting.pushed()
    ends = datetime.fromisoformat(row_placed["placement"]["expiresAt"]).timestamp()
    assert sample(text, "overspill_burst_expiry_timestamp_seconds", **VLLM).value == ends
    assert sample(text, "overspill_placements", workspace="llm", phase="Pending").value == 1
    uses = {each.labels["use"]: each.value for each in families(text)["overspill_cluster_gpus"].samples
            if each.labels["cluster"] == burst["cluster"]}  # fmt: skip # GPUs by use
    assert sum(uses.values()) == bursting.sight.free[burst["cluster"]]
    assert uses["starting"] == sample(text, "overspill_placed_gpus", workspace="llm", cluster=burst["cluster"]).value
    assert sample(text, "overspill_events_total", kind="placed").value == 1
    pushed = bursting.remote.git("rev-list", "--count", "placements")
    assert sample(text, "overspill_commits_total").value == int(pushed)
    tip = bursting.remote.git("rev-parse", "placements").strip()
    delay = families(text)["overspill_commit_delay_seconds"]
    (exemplar,) = [each.exemplar for each in delay.samples if each.exemplar]
    assert tip.startswith(exemplar.labels["commit"])
    assert exemplar.value >= 300  # they have been missing for five minutes
    assert sample(text, "overspill_passes_total", result="ok").value >= 2
    measured = {each.labels["phase"] for each in families(text)["overspill_pass_phase_duration_seconds"].samples}
    assert measured == {"fetch", "read", "decide", "write", "push"}


def test_caller_of_one_workspace_gets_its_gauges_alone(bursting: Daemon) -> None:
    assert bursting.call("POST", PATH, small("asked")).status == 200
    _, text = scrape(bursting, VIEWER)
    told = families(text)
    assert sample(text, "overspill_request_replicas", workspace="abc", cluster="worker-1").value == 1
    assert sample(text, "overspill_cluster_observed", cluster="worker-2").value == 1
    assert not any(each.labels.get("workspace", "abc") != "abc" for family in told.values() for each in family.samples)
    assert "vllm" not in text
    assert "worker-3" not in text
    assert "overspill_passes" not in told


def test_older_scrapers_get_the_text_format(running: Daemon) -> None:
    kind, text = scrape(running, accept="text/plain")
    assert kind.startswith("text/plain")
    assert {family.name for family in text_format(text)} >= {"overspill_passes", "overspill_cluster_observed"}


def test_calls_count_by_their_route_and_not_by_what_callers_write(running: Daemon) -> None:
    for path in ("/api/v1/workload-template/vllm", "/api/v1/workload-template/nothing", "/nowhere/1", "/nowhere/2"):
        running.call("GET", path)
    _, text = scrape(running)
    calls = families(text)["overspill_http_request_duration_seconds"].samples
    counts = {(each.labels["route"], each.labels["code"]): each.value for each in calls if each.name.endswith("_count")}
    assert counts["/api/v1/workload-template/{name}", "200"] == 1
    assert counts["/api/v1/workload-template/{name}", "404"] == 1
    assert counts["none", "404"] == 2


def test_every_metric_is_explained_and_has_labels_of_bounded_number(bursting: Daemon) -> None:
    described = {"workspace", "workload", "cluster", "owner"}
    ours = {
        "reason",
        "provisioning_status",
        "command",
        "verb",
        "phase",
        "use",
        "owner_kind",
        "period",
        "result",
        "kind",
        "method",
        "route",
        "code",
        "le",
        "version",
    }
    for family in families(scrape(bursting)[1]).values():
        assert family.name.startswith("overspill_")
        assert family.documentation.endswith(".")
        assert {label for each in family.samples for label in each.labels} <= described | ours, family.name


def test_page_lists_every_metric_with_its_labels_and_its_meaning(bursting: Daemon) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
    rows = {name: (labels, meaning) for name, labels, meaning in _ROW.findall(page)}
    told = families(scrape(bursting)[1])
    assert {name.removesuffix("_total") for name in rows} == set(told)
    for name, (labels, meaning) in rows.items():
        family = told[name.removesuffix("_total")]
        assert family.documentation.rstrip(".") == meaning
        used = {label for each in family.samples for label in each.labels} - {"le"}
        assert used in (set(), {*filter(None, labels.split(", "))}), name


def test_nobody_reads_it_without_a_token(running: Daemon) -> None:
    assert running.call("GET", "/metrics", token="").status == 401


def test_results_of_passes_and_bugs_count() -> None:
    process = ProcessMetrics(output_branch="placements", orders=lambda: 2, bugs=lambda: 3, lost=lambda: True)
    assert process.registry.get_sample_value("overspill_branch_lost") == 1
    assert process.registry.get_sample_value("overspill_host_key_changed") == 0
    process.count_pass(PassResult.CONFLICT, 0.1)
    process.publish((), (PUSH, replace(PUSH, branch="placements-worker-2")))
    told = process.registry.get_sample_value
    assert told("overspill_passes_total", {"result": "conflict"}) == 1
    assert told("overspill_passes_total", {"result": "ok"}) == 0
    assert told("overspill_commits_total") == 2
    assert (told("overspill_orders_waiting"), told("overspill_bugs_total")) == (2, 3)
