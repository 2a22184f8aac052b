"""Facts about a cluster that people declare beside its observation.

Nodes that its autoscaler can add, networks that clusters share, and prerequisites: the needs of a template's objects,
and what the cluster provides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.units import Resources

NODE_POOL_LABEL = "karpenter.sh/nodepool"
"""The label of a node with the name of the NodePool that Karpenter launched it for."""

CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
"""The label of a node with how Karpenter has bought it: ``spot``, ``on-demand`` or ``reserved``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPartition:
    """A partition of Slurm in the place of a Kubernetes cluster: it has no API server, so nothing is applied there."""

    name: str

    @property
    def description(self) -> str:
        """What it is, and why nothing is placed there."""
        return f"partition {self.name} of Slurm: Argo CD and Flux apply no manifests there"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableNodes:
    """Nodes of one kind that a cluster's autoscaler adds for unschedulable pods."""

    labels: Mapping[str, str]
    """The labels of the nodes; existing nodes with all of them are of this kind."""
    taints: tuple[Taint, ...]
    allocatable: Resources
    most: int
    """Most nodes of this kind, existing ones included."""
    delay: timedelta
    """Time until a new node is ready."""

    @property
    def node_pool(self) -> str:
        """The NodePool of Karpenter that the nodes are launched for, by their labels; empty for none."""
        return self.labels.get(NODE_POOL_LABEL, "")

    @property
    def adding(self) -> str:
        """What adds the nodes, in messages."""
        return f"NodePool {self.node_pool}" if self.node_pool else "its autoscaler"

    @property
    def is_spot(self) -> bool:
        """Whether the provider may take the nodes back, by the label of Karpenter."""
        return self.labels.get(CAPACITY_TYPE_LABEL) == "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceWindow:
    """A price that holds from each start on, for so long."""

    start: str
    """The five fields of a crontab, weekdays 0 to 7, both ends Sunday."""
    duration: timedelta
    zone: str
    """IANA time zone that `start` is read in."""
    price_per_gpu_hour: float
    """In dollars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrice:
    """The price of nodes that the provider may take back."""

    labels: Mapping[str, str]
    """Labels of these nodes: pods that require all of them pay this price."""
    price_per_gpu_hour: float
    """In dollars."""


class NetworkApi(StrEnum):
    """The API whose ServiceExports publish a Service to other clusters."""

    MULTICLUSTER = "multicluster"
    KUBESLICE = "kubeslice"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNetworking:
    """The export of the Services of placements to a network that clusters share."""

    api: NetworkApi
    slice: str = ""
    """KubeSlice's name of the network; empty with another API."""


class Category(StrEnum):
    """Categories of prerequisites: the fields of a Cluster's ``spec.provides``, in the order of reports."""

    KINDS = "kinds"
    API_VERSIONS = "apiVersions"
    SCHEDULERS = "schedulers"
    QUEUES = "queues"
    POD_GROUPS = "podGroups"
    TOPOLOGIES = "topologies"
    PRIORITY_CLASSES = "priorityClasses"
    RUNTIME_CLASSES = "runtimeClasses"
    RUNTIMES = "runtimes"
    VOLUMES = "volumes"
    STORAGE_CLASSES = "storageClasses"
    CONFIG_MAPS = "configMaps"
    SECRETS = "secrets"
    SERVICE_ACCOUNTS = "serviceAccounts"
    NETWORKS = "networks"
    CLAIM_TEMPLATES = "claimTemplates"
    CLAIMS = "claims"
    DEVICE_CLASSES = "deviceClasses"
    IMAGES = "images"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Prerequisite:
    """An object that the template refers to and that the cluster must provide."""

    category: Category
    name: str
    """``namespace/name`` of a namespaced object, ``group/Kind`` of a kind, ``group/version`` of an API version, the
    whole reference of an image."""
    by: str
    """The object that refers to it; of an API version the kind of one."""


Provides: TypeAlias = Mapping[Category, tuple[str, ...]]
"""The declared objects of a cluster, as names or globs; nothing is declared for a missing category."""
