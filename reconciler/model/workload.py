"""WorkloadTemplates as values: charts, manifests and commands, their steps, and their duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import BlobId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.manifest_source import MadeFrom, ManifestPatch

Json: TypeAlias = Any
"""A value of a YAML document: null, bool, int, float, str, list or a mapping with string keys. Never mutated."""


class DeletionPolicy(StrEnum):
    """Whether the objects of a removed placement are pruned or left in the cluster."""

    DELETE = "Delete"
    RETAIN = "Retain"


class StepType(StrEnum):
    """The list of a template in which the name of a step is looked up."""

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
    """A chart to install."""

    name: str
    chart: str
    """With or without the repository's alias: ``vllm/vllm-stack``."""
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
    """A Kubernetes object to apply."""

    name: str
    """The name that steps refer to."""
    manifest: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A kubectl command line. The daemon never runs it."""

    name: str
    cmd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An entry of the order in which the template's parts are applied."""

    name: str
    type: StepType


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploySpec:
    """The deployed parts. String leaves hold expressions in a template, and rendered values in a placement."""

    helm: tuple[HelmConfig, ...] = ()
    manifests: tuple[ManifestResource, ...] = ()
    commands: tuple[Command, ...] = ()
    steps: tuple[Step, ...] = ()
    """Each names an entry of the list of its type."""
    burst_duration: timedelta | None = None
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE
    service_account: str = ""
    referred: tuple[Mapping[str, Json], ...] = ()
    """Objects of the primary that its own refer to and do not bring, as the runtime of a TrainJob; never deployed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """The object on the primary cluster whose replicas are counted."""

    namespace: str
    name: str
    kind: str = ""
    """Empty for any."""
    group: str = ""
    """The API group, where several have this kind; empty for any."""
    release: bool = False
    """Whether the name may be that of a Helm release; the reference then means one of its objects."""

    @property
    def full_kind(self) -> str:
        """The kind as kubectl takes it, ``Job.batch.volcano.sh``; without a group where none is given."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def may_be(self, other: WorkloadRef) -> bool:
        """Return whether both may be one object: an empty field matches anything."""
        return (
            (self.namespace, self.name) == (other.namespace, other.name)
            and (not self.kind or not other.kind or self.kind == other.kind)
            and (not self.group or not other.group or self.group == other.group)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCount:
    """The fields of one manifest whose sum is the replicas of a placement."""

    manifest: str
    """The name that steps refer to."""
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSummary:
    """What a container runs, in short; None where an expression says it."""

    name: str
    image: str | None
    command: str | None
    """A digest of the command and its arguments; empty without any."""
    resources: str | None
    """The requests, as ``cpu 4, nvidia.com/gpu 8``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTemplate:
    """A template in force."""

    name: TemplateName
    workspace: WorkspaceName
    namespace: str
    spec: DeploySpec
    ref: WorkloadRef | None
    """The object that it bursts: from its status, an ``overspill.dev/workload`` annotation or a Helm step. Without one
    (None) it can be placed by request only."""
    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    gpr_templates: tuple[str, ...] = ()
    """Terms under which it may have GPUs."""
    request: bool = False
    """Whether the template is made of a request by name; no other placement uses it."""
    uses_replicas: bool = True
    """Whether an expression reads ``replicas``; without one every placement deploys the same objects."""
    copy: int | None = None
    """The replicas of one copy, where every placement deploys the same number; None where the replicas of a placement
    are written, and where an autoscaler or a group of pods decides."""
    count: ReplicaCount | None = None
    """Fields that hold a placement's replicas; None if only the expressions know them."""
    path: str = ""
    line: int = 0
    blob: BlobId | None = None
    """Version of the file in force, which may be older than the one at the source commit."""
    prerequisites: tuple[Prerequisite, ...] = ()
    """Prerequisites of the objects in a cluster."""
    own_spec: DeploySpec | None = None
    """The spec of its own file, where `spec` has expressions in place of its numbers of replicas."""
    runs_once: bool = False
    """Whether a second copy would do the same work again, as of a Job or a training job."""
    shares_domain: bool = False
    """Whether the pods of all replicas of a placement have to run in one topology domain, though they are no gang."""
    group_size: int | None = None
    """Pods of one replica that are scheduled as a gang, by annotation; None without one."""
    containers: tuple[ContainerSummary, ...] = ()
    """Containers of the object in `ref`, where the template itself makes it of one pod template."""
    made_from: MadeFrom | None = None
    """What its objects were read from; None where its file holds them all."""
    unread: str = ""
    """Why its objects are unknown, with the way out; nothing is deployed from it then. Empty where they are known."""
    patches: tuple[ManifestPatch, ...] = ()
    """Changes of its objects by cluster."""
    workload: WorkloadId = field(init=False, repr=False, compare=False)
    """The id of its demand and placements."""

    def __post_init__(self) -> None:
        """Make the id, which each pass reads many times."""
        object.__setattr__(self, "workload", WorkloadId(self.workspace, self.name, self.request))
