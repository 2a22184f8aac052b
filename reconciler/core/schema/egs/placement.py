"""EGS's WorkloadPlacement: a request by name, in its three API groups, and in the bodies of its REST interface.

Where EGS's documents contradict each other, docs/reference/egs.md, R1 to R20, settle it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from reconciler.core.schema.egs.deploy import DeployFile
from reconciler.core.schema.egs.gpr import DetailsFile
from reconciler.core.schema.strict_model import Duration, Metadata, Name, Strict, merge_alias, refusal
from reconciler.model.workload import Json

Group = Literal["gpr.kubeslice.io/v1alpha1", "worker.kubeslice.io/v1alpha1", "aiops.kubeslice.io/v1alpha1"]


class PlacementSpec(DeployFile):
    """The objects to deploy, with their clusters, duration and GPUs."""

    duration: Duration | None = Field(None, description="The same as burstDuration, in the group aiops.")
    workspace_name: Name | None = Field(None, description="The Workspace; may be left out where only one fits.")
    cluster_names: list[Name] = Field(
        [],
        description=(
            "Where to, best first; required but for the two fields below that leave it open. It is "
            "placed on each of them."
        ),
    )
    cluster_name: Name | None = Field(None, description="The cluster; in the group worker.")
    clusters: list[Name] = Field([], description="The same as clusterNames, under the name of EGS's REST interface.")
    num_placements: Annotated[int, Field(ge=1)] | None = Field(
        None, description="On how many of the clusters, the first that have room; on each by default."
    )
    auto_select_cluster: bool = Field(
        False,
        description=(
            "On one of them (or `numPlacements`): the first that has room; of all clusters of the "
            "workspace where none is named."
        ),
    )
    enable_burst: bool = Field(
        False, description="Every cluster of the workspace will do, whatever is named; on as many as are named."
    )
    enable_redistribute: bool = Field(
        True,
        description=(
            "Whether a request without named clusters may move to a cluster that its workspace gets "
            "later; no effect, with a warning, beside named ones."
        ),
    )
    enable_egs: bool | None = Field(
        None, alias="enableEGS", description="No effect, with a warning: `gprDetails` says which GPUs it asks for."
    )
    gpr_details: DetailsFile | None = Field(None, description="The GPUs that it asks for; its objects tell otherwise.")
    workload_template_name: Name | None = Field(
        None, description="The WorkloadTemplate that it was made of; what it deploys where it lists nothing itself."
    )

    @model_validator(mode="before")
    @classmethod
    def _cluster(cls, value: Json) -> Json:
        """Read what a table of EGS's guide calls ClusterName."""
        return merge_alias(value, "ClusterName", "clusterName")

    @model_validator(mode="after")
    def _same(self) -> PlacementSpec:
        """Refuse contradicting values under two spellings of one field (docs/reference/egs.md, R2 and R9)."""
        named = [] if self.cluster_name is None else [self.cluster_name]
        given = {
            name: names
            for name, names in (
                ("clusterNames", self.cluster_names),
                ("clusterName", named),
                ("clusters", self.clusters),
            )
            if names
        }
        first, *others = given or [""]
        for other in others:
            if given[other] != given[first]:
                raise refusal(f"has both {first} and {other}, and they differ", f"try keeping {first}")
        if self.duration is not None and self.burst_duration not in (None, self.duration):
            raise refusal("has both burstDuration and duration, and they differ", "try keeping burstDuration")
        return self


class PlacementFile(Strict):
    """A placement on request: the objects to deploy, with their clusters and duration."""

    api_version: Group
    kind: Literal["WorkloadPlacement"]
    metadata: Metadata
    spec: PlacementSpec
    status: Any = Field(None, description="Reported by EGS; not read.")


class Body(PlacementSpec):
    """The body of a call; an earlier answer of the API is one, too."""

    namespace: str = Field("", description="Namespace of EGS's object; ignored.")
    status: Any = Field(None, description="Part of answers; ignored.")
    created_at: Any = Field(None, description="Part of answers; ignored.")
    updated_at: Any = Field(None, description="Part of answers; ignored.")


class CreateBody(Body):
    """The body of ``POST /api/v1/workload-placement``."""

    name: Name
    workspace_name: Name | None = Field(None, description="The Workspace.")


class UpdateBody(Body):
    """The body of ``PUT /api/v1/workload-placement/{name}``: the fields that change."""

    name: Name | None = None
