"""Domains from which existing pods repel others by required anti-affinity.

The scheduler admits no pod to a domain of a label in which an existing pod has an anti-affinity term that matches it
(InterPodAffinity, existing anti-affinity). Pods on closed nodes count as well, and so do pods that are being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.pods.label_selectors import meets
from reconciler.core.pods.namespaces import in_namespaces
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.scheduling import AntiAffinityTerm, PodIdentity, PodOnNode, PodRule, PodRules

Domain = tuple[str, str]
"""A node label, and its value."""

REPELLED_BY_EXISTING_PODS = "pods that are there keep it away by their anti-affinity"
REPELLED_BY_INCOMING_PODS = "pods that are on their way keep it away by their anti-affinity, from unknown nodes"
NOT_REPELLED: tuple[frozenset[Domain], bool] = (frozenset(), False)
"""The result for pods that no anti-affinity matches."""
_MAX_IDENTITIES = 10_000
"""Kinds of pods in the cache of one cluster; beyond that the cache is emptied."""


class AntiAffinityPods:
    """The anti-affinity terms of a cluster's pods, with the domains that they hold in."""

    def __init__(self, seen: ClusterObservation) -> None:
        """Take the pods of an observation; nodes with unknown pods contribute none."""
        rules: dict[tuple[AntiAffinityTerm, str], None] = {}
        for pool in seen.pools:
            for node in pool.nodes:
                rules |= _terms_on_node(node.pods or (), pool.labels, node.labels)
        for closed in seen.closed:
            rules |= _terms_on_node(closed.pods or (), closed.labels)
        self._found = tuple(rules)
        self._known: dict[tuple[PodIdentity, ...], frozenset[Domain]] = {}

    @property
    def any(self) -> bool:
        """Whether any pod has anti-affinity."""
        return bool(self._found)

    def repelling_domains(self, who: tuple[PodIdentity, ...]) -> frozenset[Domain]:
        """List the domains that any of these pods is repelled from; none where their labels are unknown."""
        if not who or not self._found:
            return frozenset()
        if who not in self._known:
            if len(self._known) >= _MAX_IDENTITIES:
                self._known.clear()
            self._known[who] = frozenset((rule.key, value) for rule, value in self._found if _selects(rule, who))
        return self._known[who]


ANTI_AFFINITY_PODS = ClusterCache[AntiAffinityPods](AntiAffinityPods)
"""The anti-affinity of each cluster as it was last observed."""


def merged_shape(shape: ReplicaShape, other: ReplicaShape) -> ReplicaShape:
    """Return one of two equal shapes, with what rules and quotas look at in the pods of both."""
    admission = tuple(dict.fromkeys((*other.admission, *shape.admission)))
    return replace(shape, who=tuple(sorted({*other.who, *shape.who})), admission=admission)


def in_domains(labels: Mapping[str, str], shut: Iterable[Domain]) -> bool:
    """Return whether a node with these labels is in one of these domains."""
    return any(labels.get(key) == value for key, value in shut)


def repels(coming: Iterable[PodRules], shape: ReplicaShape) -> bool:
    """Return whether incoming pods without a node repel a shape from their future domains."""
    return bool(shape.who) and any(_selects(_term(rule, rules), shape.who) for rules in coming for rule in rules.apart)


def _term(rule: PodRule, rules: PodRules) -> AntiAffinityTerm:
    """Return an anti-affinity rule of an incoming pod as those of existing pods; its own namespace may be unknown."""
    own = (rules.namespace,) if rules.namespace and rule.namespace_selector is None else ()
    return AntiAffinityTerm(rule.key, rule.selector, rule.namespaces or own, rule.namespace_selector)


def _terms_on_node(pods: Iterable[PodOnNode], *labels: Mapping[str, str]) -> dict[tuple[AntiAffinityTerm, str], None]:
    """Pair the anti-affinity terms of a node's pods with its value of their label; without the label there is none."""
    rules_here: dict[tuple[AntiAffinityTerm, str], None] = {}
    for pod in pods:
        for rule in pod.keeps:
            value = next((label[rule.key] for label in reversed(labels) if rule.key in label), None)
            if value is not None:
                rules_here[rule, value] = None
    return rules_here


def _selects(rule: AntiAffinityTerm, pods: Iterable[PodIdentity]) -> bool:
    """Return whether a term may match any of these pods: their namespace, or labels added to them, may be unknown."""
    return any(
        in_namespaces(rule.namespaces, rule.namespace_selector, "", who.namespace) is not False
        and meets(rule.selector, who) is not False
        for who in pods
    )
