"""EGS's own template counts the objects of its release; what is not there is told in the status and once in the log."""

from __future__ import annotations

import json

from reconciler.core.commits.events import of_held_back
from reconciler.core.observe import observation_file
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.daemon.status import status
from reconciler.model.action import Action
from reconciler.model.capacity import Observed
from reconciler.model.plan import Reason
from reconciler.model.workload import Json
from reconciler.text.timestamps import format_time
from tests.builders.egs_samples import sample
from tests.builders.fleet_files import FLEET, workspace
from tests.builders.inputs import NOW
from tests.fakes.memory_repository import OURS, MemoryRepository
from tests.stories.golden import Scene


def outcome(release: str) -> Outcome:
    """Run one pass over EGS's template, whose chart's Deployment is three replicas short."""
    engine: Json = {
        "kind": "Deployment",
        "namespace": "vllm-demo",
        "name": "vllm-llama3-deployment-vllm",
        "release": release,
        "wanted": 4,
        "running": 1,
        "unschedulable": [{"replicas": 3, "since": "2026-01-01T00:00:00Z"}],
        "replica": {"requests": {"nvidia.com/gpu": 1}},
    }
    nodes = [{"name": "node-1"}, {"name": "node-2"}]
    room = [{"name": "gpus", "allocatable": {"nvidia.com/gpu": 8}, "nodes": nodes}]
    head = {"apiVersion": "overspill.dev/v1alpha1", "kind": "Observation", "observedAt": format_time(NOW)}
    seen = [{**head, "cluster": "worker-1", "workloads": [engine]}, {**head, "cluster": "worker-2", "pools": room}]
    clusters = {one.cluster: one for one in observation_file.read(json.dumps({"items": seen}).encode(), "seen")}
    scene = Scene(moment=NOW, observed=Observed(clusters=clusters))
    open_workspace = workspace(more="allowUnpinnedCharts: true").replace("llm-demo", "vllm-demo")
    template = sample("workload-template.yaml").replace("kubeslice-avesha", "kubeslice-acme")
    repository = MemoryRepository({**FLEET, "workspaces/llm.yaml": open_workspace, "templates/vllm.yaml": template})
    memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
    return reconcile_once(World(repository=repository, clusters=scene, charts=None, clock=scene, author=OURS), memory)


def test_egs_own_template_bursts_on_the_chart_that_it_names() -> None:
    made = outcome("vllm")
    assert [
        (change.placement.cluster, change.placement.replicas)
        for change in made.plan.changes
        if change.action is Action.PLACE
    ] == [("worker-2", 1)]
    (row,) = status(made.decision).workloads
    assert (row.wanted, row.running, row.deficit) == (4, 1, 3)


def test_a_release_that_is_not_there_is_told_in_the_status_and_once_in_the_log() -> None:
    made = outcome("")
    (row,) = status(made.decision).workloads
    (held,) = row.suppressed
    assert held.reason is Reason.NOT_FOUND
    assert "it reports vllm-demo/vllm-llama3-deployment-vllm" in held.message
    now = {(held.workload, held.reason): held}
    assert [event.line for event in of_held_back({}, now, (), NOW)] == [f"{held.workload}: {held.message}"]
    assert [*of_held_back(now, now, (), NOW)] == []
