"""The words by which pods and nodes find each other: taints, tolerations, node selectors, pod rules, RuntimeClasses.

Pod rules are required anti-affinity, affinity and topology spread. `Unstated` is what a pod leaves to the admission of
its cluster: requests that it does not state, and the overhead of a RuntimeClass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from reconciler.model.units import Quantity, Resources

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Labels sorted by key: hashable, and the same object for the pods of one template."""


class HostPort(NamedTuple):
    """A port that a pod takes of its node; the address `0.0.0.0` is every address."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 - what Kubernetes takes where a pod names none


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRequirement:
    """What a label of a pod has to be; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class PodIdentity(NamedTuple):
    """Whom the rules of other pods see in a pod: its labels, and its namespace where that is known."""

    labels: Labels
    namespace: str = ""


class AntiAffinityTerm(NamedTuple):
    """Which pods a pod keeps out of its domain of a label (required anti-affinity).

    They are of any namespace where none is named.
    """

    key: str
    selector: tuple[LabelRequirement, ...]
    namespaces: tuple[str, ...] = ()


class PodOnNode(NamedTuple):
    """What rules can ask about a pod that has a node, and whom it `keeps` out.

    One that is `leaving` is being deleted.
    """

    namespace: str
    labels: Labels = ()
    ports: tuple[HostPort, ...] = ()
    leaving: bool = False
    keeps: tuple[AntiAffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRule:
    """Whom a rule is about, always the pod itself among them, and the label of nodes whose values are its domains.

    Without `namespaces` it is about pods of the pod's own. One that is `wide` may be about fewer pods than its selector
    says, since the API server narrows it by a label that only it knows (`matchLabelKeys`).
    """

    key: str
    selector: tuple[LabelRequirement, ...]
    namespaces: tuple[str, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpreadConstraint(PodRule):
    """That a domain has at most `max_skew` more of the pods than the one with the fewest (DoNotSchedule).

    With fewer domains than `min_domains` that is zero. Domains are those of the nodes that the pod's selector and
    affinity admit if it `heeds_affinity`, and whose taints it tolerates if it `heeds_taints`.
    """

    max_skew: int = 1
    min_domains: int = 1
    heeds_affinity: bool = True
    heeds_taints: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """What each pod of a shape demands of the pods beside it; `namespace` is empty where nobody knows its own.

    `apart` keeps two from one domain (required anti-affinity to themselves), `together` keeps all in one (required
    affinity to themselves), `evenly` spreads them, `ports` are taken once on a node.
    """

    labels: Labels
    namespace: str = ""
    apart: tuple[PodRule, ...] = ()
    together: tuple[PodRule, ...] = ()
    evenly: tuple[TopologySpreadConstraint, ...] = ()
    ports: tuple[HostPort, ...] = ()

    @property
    def all(self) -> tuple[PodRule, ...]:
        """Every rule about pods by their labels."""
        return (*self.apart, *self.together, *self.evenly)


Amounts: TypeAlias = tuple[tuple[str, Quantity], ...]
"""Amounts by resource, sorted by name: hashable, and the same object for the pods of one template."""


class UnstatedRequests(NamedTuple):
    """What admission may add to a pod where it is made.

    Of its `containers`, those that run side by side, so many request nothing of a resource as `silent` says, and all of
    them of a resource that is not named there. `defaults` are what a LimitRange has given them already, and `overhead`
    is what its `runtime_class` has: both are part of its requests. What is requested of the pod as a whole (1.34) stays
    as it is, and of that so much is to `spare` as its containers request less.
    """

    runtime_class: str = ""
    overhead: Amounts = ()
    containers: int = 0
    silent: tuple[tuple[str, int], ...] = ()
    defaults: Amounts = ()
    spare: Amounts = ()

    def lacking(self, resource: str) -> int:
        """Count the containers that request nothing of a resource."""
        return dict(self.silent).get(resource, self.containers)


def sorted_amounts(found: Mapping[str, Quantity]) -> Amounts:
    """Return amounts as they are kept here, without those of nothing."""
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node or, in a Cluster, of all its nodes. `effect` is one of Kubernetes' three."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        """Write ``key=value:effect`` as kubectl does."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration as in a pod spec: an empty key with Exists tolerates all, an empty effect every effect.

    One with `seconds` only lets a pod stay for so long; it says nothing of where replicas fit.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirement:
    """What a label of a node has to be; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """Requirements that hold together, of a node's labels and of its fields, of which there is its name alone.

    A term that asks for nothing is met by no node: so Kubernetes has it.
    """

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClass:
    """What a cluster adds to each pod that names a RuntimeClass; a node has to have all labels of the selector."""

    overhead: Resources = field(default_factory=Resources)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
