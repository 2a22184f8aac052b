"""`watch` fits the fleet on a screen of any size, and counts what finds no room."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest
from rich.cells import cell_len

from reconciler.cli.actions.watch import FleetPicture, draw
from reconciler.daemon.status import ClusterStatus, FleetStatus, PlacementStatus, WorkloadStatus
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Phase
from reconciler.model.policy import EngineName
from reconciler.model.request import Provisioning
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.gpu_cells import GpuUse
from tests.builders.inputs import NOW, VLLM, placement
from tests.cli.conftest import Terminal

USES = {GpuUse.BURST: 2, GpuUse.STARTING: 1, GpuUse.HOME: 0, GpuUse.OTHER: 3, GpuUse.FREE: 2}
BOT = Identity(name="overspill", email="overspill@example.com")


def picture(clusters: int = 2, workloads: int = 2, commits: int = 9) -> FleetPicture:
    names = [ClusterName(f"worker-{number}") for number in range(1, clusters + 1)]
    ids = [WorkloadId(WorkspaceName("llm"), TemplateName(f"other-{number}")) for number in range(1, workloads)]
    there = placement("worker-2", 3)
    status = FleetStatus(
        now=NOW,
        workloads=tuple(
            WorkloadStatus(
                workload=workload, primary=names[0], policy="gpu", wanted=8, running=5, deficit=3 if number == 0 else 0,
                placed=3 if number == 0 else 0, spare=0, message="", suppressed=(),
            )
            for number, workload in enumerate([VLLM, *ids])
        ),
        requests=(),
        placements=(
            PlacementStatus(
                placement=there, phase=Phase.RUNNING, provisioning=Provisioning.SUCCESSFUL, engine=None, message="",
                unhealthy_since=None, bound=2, left=there.expires_at - NOW,
            ),
        ),
        leaving=(),
        clusters=tuple(
            ClusterStatus(
                cluster=name, engine=EngineName.ARGOCD, connection="", observed_at=NOW, reporting=True,
                message="worker-1 was last observed 5m ago, more than 2m" if name == "worker-1" else "",
            )
            for name in names
        ),
        budgets=(),
        problems=(),
        wake_at=None,
    )  # fmt: skip # rows of a screen
    log = [
        LoggedCommit(
            id=CommitId(f"{number:040x}"), at=NOW - timedelta(minutes=number), author=BOT, committer=BOT,
            subject=f"burst(llm/vllm): {number} replicas on worker-2 for 10m", body="3 pods unschedulable on worker-1.",
        )
        for number in range(1, commits + 1)
    ]  # fmt: skip # rows of a screen
    return FleetPicture(
        title="/srv/fleet.git: main -> placements", status=status, uses=dict.fromkeys(names, USES), commits=log
    )


def test_the_screen_has_cells_workloads_and_commits() -> None:
    lines = [click.unstyle(line) for line in draw(picture(), 100, 30, ascii_only=True)]
    assert lines[0].endswith("10:05:00 UTC")
    assert lines[2].startswith("worker-1  ##+xxx..  8 GPUs, 2 ours, 1 starting, 3 theirs, 2 free  worker-1 was last")
    assert lines[4].strip() == "# burst  + starting  x other  . free"
    assert lines[6].split() == ["WORKLOAD", "WANTED", "RUNNING", "MISSING", "ELSEWHERE"]
    assert "worker-2 2/3 9m" in lines[7]
    assert lines[10].split(maxsplit=1) == ["60s", "burst(llm/vllm): 1 replicas on worker-2 for 10m"]
    assert lines[11].strip() == "3 pods unschedulable on worker-1."


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 50), (60, 12), (100, 8)])
def test_a_fleet_of_any_size_fits(width: int, height: int) -> None:
    lines = [click.unstyle(line) for line in draw(picture(40, 90), width, height)]
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert any(line.startswith("… ") and line.endswith("more lines of clusters") for line in lines)


def test_watch_needs_a_terminal(overspill: Terminal) -> None:
    result = overspill("watch")
    assert (result.exit_code, "try `overspill status --watch`" in result.stderr) == (2, True)
