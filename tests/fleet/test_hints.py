"""A hint that offers a name offers one that works where it is put, and names are told for what they are."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from reconciler.core.schema.egs.gpr_bodies import ReleaseBody
from reconciler.core.schema.errors import validation_findings
from tests.builders.egs_samples import egs, placement
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, load, policy, workspace

FAST = egs("GPRTemplate", "clusterName: NAME\ntemplate: {}", name="fast")
BINDING = egs("GPRTemplateBinding", "enableAutoGPR: true\nclusters: [{clusterName: NAME, templates: []}]")
LIMITS = egs("WorkspacePolicy", "clusterGPUConstraints: [{clusterName: NAME, maxGPUPerGpr: 1}]")
THREE = {**FLEET, "clusters/worker-3.yaml": cluster("worker-3")}


@pytest.mark.parametrize("name", ["worker-11", "worker-22", "worker-3", "worker-1", "edge"])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("policies/w.yaml", BINDING),
        ("policies/w.yaml", LIMITS),
        ("gpr-templates/w.yaml", FAST),
        ("w.yaml", placement(where="clusterNames: [NAME]")),
        ("policies/gpu.yaml", policy(spec="{clusters: [{name: NAME}]}")),
        ("workspaces/llm.yaml", workspace().replace("worker-2]", "worker-2, NAME]")),
    ],
    ids=["binding", "workspace policy", "GPRTemplate", "request", "policy", "workspace"],
)
def test_the_cluster_that_a_hint_offers_works_there(path: str, text: str, name: str) -> None:
    def problems_naming(written: str) -> list[str]:
        problems = load({**THREE, path: text.replace("NAME", written)}).problems
        return [str(problem) for problem in problems if problem.path == path and written in problem.message]

    for line in problems_naming(name):
        for offered in re.findall(r"try '([a-z0-9-]+)'", line):
            assert problems_naming(offered) == [], line


def test_a_cluster_outside_of_the_workspace_is_not_said_to_be_missing() -> None:
    files = {**THREE, "workspaces/b.yaml": BINDING.replace("NAME", "worker-3")}
    (line,) = [str(problem) for problem in load(files).problems if problem.path == "workspaces/b.yaml"]
    assert "Cluster worker-3 is not in workspace llm (add it to spec.clusters there, or try 'worker-2')" in line


AUTO = "enableAutoGPR: true\nclusters: [{clusterName: worker-2, defaultTemplateName: fast}]"


@pytest.mark.parametrize(
    ("template", "binding", "told"),
    [
        ("autoPlacement: false", "", "its autoPlacement is false, so it does not burst (try autoPlacement: true, or"),
        ("", "", "add a GPRTemplateBinding with enableAutoGPR: true)"),
        (
            "",
            "enableAutoGPR: false\nclusters: []",
            "or set enableAutoGPR: true in the GPRTemplateBinding in workspaces/b.yaml)",
        ),
        (
            "",
            AUTO,
            "the GPRTemplateBinding in workspaces/b.yaml is refused, so it does not burst (mend the binding, or",
        ),
    ],
    ids=["its own", "none", "off", "refused"],
)
def test_a_template_that_does_not_burst_says_whose_word_that_is(template: str, binding: str, told: str) -> None:
    files = {path: text for path, text in FLEET.items() if not path.startswith("policies/")}
    files["templates/vllm.yaml"] = TEMPLATE.replace("workspaceName: llm", f"workspaceName: llm\n  {template}".rstrip())
    if binding:
        limits, fast = egs("WorkspacePolicy", "maxGPRs: 3"), FAST.replace("NAME", "worker-2")
        files |= {
            "workspaces/b.yaml": egs("GPRTemplateBinding", binding),
            "gpr-templates/g.yaml": fast,
            "policies/p.yaml": limits,
        }
    lines = [str(problem) for problem in load(files).problems if problem.path == "templates/vllm.yaml"]
    assert any(told in line for line in lines), lines


def test_a_fixed_value_is_told_as_json_writes_it() -> None:
    with pytest.raises(ValidationError) as error:
        ReleaseBody.model_validate({"gprId": "gpr-72b2aba0", "earlyRelease": False})
    (finding,) = validation_findings(error.value, ReleaseBody)
    assert (finding.message, finding.hint) == ("must be true", "try true")
