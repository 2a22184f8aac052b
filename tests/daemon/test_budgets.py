"""Budgets through whole passes: what is spent comes from git, so that a restart knows as much."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.plan import Reason
from tests.builders.passes import SOURCE_FILES, START, Passes, seconds
from tests.daemon.test_costs import HOURLY, clusters
from tests.fakes.memory_repository import MemoryRepository

BUDGET = "  budget: {perDay: 10}\n"
POLICY = {"policies.yaml": HOURLY["policies.yaml"] + "  duration: {renew: WhileNeeded}\n" + BUDGET}
TENANT = {"workspaces.yaml": SOURCE_FILES["workspaces.yaml"].replace("[demo]}", "[demo], budget: {perMonth: 10}}")}
REQUEST = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: job, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  clusterNames: [worker-3]
  burstDuration: 1h
  manifestResources:
    - name: job
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: job, namespace: demo}
        spec:
          containers:
          - {name: a, image: "registry.example.com/a:1.0", resources: {limits: {nvidia.com/gpu: 1}}}
  steps: [{name: job, type: manifest}]
"""


def spending(**files: str) -> Passes:
    """Run four GPUs at 2 $ from the start: 8 $ an hour."""
    passes = Passes(MemoryRepository({**HOURLY, **clusters(2.0), **files}))
    passes.missing = 4
    passes.run_once()
    return passes


def held_and_warnings(passes: Passes) -> tuple[list[Reason], list[str]]:
    """Return what a pass holds back, and its warnings of budgets."""
    decision = passes.look()
    warnings = [problem.message for problem in decision.problems if "budget" in problem.message]
    return [held.reason for held in decision.plan.suppressed], warnings


@pytest.mark.parametrize("files", [POLICY, TENANT])
def test_a_budget_warns_and_then_holds_back(files: dict[str, str]) -> None:
    passes = spending(**files)
    period = "2026-11-20" if files is POLICY else "2026-11"
    owner = "policy gpu" if files is POLICY else "workspace llm"
    passes.moment += seconds(3599)
    assert held_and_warnings(passes) == ([], [])
    passes.moment += seconds(1)
    assert held_and_warnings(passes) == ([], [f"80% of the budget of {owner} for {period}, 10.00 $, are spent"])
    passes.moment += seconds(899)
    passes.missing = 6
    assert passes.look().plan.changes
    passes.moment += seconds(1)
    assert held_and_warnings(passes)[0] == [Reason.OVER_BUDGET]
    assert not passes.look().plan.changes


def test_a_restart_and_the_other_daemon_know_what_is_spent() -> None:
    passes = spending(**POLICY)
    for _ in range(5):
        passes.advance(900)
        passes.run_once()
    assert "used up" in held_and_warnings(passes)[1][0]
    spent = passes.look().inputs.budgets
    passes.restart()
    assert passes.look().inputs.budgets == spent
    assert spent.states[0].spent == 10


def test_the_next_day_begins_with_all_of_it() -> None:
    passes = spending(**POLICY)
    passes.advance(9000)
    passes.run_once()
    passes.missing = 6
    assert held_and_warnings(passes)[0] == [Reason.OVER_BUDGET]
    assert passes.look().plan.wake_at is not None
    passes.moment = START + timedelta(hours=14)
    passes.run_once()
    passes.advance(1)
    assert held_and_warnings(passes) == ([], [])
    assert sum(placement.replicas for placement in passes.placements()) == 6


def test_a_request_is_held_back_by_its_workspace_alone() -> None:
    passes = spending(**POLICY, **{"requests/job.yaml": REQUEST})
    passes.advance(9000)
    passes.missing = 0
    assert held_and_warnings(passes)[0] == []
    passes = spending(**TENANT)
    passes.advance(9000)
    passes.missing = 0
    passes.repository.person("source", {"requests/job.yaml": REQUEST})
    passes.run_once()
    assert [held.reason for held in passes.look().plan.suppressed] == [Reason.OVER_BUDGET]


def test_gpus_without_a_price_are_told() -> None:
    passes = spending(**POLICY, **clusters(None))
    passes.advance(3600)
    message = "the budget of policy gpu for 2026-11-20, 10.00 $, leaves out GPU-hours on clusters without a price"
    assert held_and_warnings(passes) == ([], [message])


def test_a_pass_without_changes_reads_nothing_for_its_budgets() -> None:
    passes, sections = spending(**POLICY), []
    passes.look()
    passes.repository.section = lambda *_, **__: sections.append("read")
    passes.advance(60)
    assert passes.look().inputs.budgets.states[0].spent == 0.1333
    assert sections == []


def test_a_fleet_without_budgets_measures_none() -> None:
    passes = spending()
    assert passes.look().inputs.budgets.states == ()
    assert passes.memory.budgets._costs is None


def test_a_pass_can_be_looked_at_for_tomorrow() -> None:
    passes = spending(**POLICY)
    passes.moment = START + seconds(9000)
    assert passes.look().inputs.budgets.states[0].is_used_up
    passes.moment = START + timedelta(days=1)
    assert passes.look().inputs.budgets.states[0].period == "2026-11-21"
