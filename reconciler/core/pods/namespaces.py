"""Namespaces of pod affinity terms, by name and by label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.kubernetes.requirements import Requirement, all_met, may_meet
from reconciler.model.kubernetes.scheduling import PodRules

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label by which the API server gives each namespace its name; nothing can change it."""
_NO_NAMESPACE = ("",)
"""Names that no namespace has: a term without names means its own."""


def in_namespaces(
    names: tuple[str, ...], selector: tuple[Requirement, ...] | None, own: str, namespace: str
) -> bool | None:
    """Return whether a term means a namespace; None where that is unknown.

    A term without `names` and `selector` means the namespace of its `own` pod. An empty name is an unknown namespace.
    Of the labels of namespaces only their name counts: `with_namespaces` reads the others (AffinityTerm.Matches and
    getNamespacesFromPodAffinityTerm in k8s.io/kube-scheduler 0.36 framework/types.go).
    """
    if selector is None and not names:
        return namespace == own if namespace and own else None
    if namespace and namespace in names:
        return True
    if selector is None:
        return False if namespace else None
    known = {NAME_LABEL: namespace} if namespace else {}
    met = may_meet(selector, known, lambda key: key not in known)
    return met if namespace or not names or met else None


def merged_namespaces(
    names: tuple[str, ...],
    selector: tuple[Requirement, ...] | None,
    labels: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[str, ...], tuple[Requirement, ...] | None]:
    """Return the names and the selector of a term with the namespaces that the selector means among the names.

    `labels` are those of all namespaces of the cluster. As mergeAffinityTermNamespacesIfNotEmpty of kubernetes 1.36
    pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, which leaves an empty selector, that of all namespaces,
    as it is.
    """
    if not selector:
        return names, selector
    meant = {name for name, own in labels.items() if all_met(selector, {NAME_LABEL: name, **own})}
    return tuple(sorted({*names, *meant})) or _NO_NAMESPACE, None


def has_namespace_selector(rules: PodRules) -> bool:
    """Return whether any rule selects namespaces by their labels."""
    return any(rule.namespace_selector for rule in rules.all)


def with_namespaces(rules: PodRules, labels: Mapping[str, Mapping[str, str]]) -> PodRules:
    """Return rules whose terms name the namespaces that they select in a cluster with these `labels` of namespaces.

    A pod's own namespace may not be there yet, and what labels it will have is unknown then.
    """
    merged = []
    for term in (*rules.apart, *rules.together):
        names, selector = merged_namespaces(term.namespaces, term.namespace_selector, labels)
        is_out = bool(names) and rules.namespace in labels and rules.namespace not in names and selector is None
        itself = False if is_out else term.itself
        merged.append(replace(term, namespaces=names, namespace_selector=selector, itself=itself))
    apart = len(rules.apart)
    return replace(rules, apart=tuple(merged[:apart]), together=tuple(merged[apart:]))
