"""What pods demand of the pods beside them: not two on a node, all in one rack, evenly over zones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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


class Who(NamedTuple):
    """Whom the rules of other pods see in a pod: its labels, and its namespace where that is known."""

    labels: Labels
    namespace: str = ""


class KeepsOut(NamedTuple):
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
    keeps: tuple[KeepsOut, ...] = ()


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
class Evenly(PodRule):
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
    evenly: tuple[Evenly, ...] = ()
    ports: tuple[HostPort, ...] = ()

    @property
    def all(self) -> tuple[PodRule, ...]:
        """Every rule about pods by their labels."""
        return (*self.apart, *self.together, *self.evenly)
