"""The kinds Fleet and Cluster of ``overspill.dev``: settings for all clusters, and each cluster with its connection.

A Cluster also declares what it provides, for prerequisites of objects, and the nodes that its autoscaler can add.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from reconciler.core.schema.signals import Cron, Partition, WindowLength, Zone
from reconciler.core.schema.strict_model import (
    Amounts,
    Duration,
    Labels,
    Metadata,
    Name,
    PathPattern,
    Strict,
    Text,
    refusal,
    resources,
)
from reconciler.core.schema.taints import TaintFile
from reconciler.core.schema.urls import GitAddress, SourceAddress
from reconciler.model import policy as model
from reconciler.model.cluster import Category, PriceWindow, Provides, ScalableNodes, SlurmPartition, SpotPrice
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.object_schema import FieldValidation
from reconciler.model.policy import Availability, Connection, EngineName

_NAMED = "as 'namespace/name', or 'name' in any namespace"


class ProvidesFile(Strict):
    """The objects that a cluster provides, as names or globs. A list is complete: the cluster lacks all other names."""

    kinds: list[Text] | None = Field(None, description="Custom kinds that are installed, as 'group/Kind'.")
    api_versions: list[Text] | None = Field(
        None, description="API versions that it serves, as `kubectl api-versions` prints them, where they are not seen."
    )
    schedulers: list[Text] | None = Field(None, description="Schedulers beside the usual one, by schedulerName.")
    queues: list[Text] | None = Field(None, description=f"Queues of Kueue, Volcano and KAI; LocalQueues {_NAMED}.")
    pod_groups: list[Text] | None = Field(None, description=f"PodGroups, {_NAMED}.")
    topologies: list[Text] | None = Field(None, description="Topologies of KAI.")
    priority_classes: list[Text] | None = Field(None, description="PriorityClasses, and Kueue's of workloads.")
    runtime_classes: list[Text] | None = Field(None, description="RuntimeClasses.")
    runtimes: list[Text] | None = Field(None, description="Runtimes of Kubeflow Trainer and KServe.")
    volumes: list[Text] | None = Field(None, description=f"PersistentVolumeClaims, {_NAMED}.")
    storage_classes: list[Text] | None = Field(None, description="StorageClasses.")
    config_maps: list[Text] | None = Field(None, description=f"ConfigMaps, {_NAMED}.")
    secrets: list[Text] | None = Field(None, description=f"Secrets, {_NAMED}.")
    service_accounts: list[Text] | None = Field(None, description=f"ServiceAccounts, {_NAMED}.")
    networks: list[Text] | None = Field(None, description=f"NetworkAttachmentDefinitions, {_NAMED}.")
    claim_templates: list[Text] | None = Field(None, description=f"ResourceClaimTemplates, {_NAMED}.")
    claims: list[Text] | None = Field(None, description=f"ResourceClaims, {_NAMED}.")
    device_classes: list[Text] | None = Field(None, description="DeviceClasses, beside those that are seen.")
    images: list[Text] | None = Field(None, description="Images that are on its nodes, whole: 'registry/name:tag'.")

    def value_of(self) -> Provides:
        """Make the model's value."""
        fields = self.model_dump(by_alias=True, exclude_none=True)
        return {Category(name): tuple(dict.fromkeys(patterns)) for name, patterns in fields.items()}


class ConnectionFile(Strict):
    """How the daemon reaches the cluster's API server. Addresses and credentials are never in the fleet repository."""

    context: Text | None = Field(None, description="A context of the daemon's kubeconfig; else the cluster's name.")
    in_cluster: bool = Field(False, description="The daemon runs in this cluster, and uses its service account.")
    argocd: bool = Field(False, description="With the login that Argo CD has for the cluster of this name.")

    @model_validator(mode="after")
    def _refuse_several_connections(self) -> ConnectionFile:
        """Refuse two forms of connection at once."""
        logins = {"context": self.context is not None, "inCluster": self.in_cluster, "argocd": self.argocd}
        named = [name for name, meant in logins.items() if meant]
        if len(named) > 1:
            raise refusal(f"has both {named[0]} and {named[1]}", f"try leaving {named[0]} out")
        return self

    def value_of(self, cluster: str) -> Connection:
        """Make the model's value."""
        if self.argocd:
            return Connection(argocd=cluster)
        context = "" if self.in_cluster else self.context or cluster
        return Connection(context=context, in_cluster=self.in_cluster)


