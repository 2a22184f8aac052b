"""Passes while charts are rendered in the background: everything else goes on, and nothing changes its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.core.decide.state.pass_input import EarlierFailures
from reconciler.core.recording.pass_record import RECORD, PassKind, PassRecord, read_record
from reconciler.daemon.reconcile import Outcome, World, draft
from reconciler.errors import Conflict, Pending
from reconciler.model.bounds import TEMPLATE_ROUNDS
from reconciler.model.capacity import Observed
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Reason
from reconciler.model.workload import HelmConfig, Json
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.fakes.memory_repository import MemoryRepository, refuse_next_push

CHARTED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata:
  name: stack
  annotations: {overspill.dev/workload: Deployment/demo/stack}
spec:
  workspaceName: llm
  burstDuration: 10m
  helmConfig:
    - name: stack
      chart: a/stack
      repoName: a
      repoURL: https://charts.example.com
      version: 1.0.0
      releaseName: stack
      releaseNamespace: demo
      values: {replicas: "{{ replicas }}", name: "{{ placement.name }}", until: "{{ placement.expiresAt }}"}
  steps: [{name: stack, type: helm}]
"""


class Kitchen:
    """Renders a chart once it has been `served`: by its values."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Json]] = []
        self.served: list[Mapping[str, Json]] = []

    def serve(self) -> None:
        """Render all that has been asked for."""
        self.served, self.asked = [*self.served, *self.asked], []

    def available(self) -> bool:
        return True

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[Mapping[str, Json], ...]:
        if chart.values not in self.served:
            self.asked.append(chart.values)
            raise Pending("being rendered")
        manifest = yaml_deployment(chart.values)
        return (manifest,)


def yaml_deployment(values: Mapping[str, Json]) -> Mapping[str, Json]:
    pod = {"containers": [{"name": "server", "image": "registry.example.com/vllm:1.0"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "stack", "namespace": "demo", "annotations": {"until": values["until"]}},
        "spec": {
            "replicas": values["replicas"],
            "selector": {"matchLabels": {"app": "stack"}},
            "template": {"metadata": {"labels": {"app": "stack"}}, "spec": pod},
        },
    }


class Charted(Passes):
    """Passes over a workload of manifests, and one of a chart."""

    def __init__(self) -> None:
        self.kitchen = Kitchen()
        super().__init__(MemoryRepository({**SOURCE_FILES, "stack.yaml": CHARTED}))
        self.names = ("vllm",)

    def observe(self) -> Observed:
        return replace(super().observe(), helm=True)

    def world(self) -> World:
        return replace(super().world(), charts=self.kitchen)

    def names_placed(self) -> list[str]:
        return sorted(placement.workload.name for placement in self.placements())


@pytest.fixture
def passes() -> Charted:
    return Charted()


def reasons(outcome: Outcome) -> set[Reason]:
    return {refusal.reason for entry in outcome.rendered.suppressed for refusal in entry.refusals}


def test_expiries_and_placements_of_others_wait_for_no_chart(passes: Charted) -> None:
    passes.missing = 1
    passes.run()
    passes.advance(600)
    passes.names = ("vllm", "stack")
    outcome = passes.run_once()
    assert "Revert" in str(outcome.rendered.titles), "the expired burst ends in the pass that first asks for a chart"
    assert passes.kitchen.asked
    assert "stack" not in passes.names_placed()
    assert reasons(outcome) == {Reason.CHARTS_PENDING}
    passes.advance(5)
    passes.kitchen.serve()
    passes.run_once()
    assert "stack" in passes.names_placed()


def test_values_that_name_the_placement_and_its_end_are_those_of_the_record(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    decided = passes.now()
    for _ in range(3):
        passes.advance(7)
        passes.run_once()
    assert len({str(values) for values in passes.kitchen.asked}) == 1, "each pass asks for the same"
    passes.kitchen.serve()
    passes.run_once()
    (placement,) = passes.placements()
    (values,) = passes.kitchen.served[:1]
    assert values["name"] == placement.name
    assert placement.created_at == decided
    assert placement.expires_at == decided + seconds(600)
    assert passes.memory.begun == {}


def test_burst_whose_time_went_by_waiting_begins_when_it_is_placed(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.advance(599)
    passes.run_once()
    passes.kitchen.serve()
    passes.run_once()
    (placement,) = passes.placements()
    assert placement.created_at == passes.now()


def test_resize_waits_for_its_chart_and_keeps_what_runs(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.kitchen.serve()
    passes.run_once()
    passes.advance(60)
    passes.missing = 3
    passes.run_once()
    assert [placement.replicas for placement in passes.placements()] == [1]
    passes.kitchen.serve()
    passes.run_once()
    assert sum(placement.replicas for placement in passes.placements()) > 1


def test_placement_that_has_to_move_stays_until_its_chart_is_rendered(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.kitchen.serve()
    passes.run_once()
    (before,) = passes.placements()
    other = "worker-3" if before.cluster == "worker-2" else "worker-2"
    policy = SOURCE_FILES["policies.yaml"].replace(f"{{name: {before.cluster}}}", "").replace("[, ", "[")
    passes.repository.person("source", {"policies.yaml": policy.replace(", ]", "]")})
    passes.advance(5)
    outcome = passes.run_once()
    assert [placement.cluster for placement in passes.placements()] == [before.cluster]
    assert Reason.CHARTS_PENDING in {entry.reason for entry in outcome.rendered.suppressed}
    passes.kitchen.serve()
    passes.advance(5)
    passes.run_once()
    assert [placement.cluster for placement in passes.placements()] == [other]


@pytest.mark.parametrize("number", [TEMPLATE_ROUNDS.most, 3 * TEMPLATE_ROUNDS.most])
def test_chart_behind_failing_templates_is_rendered_once_and_placed(passes: Charted, number: int) -> None:
    failing = SOURCE_FILES["template.yaml"].replace("registry.example.com/vllm:1.0", "'{{ cluster.labels.nope }}'")
    names = [f"a{index:03}" for index in range(number)]
    passes.repository.person("source", {f"{name}.yaml": failing.replace("vllm", name) for name in names})
    passes.names = (*names, "stack")
    passes.missing, passes.free = 1, {"worker-2": 1}
    for _ in range(number // TEMPLATE_ROUNDS.most + 2):
        passes.run_once()
        passes.kitchen.serve()
        passes.moment += seconds(30)
    assert passes.names_placed() == ["stack"]
    assert len(passes.kitchen.served) == 1


def test_chart_is_not_rendered_again_after_a_push_that_is_not_taken(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.kitchen.serve()
    refuse_next_push(passes.repository)
    with pytest.raises(Conflict):
        passes.run_once()
    passes.advance(5)
    passes.run_once()
    assert passes.names_placed() == ["stack"]


def test_chart_that_is_first_asked_for_in_a_pass_whose_push_is_not_taken_is_asked_for_once(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("vllm", "stack")
    refuse_next_push(passes.repository)
    with pytest.raises(Conflict):
        passes.run_once()
    passes.kitchen.serve()
    passes.advance(5)
    passes.run_once()
    assert passes.names_placed() == ["stack", "vllm"]


def test_workspace_of_a_pending_move_keeps_its_failures_for_the_next_pass(passes: Charted) -> None:
    passes.missing, passes.names, passes.free = 1, ("stack",), {"worker-2": 4, "worker-3": 1}
    passes.run_once()
    passes.kitchen.serve()
    passes.run_once()
    policy = SOURCE_FILES["policies.yaml"].replace("{name: worker-2}, ", "")
    passes.repository.person("source", {"policies.yaml": policy})
    passes.advance(5)
    decision, rendered = draft(passes.world(), passes.look())
    assert rendered.pending
    assert not rendered.unwritable
    failed = {(WorkloadId(WorkspaceName("llm"), TemplateName("vllm")), "worker-3"): "no such label"}
    inputs = replace(decision.inputs, unwritable=failed)
    assert EarlierFailures.after(inputs, rendered.unwritable, rendered.pending).unwritable == failed


def test_end_of_a_placement_needs_no_chart(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.kitchen.serve()
    passes.run_once()
    passes.kitchen.served = []
    passes.missing = 0
    passes.advance(700)
    passes.run_once()
    assert passes.placements() == []
    assert passes.kitchen.asked == []


def test_restart_loses_the_rendering_and_nothing_else(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.restart()
    passes.advance(3)
    passes.run_once()
    passes.kitchen.serve()
    passes.run_once()
    assert passes.names_placed() == ["stack"]


def test_recording_holds_since_when_charts_are_awaited(passes: Charted) -> None:
    passes.missing, passes.names = 1, ("stack",)
    passes.run_once()
    passes.advance(3)
    outcome = passes.run_once()
    inputs = outcome.decision.inputs
    record = PassRecord.of(inputs, outcome.decision.tips, outcome.plan, (), PassKind.WHOLE)
    assert inputs.begun
    assert read_record(RECORD.encode(record)).begun == inputs.begun
