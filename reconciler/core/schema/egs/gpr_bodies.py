"""The bodies of EGS's REST interface for GPRs: wait times and early release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from reconciler.core.schema.egs.gpr import DetailsFile
from reconciler.core.schema.strict_model import Name, Strict, refusal


class WaitBody(DetailsFile):
    """The body of ``POST /api/v1/gpr/waittime``: the GPUs of a possible request, and its clusters."""

    workspace_name: Name | None = Field(None, description="The Workspace.")
    slice_name: Name | None = Field(None, description="The same under the name of EGS's GPRs.")
    preferred_clusters: list[Name] = Field([], description="Clusters to estimate; all of the workspace by default.")
    clusters: list[Name] = Field([], description="The same under the name of EGS's placements.")
    cluster_name: Name | None = Field(None, description="The same for one cluster.")

    @model_validator(mode="after")
    def _same(self) -> WaitBody:
        """Refuse contradicting values under two names of one field, and a body without a workspace."""
        if self.workspace_name and self.slice_name and self.workspace_name != self.slice_name:
            raise refusal("has both workspaceName and sliceName, and they differ", "try keeping workspaceName")
        if not self.workspace:
            raise refusal("names no workspace", "try workspaceName: llm")
        named = [] if self.cluster_name is None else [self.cluster_name]
        given = [names for names in (self.preferred_clusters, self.clusters, named) if names]
        if any(names != given[0] for names in given):
            raise refusal("names different clusters under two names", "try keeping clusters")
        return self

    @property
    def workspace(self) -> str:
        """The workspace under either name, empty for none."""
        return self.workspace_name or self.slice_name or ""

    @property
    def named(self) -> list[str]:
        """The clusters under any of their field names."""
        return self.preferred_clusters or self.clusters or ([self.cluster_name] if self.cluster_name else [])


class ReleaseBody(Strict):
    """The body of ``PUT /api/v1/gpr``."""

    strangers: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("priority", "exitDuration", "enableEviction", "requeueOnFailure", "numberOfGPUs"),
        "while it waits, change it in gprDetails by PUT /api/v1/workload-placement/{name}",
    )

    gpr_id: str = Field(max_length=64, description="The GPR, as its list names it.", examples=["gpr-72b2aba0"])
    early_release: Literal[True] = Field(description="That its GPUs are given back now; nothing else is changed here.")
