"""The kinds of ``overspill.dev``: Fleet, Cluster, Workspace, BurstPolicy."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from reconciler.core.findings import shortened
from reconciler.core.schema.addresses import GitAddress
from reconciler.core.schema.connection import ArgoCDConnectionFile, ConnectionFile
from reconciler.core.schema.signals import Signals
from reconciler.core.schema.strict import Duration, Labels, Metadata, Name, Strict, Text, Window, refusal
from reconciler.model import policy as model
from reconciler.model.capacity import Taint, Toleration
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Availability, EngineName
from reconciler.model.units import format_duration

_PINNED = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_KIND = re.compile(r"[a-z0-9.-]*/[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_DEFAULTS = model.BurstPolicy(name="defaults")


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class AnyEffect(StrEnum):
    """The effects that a toleration may name; the empty one stands for all."""

    ANY = ""
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Operator(StrEnum):
    """How a toleration compares."""

    EQUAL = "Equal"
    EXISTS = "Exists"


EngineField = Annotated[EngineName, Field(strict=False)]
EffectField = Annotated[Effect, Field(strict=False)]


class TaintFile(Strict):
    """A taint as Kubernetes writes it."""

    key: Text
    value: str = ""
    effect: EffectField = Effect.NO_SCHEDULE
    time_added: str = Field("", description="What kubectl exports; not read.")

    def value_of(self) -> Taint:
        """Make the model's value."""
        return Taint(key=self.key, value=self.value, effect=str(self.effect))


class TolerationFile(Strict):
    """A toleration as in a pod spec."""

    key: str = ""
    operator: Annotated[Operator, Field(strict=False)] = Operator.EQUAL
    value: str = ""
    effect: Annotated[AnyEffect, Field(strict=False)] = AnyEffect.ANY
    toleration_seconds: int | None = Field(None, description="What pods carry; not read.")

    def value_of(self) -> Toleration:
        """Make the model's value."""
        return Toleration(key=self.key, operator=str(self.operator), value=self.value, effect=str(self.effect))


class ArgoCDFile(Strict):
    """Where Argo CD lives."""

    namespace: Name = "argocd"
    project: Name = "overspill"
    connection: ArgoCDConnectionFile | None = Field(
        None, description="How the daemon reaches it, to see what became of placements; not looked at if absent."
    )

    def value_of(self) -> model.ArgoCD:
        """Make the model's value."""
        connection = None if self.connection is None else self.connection.value_of()
        return model.ArgoCD(namespace=self.namespace, project=self.project, connection=connection)


class FluxFile(Strict):
    """What Flux's objects are like, the same in each cluster."""

    namespace: Name = Field("overspill", description="Where Flux's objects live; set it before the first burst.")
    interval: Duration = Field(timedelta(minutes=1), description="How often Flux asks the remote for changes.")


class FleetSpec(Strict):
    """Settings that hold for all clusters."""

    repo_url: GitAddress = Field("", alias="repoURL", description="Where engines clone the output branch from.")
    engine: EngineField = Field(
        EngineName.ARGOCD, description="What applies the output branch, unless a Cluster says so."
    )
    observation_max_age: Duration = Field(
        timedelta(minutes=2), description="How old an observation may be before its cluster counts as unseen."
    )
    ignore: list[Text] = Field([], description="Paths that are not read, as globs: 'charts/**', 'docs/*.yaml'.")
    branch_per_cluster: bool = Field(
        False, description="Each cluster also gets a branch of its own, with its directory alone; engines follow it."
    )
    argocd: ArgoCDFile = ArgoCDFile()
    flux: FluxFile = FluxFile()


class FleetFile(Strict):
    """Settings that hold for all clusters. A fleet repository holds at most one."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec = FleetSpec()

    def value_of(self) -> model.Fleet:
        """Make the model's value."""
        return model.Fleet(
            name=self.metadata.name,
            repo_url=self.spec.repo_url,
            engine=self.spec.engine,
            observation_max_age=self.spec.observation_max_age,
            ignore=tuple(self.spec.ignore),
            argocd=self.spec.argocd.value_of(),
            flux=model.Flux(namespace=self.spec.flux.namespace, interval=self.spec.flux.interval),
            branch_per_cluster=self.spec.branch_per_cluster,
        )


