"""What a WorkloadTemplate says: what to deploy, in which steps, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import BlobId, TemplateName, WorkloadId, WorkspaceName

Json: TypeAlias = Any
"""A value of a YAML document: null, bool, int, float, str, list or a mapping with string keys. Never mutated."""


class DeletionPolicy(StrEnum):
    """What happens to the objects when their placement goes: pruned, or left where they are."""

    DELETE = "Delete"
    RETAIN = "Retain"


class StepType(StrEnum):
    """Which of a template's lists a step's name is looked up in."""

    HELM = "helm"
    MANIFEST = "manifest"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmFlags:
    """EGS's helmFlags as an object (1.15.5 and later); the older string form is parsed into this."""

    atomic: bool = False
    cleanup_on_fail: bool = False
    create_namespace: bool = False
    skip_crds: bool = False
    wait: bool = False
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmConfig:
    """One chart to install. `chart` may carry the repository's alias as in ``vllm/vllm-stack``."""

    name: str
    chart: str
    release_name: str
    release_namespace: str
    repo_name: str = ""
    repo_url: str = ""
    version: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)
    secret_ref: str = ""
    flags: HelmFlags = HelmFlags()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestResource:
    """One Kubernetes object to apply, under the name by which steps refer to it."""

    name: str
    manifest: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One kubectl command line. It is never run by the daemon."""

    name: str
    cmd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One entry of the order in which the template's parts are applied."""

    name: str
    type: StepType


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploySpec:
    """What is deployed. In a template its string leaves may hold expressions; in a placement they are rendered.

    Every step names an entry of the list that its type points to.
    """

    helm: tuple[HelmConfig, ...] = ()
    manifests: tuple[ManifestResource, ...] = ()
    commands: tuple[Command, ...] = ()
    steps: tuple[Step, ...] = ()
    burst_duration: timedelta | None = None
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE
    service_account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """The object on the primary cluster whose replicas are counted.

    An empty `kind` matches any, and so does an empty `group`: the API group is said where several have such a kind.
    """

    namespace: str
    name: str
    kind: str = ""
    group: str = ""

    @property
    def full_kind(self) -> str:
        """The kind as kubectl takes it, ``Job.batch.volcano.sh``; without a group where nobody says which."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def may_be(self, other: WorkloadRef) -> bool:
        """Tell whether both may be one object: what either leaves open matches anything."""
        return (
            (self.namespace, self.name) == (other.namespace, other.name)
            and (not self.kind or not other.kind or self.kind == other.kind)
            and (not self.group or not other.group or self.group == other.group)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTemplate:
    """A template in force.

    `ref` is None when neither its status, an ``overspill.dev/workload`` annotation nor a Helm step says which object it
    bursts; such a template can be placed by request only. `uses_replicas` tells whether any expression reads
    ``replicas``: without it every placement deploys what is written, whatever its share. `blob` is the version of the
    file that is in force, which may be older than the one at the source commit. `gpr_templates` name the terms under
    which it may have GPUs. A `request` is one that stands for what a person asked for by name; nothing else uses it.
    `prerequisites` are what a cluster must have before any of it works there. `undivided` is the spec of its own file
    where a WorkloadSpread has a share divided in `spec`. `group_size` is how many pods one replica is of, which go
    together, by the owner's word; None where nobody says.
    """

    name: TemplateName
    workspace: WorkspaceName
    namespace: str
    spec: DeploySpec
    ref: WorkloadRef | None
    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    gpr_templates: tuple[str, ...] = ()
    request: bool = False
    uses_replicas: bool = True
    path: str = ""
    line: int = 0
    blob: BlobId | None = None
    prerequisites: tuple[Prerequisite, ...] = ()
    undivided: DeploySpec | None = None
    group_size: int | None = None

    @property
    def workload(self) -> WorkloadId:
        """The id under which this template's demand and placements are known."""
        return WorkloadId(self.workspace, self.name, self.request)
