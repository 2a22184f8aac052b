"""Kueue's queues of a cluster: what its LocalQueues, ClusterQueues, Cohorts and ResourceFlavors say of quota.

Fields are those of `apis/kueue/v1beta2` of kubernetes-sigs/kueue at ff69552; v1beta1 has the same under older names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.units import Quantity


class QueueClaim(NamedTuple):
    """How Kueue queues pods, by the object that makes them."""

    queue: str = ""
    """The LocalQueue that the object names; empty for the default one of its namespace, if there is one."""
    each: bool = False
    """Whether each pod is a Workload of its own; else all pods of a shape are admitted together, in one flavor."""
    cluster_queue: str = ""
    """The ClusterQueue of a LocalQueue that is deployed with the object; empty where none is."""
    topology: bool = False
    """Whether the pods ask for a topology, by an annotation of Kueue."""


class FlavorResource(NamedTuple):
    """What a quota is for: one resource of one ResourceFlavor."""

    flavor: str
    resource: str


class FlavorQuota(NamedTuple):
    """The quota of a ClusterQueue, or of a Cohort, for a resource of a flavor."""

    nominal: Quantity
    borrowing: Quantity | None = None
    """The most that may be borrowed of the cohort; None for no limit."""
    lending: Quantity | None = None
    """The most that others of the cohort may borrow; None for all of it."""


class QuotaGroup(NamedTuple):
    """A resource group: pods get all of its resources from one of its flavors."""

    resources: frozenset[str]
    flavors: tuple[str, ...]
    """In the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFlavor:
    """A ResourceFlavor: the nodes that a quota is for."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of its nodes, which Kueue writes into the node selectors of pods."""
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    """What Kueue adds to the tolerations of pods."""
    topology: str = ""
    """The Topology by which it gives pods their nodes; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueue:
    """A ClusterQueue, with what is reserved of its quotas."""

    cohort: str = ""
    """Empty for none."""
    groups: tuple[QuotaGroup, ...] = ()
    quotas: Mapping[FlavorResource, FlavorQuota] = field(default_factory=dict)
    used: Mapping[FlavorResource, Quantity] = field(default_factory=dict)
    """`status.flavorsReservation`, which has what is admitted too."""
    namespaces: tuple[Requirement, ...] | None = None
    """The `namespaceSelector`; None for no namespace."""
    closed: str = ""
    """Why it admits nothing; empty while it does."""
    is_strict: bool = False
    """Whether nothing is admitted before a Workload that waits (StrictFIFO)."""
    pending: int = 0
    """Workloads that wait in it."""
    borrows_last: bool = False
    """Whether a flavor that needs no borrowing comes before one that does."""
    preempts_first: bool = False
    """Whether it preempts in a flavor before it tries the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A Cohort: quotas that its ClusterQueues and the Cohorts below it share."""

    parent: str = ""
    """Empty for none."""
    quotas: Mapping[FlavorResource, FlavorQuota] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueue:
    """A LocalQueue: a namespace's way to a ClusterQueue."""

    cluster_queue: str
    closed: str = ""
    """Why it admits nothing; empty while it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueQueues:
    """All queues of a cluster."""

    local: Mapping[tuple[str, str], LocalQueue] = field(default_factory=dict)
    """By namespace and name."""
    clusters: Mapping[str, ClusterQueue] = field(default_factory=dict)
    """ClusterQueues by name."""
    cohorts: Mapping[str, Cohort] = field(default_factory=dict)
    """Cohorts by name; ClusterQueues may name others, which have no quota of their own."""
    flavors: Mapping[str, ResourceFlavor] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    """The labels of all namespaces by name; None where unknown."""
