"""docs/reference/egs.md says what becomes of each field and rule of EGS; shown/egs.yaml names the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.core.schema.egs.deploy import CommandFile, HelmConfigFile, HelmFlagsFile, ManifestResourceFile, StepFile
from reconciler.core.schema.egs.gpr import DetailsFile, GprSpec, GprTemplateSpec, TemplateTermsFile
from reconciler.core.schema.egs.gpr_binding import BindingSpec, ClusterBindingFile, LimitsFile, WorkspacePolicySpec
from reconciler.core.schema.egs.placement import Body, PlacementSpec
from reconciler.core.schema.egs.template import EgsTemplateSpec, SelectorFile
from reconciler.core.schema.strict_model import Strict
from tests.docs.shown import cells, rows_by_heading, shown, unclear

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "egs.md").read_text()
DISAGREE = "Where EGS's documents disagree"

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
    ("WorkloadTemplate", "spec.", EgsTemplateSpec, None),
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
"""The contradictions of EGS's documents, each settled under a heading."""


def rows(heading: str = "") -> list[list[str]]:
    """Return the cells of every row below a heading (none: of the whole page), without those that name columns."""
    return cells(PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] if heading else PAGE)


def listed_fields(heading: str) -> set[str]:
    """List the fields that the rows below a heading are about."""
    return {name for row in rows(heading) for name in re.findall(r"`([^`]+)`", row[0])}


def test_no_cell_of_any_row_is_empty() -> None:
    assert len(rows()) > 140
    assert [row for row in rows() if len(row) != 2 or not all(row)] == []


def test_every_row_and_every_rule_is_shown_by_tests() -> None:
    below = {heading: [*firsts] for heading, firsts in shown("egs").items()}
    assert below == {**rows_by_heading(PAGE), DISAGREE: [*RULES]}
    assert unclear("egs") == []


def test_no_field_has_two_rows_below_one_heading() -> None:
    for heading in FIELDS:
        names = [row[0] for row in rows(heading)]
        assert sorted(set(names)) == sorted(names), heading


@pytest.mark.parametrize("heading", FIELDS)
def test_every_field_that_egs_documents_has_a_row(heading: str) -> None:
    assert set(FIELDS[heading].split()) <= listed_fields(heading)


@pytest.mark.parametrize(("heading", "prefix", "part", "base"), READ)
def test_every_field_that_is_read_has_a_row(
    heading: str, prefix: str, part: type[Strict], base: type[Strict] | None
) -> None:
    elsewhere = set() if base is None else set(base.model_fields)
    fields = {f"{prefix}{field.alias}" for name, field in part.model_fields.items() if name not in elsewhere}
    assert fields <= listed_fields(heading)


def test_every_contradiction_of_egs_is_settled_under_a_heading() -> None:
    settled = PAGE.partition(f"\n## {DISAGREE}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^### (R\d+): .+\n\n\S", settled, re.MULTILINE) == list(RULES)
