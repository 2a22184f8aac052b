"""Our rules of webhooks beside the webhooks themselves, asked of the same objects, which are edited at random.

An API server with the published kinds is asked first, and completes what it takes. What it or the webhooks refuse we
have to refuse or to warn of, and nothing else.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.safety.rules import check_safety
from reconciler.model.workload import DeploySpec, ManifestResource
from tests.builders.deploy_specs import WORKSPACE
from tests.e2e.api_server import Json, Refused
from tests.e2e.components import Missing, Ready, find
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.admission_edits import FAMILIES, Edited, edited
from tests.e2e.platform.project_rules import refusals
from tests.e2e.published_kinds import Judge, Project, kind_name, released

NUMBER = 300
"""Objects of each family."""
SEED = 29
PROGRAM = "kueue-webhooks"
PROGRAM_OF_JOBSET = "jobset-webhooks"
"""Its feature gates and Kueue's exclude each other in one program."""
PROJECTS = (
    Project(name="LeaderWorkerSet", tool=PROGRAM, module="sigs.k8s.io/lws"),
    Project(name="JobSet", tool=PROGRAM, module="sigs.k8s.io/jobset", files=("config/components/crd/bases/*.yaml",)),
    Project(name="KubeRay", tool=PROGRAM, module="github.com/ray-project/kuberay/ray-operator"),
    Project(
        name="Training Operator",
        tool=PROGRAM,
        module="github.com/kubeflow/training-operator",
        files=("manifests/base/crds/kubeflow.org_*.yaml",),
    ),
)
"""The projects of the kinds, in the versions that Kueue was released with."""
OF_KUEUE = "so that Kueue"


@pytest.fixture(scope="module")
def programs() -> tuple[Path, Path]:
    """The program that asks Kueue's webhooks, and the one that asks JobSet's."""
    found = [find(PROGRAM), find(PROGRAM_OF_JOBSET)]
    paths = [each.path for each in found if isinstance(each, Ready)]
    if len(paths) < len(found):
        pytest.skip("; ".join(each.reason for each in found if isinstance(each, Missing)))
    return paths[0], paths[1]


@pytest.fixture(scope="module")
def judge(start_cluster: Callable[[str], Cluster], programs: tuple[Path, Path]) -> Judge:  # skips
    judge = Judge(start_cluster("judge"))
    kinds = {base["kind"] for family in FAMILIES for base in family.bases}
    for project in PROJECTS:
        definitions = released(project)
        if isinstance(definitions, Missing):
            pytest.skip(definitions.reason)
        for definition in definitions:
            if kind_name(definition).rpartition("/")[2] in kinds:
                judge.serve(definition)
    return judge


def ours(made: Json) -> tuple[list[str], list[str]]:
    """Return our errors of an object, and what we say of Kueue, with the fields."""
    spec = DeploySpec(manifests=(ManifestResource(name="web", manifest=made),))
    findings = check_safety(spec, replace(WORKSPACE, namespaces=()), rendered=True)
    told = [(OF_KUEUE in finding.message, f"{finding.loc[4:]}: {finding.message}") for finding in findings]
    return [text for of_kueue, text in told if not of_kueue], [text for of_kueue, text in told if of_kueue]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_what_webhooks_refuse_is_refused_and_nothing_else(
    family: Edited, judge: Judge, programs: tuple[Path, Path]
) -> None:
    counts, wrong = Counter[str](), list[str]()
    completed: list[tuple[Json, Json]] = []
    for made in edited(family, NUMBER, SEED):
        try:
            completed.append((made, judge.completed(made)))
        except Refused as refused:
            counts["refused by its definition"] += 1
            if not ours(made)[0]:
                wrong.append(f"its definition refuses it, and we do not: {refused}\n{made}")
    wholes, jobset = [whole for _, whole in completed], family.bases[0]["kind"] == "JobSet"
    own = refusals(programs[1], wholes) if jobset else [""] * len(wholes)
    answers = [first + second for first, second in zip(own, refusals(programs[0], wholes), strict=True)]
    for (made, _), answer in zip(completed, answers, strict=True):
        errors, of_kueue = ours(made)
        by_project, by_kueue = "its project: " in answer, "Kueue: " in answer
        counts["refused by its project"] += by_project
        counts["refused by Kueue"] += by_kueue
        counts["taken"] += not answer
        if by_project is not bool(errors):
            wrong.append(f"its project says {answer!r}, we say {errors}\n{made}")
        # What its own project refuses of a number, Kueue may refuse as well.
        if (by_kueue and not (errors or of_kueue)) or (of_kueue and not by_kueue):
            wrong.append(f"Kueue says {answer!r}, we say {of_kueue}\n{made}")
    sys.stdout.write(f"{family.name}: {dict(counts)} of {NUMBER}, {len(wrong)} unlike\n")
    assert not wrong, "\n\n".join(wrong[:3])
    assert counts["taken"], counts
    assert len(counts) > 1, counts
