"""The owners of pods by labels, if owner references do not lead to them.

A LeaderWorkerSet's workers belong to StatefulSets that belong to pods, a RayJob's to an unwatched RayCluster. Their
controllers state the owner in labels (`model.kubernetes.workload_kind.Mark`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from reconciler.core.observe.kubernetes.resources import Owner, foreign_group
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds
from reconciler.model.kubernetes.workload_kind import Group, Mark, WorkloadKind
from reconciler.model.workload import Json

Marks: TypeAlias = Mapping[str, tuple[tuple[WorkloadKind, Mark], ...]]
"""By label: the kinds whose pods carry it, and its form."""

_MADE_UP = re.compile(r"(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}")
"""A name with a suffix of Kubernetes' generator, which uses no vowels and no characters that resemble them."""
_SIZE = re.compile(r"[1-9][0-9]{0,4}")


class GroupMembership(NamedTuple):
    """The membership of a pod in one of an object's gangs."""

    owner: Owner
    # The gang, as the label states it.
    group: str
    # The pods of the gang; 0 if unstated.
    size: int
    # Whether autoscalers measure this pod for the whole gang.
    leads: bool = False


def marks_by_label(declared: Kinds) -> Marks:
    """Return the marks of all built-in and declared kinds, by label."""
    marks: dict[str, tuple[tuple[WorkloadKind, Mark], ...]] = {}
    for kind in {**BUILT_IN, **declared}.values():
        for mark in kind.marks:
            marks[mark.label] = (*marks.get(mark.label, ()), (kind, mark))
    return marks


BUILT_IN_MARKS = marks_by_label(NO_KINDS)


def labelled_owners(metadata: Json, namespace: str, marks: Marks) -> tuple[Owner, ...]:
    """Return the owners that the marks of pods with these metadata name."""
    return tuple(dict.fromkeys(owner for owner, _ in _owners_by_label(metadata, namespace, marks)))


def memberships(metadata: Json, namespace: str, marks: Marks) -> tuple[GroupMembership, ...]:
    """Return the gangs of pods with these metadata, among those of their owners."""
    by_owner: dict[Owner, GroupMembership] = {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    for owner, together in _owners_by_label(metadata, namespace, marks):
        if together is not None:
            size = str(annotations.get(together.size, "")) if together.size else ""
            stated_size = int(size) if _SIZE.fullmatch(size) else 0
            group = str(labels.get(together.label, "")) if together.label else ""
            leads = together.leader is not None and labels.get(together.leader[0]) == together.leader[1]
            by_owner.setdefault(owner, GroupMembership(owner, sys.intern(group), stated_size, leads))
    return tuple(by_owner.values())


def _owners_by_label(metadata: Json, namespace: str, marks: Marks) -> Iterator[tuple[Owner, Group | None]]:
    labels = metadata.get("labels") or {}
    if marks.keys().isdisjoint(labels):
        return
    for label in sorted(labels.keys() & marks.keys()):
        for kind, mark in marks[label]:
            if all(labels.get(other) == value for other, value in mark.beside):
                for name in _names(str(labels[label]), mark):
                    yield Owner(kind.kind, namespace, name, foreign_group(kind.kind, kind.group)), kind.together
                for part in kind.scaled_as:
                    values = [str(labels.get(each) or "") for each in part.labels]
                    if all(values):
                        yield Owner(part.kind, namespace, "-".join(values).lower()), None


def _names(value: str, mark: Mark) -> Iterator[str]:
    """Yield the names that an object may have by the value of its mark: where its release is unknown, several."""
    if not mark.made_up:
        yield from (value,) if value else ()
    elif match := _MADE_UP.fullmatch(value):
        yield match[1]
        if mark.infix and len(earlier := match[1].removesuffix(mark.infix)) not in (0, len(match[1])):
            yield earlier