class ClusterSpec(Strict):
    """What cannot be seen from the cluster itself."""

    taints: list[TaintFile] = Field([], description="Taints that all of the cluster's nodes are taken to have.")
    engine: EngineField | None = Field(None, description="What applies the output branch here; the Fleet's by default.")
    availability: Annotated[Availability, Field(strict=False)] = Field(
        Availability.ACTIVE,
        description="Active takes bursts, Cordoned takes no new ones, Draining gives back what it has.",
    )
    price_per_gpu_hour: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, alias="pricePerGPUHour", description="In dollars; told in commits, not weighed."
    )
    connection: ConnectionFile | None = Field(
        None, description="How the daemon reaches it, to watch it; by the context of its name if absent."
    )


class ClusterFile(Strict):
    """A cluster that workloads run on or burst to. Its metadata.labels are what policies select by."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Cluster"]
    metadata: Metadata
    spec: ClusterSpec = ClusterSpec()

    def value_of(self, fleet: model.Fleet) -> model.Cluster:
        """Make the model's value; the engine is the Fleet's where none is written."""
        return model.Cluster(
            name=ClusterName(self.metadata.name),
            labels=self.metadata.labels,
            taints=tuple(taint.value_of() for taint in self.spec.taints),
            engine=self.spec.engine or fleet.engine,
            availability=self.spec.availability,
            price_per_gpu_hour=self.spec.price_per_gpu_hour,
            connection=None if self.spec.connection is None else self.spec.connection.value_of(self.metadata.name),
        )


def _pinned(image: str) -> str:
    """Refuse an image that could be another one tomorrow."""
    if _PINNED.fullmatch(image):
        return image
    raise refusal(f"{shortened(image)!r} is not pinned by digest", "try 'registry/name@sha256:…'")


def _kind(text: str) -> str:
    """Refuse what is not a group and a kind."""
    group, _, kind = text.partition("/")
    if _KIND.fullmatch(text) and not _VERSION.fullmatch(group):
        return text
    likely = f"/{kind}" if kind else f"/{text}"
    hint = f"try '{likely}'" if _KIND.fullmatch(likely) else "try 'rbac.authorization.k8s.io/Role'"
    raise refusal(f"{shortened(text)!r} is not a group and a kind ('/Namespace' for the core group)", hint)


PinnedImage = Annotated[
    str, AfterValidator(_pinned), WithJsonSchema({"type": "string", "pattern": "@sha256:[0-9a-f]{64}$"})
]
GroupKind = Annotated[
    str, AfterValidator(_kind), WithJsonSchema({"type": "string", "pattern": "^[a-z0-9.-]*/[A-Z][A-Za-z0-9]*$"})
]


class CommandJobsFile(Strict):
    """Commands that are no plain object may run as Jobs in the destination cluster, with this image."""

    image: PinnedImage = Field(description="The image that runs a command, with kubectl in it.")


class WorkspaceSpec(Strict):
    """A tenant's clusters, namespaces and limits."""

    primary_cluster: Name = Field(description="Where the tenant's workloads live, and never burst to.")
    clusters: list[Name] = Field(min_length=1, description="Where they may run, the primary among them.")
    namespaces: list[Name] = Field([], description="What they may touch.")
    allow_unpinned_charts: bool = Field(False, description="Charts without a version are allowed.")
    allowed_kinds: list[GroupKind] = Field([], description="group/Kind that manifests may hold beyond the usual.")
    command_jobs: CommandJobsFile | None = None


class WorkspaceFile(Strict):
    """A tenant: its clusters, its primary cluster, its namespaces, its limits."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Workspace"]
    metadata: Metadata
    spec: WorkspaceSpec

    def value_of(self) -> model.Workspace:
        """Make the model's value."""
        spec, jobs = self.spec, self.spec.command_jobs
        return model.Workspace(
            name=WorkspaceName(self.metadata.name),
            primary=ClusterName(spec.primary_cluster),
            clusters=tuple(ClusterName(name) for name in dict.fromkeys(spec.clusters)),
            namespaces=tuple(dict.fromkeys(spec.namespaces)),
            allow_unpinned_charts=spec.allow_unpinned_charts,
            allowed_kinds=tuple(spec.allowed_kinds),
            command_jobs=None if jobs is None else model.CommandJobs(image=jobs.image),
        )


