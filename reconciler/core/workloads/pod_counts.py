"""Numbers of pods in an object: how to read and check them, and the minimum that starts a gang.

A value that is no whole number counts as one pod or one group; a cluster would refuse the object. A gang with a minimum
above its number of pods never starts. Texts with expressions are skipped.

Minimums are Volcano's `minAvailable` of a job and of its tasks, `minAvailable` of Grove's cliques and of their scaling
groups, and `minAvailable` and `minReplicas` of Kubeflow's jobs (docs/reference/kinds.md, "A gang with a minimum").
Where the minimum of the whole exceeds the sum of its roles' minimums, the scheduler takes any pods for the rest; here
the largest pods are assumed to start first, which is the conservative case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at, items, located, within
from reconciler.core.workloads.pods import declared_minimum, group_count, pod_count, unknown_field
from reconciler.model.kubernetes.workload_kind import EACH, Count, Path, WorkloadKind
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

_DIGITS = re.compile(r"[1-9][0-9]{0,8}")


def check_counts(manifest: Mapping[str, Json], loc: Loc = (), kinds: Kinds = NO_KINDS) -> Iterator[Finding]:
    """Check the numbers of an object, each at its field; unknown versions are not checked.

    `kinds` are the WorkloadKinds of the fleet repository.
    """
    kind = kind_of(manifest, kinds)
    version = str(manifest.get("apiVersion", "")).rpartition("/")[2]
    if kind is None or (kind.versions and version not in kind.versions):
        return
    sure = True
    for number in _number_paths(manifest, kind):
        value = at(manifest, number)
        sure = sure and _is_number(value)
        for message, hint in _check_number(value):
            astray = kind.name in kinds and isinstance(value, Mapping | list)
            way_out = "correct the path in what declares its kind" if astray else hint
            yield Finding(loc=(*loc, *located(manifest, number)), message=message, hint=way_out)
    yield from _check_order(manifest, kind, loc)
    yield from _check_single_group(manifest, kind, loc)
    if sure:
        yield from _check_minimum(manifest, kind, loc)


def _counts(kind: WorkloadKind) -> Iterator[Count]:
    for template in kind.templates:
        yield from template.counts
    yield from kind.together.counts if kind.together is not None else ()


def _number_paths(manifest: Mapping[str, Json], kind: WorkloadKind) -> Iterator[Path]:
    """Yield the paths of all numbers that an object has, each once."""
    patterns = [*kind.replicas, *(field_path for pair in kind.ordered for field_path in pair)]
    for count in _counts(kind):
        patterns += [count.path, count.instead, count.over, count.least, count.most, count.enough]
    patterns += [kind.together.gang] if kind.together is not None else ()
    for pattern in dict.fromkeys(patterns):
        for item in items(manifest, pattern) if pattern else ():
            field_path = within(pattern, item, pattern)
            if at(manifest, field_path) is not None:
                yield field_path


def _is_number(value: Json) -> bool:
    return type(value) is int and value >= 0


def _check_number(value: Json) -> Iterator[tuple[str, str]]:
    """Check the value of a number of pods; yields a message and a hint."""
    if isinstance(value, str) and has_expression(value):
        return
    if type(value) is not int:
        stands = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else None
        meant = _DIGITS.search(str(value)) if stands is None else None
        what = stands or repr(shortened(str(value)))
        yield f"takes a whole number, not {what}", f"try {meant[0] if meant else 1}"
    elif value < 0:
        yield f"is {value}, and no number of pods is below 0", f"try {-value}"


def _check_order(manifest: Mapping[str, Json], kind: WorkloadKind, loc: Loc) -> Iterator[Finding]:
    """Check that minimums do not exceed their numbers, in each item that has both."""
    pairs = [(count.least, count.most) for count in _counts(kind)] + [*kind.ordered]
    # One minimum for several numbers, as of elastic jobs, is not held to each of them.
    pairs += [(count.enough, count.path) for count in _counts(kind) if (EACH in count.enough) == (EACH in count.path)]
    for lower, upper in dict.fromkeys(pairs):
        for item in items(manifest, lower) if lower and upper else ():
            lower_path = within(lower, item, lower)
            least, most = at(manifest, lower_path), at(manifest, within(upper, item, lower))
            if _is_number(least) and _is_number(most) and least > most:
                message = f"is {least}, and {upper[-1]} is {most}"
                yield Finding(loc=(*loc, *located(manifest, lower_path)), message=message, hint=f"try {most}")


def _check_single_group(manifest: Mapping[str, Json], kind: WorkloadKind, loc: Loc) -> Iterator[Finding]:
    """Check for an expression in the replicas of an object that makes one group whatever they are."""
    by = unknown_field(manifest, kind)
    for field_path in kind.replicas if by is not None else ():
        value = at(manifest, field_path)
        if by is not None and isinstance(value, str) and has_expression(value):
            message = f"makes no more copies of what has a {by[-1]}: it goes whole, as one"
            yield Finding(loc=(*loc, *located(manifest, field_path)), message=message, hint="try 1")


def _check_minimum(manifest: Mapping[str, Json], kind: WorkloadKind, loc: Loc) -> Iterator[Finding]:
    """Check for a minimum above the size of a group; elastic jobs and those without pods are not checked."""
    shared = [count.enough for count in _counts(kind) if EACH in count.path and EACH not in count.enough]
    elastic = any(field_path and at(manifest, field_path) is not None for field_path in shared)
    least, every, number = declared_minimum(manifest, kind), pod_count(manifest, kind), group_count(manifest, kind)
    if elastic or kind.together is None or not (least and every and number):
        return
    size = every // number
    if least > size:
        message = f"is {least}, and there are {size} pods, so that none of them ever starts"
        yield Finding(loc=(*loc, *located(manifest, kind.together.gang)), message=message, hint=f"try {size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRole:
    """Pods of one template of an object."""

    likeness: Hashable
    gpus: int
    """GPUs of each."""
    pods: int
    """Their number."""
    least: int | None
    """The minimum of these pods; None without one."""


def pods_to_start(roles: Sequence[PodRole], manifest: Mapping[str, Json], kind: WorkloadKind) -> Mapping[Hashable, int]:
    """Return the pods of each likeness that have to start together; empty where all have to.

    A role without a minimum of its own starts with all of its pods, or with one for each group where the object has a
    minimum as a whole: no job trains without its master.
    """
    number, whole = group_count(manifest, kind), declared_minimum(manifest, kind)
    if not number or (whole is None and all(role.least is None for role in roles)):
        return {}
    minimums = Counter[Hashable]()
    spare: list[tuple[int, PodRole]] = []
    for role in roles:
        unsaid = role.pods if whole is None else min(role.pods, number)
        least = unsaid if role.least is None else min(role.pods, role.least)
        minimums[role.likeness] += least
        spare.append((role.pods - least, role))
    missing = number * (whole or 0) - minimums.total()
    for left, role in sorted(spare, key=lambda leftover: -leftover[1].gpus):
        if missing > 0:
            minimums[role.likeness] += min(left, missing)
            missing -= min(left, missing)
    return minimums