class ArgoCDConnectionFile(Strict):
    """How the daemon reaches the cluster that Argo CD runs in, whether or not that is one of the fleet."""

    context: Text | None = Field(None, description="A context of the daemon's kubeconfig.")
    in_cluster: bool = Field(False, description="The daemon runs in that cluster, and uses its service account.")

    @model_validator(mode="after")
    def _refuse_several_connections(self) -> ArgoCDConnectionFile:
        """Refuse two forms of connection at once, or none."""
        if self.context is not None and self.in_cluster:
            raise refusal("has both context and inCluster", "try leaving context out")
        if self.context is None and not self.in_cluster:
            raise refusal("has neither context nor inCluster", "try inCluster: true")
        return self

    def value_of(self) -> Connection:
        """Make the model's value."""
        return Connection(context=self.context or "", in_cluster=self.in_cluster)


EngineField = Annotated[EngineName, Field(strict=False)]


class ArgoCDFile(Strict):
    """The namespace and settings of Argo CD."""

    namespace: Name = Field("argocd", description="Namespace of Argo CD.")
    project: Name = Field("overspill", description="The AppProject that placements belong to.")
    connection: ArgoCDConnectionFile | None = Field(
        None,
        description=(
            "Connection of the daemon to the cluster of Argo CD, for its status, logins and sources; one of the two."
        ),
    )

    def value_of(self) -> model.ArgoCD:
        """Make the model's value."""
        connection = None if self.connection is None else self.connection.value_of()
        return model.ArgoCD(namespace=self.namespace, project=self.project, connection=connection)


class FluxFile(Strict):
    """Settings of Flux's objects, for all clusters."""

    namespace: Name = Field("overspill", description="Namespace of Flux's objects; set it before the first burst.")
    interval: Duration = Field(
        timedelta(minutes=1), description="How often Flux asks the remote for changes, where no webhook tells it."
    )


class PathsFile(Strict):
    """Patterns of the files that each kind is read from, in the place of its default."""

    cluster: list[PathPattern] | None = Field(
        None, alias="Cluster", description="Files with Clusters; by default `clusters/**` and `clusters.*`."
    )
    workspace: list[PathPattern] | None = Field(
        None, alias="Workspace", description="Files with Workspaces; by default `workspaces/**` and `workspaces.*`."
    )
    burst_policy: list[PathPattern] | None = Field(
        None, alias="BurstPolicy", description="Files with BurstPolicies; by default `policies/**` and `policies.*`."
    )
    workspace_policy: list[PathPattern] | None = Field(
        None,
        alias="WorkspacePolicy",
        description="Files with WorkspacePolicies; by default those of BurstPolicies and Workspaces.",
    )
    gpr_template: list[PathPattern] | None = Field(
        None,
        alias="GPRTemplate",
        description=(
            "Files with GPRTemplates; by default `gpr-templates/**`, `gpr-templates.*`, and those of BurstPolicies."
        ),
    )
    gpr_template_binding: list[PathPattern] | None = Field(
        None,
        alias="GPRTemplateBinding",
        description="Files with GPRTemplateBindings; by default those of GPRTemplates and Workspaces.",
    )
    notification: list[PathPattern] | None = Field(
        None,
        alias="Notification",
        description="Files with Notifications; by default `notifications/**` and `notifications.*`.",
    )
    workload_kind: list[PathPattern] | None = Field(
        None,
        alias="WorkloadKind",
        description=("Files with WorkloadKinds and OpenKruise's list of kinds; by default `kinds/**` and `kinds.*`."),
    )
    workload_template: list[PathPattern] | None = Field(
        None, alias="WorkloadTemplate", description="Files with WorkloadTemplates; by default all."
    )
    workload_placement: list[PathPattern] | None = Field(
        None, alias="WorkloadPlacement", description="Files with WorkloadPlacements; by default all."
    )
    gpu_provisioning_request: list[PathPattern] | None = Field(
        None, alias="GPUProvisioningRequest", description="Files with GPUProvisioningRequests; by default all."
    )
    workload_spread: list[PathPattern] | None = Field(
        None, alias="WorkloadSpread", description="Files with WorkloadSpreads; by default all."
    )

    def value_of(self) -> dict[str, tuple[str, ...]]:
        """Make the model's value: the patterns of each kind that has any of its own."""
        fields = self.model_dump(by_alias=True, exclude_none=True)
        return {kind: tuple(patterns) for kind, patterns in fields.items()}


