"""EGS's GPRTemplate and GPUProvisioningRequest, and the terms that they share with the gprDetails of placements.

The fields are those of docs/reference/egs.md, "GPUProvisioningRequest" and "GPRTemplate, GPRTemplateBinding,
WorkspacePolicy".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from reconciler.core.schema.strict_model import Duration, Metadata, Name, Strict, merge_alias, refusal
from reconciler.model import gpr as model
from reconciler.model.ids import ClusterName
from reconciler.model.workload import Json

Count = Annotated[int, Field(ge=1)]
Priority = Annotated[int, Field(ge=model.PRIORITIES.start, le=model.PRIORITIES.stop - 1)]

TOP = model.PRIORITIES.stop - 1
"""The highest priority. EGS's documents differ: its own chart ends one below."""


class TermsFile(Strict):
    """GPUs, and on which terms they are asked for."""

    enable_auto_gpu_selection: bool | None = Field(
        None, description="`true`: any GPU will do, and none is named; `false`: shape and type are named both."
    )
    number_of_gpus: Count | None = Field(None, alias="numberOfGPUs", description="On each node; 1 by default.")
    number_of_gpu_nodes: Count | None = Field(None, alias="numberOfGPUNodes", description="Nodes; 1 by default.")
    memory_per_gpu: Count | None = Field(None, description="In GB, at least; any by default.")
    gpu_shape: str = Field("", description="The GPU's model; goes with instanceType.")
    instance_type: str = Field("", description="The node's type; goes with gpuShape.")
    priority: Priority | None = Field(
        None, description="1 to 300, higher goes first; 101 by default. Low ends at 100, medium at 200."
    )
    exit_duration: Duration | None = Field(
        None, description="How long it lasts, where `burstDuration` does not say so."
    )
    idle_time_out_duration: Duration | None = Field(None, description="How long it may leave its GPUs unused.")
    enforce_idle_time_out: bool | None = Field(
        None, description="Whether it then gives them back; `true` where a time is set."
    )
    enable_eviction: bool = Field(False, description="Whether a GPR of higher priority may take its GPUs.")
    requeue_on_failure: bool | None = Field(
        None,
        description=("Whether it waits again after it failed or was evicted; the WorkspacePolicy says so otherwise."),
    )

    idles_by_default: ClassVar[bool] = False
    """Whether an idle time is enforced without a statement."""

    @model_validator(mode="before")
    @classmethod
    def _memory(cls, value: Json) -> Json:
        """Read the older spelling of memoryPerGpu; refuse both where they differ."""
        return merge_alias(value, "memoryPerGPU", "memoryPerGpu")

    @model_validator(mode="after")
    def _check_shape(self) -> TermsFile:
        """Check shape and type against the flag: both absent with automatic selection, both required without."""
        if bool(self.gpu_shape) != bool(self.instance_type):
            given, lacking = ("gpuShape", "instanceType") if self.gpu_shape else ("instanceType", "gpuShape")
            raise refusal(f"has {given} without {lacking}", "try both, or enableAutoGpuSelection: true and neither")
        if self.enable_auto_gpu_selection and self.gpu_shape:
            hint = "try leaving one of the two out"
            raise refusal("has a gpuShape, and enableAutoGpuSelection that lets any do", hint)
        if self.enable_auto_gpu_selection is False and not self.gpu_shape:
            hint = "try naming both, or enableAutoGpuSelection: true"
            raise refusal("has neither gpuShape nor instanceType, and enableAutoGpuSelection is false", hint)
        if self.enforce_idle_time_out and self.idle_time_out_duration is None:
            raise refusal("enforces an idle time without idleTimeOutDuration", "try idleTimeOutDuration: 30m")
        return self

    @property
    def asks(self) -> bool:
        """Whether the terms name GPUs."""
        sizes = (self.number_of_gpus, self.number_of_gpu_nodes, self.memory_per_gpu, self.gpu_shape)
        return any(size not in (None, "") for size in sizes)

    def ask(self) -> model.GpuAsk:
        """Make the model's value of the GPUs."""
        return model.GpuAsk(
            gpus=self.number_of_gpus or 1,
            nodes=self.number_of_gpu_nodes or 1,
            memory=self.memory_per_gpu or 0,
            shape=self.gpu_shape,
            instance_type=self.instance_type,
        )

    def terms(self, *, dedicated: bool = False) -> model.GprTerms:
        """Make the model's value of the terms. Setting an idle time of a GPR enforces it."""
        idles = self.idles_by_default and self.idle_time_out_duration is not None
        return model.GprTerms(
            priority=model.DEFAULT_PRIORITY if self.priority is None else self.priority,
            exit_duration=self.exit_duration,
            idle=self.idle_time_out_duration,
            enforce_idle=idles if self.enforce_idle_time_out is None else self.enforce_idle_time_out,
            evictable=self.enable_eviction,
            requeue=bool(self.requeue_on_failure),
            dedicated=dedicated,
        )


