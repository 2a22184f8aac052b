"""docs/egs.md says of each field and each rule of EGS what becomes of it, and names tests that show it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from reconciler.core.schema.egs.deploy import CommandFile, HelmConfigFile, HelmFlagsFile, ManifestResourceFile, StepFile
from reconciler.core.schema.egs.gpr import DetailsFile, GprSpec, GprTemplateSpec, TemplateTermsFile
from reconciler.core.schema.egs.gpr_binding import BindingSpec, ClusterBindingFile, LimitsFile, WorkspacePolicySpec
from reconciler.core.schema.egs.placement import Body, PlacementSpec
from reconciler.core.schema.egs.template import SelectorFile, TemplateSpec
from reconciler.core.schema.strict_model import Strict

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "egs.md").read_text()
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")

FIELDS = {
    "WorkloadTemplate": (
        "metadata.name metadata.namespace spec.gprTemplates spec.manifestResources spec.helmConfig spec.burstDuration"
        " spec.serviceAccount spec.cmdExec spec.deletionPolicy spec.steps spec.workspaceName spec.namespaces"
        " status.workloadSelector"
    ),
    "WorkloadPlacement": (
        "metadata.name metadata.namespace spec.clusterName spec.ClusterName spec.manifestResources spec.helmConfig"
        " spec.burstDuration spec.serviceAccount spec.cmdExec spec.deletionPolicy spec.steps"
    ),
    "What is deployed": (
        "helmConfig[].name helmConfig[].chart helmConfig[].releaseName helmConfig[].releaseNamespace"
        " helmConfig[].repoName helmConfig[].repoURL helmConfig[].version helmConfig[].values helmConfig[].secretRef"
        " helmConfig[].helmFlags manifestResources[].name manifestResources[].manifest cmdExec[].name cmdExec[].cmd"
        " steps[].name steps[].type"
    ),
    "REST: bodies": (
        "workspaceName name clusters burstDuration deletionPolicy helmConfigs manifestResources cmdExec steps"
        " helmConfigs[].chart helmConfigs[].releaseName helmConfigs[].releaseNamespace helmConfigs[].repoName"
        " helmConfigs[].repoURL helmConfigs[].secretRef helmConfigs[].values manifestResources[].name"
        " manifestResources[].namespace manifestResources[].apiVersion manifestResources[].kind"
        " manifestResources[].data cmdExec[].name cmdExec[].cmd steps[].name steps[].type namespace"
    ),
    "REST: answers": (
        "statusCode status message data error.errorKey error.message error.data status.provisioningStatus status.phase"
        " status.message status.conditions status.lastUpdated createdAt updatedAt"
    ),
}
"""Every field that the two pages of EGS's documentation name, under the heading of its table here."""

READ: tuple[tuple[str, str, type[Strict], type[Strict] | None], ...] = (
    ("WorkloadTemplate", "spec.", TemplateSpec, None),
    ("WorkloadTemplate", "status.workloadSelector.", SelectorFile, None),
    ("WorkloadPlacement", "spec.", PlacementSpec, None),
    ("What is deployed", "helmConfig[].", HelmConfigFile, None),
    ("What is deployed", "helmFlags.", HelmFlagsFile, None),
    ("What is deployed", "manifestResources[].", ManifestResourceFile, None),
    ("What is deployed", "cmdExec[].", CommandFile, None),
    ("What is deployed", "steps[].", StepFile, None),
    ("gprDetails", "", DetailsFile, None),
    ("GPUProvisioningRequest", "spec.", GprSpec, DetailsFile),
    ("GPRTemplate, GPRTemplateBinding, WorkspacePolicy", "spec.", GprTemplateSpec, None),
    ("GPRTemplate, GPRTemplateBinding, WorkspacePolicy", "spec.template.", TemplateTermsFile, DetailsFile),
    ("GPRTemplate, GPRTemplateBinding, WorkspacePolicy", "spec.", BindingSpec, None),
    ("GPRTemplate, GPRTemplateBinding, WorkspacePolicy", "spec.clusters[].", ClusterBindingFile, None),
    ("GPRTemplate, GPRTemplateBinding, WorkspacePolicy", "spec.", WorkspacePolicySpec, None),
    ("GPRTemplate, GPRTemplateBinding, WorkspacePolicy", "", LimitsFile, None),
    ("REST: bodies", "", Body, PlacementSpec),
)
"""Every part of EGS's kinds that is read, with its heading; those fields of another part are told there."""

RULES = tuple(f"R{number}" for number in range(1, 28))
"""The contradictions of EGS's documents, each settled in one row."""


@cache
def defined(path: str) -> frozenset[str]:
    """List the functions that a file defines."""
    tree = ast.parse((CHECKOUT / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def rows(heading: str = "") -> list[list[str]]:
    """Return the cells of every row below a heading (none: of the whole page), without those that name columns."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] if heading else PAGE
    found = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return [row for row in found if row[-1] != "shown by" and not set("".join(row)) <= set("-: ")]


def told(heading: str) -> set[str]:
    """List the fields that the rows below a heading are about."""
    return {name for row in rows(heading) for name in re.findall(r"`([^`]+)`", row[0])}


def test_no_cell_of_any_row_is_empty() -> None:
    assert len(rows()) > 250
    assert [row for row in rows() if len(row) != 3 or not all(row)] == []


def test_every_row_names_tests_that_there_are() -> None:
    for row in rows():
        named = _TEST.findall(row[-1])
        assert named, row
        assert _TEST.sub("", row[-1]).strip(", ") == "", row
        for path, name in named:
            assert (CHECKOUT / path).is_file(), path
            assert name in defined(path), f"{path}::{name}"


def test_no_field_has_two_rows_below_one_heading() -> None:
    for heading in FIELDS:
        names = [row[0] for row in rows(heading)]
        assert sorted(set(names)) == sorted(names), heading


@pytest.mark.parametrize("heading", FIELDS)
def test_every_field_that_egs_documents_has_a_row(heading: str) -> None:
    assert set(FIELDS[heading].split()) <= told(heading)


@pytest.mark.parametrize(("heading", "prefix", "part", "base"), READ)
def test_every_field_that_is_read_has_a_row(
    heading: str, prefix: str, part: type[Strict], base: type[Strict] | None
) -> None:
    elsewhere = set() if base is None else set(base.model_fields)
    fields = {f"{prefix}{field.alias}" for name, field in part.model_fields.items() if name not in elsewhere}
    assert fields <= told(heading)


def test_every_contradiction_of_egs_is_settled_in_a_row() -> None:
    assert [row[0].partition(" ")[0] for row in rows("Where EGS's documents disagree")] == list(RULES)
