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
from tests.e2e.components import Missing, find
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.admission_edits import FAMILIES, Edited, edited
from tests.e2e.platform.project_rules import refusals
from tests.e2e.published_kinds import Judge, Project, kind_name, released

NUMBER = 300
"""Objects of each family."""
SEED = 29
PROGRAM = "kueue-webhooks"
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
    Project(name="OpenKruise", tool="kruise", module="github.com/openkruise/kruise"),
)
"""The projects of the kinds, but for OpenKruise in the versions that Kueue was released with."""
OF_KUEUE = "so that Kueue"


def program(name: str) -> Path:
    """Return a program that asks webhooks; the test is skipped without it."""
    found = find(name)
    if isinstance(found, Missing):
        pytest.skip(f"{name}: {found.reason}")
    return found.path


@pytest.fixture(scope="module")
def judge(start_cluster: Callable[[str], Cluster]) -> Judge:
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
def test_what_webhooks_refuse_is_refused_and_nothing_else(family: Edited, judge: Judge) -> None:
    counts, wrong = Counter[str](), list[str]()
    completed: list[tuple[Json, Json]] = []
    for made in edited(family, NUMBER, SEED):
        try:
            completed.append((made, judge.completed(made)))
        except Refused as refused:
            counts["refused by its definition"] += 1
            if not ours(made)[0]:
                wrong.append(f"its definition refuses it, and we do not: {refused}\n{made}")
    programs, wholes = [program(name) for name in family.programs], [whole for _, whole in completed]
    answers = ["\n".join(each) for each in zip(*(refusals(asked, wholes) for asked in programs), strict=True)]
    for (made, _), answer in zip(completed, answers, strict=True):
        errors, of_kueue = ours(made)
        by_kueue = "Kueue: " in answer
        by_project = "its project: " in answer or bool(answer.strip() and not by_kueue)
        counts["refused by its project"] += by_project
        counts["refused by Kueue"] += by_kueue
        counts["taken"] += not answer.strip()
        if by_project is not bool(errors):
            wrong.append(f"its project says {answer!r}, we say {errors}\n{made}")
        # What its own project refuses of a number, Kueue may refuse as well.
        if (by_kueue and not (errors or of_kueue)) or (of_kueue and not by_kueue):
            wrong.append(f"Kueue says {answer!r}, we say {of_kueue}\n{made}")
    sys.stdout.write(f"{family.name}: {dict(counts)} of {NUMBER}, {len(wrong)} unlike\n")
    assert not wrong, "\n\n".join(wrong[:3])
    assert counts["taken"], counts
    assert len(counts) > 1, counts
