"""Node selector terms of the scheduler (docs/background/upstream/kubernetes.md, "Filters of the scheduler")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from reconciler.core.pods.label_selectors import meets_requirement
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.scheduling import NodeRequirement, NodeTerm
from reconciler.text.wording import join_names

NAME_FIELD = "metadata.name"
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_WORDS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


def selects_node(shape: ReplicaShape, labels: Mapping[str, str], name: str) -> bool:
    """Tell whether node selector and node affinity of a replica admit a node, taints aside."""
    for key, value in shape.node_selector.items():
        if labels.get(key) != value:
            return False
    return not shape.node_terms or meets_terms(shape.node_terms, labels, name)


def meets_terms(terms: Iterable[NodeTerm], labels: Mapping[str, str], name: str) -> bool:
    """Tell whether a node meets one of the terms. No node meets a term without requirements."""
    fields = {NAME_FIELD: name}
    return any(
        (term.labels or term.fields)
        and all(_meets_requirement(label, labels) for label in term.labels)
        and all(_meets_requirement(field, fields) for field in term.fields)
        for term in terms
    )


def describe_node_selector(shape: ReplicaShape) -> str:
    """Describe the labels that a node must have: ``zone=a, cores > 8 or model in (H100, H200)``."""
    labels = [f"{key}={value}" for key, value in sorted(shape.node_selector.items())]
    terms = [
        ", ".join(describe_requirement(requirement) for requirement in (*term.labels, *term.fields)) or "nothing"
        for term in shape.node_terms
    ]
    return ", ".join([*labels, *([" or ".join(terms)] if terms else [])])


def required_labels(shape: ReplicaShape) -> tuple[tuple[str, str], ...]:
    """Pair labels with their required values, several as ``H100 or H200``."""
    asked: list[tuple[str, tuple[str, ...]]] = [(key, (value,)) for key, value in shape.node_selector.items()]
    if len(shape.node_terms) == 1:
        asked += [(label.key, label.values) for label in shape.node_terms[0].labels if label.operator == "In"]
    return tuple(sorted((key, join_names(values).replace(" and ", " or ")) for key, values in asked))


def _meets_requirement(requirement: NodeRequirement, labels: Mapping[str, str]) -> bool:
    """Evaluate one requirement. Gt and Lt, which only node terms have, compare integers."""
    value, bounds = labels.get(requirement.key), requirement.values
    if requirement.operator not in ("Gt", "Lt"):
        return meets_requirement(requirement.operator, bounds, value)
    if value is None or len(bounds) != 1 or not all(map(_INTEGER.fullmatch, (value, bounds[0]))):
        return False
    return int(value) > int(bounds[0]) if requirement.operator == "Gt" else int(value) < int(bounds[0])


def describe_requirement(requirement: NodeRequirement) -> str:
    """Describe a requirement on a label: ``pool=h100``, ``no spot``, ``zone in (a, b)``."""
    match requirement.operator, requirement.values:
        case "Exists", _:
            return requirement.key
        case "DoesNotExist", _:
            return f"no {requirement.key}"
        case "In", (value,):
            return f"{requirement.key}={value}"
        case (("Gt" | "Lt"), (value,)):
            return f"{requirement.key} {_WORDS[requirement.operator]} {value}"
        case operator, values:
            return f"{requirement.key} {_WORDS.get(operator, operator)} ({', '.join(values)})"
