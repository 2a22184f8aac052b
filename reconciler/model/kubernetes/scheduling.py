"""Inputs of the scheduler's filters: taints, tolerations, node selectors, pod rules, RuntimeClasses.

Pod rules are required anti-affinity, affinity and topology spread constraints. `UnstatedRequests` are left to the
admission of a cluster: requests that a pod does not state, and the overhead of a RuntimeClass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.units import Quantity, Resources

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Labels sorted by key: hashable, and the same object for the pods of one template."""


class HostPort(NamedTuple):
    """A port of the node that a pod binds."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 - what Kubernetes takes where a pod names none
    """`0.0.0.0` binds every address; it is the default where a pod names none."""


class PodIdentity(NamedTuple):
    """Properties of a pod that the rules of other pods match."""

    labels: Labels
    namespace: str = ""
    """Empty where unknown."""
    added: tuple[str, ...] = ()
    """Keys of labels that its controllers may add, with any value; one that ends in a slash is a domain, of which they
    may add all keys, those of domains below and above it included."""


class AntiAffinityTerm(NamedTuple):
    """A required anti-affinity term of a pod."""

    key: str
    """The topology key."""
    selector: tuple[Requirement, ...]
    """Pods that the term keeps out of its domain."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of these pods; empty for all, unless there is a namespace selector."""
    namespace_selector: tuple[Requirement, ...] | None = None
    """Labels of other namespaces of these pods; None for none."""


class PodOnNode(NamedTuple):
    """A pod with a node, as rules of other pods see it."""

    namespace: str
    labels: Labels = ()
    ports: tuple[HostPort, ...] = ()
    leaving: bool = False
    """Whether the pod is being deleted."""
    keeps: tuple[AntiAffinityTerm, ...] = ()
    """Terms of its required anti-affinity."""
    expected: bool = False
    """Whether the node is only nominated for the pod, which the scheduler counts both as there and as not there."""
    added: tuple[str, ...] = ()
    """As in `PodIdentity`, of a pod that is on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRule:
    """A rule about pods within domains of a node label."""

    key: str
    """The topology key."""
    selector: tuple[Requirement, ...]
    namespaces: tuple[str, ...] = ()
    """Namespaces of the pods; empty for the pod's own, unless there is a namespace selector."""
    namespace_selector: tuple[Requirement, ...] | None = None
    """Labels of other namespaces of the pods; None for none."""
    itself: bool | None = True
    """Whether the pod is one of them; None where only a label or namespace that is known later decides that."""
    wide: bool = False
    """
    Whether the rule may match fewer pods than `selector`: the API server adds a label that only it knows
    (`matchLabelKeys`).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpreadConstraint(PodRule):
    """A topology spread constraint with DoNotSchedule."""

    max_skew: int = 1
    """The most pods of a domain above the global minimum."""
    min_domains: int = 1
    """With fewer domains the global minimum is 0."""
    heeds_affinity: bool = True
    """Whether only nodes count that the pod's node selector and affinity admit."""
    heeds_taints: bool = False
    """Whether only nodes count whose taints the pod tolerates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """Rules of each pod of a shape about the pods beside it, its own kind or others."""

    labels: Labels
    namespace: str = ""
    """The namespace of the pod; empty where unknown."""
    apart: tuple[PodRule, ...] = ()
    """Required anti-affinity."""
    together: tuple[PodRule, ...] = ()
    """Required affinity."""
    evenly: tuple[TopologySpreadConstraint, ...] = ()
    """Topology spread constraints."""
    ports: tuple[HostPort, ...] = ()
    """Host ports, each bound once on a node."""
    added: tuple[str, ...] = ()
    """As in `PodIdentity`."""

    @property
    def all(self) -> tuple[PodRule, ...]:
        """All rules about pods by their labels."""
        return (*self.apart, *self.together, *self.evenly)


Amounts: TypeAlias = tuple[tuple[str, Quantity], ...]
"""Amounts by resource, sorted by name: hashable, and the same object for the pods of one template."""


class UnstatedRequests(NamedTuple):
    """Requests that admission may add to a pod in its cluster."""

    runtime_class: str = ""
    overhead: Amounts = ()
    """Overhead of the RuntimeClass that its requests include already."""
    containers: int = 0
    """Containers that run side by side."""
    silent: tuple[tuple[str, int], ...] = ()
    """Containers without a request, by resource; all of them for a resource that is not listed."""
    defaults: Amounts = ()
    """LimitRange defaults that its requests include already."""
    spare: Amounts = ()
    """Pod-level requests (1.34) less those of the containers, by resource; defaults use these up first."""

    def lacking(self, resource: str) -> int:
        """Count the containers without a request for a resource."""
        return dict(self.silent).get(resource, self.containers)


def sorted_amounts(amounts: Mapping[str, Quantity]) -> Amounts:
    """Return amounts sorted by resource, without zeros."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node or, in a Cluster, of all its nodes."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"
    """NoSchedule, PreferNoSchedule or NoExecute."""

    def __str__(self) -> str:
        """Write ``key=value:effect`` as kubectl does."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration as in a pod spec: an empty key with Exists tolerates all, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None
    """How long a pod may stay on a tainted node; no condition on where replicas fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClass:
    """Additions of a RuntimeClass to each pod that names it."""

    overhead: Resources = field(default_factory=Resources)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: tuple[Toleration, ...] = ()
