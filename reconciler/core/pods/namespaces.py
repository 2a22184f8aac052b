"""Namespaces of pod affinity terms, by name and by label."""

from __future__ import annotations

from reconciler.model.kubernetes.requirements import Requirement, may_meet

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label by which the API server gives each namespace its name; nothing can change it."""


def in_namespaces(
    names: tuple[str, ...], selector: tuple[Requirement, ...] | None, own: str, namespace: str
) -> bool | None:
    """Return whether a term means a namespace; None where that is unknown.

    A term without `names` and `selector` means the namespace of its `own` pod. An empty name is an unknown namespace.
    Of the labels of namespaces only their name is known (AffinityTerm.Matches and getNamespacesFromPodAffinityTerm in
    k8s.io/kube-scheduler 0.36 framework/types.go).
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
