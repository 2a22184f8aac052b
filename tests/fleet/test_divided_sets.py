"""Which sets a policy may divide over clusters by their groups, as files say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.policy import SetDivision
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, load, policy, workspace
from tests.builders.inputs import VLLM
from tests.builders.workload_kinds import SAMPLES

_BY_GROUP = policy("gpu", "{templates: [vllm], distribution: {sets: ByGroup}}")


def template(kind: str, manifest: Json, **annotations: str) -> str:
    made = {**manifest, "metadata": {"name": "vllm", "namespace": "llm-demo"}}
    return json.dumps(
        {
            "apiVersion": "gpr.kubeslice.io/v1alpha1",
            "kind": "WorkloadTemplate",
            "metadata": {
                "name": "vllm",
                "namespace": "kubeslice-acme",
                "annotations": {"overspill.dev/workload": f"{kind}/llm-demo/vllm", **annotations},
            },
            "spec": {
                "workspaceName": "llm",
                "manifestResources": [{"name": "server", "manifest": made}],
                "steps": [{"name": "server", "type": "manifest"}],
            },
        }
    )


def read(name: str, **annotations: str) -> tuple[SetDivision, list[str]]:
    """Return how the sample of a kind is divided under a policy that divides sets, and the errors of that policy."""
    made, _ = SAMPLES[name]
    desired = load(
        {
            **FLEET,
            "workspaces/llm.yaml": workspace(
                more=f"allowedKinds: [{made['apiVersion'].rpartition('/')[0]}/{made['kind']}]"
            ),
            "templates/vllm.yaml": template(str(made["kind"]), made, **annotations),
            "policies/gpu.yaml": _BY_GROUP,
        }
    )
    told = [problem.message for problem in desired.problems if problem.path == "policies/gpu.yaml"]
    return desired.policies[VLLM].sets, told


@pytest.mark.parametrize("name", ["LeaderWorkerSet", "PodCliqueSet", "RayService", "LLMInferenceService", "Deployment"])
def test_sets_whose_groups_serve_by_themselves_are_divided(name: str) -> None:
    sets, told = read(name)
    assert sets is SetDivision.BY_GROUP
    assert told == []


@pytest.mark.parametrize("name", ["RayCluster", "DynamoGraphDeployment v1beta1"])
def test_groups_that_depend_on_one_another_are_an_error_and_go_whole(name: str) -> None:
    sets, (told,) = read(name)
    assert sets is SetDivision.WHOLE
    kind = SAMPLES[name][0]["kind"]
    assert f"llm/vllm goes whole: the groups of a {kind} depend on one another" in told


@pytest.mark.parametrize(
    ("name", "annotations"),
    [("JobSet", {}), ("PyTorchJob", {}), ("LeaderWorkerSet", {"overspill.dev/runs-once": "true"})],
)
def test_a_set_that_runs_once_is_an_error_and_goes_whole(name: str, annotations: dict[str, str]) -> None:
    sets, (told,) = read(name, **annotations)
    assert sets is SetDivision.WHOLE
    assert "llm/vllm goes whole: it runs once" in told


def test_the_documentation_names_the_kinds_whose_sets_may_be_divided() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/kinds.md").read_text()
    section = page.partition("### Sets that are divided")[2].partition("### ")[0]
    named = {kind.kind for kind in BUILT_IN.values() if re.search(rf"\b{kind.kind}\b", section)}
    assert named == {kind.kind for kind in BUILT_IN.values() if kind.divides}


def test_a_policy_keeps_sets_whole_by_default() -> None:
    assert load(FLEET).policies[VLLM].sets is SetDivision.WHOLE