class CandidateFile(Strict):
    """One rung of the order: a cluster by name, or all clusters of the workspace with these labels."""

    name: Name | None = None
    match_labels: Labels = Field({})
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The most replicas on each such cluster."
    )

    @model_validator(mode="after")
    def _one_way(self) -> CandidateFile:
        """Refuse a rung that selects in two ways or in none."""
        if (self.name is None) == (not self.match_labels):
            both = self.name is not None
            raise refusal(
                "has both name and matchLabels" if both else "has neither name nor matchLabels",
                "try two entries" if both else "try name: worker-2",
            )
        return self


class WindowFile(Strict):
    """How long something must last before it counts."""

    window: Window


class BurstDurationFile(Strict):
    """How long a placement lives, for templates that do not say so, and at most."""

    default: Duration = _DEFAULTS.default_duration
    max: Duration | None = None

    @model_validator(mode="after")
    def _in_order(self) -> BurstDurationFile:
        """Refuse a default beyond the maximum."""
        if self.max is not None and self.default > self.max:
            raise refusal(
                f"default {format_duration(self.default)} is longer than max {format_duration(self.max)}",
                f"try default: {format_duration(self.max)}",
            )
        return self


class BurstPolicySpec(Strict):
    """When a workload may burst, where to, how far, and how long."""

    workspaces: list[Name] = Field([], description="Workspaces that it governs; none named: all.")
    templates: list[Name] = Field([], description="WorkloadTemplates that it governs; none named: all.")
    priority: int = Field(0, description="Who goes first when capacity is short; higher is earlier.")
    clusters: list[CandidateFile] = Field([], description="Where to, best first; none named: all of the workspace.")
    require_labels: Labels = Field({}, description="Labels that a cluster must have.")
    tolerations: list[TolerationFile] = Field([], description="Taints of clusters and nodes that bursts put up with.")
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The most replicas of one workload, all in all."
    )
    scale_up: WindowFile = Field(
        WindowFile(window=_DEFAULTS.scale_up_window), description="How long replicas must be missing before a burst."
    )
    scale_down: WindowFile = Field(
        WindowFile(window=_DEFAULTS.scale_down_window), description="How long they must not be missing before it goes."
    )
    cool_down: Window = Field(_DEFAULTS.cool_down, description="The rest after a burst has gone.")
    hold: Window = Field(_DEFAULTS.hold, description="How long a placement that a person deleted stays away.")
    in_flight_timeout: Duration = Field(
        _DEFAULTS.in_flight_timeout, description="How long a placement may take to get its nodes."
    )
    rollout_timeout: Duration = Field(
        _DEFAULTS.rollout_timeout, description="How long a placement may not be healthy before it is taken back."
    )
    duration: BurstDurationFile = BurstDurationFile()
    signals: Signals = Field([], description="What asks for replicas beside what clusters report.")


class BurstPolicyFile(Strict):
    """When workloads may burst, where to, how far, and how long.

    One policy governs a template: the one that names it, else the one that names its workspace, else the one that names
    none.
    """

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["BurstPolicy"]
    metadata: Metadata
    spec: BurstPolicySpec = BurstPolicySpec()

    def value_of(self) -> model.BurstPolicy:
        """Make the model's value."""
        spec = self.spec
        return model.BurstPolicy(
            name=self.metadata.name,
            workspaces=tuple(WorkspaceName(name) for name in spec.workspaces),
            templates=tuple(spec.templates),
            priority=spec.priority,
            candidates=tuple(
                model.Candidate(
                    name=None if rung.name is None else ClusterName(rung.name),
                    match_labels=rung.match_labels,
                    max_replicas=rung.max_replicas,
                )
                for rung in spec.clusters
            ),
            require_labels=spec.require_labels,
            tolerations=tuple(toleration.value_of() for toleration in spec.tolerations),
            max_replicas=spec.max_replicas,
            scale_up_window=spec.scale_up.window,
            scale_down_window=spec.scale_down.window,
            cool_down=spec.cool_down,
            hold=spec.hold,
            in_flight_timeout=spec.in_flight_timeout,
            rollout_timeout=spec.rollout_timeout,
            default_duration=spec.duration.default,
            max_duration=spec.duration.max,
            schedules=tuple(one.schedule.value_of(one.name) for one in spec.signals if one.schedule is not None),
            queries=tuple(one.prometheus.value_of(one.name) for one in spec.signals if one.prometheus is not None),
        )
