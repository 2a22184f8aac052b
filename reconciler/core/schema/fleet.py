"""The kinds Fleet and Cluster of ``overspill.dev``: settings for all clusters, and each cluster with its connection.

A Cluster also declares what it provides, for prerequisites of objects, and the nodes that its autoscaler can add.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from reconciler.core.schema.strict_model import (
    Amounts,
    Duration,
    Labels,
    Metadata,
    Name,
    Strict,
    Text,
    refusal,
    resources,
)
from reconciler.core.schema.taints import TaintFile
from reconciler.core.schema.urls import GitAddress
from reconciler.model import policy as model
from reconciler.model.cluster import Category, Provides, ScalableNodes
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Availability, Connection, EngineName

_NAMED = "as 'namespace/name', or 'name' in any namespace"


class ProvidesFile(Strict):
    """What a cluster has, as names or globs. What a list that is there leaves out, the cluster does not have."""

    kinds: list[Text] | None = Field(None, description="Custom kinds that are installed, as 'group/Kind'.")
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
    def _one_way(self) -> ConnectionFile:
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
    def _one_way(self) -> ArgoCDConnectionFile:
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
    worker_lost_timeout: Duration = Field(
        timedelta(minutes=15), description="How long a cluster may be lost before what runs in groups leaves it."
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
            worker_lost_timeout=self.spec.worker_lost_timeout,
            ignore=tuple(self.spec.ignore),
            argocd=self.spec.argocd.value_of(),
            flux=model.Flux(namespace=self.spec.flux.namespace, interval=self.spec.flux.interval),
            branch_per_cluster=self.spec.branch_per_cluster,
        )


class ScalableNodesFile(Strict):
    """Nodes of one kind that the cluster's autoscaler adds when pods wait."""

    labels: Annotated[Labels, Field(min_length=1)] = Field(
        description="Labels of these nodes, by which those that exist already are counted."
    )
    taints: list[TaintFile] = Field([], description="Taints of these nodes.")
    allocatable: Amounts = Field(description="What one of them has for pods, by resource.")
    max_nodes: Annotated[int, Field(ge=1, le=100_000)] = Field(
        description="How many there may be, with those that exist."
    )
    delay: Duration = Field(timedelta(minutes=10), description="How long one takes from a waiting pod to being ready.")

    def value_of(self) -> ScalableNodes:
        """Make the model's value."""
        return ScalableNodes(
            labels=self.labels,
            taints=tuple(taint.value_of() for taint in self.taints),
            allocatable=resources(self.allocatable),
            most=self.max_nodes,
            delay=self.delay,
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
    autoscaling: list[ScalableNodesFile] = Field([], description="What its autoscaler may add: told in wait times.")
    provides: ProvidesFile | None = Field(None, description="What it has for placed objects to refer to.")


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
            autoscaling=tuple(nodes.value_of() for nodes in self.spec.autoscaling),
            provides={} if self.spec.provides is None else self.spec.provides.value_of(),
        )