class DetailsFile(TermsFile):
    """A placement's gprDetails."""

    idles_by_default = True

    dedicated_nodes: bool = Field(False, description="Whole nodes, even for fewer GPUs.")
    run_precheck: bool | None = Field(None, description="EGS's; no effect.")


class TemplateTermsFile(TermsFile):
    """The GPUs and terms of a GPRTemplate."""

    gpu_sharing_mode: str = Field("", description="EGS's; no effect.")


class GprTemplateSpec(Strict):
    """A GPRTemplate's spec."""

    cluster_name: Name = Field(description="The one cluster that it is for.")
    enable_auto_gpr: bool | None = Field(
        None, alias="enableAutoGPR", description="No effect: the GPRTemplateBinding of a workspace says it."
    )
    template: TemplateTermsFile = Field(TemplateTermsFile(), description="What it gives.")


class GprTemplateFile(Strict):
    """The default GPUs and terms of a GPR on a cluster."""

    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["GPRTemplate"]
    metadata: Metadata
    spec: GprTemplateSpec
    status: Any = Field(None, description="Reported by EGS; not read.")

    def value_of(self) -> model.GprTemplate:
        """Make the model's value."""
        return model.GprTemplate(
            name=self.metadata.name,
            cluster=ClusterName(self.spec.cluster_name),
            ask=self.spec.template.ask(),
            terms=self.spec.template.terms(),
        )


class GprSpec(DetailsFile):
    """A GPUProvisioningRequest's spec."""

    slice_name: Name = Field(description="The Workspace.")
    number_of_gpu_nodes: Count = Field(alias="numberOfGPUNodes", description="Nodes.")
    preferred_clusters: list[Name] = Field([], description="Clusters in order of preference.")
    cluster_name: Name | None = Field(None, description="The older name of one preferred cluster.")
    enable_auto_cluster_selection: bool | None = Field(None, description="Any cluster of the workspace will do.")
    request_name: str = Field("", max_length=40, description="EGS's; metadata.name is what it is known by.")
    gpu_sharing_mode: str = Field("", description="EGS's; no effect.")
    multi_node: bool | None = Field(None, description="EGS's; numberOfGPUNodes says it.")
    early_release: bool | None = Field(None, description="EGS's; no effect in a file: deleting it gives the GPUs back.")
    enable_rdma: bool | None = Field(None, alias="enableRDMA", description="EGS's; no effect.")
    enable_secondary_network: bool | None = Field(None, description="EGS's; no effect.")
    enable_time_slicing: bool | None = Field(None, description="EGS's; no effect.")
    enable_mig: bool | None = Field(None, description="EGS's; no effect.")
    enable_dynamic_node_pool: bool | None = Field(None, description="EGS's; no effect.")
    workload_selector: Any = Field(None, description="EGS's; no effect.")
    estimated_start_time: Any = Field(None, description="Reported by EGS; not read.")
    estimated_wait_time: Any = Field(None, description="Reported by EGS; not read.")

    @model_validator(mode="after")
    def _somewhere(self) -> GprSpec:
        """Check the clusters against the flag: none with automatic selection, at least one without."""
        named = self.clusters
        if self.cluster_name is not None and self.preferred_clusters and self.preferred_clusters != [self.cluster_name]:
            hint = "try keeping preferredClusters"
            raise refusal("has both clusterName and preferredClusters, and they differ", hint)
        if self.enable_auto_cluster_selection and named:
            raise refusal("names clusters, and enableAutoClusterSelection that lets any do", "try keeping one of them")
        if not self.enable_auto_cluster_selection and not named:
            hint = "try preferredClusters: [...], or enableAutoClusterSelection: true"
            raise refusal("names no cluster", hint)
        return self

    @property
    def clusters(self) -> tuple[ClusterName, ...]:
        """The named clusters, each once."""
        named: Iterable[str] = self.preferred_clusters or filter(None, [self.cluster_name])
        return tuple(ClusterName(name) for name in dict.fromkeys(named))


class GprFile(Strict):
    """GPUs that are kept for a workspace, without anything that runs on them."""

    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["GPUProvisioningRequest"]
    metadata: Metadata
    spec: GprSpec
    status: Any = Field(None, description="Reported by EGS; not read.")
