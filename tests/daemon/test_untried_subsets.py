"""Replicas whose first subset is not rendered yet wait for it, and go to no later one."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.daemon.answers.preview import later_input
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.model.bounds import SUBSET_WORK
from reconciler.model.plan import Reason
from tests.builders.passes import SOURCE_FILES, Passes
from tests.daemon.test_failing_templates import LONG, fleet, template, told

NUMBER = 1 + SUBSET_WORK.most // 90_000
"""Workloads with a long template, whose subsets take all that a pass renders."""


def spread(name: str, *subsets: str) -> str:
    """Write the WorkloadSpread of a workload, of subsets in flow style."""
    return f"""\
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {{name: {name}, namespace: demo}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  subsets: [{", ".join(f"{{{subset}}}" for subset in subsets)}]
"""


def subset(name: str, cluster: str, gpus: int | None = None) -> str:
    """Write a subset on one cluster, whose pods ask for a number of GPUs by its patch, if any."""
    terms = f"matchFields: [{{key: metadata.name, operator: In, values: [{cluster}]}}]"
    patch = f"spec: {{containers: [{{name: server, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]}}"
    return f"name: {name}, requiredNodeSelectorTerm: {{{terms}}}" + (f", patch: {{{patch}}}" if gpus else "")


def spread_files(names: tuple[str, ...]) -> dict[str, str]:
    """Write workloads whose only subset fits nowhere, and behind them one that fits in each of its two subsets."""
    one_gpu = ":1.0, resources: {limits: {nvidia.com/gpu: 1}}}"
    policies = SOURCE_FILES["policies.yaml"].replace("  clusters: [{name: worker-2}, {name: worker-3}]\n", "")
    return {
        "policies.yaml": policies,
        **{f"{name}.yaml": template(name, note=LONG).replace(":1.0}", one_gpu) for name in names},
        **{f"{name}-spread.yaml": spread(name, subset("own", "worker-2", 7)) for name in names},
        "b.yaml": template("b", note="x").replace(":1.0}", one_gpu),
        "b-spread.yaml": spread("b", subset("own", "worker-2", 1), subset("rented", "worker-3")),
    }


def spreading() -> Passes:
    passes = fleet(NUMBER, LONG)
    passes.repository.person("source", spread_files(passes.names[:NUMBER]))
    passes.names, passes.missing = (*passes.names[:NUMBER], "b"), 1
    passes.free = {"worker-2": 4, "worker-3": 4}
    return passes


def test_replicas_wait_for_their_first_subset_and_go_to_no_later_one() -> None:
    passes = spreading()
    outcome = passes.run_once()
    assert passes.placements() == []
    assert told(outcome, "b") == {Reason.NOTHING_FITS, Reason.UNTRIED}
    refusals = [each for entry in outcome.rendered.suppressed if entry.workload.name == "b" for each in entry.refusals]
    assert [refusal.where for refusal in refusals] == ["worker-2/own", "worker-3/rented"]
    assert {refusal.remedy.partition(":")[0] for refusal in refusals} == {"wait"}
    passes.advance(30)
    passes.run_once()
    assert [(each.workload.name, each.subset) for each in passes.placements()] == [("b", "own")]


POLICIES = spread_files(())["policies.yaml"]
OTHER = SOURCE_FILES["workspaces.yaml"].replace("name: llm", "name: other")
CHANGES: dict[str, Callable[[int], dict[str, str]]] = {
    "a README": lambda number: {"README.md": f"note {number}\n"},
    "the weight of another workspace": lambda number: {
        "workspaces.yaml": SOURCE_FILES["workspaces.yaml"]
        + "---\n"
        + OTHER.replace("spec: {", f"spec: {{fairShare: {{weight: {number + 2}}}, ")
    },
    "the weight of the workspace itself": lambda number: {
        "workspaces.yaml": SOURCE_FILES["workspaces.yaml"].replace(
            "spec: {", f"spec: {{fairShare: {{weight: {number + 2}}}, "
        )
        + "---\n"
        + OTHER
    },
    "the price of a cluster": lambda number: {
        "clusters.yaml": SOURCE_FILES["clusters.yaml"].replace(
            "spec: {}", f"spec: {{pricePerGPUHour: {number + 1}}}", number + 1
        )
    },
    "a new cluster": lambda number: {
        f"clusters/{number}.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: spare-{number}}}\nspec: {{}}\n"
    },
    "the priority of the policy": lambda number: {"policies.yaml": f"{POLICIES}  priority: {number + 1}\n"},
    "a comment before a template": lambda number: {"b.yaml": "#\n" * (number + 1) + spread_files(())["b.yaml"]},
    "a comment before a spread": lambda number: {
        "b-spread.yaml": "#\n" * (number + 1) + spread_files(())["b-spread.yaml"]
    },
    "another template of the same file": lambda number: {
        "b.yaml": spread_files(())["b.yaml"] + "---\n" + template("c", note=f"v{number}")
    },
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_commit_that_changes_nothing_of_a_workload_keeps_what_is_rendered_of_it(
    change: Callable[[int], dict[str, str]],
) -> None:
    """Otherwise what comes last would never have its turn where commits come faster than passes get to it."""
    passes = spreading()
    passes.run_once()
    for number in range(2):
        passes.repository.person("source", change(number))
        passes.advance(30)
        passes.run_once()
    assert [(each.workload.name, each.subset) for each in passes.placements()] == [("b", "own")]


def test_pass_that_leaves_pods_unrendered_is_decided_anew_although_nothing_has_changed() -> None:
    passes = spreading()
    passes.free = {"worker-2": 0, "worker-3": 0}
    outcomes = [passes.run_once()]
    while Reason.UNTRIED in told(outcomes[-1], "b"):
        passes.advance(1)
        outcomes.append(passes.run_once())
    assert len(outcomes) == 2
    assert told(outcomes[-1], "b") == {Reason.NOTHING_FITS, Reason.NO_CAPACITY}


def test_readers_render_nothing_for_the_passes() -> None:
    passes = spreading()
    latest = LatestSnapshot(passes.memory.branch)
    latest.post(passes.run_once())
    shown = latest.read().decision
    before = deepcopy(passes.memory.drafted)
    preview, _ = later_input(shown.inputs, shown.inputs.now + timedelta(seconds=1))
    assert shown.plan.drafted.has_untried
    assert not decide(shown.inputs).drafted.has_untried
    assert Reason.UNTRIED not in {why.reason for each in decide(preview).suppressed for why in each.refusals}
    assert passes.memory.drafted == shown.inputs.drafted == before
