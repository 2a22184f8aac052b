"""Child processes of all tenants together leave the daemon its part of the memory of its container."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reconciler.adapters.child_memory import helm_bounds, message_bounds
from reconciler.adapters.operating_system import memory_limit
from reconciler.model.bounds import CHART_MEMORY, CHART_PROCESSES, MESSAGE_MEMORY, MESSAGE_PROCESSES

GIB = 1 << 30
DAEMON = Path(__file__).parents[2] / "repo-layout" / "bootstrap" / "daemon.yaml"


@pytest.mark.parametrize("limit", [GIB // 2, GIB, 3 * GIB // 2, 2 * GIB, 5 * GIB, 64 * GIB])
def test_children_together_take_five_eighths_of_the_limit_at_most(limit: int) -> None:
    bounds = (helm_bounds(limit), message_bounds(limit))
    assert sum(each.processes * each.memory for each in bounds) <= limit * 5 // 8
    assert all(each.processes >= 1 for each in bounds)


def test_large_container_runs_as_many_as_the_table_says() -> None:
    helms, messages = helm_bounds(64 * GIB), message_bounds(64 * GIB)
    assert (helms.processes, helms.memory) == (CHART_PROCESSES.most, CHART_MEMORY.most)
    assert (messages.processes, messages.memory) == (MESSAGE_PROCESSES.most, MESSAGE_MEMORY.most)


def test_manifest_of_the_daemon_runs_what_the_table_says_of_its_limit() -> None:
    (daemon,) = (each for each in yaml.safe_load_all(DAEMON.read_text()) if each["kind"] == "Deployment")
    container = daemon["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["memory"] == "1Gi"
    helms, messages = helm_bounds(GIB), message_bounds(GIB)
    assert (helms.processes, messages.processes) == (1, 2)
    assert "one in 1 GiB" in CHART_PROCESSES.of
    assert "two in 1 GiB" in MESSAGE_PROCESSES.of


@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_limit_of_a_container_is_read(tmp_path: Path, file: str) -> None:
    machine = memory_limit(tmp_path)
    assert machine > GIB // 8
    (tmp_path / file).parent.mkdir(exist_ok=True)
    for text, limit in (("max\n", machine), (f"{1 << 62}\n", machine), ("1048576\n", 1 << 20)):
        (tmp_path / file).write_text(text)
        assert memory_limit(tmp_path) == limit