class FleetSpec(Strict):
    """Settings that hold for all clusters."""

    repo_url: GitAddress = Field(
        "",
        alias="repoURL",
        description="Where engines clone the output branch from, without a password; `bootstrap` prints it.",
    )
    engine: EngineField = Field(
        EngineName.ARGOCD, description="What applies the output branch, unless a Cluster says otherwise."
    )
    observation_max_age: Duration = Field(
        timedelta(minutes=2), description="Age of an observation at which its cluster counts as unseen."
    )
    worker_lost_timeout: Duration = Field(
        timedelta(minutes=15), description="How long a cluster may be lost before what runs in groups leaves it."
    )
    ignore: list[Text] = Field([], description="Paths that are not read, as globs: 'charts/**', 'docs/*.yaml'.")
    paths: PathsFile = Field(
        PathsFile(), description="The files that each kind is read from, as globs, in the place of its default."
    )
    branch_per_cluster: bool = Field(
        False, description="Each cluster also gets a branch of its own, with its directory alone; engines follow it."
    )
    field_validation: Annotated[FieldValidation, Field(strict=False)] = Field(
        FieldValidation.STRICT,
        description="Strict refuses objects that no API server would take, and unknown fields; Warn only tells them.",
    )
    source_repositories: list[SourceAddress] = Field(
        [], description="Other repositories that templates may be made from, by URL and without a password."
    )
    argocd: ArgoCDFile = Field(ArgoCDFile(), description="The namespace and settings of Argo CD.")
    flux: FluxFile = Field(FluxFile(), description="Settings of Flux's objects, in each cluster that it serves.")


class FleetFile(Strict):
    """Settings that hold for all clusters. A fleet repository holds at most one, in the file fleet.yaml at its root."""

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
            worker_lost_timeout=self.spec.worker_lost_timeout,
            ignore=tuple(self.spec.ignore),
            paths=self.spec.paths.value_of(),
            argocd=self.spec.argocd.value_of(),
            flux=model.Flux(namespace=self.spec.flux.namespace, interval=self.spec.flux.interval),
            branch_per_cluster=self.spec.branch_per_cluster,
            field_validation=self.spec.field_validation,
            source_repositories=tuple(self.spec.source_repositories),
        )


class ScalableNodesFile(Strict):
    """Nodes of one kind that the cluster's autoscaler adds when pods wait."""

    labels: Annotated[Labels, Field(min_length=1)] = Field(
        description="Labels of these nodes, by which those that exist already are counted."
    )
    taints: list[TaintFile] = Field([], description="Taints of these nodes.")
    allocatable: Amounts = Field(description="Allocatable amounts of one node, by resource.")
    max_nodes: Annotated[int, Field(ge=1, le=100_000)] = Field(
        description="Most nodes, existing ones included; fewer where the limits of their NodePool leave fewer."
    )
    delay: Duration = Field(timedelta(minutes=10), description="Time from a waiting pod to a ready node.")

    def value_of(self) -> ScalableNodes:
        """Make the model's value."""
        return ScalableNodes(
            labels=self.labels,
            taints=tuple(taint.value_of() for taint in self.taints),
            allocatable=resources(self.allocatable),
            most=self.max_nodes,
            delay=self.delay,
        )


Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceWindowFile(Strict):
    """A price that holds from each start on, for so long."""

    start: Cron = Field(description="When it begins: minute, hour, day, month, weekday (0 and 7 are Sunday).")
    duration: WindowLength = Field(description="Duration; 31 days at most.")
    time_zone: Zone = Field("UTC", description="The IANA time zone that the start is read in.")
    price_per_gpu_hour: Price = Field(alias="pricePerGPUHour", description="In dollars.")

    def value_of(self) -> PriceWindow:
        """Make the model's value."""
        return PriceWindow(
            start=self.start, duration=self.duration, zone=self.time_zone, price_per_gpu_hour=self.price_per_gpu_hour
        )


