"""Requirements on labels: one algebra for node selectors, affinity terms, subsets, selectors of pods, and NodePools.

As `scheduling.Requirements` of Karpenter: what is required is met by labels or not, two of them hold together, what a
cluster decides by its own labels is left out for its nodes, and each describes itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

NAME_FIELD = "metadata.name"
"""The only field of a node that Kubernetes lets a term ask for."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_WORDS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A condition on a label of a cluster, a node or a pod, or on a field of a node."""

    key: str
    operator: str
    """In, NotIn, Exists or DoesNotExist; of nodes also Gt or Lt."""
    values: tuple[str, ...] = ()

    @property
    def single(self) -> str | None:
        """The only value that the label may have; None where several may be, or none has to."""
        return self.values[0] if self.operator == "In" and len(self.values) == 1 else None

    def is_met(self, value: str | None) -> bool:
        """Return whether the value of a label meets it; None is a missing label, which meets NotIn.

        Gt and Lt compare integers. Operators of later Kubernetes releases are met by nothing.
        """
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
            case _:
                return False

    def _compares(self, value: str) -> bool:
        if len(self.values) != 1 or not all(map(_INTEGER.fullmatch, (value, self.values[0]))):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == "Gt" else int(value) < bound

    def __str__(self) -> str:
        """Describe it: ``pool=h100``, ``no spot``, ``zone in (a, b)``."""
        match self.operator, self.values:
            case "Exists", _:
                return self.key
            case "DoesNotExist", _:
                return f"no {self.key}"
            case "In", (value,):
                return f"{self.key}={value}"
            case (("Gt" | "Lt"), (value,)):
                return f"{self.key} {_WORDS[self.operator]} {value}"
            case operator, values:
                return f"{self.key} {_WORDS.get(operator, operator)} ({', '.join(values)})"


def equals(key: str, value: str) -> Requirement:
    """Require one value of a label."""
    return Requirement(key=key, operator="In", values=(value,))


NOTHING = (Requirement(key="", operator="In"),)
"""A selector that no labels meet, as one that is missing."""


def all_met(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Return whether labels meet all requirements, as those of a selector: one that asks for nothing is always met."""
    return all(requirement.is_met(labels.get(requirement.key)) for requirement in requirements)


def may_meet(
    requirements: Iterable[Requirement], labels: Mapping[str, str], is_open: Callable[[str], bool]
) -> bool | None:
    """Return whether labels meet all requirements; None where that depends on labels that are unknown.

    A key that is missing in `labels` and `is_open` may have any value, or none.
    """
    verdict: bool | None = True
    for requirement in requirements:
        value = labels.get(requirement.key)
        if value is None and is_open(requirement.key):
            verdict = None
        elif not requirement.is_met(value):
            return False
    return verdict


def allowed_values(requirements: Iterable[Requirement]) -> Mapping[str, tuple[str, ...]]:
    """Return the values, sorted, of the labels of which only some are left, by key; other labels may have any."""
    listed, excluded = dict[str, frozenset[str]](), dict[str, frozenset[str]]()
    for requirement in requirements:
        values = frozenset(requirement.values)
        if requirement.operator == "In":
            listed[requirement.key] = listed.get(requirement.key, values) & values
        elif requirement.operator == "NotIn":
            excluded[requirement.key] = excluded.get(requirement.key, frozenset()) | values
    return {key: tuple(sorted(values - excluded.get(key, frozenset()))) for key, values in sorted(listed.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Requirements that hold together, as a node selector term. One that asks for nothing is met by nothing."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    """Requirements on node fields; Kubernetes supports metadata.name alone."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is required."""
        return not (self.labels or self.fields)

    def also(self, more: Iterable[Requirement]) -> Requirements:
        """Return these with more requirements on labels."""
        return replace(self, labels=(*self.labels, *more))

    def are_met(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node, or a cluster, meets them by its labels and its name."""
        return not self.is_empty and all_met(self.labels, labels) and all_met(self.fields, {NAME_FIELD: name})

    def undecided(self, labels: Mapping[str, str]) -> tuple[Requirement, ...]:
        """Return those on labels that a cluster does not have, and so leaves to its nodes."""
        return tuple(requirement for requirement in self.labels if requirement.key not in labels)

    def given(self, labels: Mapping[str, str], name: str) -> Requirements | None:
        """Return what they ask of the nodes of a cluster with these labels and this name; None where that meets none.

        What a cluster decides is left out: a result that asks for nothing is met by each of its nodes.
        """
        decided = (requirement for requirement in self.labels if requirement.key in labels)
        if not (all_met(decided, labels) and all_met(self.fields, {NAME_FIELD: name})):
            return None
        return Requirements(labels=self.undecided(labels))

    def __str__(self) -> str:
        """Describe them, those on labels first."""
        return ", ".join(map(str, (*self.labels, *self.fields))) or "nothing"


def any_met(terms: Iterable[Requirements], labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node, or a cluster, meets one of several terms."""
    return any(term.are_met(labels, name) for term in terms)
