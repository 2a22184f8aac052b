"""EGS's GPRTemplateBinding and WorkspacePolicy: the GPR templates and GPR limits of one workspace."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from reconciler.core.schema.strict_model import Duration, Metadata, Name, Strict, merge_alias, refusal
from reconciler.model import gpr as model
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.units import format_duration, parse_duration
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_LONG = re.compile(r"([0-9]{1,4})([MW])")
_DAYS = {"W": 7, "M": 30}
_DEFAULTS = model.WorkspaceLimits(workspace=WorkspaceName(""))

BANDS = {"low": 100, "medium": 200, "high": model.PRIORITIES.stop - 1}
"""The highest priority of each range. A lower one is always allowed, since it preempts less."""


def _long(value: Json) -> timedelta:
    """Read EGS's weeks and months (``1W``, ``2M``) and ordinary durations; a month is 30 days."""
    if isinstance(value, timedelta):
        return value
    text = value if isinstance(value, str) else ""
    if (match := _LONG.fullmatch(text)) and int(match[1]):
        return timedelta(days=int(match[1]) * _DAYS[match[2]])
    try:
        return parse_duration(shortened(text))
    except ValueError as error:
        raise refusal(f"{shortened(str(value))!r} is neither weeks nor a duration", "try '1W' or '36h'") from error


Long = Annotated[
    timedelta,
    BeforeValidator(_long),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^([0-9]+[MW]|([0-9]+(\.[0-9]+)?[dhms])+)$", "examples": ["1W"]}),
]
Cap = Annotated[int, Field(ge=1)]


class ClusterBindingFile(Strict):
    """The GPRTemplates of one cluster."""

    cluster_name: Name = Field(description="A cluster of the workspace.")
    default_template_name: Name | None = Field(
        None,
        description=("The GPRTemplate that holds where nothing else is said; the only one of `templates` by default."),
    )
    templates: list[Name] = Field([], description="All that may be used there.")


class BindingSpec(Strict):
    """A GPRTemplateBinding's spec."""

    enable_auto_gpr: bool = Field(
        False, alias="enableAutoGPR", description="Templates that no BurstPolicy governs burst by this binding."
    )
    clusters: list[ClusterBindingFile] = Field([], description="Clusters in order, with their GPRTemplates.")


class BindingFile(Strict):
    """The GPRTemplates that a workspace uses: the Workspace of the same name."""

    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["GPRTemplateBinding"]
    metadata: Metadata
    spec: BindingSpec
    status: Any = Field(None, description="Reported by EGS; not read.")

    def value_of(self) -> model.GprBinding:
        """Make the model's value. The only template of a cluster is its default."""
        return model.GprBinding(
            workspace=WorkspaceName(self.metadata.name),
            auto=self.spec.enable_auto_gpr,
            clusters=tuple(
                model.ClusterBinding(
                    cluster=ClusterName(cluster.cluster_name),
                    default=cluster.default_template_name
                    or (cluster.templates[0] if len(cluster.templates) == 1 else ""),
                    templates=tuple(dict.fromkeys(cluster.templates)),
                )
                for cluster in self.spec.clusters
            ),
        )


class SliceRefFile(Strict):
    """A workspace, in EGS's older word."""

    name: Name = Field(description="Name of the Workspace.")


class LimitsFile(Strict):
    """The limits of one GPR."""

    gpu_shapes: list[str] = Field(
        [], description="Models of GPUs that may be asked for, by name or a word of it; none named: any."
    )
    max_gpu_per_gpr: Cap | None = Field(None, alias="maxGPUPerGpr", description="GPUs, on all nodes together.")
    max_memory_per_gpr: Cap | None = Field(None, description="In GB, for one GPU.")

    def limits(self) -> model.GpuLimits:
        """Make the model's value."""
        return model.GpuLimits(shapes=tuple(self.gpu_shapes), gpus=self.max_gpu_per_gpr, memory=self.max_memory_per_gpr)


class ClusterLimitsFile(LimitsFile):
    """The limits of one GPR on one cluster."""

    cluster_name: Name = Field(description="A cluster of the workspace.")


class WorkspacePolicySpec(Strict):
    """A WorkspacePolicy's spec."""

    slice_ref: SliceRefFile | None = Field(None, description="The Workspace; the one of its own name by default.")
    priority_range: Annotated[
        Literal["low", "medium", "high"],
        BeforeValidator(lambda word: word.lower() if isinstance(word, str) else word),
    ] = Field(
        "low",
        description=("The highest priority: 100, 200 or 300. What says nothing of a GPR gets the nearest to 101."),
    )
    max_gprs: Annotated[int, Field(ge=0)] = Field(_DEFAULTS.most, alias="maxGPRs", description="GPRs at a time.")
    max_exit_duration_per_gpr: Long = Field(
        _DEFAULTS.longest,
        alias="maxExitDurationPerGPR",
        description=(
            "How long one may last; weeks (`1W`) and months of 30 days (`2M`) are read too. A burst "
            "is cut to it, with a warning."
        ),
    )
    requeue_on_failure: bool = Field(True, description="For GPRs that do not say whether they wait again.")
    enable_auto_eviction: bool = Field(True, description="Whether its GPRs may take GPUs of lower, evictable ones.")
    enable_time_slicing: bool | None = Field(None, description="EGS's; no effect.")
    time_slice_duration: Duration | None = Field(None, description="EGS's; no effect.")
    global_gpu_constraints: LimitsFile = Field(
        LimitsFile(), alias="globalGPUConstraints", description="For every cluster."
    )
    cluster_gpu_constraints: list[ClusterLimitsFile] = Field(
        [], alias="clusterGPUConstraints", description="For one cluster each, beside what holds for every one."
    )

    @model_validator(mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        """Read the PriorityRange of EGS's replies."""
        return merge_alias(value, "PriorityRange", "priorityRange")


class WorkspacePolicyFile(Strict):
    """The limits of all GPRs of a workspace. A workspace without a WorkspacePolicy has none."""

    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["WorkspacePolicy"]
    metadata: Metadata
    spec: WorkspacePolicySpec = WorkspacePolicySpec()
    status: Any = Field(None, description="Reported by EGS; not read.")

    @property
    def workspace(self) -> WorkspaceName:
        """The workspace that the policy governs."""
        return WorkspaceName(self.metadata.name if self.spec.slice_ref is None else self.spec.slice_ref.name)

    def value_of(self) -> model.WorkspaceLimits:
        """Make the model's value."""
        spec = self.spec
        return model.WorkspaceLimits(
            workspace=self.workspace,
            highest=BANDS[spec.priority_range],
            most=spec.max_gprs,
            longest=spec.max_exit_duration_per_gpr,
            requeue=spec.requeue_on_failure,
            evicts=spec.enable_auto_eviction,
            limits=spec.global_gpu_constraints.limits(),
            by_cluster={
                ClusterName(constraint.cluster_name): constraint.limits() for constraint in spec.cluster_gpu_constraints
            },
        )
