"""Node selector terms of the scheduler (docs/background/upstream/kubernetes.md, "Filters of the scheduler")."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.requirements import any_met
from reconciler.text.wording import join_names


def selects_node(shape: ReplicaShape, labels: Mapping[str, str], name: str) -> bool:
    """Return whether node selector and node affinity of a replica admit a node, taints aside."""
    for key, value in shape.node_selector.items():
        if labels.get(key) != value:
            return False
    return not shape.node_terms or any_met(shape.node_terms, labels, name)


def describe_node_selector(shape: ReplicaShape) -> str:
    """Describe the labels that a node must have: ``zone=a, cores > 8 or model in (H100, H200)``."""
    labels = [f"{key}={value}" for key, value in sorted(shape.node_selector.items())]
    terms = [str(term) for term in shape.node_terms]
    return ", ".join([*labels, *([" or ".join(terms)] if terms else [])])


def required_labels(shape: ReplicaShape) -> tuple[tuple[str, str], ...]:
    """Pair labels with their required values, several as ``H100 or H200``."""
    asked: list[tuple[str, tuple[str, ...]]] = [(key, (value,)) for key, value in shape.node_selector.items()]
    if len(shape.node_terms) == 1:
        asked += [(label.key, label.values) for label in shape.node_terms[0].labels if label.operator == "In"]
    return tuple(sorted((key, join_names(values).replace(" and ", " or ")) for key, values in asked))
