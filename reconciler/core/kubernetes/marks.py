"""Whose pods are: the objects that they belong to by their labels, and do not, or not visibly, by their owners.

A LeaderWorkerSet's workers belong to StatefulSets that belong to pods, a RayJob's to a RayCluster that nobody watches.
Their controllers say by labels whose they are (`model.workloadkind.Mark`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from reconciler.core.kubernetes.resources import Owner
from reconciler.core.workloadkinds import BUILT_IN, NONE, Kinds
from reconciler.model.workload import Json
from reconciler.model.workloadkind import Mark

Marks: TypeAlias = Mapping[str, tuple[tuple[str, Mark], ...]]
"""By label: the kinds that have pods marked with it, and how."""

_MADE_UP = re.compile(r"(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}")
"""A name and what Kubernetes' own generator makes up: it uses no vowels and nothing that looks like one."""


def marks_of(declared: Kinds) -> Marks:
    """Return the marks of all kinds that are built in or declared, by label."""
    found: dict[str, tuple[tuple[str, Mark], ...]] = {}
    for kind in {**BUILT_IN, **declared}.values():
        for mark in kind.marks:
            found[mark.label] = (*found.get(mark.label, ()), (kind.kind, mark))
    return found


BUILT_IN_MARKS = marks_of(NONE)


def belonging(labels: Mapping[str, Json], namespace: str, marks: Marks) -> tuple[Owner, ...]:
    """Name the objects that pods with these labels belong to, as far as their marks say."""
    if marks.keys().isdisjoint(labels):
        return ()
    return tuple(dict.fromkeys(_belonging(labels, namespace, marks)))


def _belonging(labels: Mapping[str, Json], namespace: str, marks: Marks) -> Iterator[Owner]:
    for label in sorted(labels.keys() & marks.keys()):
        for kind, mark in marks[label]:
            name = str(labels[label])
            if mark.made_up:
                known = _MADE_UP.fullmatch(name)
                name = known[1] if known else ""
            if name and all(labels.get(other) == value for other, value in mark.beside):
                yield Owner(kind, namespace, name)
