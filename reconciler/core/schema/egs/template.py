"""EGS's WorkloadTemplate: the objects to deploy, and EGS's fields for bursts."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from reconciler.core.schema.egs.deploy import DeployFile
from reconciler.core.schema.strict_model import Metadata, Name, Strict


class TemplateSpec(DeployFile):
    """A WorkloadTemplate's spec."""

    workspace_name: Name | None = Field(None, description="The Workspace; may be left out where only one fits.")
    namespaces: list[Name] = Field([], description="Namespaces that the workload uses.")
    gpr_templates: list[Name] = Field(
        [], description="The GPRTemplates on whose terms it may have GPUs, one for each cluster."
    )
    auto_placement: bool | None = Field(
        None,
        description=(
            "`false` keeps a binding from bursting it; no effect, with a warning, where a BurstPolicy"
            " says when it bursts."
        ),
    )
    enable_burst: bool | None = Field(
        None,
        description=(
            "It bursts by the binding to every cluster of the workspace; no effect, with a warning, "
            "beside a BurstPolicy."
        ),
    )
    cluster_names: list[Name] = Field(
        [],
        description=("Where it bursts to by the binding, best first; no effect, with a warning, beside a BurstPolicy."),
    )


class SelectorFile(Strict):
    """The workload on the primary that EGS found for a template."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field("", description="Its name.")
    namespace: str = Field("", description="Its namespace.")


class TemplateStatus(Strict):
    """The status that EGS reports; only the selector is read."""

    model_config = ConfigDict(extra="ignore")

    workload_selector: SelectorFile = Field(SelectorFile(), description="The workload on the primary, as EGS found it.")


class WorkloadTemplateFile(Strict):
    """The objects to deploy, their steps and their duration: EGS's own kind, unchanged.

    String values may hold Jinja expressions over replicas, cluster, placement, workspace and template.
    """

    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["WorkloadTemplate"]
    metadata: Metadata
    spec: TemplateSpec
    status: TemplateStatus = Field(TemplateStatus(), description="Reported by EGS; only the selector is read.")
