"""What docs/reference/observations.md and docs/how-to/observations.md show is true."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.core.capacity.device_selectors import parse_selector
from reconciler.core.observe import observation_file
from reconciler.core.schema import json_schema
from reconciler.model.ids import PlacementName
from reconciler.model.rollout import EngineState
from reconciler.model.units import ONE

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "how-to" / "observations.md").read_text()
FORMAT = (DOCS / "reference" / "observations.md").read_text()


@pytest.fixture
def example() -> bytes:
    found = re.search(r"```yaml\n(.*?)```", FORMAT, re.DOTALL)
    assert found
    return found[1].encode()


def test_example_is_read_as_the_page_tells_it(example: bytes) -> None:
    (seen,) = observation_file.read(example, "docs/reference/observations.md")
    assert (seen.cluster, seen.observed_at) == ("worker-1", datetime(2026, 11, 20, 10, tzinfo=UTC))
    (pool,) = seen.pools
    assert {node.name: node.free.amounts["nvidia.com/gpu"] for node in pool.nodes} == {"gpu-1": 0, "gpu-2": 5 * ONE}
    (workload,) = seen.workloads
    assert (workload.wanted, workload.running) == (6, 3)
    assert [waiting.replicas for waiting in workload.waiting] == [2, 1]
    assert [(ask.signal, ask.replicas, ask.beyond) for ask in workload.asks] == [("hpa llm/vllm", 2, True)]
    assert workload.deficit_since == datetime(2026, 11, 20, 9, 59, 40, tzinfo=UTC)
    assert workload.shape
    assert workload.shape.requests.amounts["nvidia.com/gpu"] == ONE
    assert seen.bound == {PlacementName("vllm-7f3a90c1"): 2}
    assert seen.ready == {PlacementName("vllm-7f3a90c1"): 1}
    (pending_pods,) = seen.pending_pods.values()
    assert (pending_pods.replicas, pending_pods.since) == (1, datetime(2026, 11, 20, 9, 59, 30, tzinfo=UTC))
    (report,) = seen.reports.values()
    assert (report.state, report.digest) == (EngineState.PROGRESSING, "sha256-3b1c")


def test_every_field_of_the_format_is_told() -> None:
    table = "\n".join(line for line in FORMAT.splitlines() if line.startswith("|"))
    told = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", table))))
    parts = json_schema("Observation")["$defs"]
    fields = {
        name
        for part in (
            "NodeFile",
            "PoolFile",
            "WaitingFile",
            "BlockedFile",
            "ObservedSignalFile",
            "WorkloadFile",
            "PlacedFile",
            "HomelessFile",
        )
        for name in parts[part]["properties"]
    }
    assert fields | set(json_schema("Observation")["properties"]) - {"apiVersion", "kind"} <= told


def test_fields_in_bold_are_those_that_the_schema_requires() -> None:
    schema = json_schema("Observation")
    required = {"": {*schema["required"]}}
    for part in (schema, *schema["$defs"].values()):
        for name, field in part.get("properties", {}).items():
            items = next(
                (each["items"] for each in (field, *field.get("anyOf", ())) if "$ref" in each.get("items", {})), {}
            )
            if items:
                required[name] = {*schema["$defs"][items["$ref"].rpartition("/")[2]].get("required", ())}
    bold = set[str]()
    for names, meaning in re.findall(r"^\| (.*?) \| (.*) \|$", FORMAT, re.MULTILINE):
        owner = ""
        for marks, path in re.findall(r"(\**)`([^`]+)`", names):
            prefix, _, name = path.rpartition(".")
            owner = prefix.removesuffix("[]") or owner
            assert (marks == "**") == (name in required.get(owner, ())), path
            inside = re.findall(r"(\**)`([^`]+)`", meaning) if name in required else []
            for mark, field in inside:
                assert (mark == "**") == (field in required[name]), f"{path}: {field}"
            bold |= {f"{owner}.{name}"} if marks else {f"{name}.{field}" for mark, field in inside if mark}
    assert {"workloads.wanted", "blocked.reason", "placements.bound", "resourceQuotas.hard"} <= bold


def test_every_selector_that_it_shows_is_understood_and_no_other_expression() -> None:
    (shown,) = re.findall(r"^```text\n(device\..*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    driver, model, cores, memory = (line.partition("  ")[0] for line in shown.splitlines())
    joined = f"({driver} && !({model})) || {cores}"
    texts = [model.replace("==", "!="), model.replace("== ", "in [") + "]"]
    calls = [model.replace(" == ", f".{word}(") + ")" for word in ("startsWith", "endsWith", "contains")]
    sizes = [re.sub(r"compareTo(.*) >= 0", rf"{word}\1", memory) for word in ("isGreaterThan", "isLessThan")]
    for expression in (driver, model, cores, memory, joined, *texts, *calls, *sizes):
        assert parse_selector(expression) is not None, expression
    assert parse_selector('device.driver.matches("gpu.*")') is None
