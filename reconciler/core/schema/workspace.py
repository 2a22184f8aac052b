"""The kind Workspace of ``overspill.dev``: the clusters, namespaces and limits of a tenant."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from reconciler.core.schema.budget import BudgetFile
from reconciler.core.schema.strict_model import Amounts, Metadata, Name, PathPattern, Strict, refusal, resources
from reconciler.model import cluster
from reconciler.model import policy as model
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.text.findings import shortened

_PINNED = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_KIND = re.compile(r"[a-z0-9.-]*/[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")


def _refuse_unpinned_image(image: str) -> str:
    """Refuse an image without a digest, which could change."""
    if _PINNED.fullmatch(image):
        return image
    raise refusal(f"{shortened(image)!r} is not pinned by digest", "try 'registry/name@sha256:…'")


def _kind(text: str) -> str:
    """Refuse a text other than a group and a kind."""
    group, _, kind = text.partition("/")
    if _KIND.fullmatch(text) and not _VERSION.fullmatch(group):
        return text
    likely = f"/{kind}" if kind else f"/{text}"
    hint = f"try '{likely}'" if _KIND.fullmatch(likely) else "try 'rbac.authorization.k8s.io/Role'"
    raise refusal(f"{shortened(text)!r} is not a group and a kind ('/Namespace' for the core group)", hint)


PinnedImage = Annotated[
    str, AfterValidator(_refuse_unpinned_image), WithJsonSchema({"type": "string", "pattern": "@sha256:[0-9a-f]{64}$"})
]
GroupKind = Annotated[
    str, AfterValidator(_kind), WithJsonSchema({"type": "string", "pattern": "^[a-z0-9.-]*/[A-Z][A-Za-z0-9]*$"})
]


class CommandJobsFile(Strict):
    """Commands that are no plain object may run as Jobs in the destination cluster, with this image."""

    image: PinnedImage = Field(
        description="The image that runs them, with kubectl in it, pinned by digest (`name@sha256:...`)."
    )


class SharedNetworkingFile(Strict):
    """A network that clusters share, to which placements export their Services."""

    api: Annotated[cluster.NetworkApi, Field(strict=False)] = Field(
        description="The API of the ServiceExports: the multicluster-services API, or KubeSlice."
    )
    slice: Name | None = Field(None, description="With kubeslice: the slice; the workspace's own name by default.")

    @model_validator(mode="after")
    def _refuse_needless_slice(self) -> SharedNetworkingFile:
        """Refuse a slice for a network without slices."""
        if self.slice is not None and self.api is not cluster.NetworkApi.KUBESLICE:
            raise refusal(
                f"has a slice, which {self.api} knows nothing of", "try api: kubeslice, or leave the slice out"
            )
        return self

    def value_of(self, workspace: str) -> cluster.SharedNetworking:
        """Make the model's value."""
        sliced = self.api is cluster.NetworkApi.KUBESLICE
        return cluster.SharedNetworking(api=self.api, slice=(self.slice or workspace) if sliced else "")


class FairShareFile(Strict):
    """The tenant's part of room that is short."""

    weight: Annotated[int, Field(ge=1)] = Field(
        1, description="Part of the room beyond all quotas that the tenant gets beside others of equal priority."
    )
    quota: Amounts = Field(
        {},
        description=(
            "The requests of its placements that it has a right to, as `nvidia.com/gpu: 8`; others "
            "borrow what it does not use."
        ),
    )


class WorkspaceSpec(Strict):
    """A tenant's clusters, namespaces and limits."""

    primary_cluster: Name = Field(description="The cluster of the tenant's workloads; bursts never go there.")
    clusters: list[Name] = Field(min_length=1, description="The clusters that they may use, the primary among them.")
    namespaces: list[Name] = Field(
        [], description="What their objects, releases and commands may name; none listed: any."
    )
    paths: list[PathPattern] = Field(
        [],
        description=(
            "Files that are its own, as globs; none listed: its objects may lie in any file that is "
            "no other workspace's."
        ),
    )
    allow_unpinned_charts: bool = Field(False, description="Charts without a version are allowed.")
    allow_unknown_needs: bool = Field(
        False, description="Requests are placed although the needs of their pods are unknown; these count as nothing."
    )
    allowed_kinds: list[GroupKind] = Field(
        [],
        description=(
            "`group/Kind` (`/Namespace` for the core group) that objects may be of beyond those that "
            "are allowed to all."
        ),
    )
    pod_security: Annotated[model.PodSecurity, Field(strict=False)] = Field(
        model.PodSecurity.BASELINE, description="The level of Kubernetes' Pod Security Standards for its pods."
    )
    command_jobs: CommandJobsFile | None = Field(
        None, description="Lets commands that are no plain object run as Jobs in the destination cluster."
    )
    requests_on_primary: bool = Field(
        True, description=("Whether requests may be placed on the primary; `false`: its engine needs no rights there.")
    )
    shared_networking: SharedNetworkingFile | None = Field(
        None, description="Placements bring ServiceExports for their Services."
    )
    fair_share: FairShareFile = Field(FairShareFile(), description="The part of room that is short.")
    budget: BudgetFile | None = Field(
        None, description="Dollars that its placements may cost, requests among them; see budgets."
    )


class WorkspaceFile(Strict):
    """A tenant: its clusters, its primary cluster, its namespaces, its limits."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Workspace"]
    metadata: Metadata
    spec: WorkspaceSpec

    def value_of(self) -> model.Workspace:
        """Make the model's value."""
        spec, jobs, shared = self.spec, self.spec.command_jobs, self.spec.shared_networking
        return model.Workspace(
            name=WorkspaceName(self.metadata.name),
            primary=ClusterName(spec.primary_cluster),
            clusters=tuple(ClusterName(name) for name in dict.fromkeys(spec.clusters)),
            namespaces=tuple(dict.fromkeys(spec.namespaces)),
            paths=tuple(spec.paths),
            allow_unpinned_charts=spec.allow_unpinned_charts,
            allow_unknown_needs=spec.allow_unknown_needs,
            allowed_kinds=tuple(spec.allowed_kinds),
            pod_security=spec.pod_security,
            command_jobs=None if jobs is None else model.CommandJobs(image=jobs.image),
            requests_on_primary=spec.requests_on_primary,
            weight=spec.fair_share.weight,
            quota=resources(spec.fair_share.quota),
            budget=None if spec.budget is None else spec.budget.value_of(),
            shared_networking=None if shared is None else shared.value_of(self.metadata.name),
        )