class SpotPriceFile(Strict):
    """The price of nodes that the provider may take back."""

    match_labels: Annotated[Labels, Field(min_length=1)] = Field(
        description=(
            "The labels of these nodes: pods whose node selector or required node affinity asks for "
            "all of them pay this price."
        )
    )
    price_per_gpu_hour: Price = Field(alias="pricePerGPUHour", description="In dollars.")

    def value_of(self) -> SpotPrice:
        """Make the model's value."""
        return SpotPrice(labels=self.match_labels, price_per_gpu_hour=self.price_per_gpu_hour)


class SlurmPartitionFile(Strict):
    """The partition of Slurm that stands in the place of a Kubernetes cluster."""

    partition: Partition = Field(description="Its name in Slurm.")


_OF_KUBERNETES = ("connection", "engine", "autoscaling", "provides")
"""Fields of a Cluster that are about its API server, or the pods that it takes."""


class ClusterSpec(Strict):
    """Facts about a cluster that its API server does not report."""

    taints: list[TaintFile] = Field([], description="Taints that all of the cluster's nodes are taken to have.")
    engine: EngineField | None = Field(None, description="Engine of the cluster; the Fleet's by default.")
    availability: Annotated[Availability, Field(strict=False)] = Field(
        Availability.ACTIVE,
        description="Active takes bursts, Cordoned takes no new ones, Draining moves or gives back what it has.",
    )
    price_per_gpu_hour: Price | None = Field(
        None,
        alias="pricePerGPUHour",
        description="In dollars; shown in commits, and weighed where a policy scores by `Price`.",
    )
    prices: list[PriceWindowFile] = Field(
        [],
        description=(
            "Other prices by time: the first whose window is open holds, and `pricePerGPUHour` where none is."
        ),
    )
    spot: SpotPriceFile | None = Field(None, description="The price of its spot nodes.")
    connection: ConnectionFile | None = Field(
        None,
        description=(
            "How the daemon reaches the API server, to watch it; by default the kubeconfig's context "
            "of the cluster's name."
        ),
    )
    time_to_ready: Duration | None = Field(
        None,
        description=("From a commit to a ready pod, for the score `TimeToReady`, until the daemon has measured it."),
    )
    autoscaling: list[ScalableNodesFile] = Field(
        [], description="Nodes that its autoscaler adds when pods wait: room after that of nodes that are there."
    )
    provides: ProvidesFile | None = Field(
        None,
        description=(
            "The objects that placed objects may refer to, as names or globs; what a list leaves out counts as absent."
        ),
    )
    slurm: SlurmPartitionFile | None = Field(
        None, description="It is a partition of Slurm and no Kubernetes cluster: nothing is placed there."
    )

    @model_validator(mode="after")
    def _refuse_kubernetes_fields(self) -> ClusterSpec:
        """Refuse a partition of Slurm with fields that a Kubernetes cluster has."""
        meant = [name for name in _OF_KUBERNETES if name in self.model_fields_set]
        if self.slurm is not None and meant:
            raise refusal(
                f"has both slurm and {meant[0]}, and a partition of Slurm has no API server",
                f"try leaving {meant[0]} out; leave slurm out where Slurm runs in a Kubernetes cluster",
            )
        return self


class ClusterFile(Strict):
    """A cluster that workloads run on or burst to. Policies select it by its metadata.labels."""

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
            # That of plain manifests runs nowhere, so that nothing is made for it.
            engine=EngineName.MANIFESTS if self.spec.slurm is not None else self.spec.engine or fleet.engine,
            availability=self.spec.availability,
            price_per_gpu_hour=self.spec.price_per_gpu_hour,
            prices=tuple(window.value_of() for window in self.spec.prices),
            spot=None if self.spec.spot is None else self.spec.spot.value_of(),
            connection=None if self.spec.connection is None else self.spec.connection.value_of(self.metadata.name),
            time_to_ready=self.spec.time_to_ready,
            autoscaling=tuple(nodes.value_of() for nodes in self.spec.autoscaling),
            provides={} if self.spec.provides is None else self.spec.provides.value_of(),
            slurm=None if self.spec.slurm is None else SlurmPartition(name=self.spec.slurm.partition),
        )
