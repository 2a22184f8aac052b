"""What admission in a namespace holds against new pods: ResourceQuotas, and the bounds of LimitRanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from reconciler.model.kubernetes.queues import QueueClaim
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.scheduling import Amounts
from reconciler.model.units import Resources


class ContainerResources(NamedTuple):
    """The resources that one container states, zeros included; a limit stands for a missing request."""

    name: str
    requests: Amounts = ()
    limits: Amounts = ()
    early: bool = False
    """Whether it is an init container."""
    sidecar: bool = False
    """Whether it is an init container that goes on running."""


class VolumeClaim(NamedTuple):
    """A PersistentVolumeClaim that is made with a pod, or deployed beside it."""

    storage_class: str = ""
    """Empty for the default of the cluster."""
    attributes_class: str = ""
    """Its VolumeAttributesClass; empty for none."""
    storage: Amounts = ()
    """Its request for `storage`; empty where it states none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedAdmission:
    """What the objects that are deployed with pods change of their admission."""

    likeness: str
    """These objects in one text, by which two of this are equal."""
    defaults: Mapping[str, Resources] = field(default_factory=dict, compare=False)
    """Default requests of a container by namespace. Here and below the namespace of an object that names none is
    empty."""
    bounds: Mapping[str, tuple[LimitRangeItem, ...]] = field(default_factory=dict, compare=False)
    """Default limits and bounds of LimitRanges, by namespace."""
    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict, compare=False)
    """ResourceQuotas by namespace."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """The labels of Namespaces by name."""
    has_default_class: bool = field(default=False, compare=False)
    """Whether a PriorityClass among them is the default one."""
    unreadable: str = field(default="", compare=False)
    """Why these objects say nothing, in a clause; empty where they do."""


class PodAdmission(NamedTuple):
    """The properties of a pod that quotas and LimitRanges of its namespace look at."""

    namespace: str
    """Empty where unknown."""
    containers: tuple[ContainerResources, ...] = ()
    """Init containers come first, each kind in its order; none where unknown."""
    requests: Amounts = ()
    """Requests of the pod as a whole (1.34)."""
    limits: Amounts = ()
    """Limits of the pod as a whole (1.34)."""
    runtime_class: str = ""
    """The RuntimeClass that it names, which adds its overhead; empty for none."""
    overhead: Amounts = ()
    """The overhead that the pod states itself."""
    priority_class: str = ""
    """The PriorityClass that it names; empty for the default of its cluster."""
    terminating: bool = False
    """Whether it has an `activeDeadlineSeconds`."""
    crosses_namespaces: bool = False
    """Whether its pod affinity or anti-affinity names namespaces."""
    claims: int = 0
    """ResourceClaims that are made for it."""
    volumes: tuple[VolumeClaim, ...] = ()
    """PersistentVolumeClaims that are made for it."""
    queue: QueueClaim | None = None
    """How Kueue queues it, where its cluster has Kueue; None for a pod that has its quota already."""
    included: IncludedAdmission | None = None
    """What comes with it; None for nothing that changes its admission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """A ResourceQuota of a namespace, as the API server enforces it."""

    name: str
    hard: Resources = field(default_factory=Resources)
    """The most of each resource, the lower one of `spec.hard` and `status.hard`."""
    used: Resources = field(default_factory=Resources)
    """What is used of each; one that is not named has not been counted yet, and the API server admits nothing of it."""
    since: datetime | None = None
    """When its use last changed, as far as its managed fields tell; else when it was created."""
    scopes: tuple[Requirement, ...] = ()
    """Its scopes by name; a scope without an operator of its own is `Exists`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRangeItem:
    """Bounds of a LimitRange on each container, on each pod as a whole, or on each PersistentVolumeClaim."""

    limit_range: str
    """The name of the LimitRange."""
    of_pod: bool = False
    """Whether it bounds pods as a whole."""
    of_claim: bool = False
    """Whether it bounds PersistentVolumeClaims; containers where it bounds neither."""
    default: Amounts = ()
    """Limits that a container gets which states none."""
    least: Amounts = ()
    """`min`."""
    most: Amounts = ()
    """`max`."""
    ratio: Amounts = ()
    """`maxLimitRequestRatio`."""
