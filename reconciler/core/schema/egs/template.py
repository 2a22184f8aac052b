"""EGS's WorkloadTemplate: the objects to deploy, and EGS's fields for bursts."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from reconciler.core.schema.egs.deploy import DeployFile
from reconciler.core.schema.strict_model import Anything, Labels, Metadata, Name, Strict, Text, refusal
from reconciler.core.schema.urls import SourceAddress
from reconciler.core.workloads.portable_object import OF_THE_CLUSTER
from reconciler.model.tree import is_branch_name
from reconciler.text.findings import shortened


def _plain_path(text: str) -> str:
    """Refuse a path that leads out of the repository or into git's own files, and drop slashes at its end."""
    path = text.rstrip("/")
    parts = path.split("/")
    away = {"", ".", ".."} & {*parts} or any(part.casefold().startswith(".git") for part in parts)
    if text.startswith(("/", "-", ":", "~")) or "\\" in text or not text.isprintable() or away:
        raise refusal(f"{shortened(text)!r} is no path from the root of the repository", "try 'apps/vllm'")
    return path


COMPANIONS = {"configmap": "ConfigMap", "service": "Service"}
"""The kinds of companions by the words of a file."""
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def _branch(text: str) -> str:
    """Refuse what git would read as an option, a range or a refspec."""
    if not is_branch_name(text.removeprefix("refs/heads/")):
        raise refusal(f"{shortened(text)!r} is no name of a branch", "try 'main', and write a commit as spec.from.pin")
    return text


_PIN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}|sha256-[0-9a-f]{64}")


def _pin(text: str) -> str:
    """Refuse what is neither a commit nor a digest."""
    if text and _PIN.fullmatch(text) is None:
        raise refusal(
            f"{shortened(text)!r} is no version", "write a whole commit id, or for a workload its digest, sha256-..."
        )
    return text


def _object_name(text: str) -> str:
    """Refuse what is no name of an object."""
    if _OBJECT_NAME.fullmatch(text) is None:
        raise refusal(f"{shortened(text)!r} is no name of an object", "try 'vllm'")
    return text


def _readable_kind(text: str) -> str:
    """Refuse what is no kind, and Secrets."""
    if text.casefold() in ("secret", "secrets"):
        raise refusal("is Secret, and none is ever read", "create it in each cluster, or ship an ExternalSecret")
    if _KIND.fullmatch(text) is None:
        raise refusal(f"{shortened(text)!r} is no kind", "try 'Deployment'")
    return text


_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")

SourcePath = Annotated[Text, AfterValidator(_plain_path)]


class WorkloadSourceFile(Strict):
    """A live object on the primary cluster of the template's workspace."""

    api_version: Text = Field("apps/v1", description="Its apiVersion; only the group counts.")
    kind: Annotated[Text, AfterValidator(_readable_kind)] = Field(description="Its kind.")
    namespace: Name = Field(description="Its namespace.")
    name: Annotated[Text, AfterValidator(_object_name)] = Field(description="Its name.")


def _companion(text: str) -> str:
    """Refuse anything but a ConfigMap or a Service by its name."""
    kind, slash, name = text.partition("/")
    word = kind.casefold()
    if word in ("secret", "secrets"):
        raise refusal(
            f"{shortened(text)!r} is a Secret, and none is ever read",
            "create it in each cluster, or ship an ExternalSecret",
        )
    if not slash or word not in COMPANIONS or _OBJECT_NAME.fullmatch(name) is None:
        raise refusal(f"{shortened(text)!r} is no ConfigMap or Service", "try configmap/NAME or service/NAME")
    if name in OF_THE_CLUSTER:
        raise refusal(f"{shortened(text)!r} is of its cluster, and each cluster has its own", "leave it out")
    return f"{word}/{name}"


CompanionName = Annotated[Text, AfterValidator(_companion)]


class RepositorySourceFile(Strict):
    """Plain manifests in another repository."""

    url: SourceAddress = Field(description="Its URL, as the Fleet lists it in `sourceRepositories`.")
    revision: Annotated[Text, AfterValidator(_branch)] = Field("main", description="The branch.")
    path: SourcePath = Field(description="A file or directory of plain manifests.")


class ApplicationSourceFile(Strict):
    """An Application of Argo CD that deploys plain manifests on the primary cluster."""

    name: Name = Field(description="Its name, in the namespace of `spec.argocd` of the Fleet.")


class FromFile(Strict):
    """The source of a template's objects, in place of a copy of them."""

    workload: WorkloadSourceFile | None = Field(None, description="A live object on the primary cluster.")
    path: SourcePath | None = Field(None, description="A file or directory of plain manifests in the fleet repository.")
    repository: RepositorySourceFile | None = Field(None, description="Plain manifests in another repository.")
    application: ApplicationSourceFile | None = Field(
        None, description="What an Application of Argo CD has deployed: plain manifests at the commit of its last sync."
    )
    companions: list[CompanionName] = Field(
        [],
        description="ConfigMaps and Services beside `workload` that come along as they are there: `configmap/NAME`,"
        " `service/NAME`.",
    )
    pin: Annotated[str, AfterValidator(_pin)] = Field(
        "", description="The only version that may be deployed: a digest for `workload`, else a commit."
    )

    @model_validator(mode="after")
    def _names_one(self) -> FromFile:
        """Refuse no source, and several."""
        if [self.workload, self.path, self.repository, self.application].count(None) != 3:  # noqa: PLR2004 -- all but one
            raise refusal("names one source", "try workload: {kind: Deployment, namespace: serving, name: vllm}")
        if self.companions and self.workload is None:
            raise refusal("has companions without a workload", "list them in the other source")
        return self


class PatchFile(Strict):
    """A change of one object on some clusters."""

    clusters: list[Name] = Field([], description="Clusters by name; empty for all with the labels.")
    cluster_labels: Labels = Field({}, description="Labels that a Cluster has to have.")
    patch: Anything = Field(
        description="A part of the object, which is merged into it; `kind` and `metadata.name` choose another object"
        " than the one that bursts."
    )

    @model_validator(mode="after")
    def _chooses(self) -> PatchFile:
        """Refuse a change of all clusters: it belongs into the source."""
        if not self.clusters and not self.cluster_labels:
            raise refusal("names no cluster", "try clusters: [worker-2], or clusterLabels: {region: eu}")
        return self


class EgsTemplateSpec(DeployFile):
    """A WorkloadTemplate's spec as EGS has it."""

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


class TemplateSpec(EgsTemplateSpec):
    """A WorkloadTemplate's spec."""

    from_: FromFile | None = Field(
        None, alias="from", description="Where objects come from, beside those that are written here."
    )
    patches: list[PatchFile] = Field([], description="Changes of objects by cluster, with `from`.")

    @model_validator(mode="after")
    def _patches_a_source(self) -> TemplateSpec:
        """Refuse patches without a source: expressions do the same in objects that are written here."""
        if self.patches and self.from_ is None:
            raise refusal("patches need from", "write an expression such as {{ cluster.name }} in the object itself")
        return self


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
    """The objects to deploy, their steps and their duration: EGS's own kind, with `from` and `patches` beside it.

    String values may hold Jinja expressions over replicas, cluster, placement, workspace and template.
    """

    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["WorkloadTemplate"]
    metadata: Metadata
    spec: TemplateSpec
    status: TemplateStatus = Field(TemplateStatus(), description="Reported by EGS; only the selector is read.")
