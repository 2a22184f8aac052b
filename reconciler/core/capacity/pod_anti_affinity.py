"""Who is kept out of which topology domains by the pods that are there: required anti-affinity holds both ways.

The scheduler lets no pod into a domain of a label in which some pod has an anti-affinity term for it (InterPodAffinity,
existing anti-affinity). Pods on nodes that take no others count as well, and so do those that are being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.workloads.label_selectors import selects
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.scheduling import AntiAffinityTerm, PodIdentity, PodOnNode, PodRules

Domain = tuple[str, str]
"""A label of nodes, and its value."""

REPELLED_BY_EXISTING_PODS = "pods that are there keep it away by their anti-affinity"
REPELLED_BY_INCOMING_PODS = (
    "pods that are on their way keep it away by their anti-affinity, and nobody knows from which nodes"
)
NOT_REPELLED: tuple[frozenset[Domain], bool] = (frozenset(), False)
"""What is said of a pod that nothing keeps out of anywhere."""
_MAX_IDENTITIES = 10_000
"""Kinds of pods of which it is kept where they may not go; beyond that all is forgotten and begins anew."""


class AntiAffinityPods:
    """The pods of a cluster that keep others out, each where it is."""

    def __init__(self, seen: ClusterObservation) -> None:
        """Begin with what was observed; of nodes whose pods nobody lists nothing is known."""
        rules: dict[tuple[AntiAffinityTerm, str], None] = {}
        for pool in seen.pools:
            for node in pool.nodes:
                rules |= _terms_on_node(node.pods or (), pool.labels, node.labels)
        for closed in seen.closed:
            rules |= _terms_on_node(closed.pods or (), closed.labels)
        self._found = tuple(rules)
        self._known: dict[tuple[PodIdentity, ...], frozenset[Domain]] = {}

    @property
    def some(self) -> bool:
        """Whether there are any."""
        return bool(self._found)

    def shut(self, who: tuple[PodIdentity, ...]) -> frozenset[Domain]:
        """List the domains that any of some pods is kept out of; none where nobody knows their labels."""
        if not who or not self._found:
            return frozenset()
        if who not in self._known:
            if len(self._known) >= _MAX_IDENTITIES:
                self._known.clear()
            self._known[who] = frozenset((rule.key, value) for rule, value in self._found if _selects(rule, who))
        return self._known[who]


ANTI_AFFINITY_PODS = ClusterCache[AntiAffinityPods](AntiAffinityPods)
"""Who keeps others out of where, of the clusters as they were last seen."""


def merged_identities(shapes: Iterable[ReplicaShape]) -> tuple[PodIdentity, ...]:
    """Return what the rules of other pods see in all of some shapes, each once and in order."""
    return tuple(sorted({who for shape in shapes for who in shape.who}))


def in_domains(labels: Mapping[str, str], shut: Iterable[Domain]) -> bool:
    """Tell whether a node with these labels is in one of some domains."""
    return any(labels.get(key) == value for key, value in shut)


def repels(coming: Iterable[PodRules], shape: ReplicaShape) -> bool:
    """Tell whether pods that have no node yet would keep a shape out of where they go."""
    return bool(shape.who) and any(
        _selects(AntiAffinityTerm(rule.key, rule.selector, rule.namespaces or _own_namespace(rules)), shape.who)
        for rules in coming
        for rule in rules.apart
    )


def _own_namespace(rules: PodRules) -> tuple[str, ...]:
    return (rules.namespace,) if rules.namespace else ()


def _terms_on_node(pods: Iterable[PodOnNode], *labels: Mapping[str, str]) -> dict[tuple[AntiAffinityTerm, str], None]:
    """Pair what pods on a node keep out with its value of the label; a node without the label is in no domain."""
    rules_here: dict[tuple[AntiAffinityTerm, str], None] = {}
    for pod in pods:
        for rule in pod.keeps:
            value = next((label[rule.key] for label in reversed(labels) if rule.key in label), None)
            if value is not None:
                rules_here[rule, value] = None
    return rules_here


def _selects(rule: AntiAffinityTerm, pods: Iterable[PodIdentity]) -> bool:
    """Tell whether a rule is about any of some pods; it may be where nobody knows a pod's namespace."""
    return any(
        (not rule.namespaces or not who.namespace or who.namespace in rule.namespaces)
        and selects(rule.selector, dict(who.labels))
        for who in pods
    )
