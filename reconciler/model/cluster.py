"""What people declare of a cluster beside its observation.

Nodes that its autoscaler can add, networks that clusters share, and prerequisites: what objects of a template need
there before they work, and what the cluster provides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from reconciler.model.scheduling import Taint
from reconciler.model.units import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableNodes:
    """Nodes of one kind that a cluster's autoscaler adds when pods wait: up to `most` of them, each after a `delay`.

    The nodes that exist of this kind are those that have all of its labels.
    """

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Resources
    most: int
    delay: timedelta


class NetworkApi(StrEnum):
    """The API whose ServiceExports publish a Service to other clusters."""

    MULTICLUSTER = "multicluster"
    KUBESLICE = "kubeslice"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNetworking:
    """That the Services of placements are exported to a network that clusters share, and how.

    `slice` is KubeSlice's name for that network, empty with any other API.
    """

    api: NetworkApi
    slice: str = ""


class Category(StrEnum):
    """What can be needed: the fields of a Cluster's ``spec.provides``, in the order in which they are told."""

    KINDS = "kinds"
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
    """One thing that objects refer to and do not bring along: its name, and `by` whom it is needed.

    What lives in a namespace is ``namespace/name``, a kind is ``group/Kind``, an image its whole reference.
    """

    category: Category
    name: str
    by: str


Provides: TypeAlias = Mapping[Category, tuple[str, ...]]
"""What a cluster is said to have, as names or globs. Of a category that is not in it nobody says anything."""
