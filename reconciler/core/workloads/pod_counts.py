"""The numbers by which an object says how many pods it makes, their problems, and the fewest pods that start a gang.

Where no whole number stands, one pod or one group is counted, and a cluster would refuse the object. A minimum above
the number of pods never starts. Texts that hold an expression are passed over.

Minimums are Volcano's `minAvailable` of a job and of its tasks, `minAvailable` of Grove's cliques and of their scaling
groups, and `minAvailable` and `minReplicas` of Kubeflow's jobs (docs/kinds.md, "A gang with a minimum"). Where the
minimum of the whole is above those of its roles, the scheduler takes any pods for the rest; here the largest pods are
assumed to start first, which is the conservative case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at, items, located, within
from reconciler.core.workloads.pods import declared_minimum, group_count, pod_count
from reconciler.model.workload import Json
from reconciler.model.workload_kind import EACH, Count, Path, WorkloadKind
from reconciler.text.findings import Finding, Loc, shortened

_DIGITS = re.compile(r"[1-9]\d{0,8}")


def check_counts(manifest: Mapping[str, Json], loc: Loc = (), kinds: Kinds = NO_KINDS) -> Iterator[Finding]:
    """Find what is wrong with the numbers of an object, each at its field; nothing in versions that nobody knows.

    `kinds` are those that the fleet repository declares.
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
    """Yield the ways to all numbers of an object that stand there, each once."""
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
    """Say what is wrong with what stands where a number of pods belongs, and what to try."""
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
    """Find minimums that are above what they are of, in each item that has both."""
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
    """Find a share that an object has no use for, since it makes one group of pods whatever number stands there."""
    by = next((field_path for field_path in kind.unknown if at(manifest, field_path) is not None), None)
    for field_path in kind.replicas if by is not None else ():
        value = at(manifest, field_path)
        if by is not None and isinstance(value, str) and has_expression(value):
            message = f"makes no more copies of what has a {by[-1]}: it goes whole, as one"
            yield Finding(loc=(*loc, *located(manifest, field_path)), message=message, hint="try 1")


def _check_minimum(manifest: Mapping[str, Json], kind: WorkloadKind, loc: Loc) -> Iterator[Finding]:
    """Find a minimum of more pods than a group has; of elastic jobs, and of those without pods, nobody knows."""
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
    """The pods of one template: how many there are, the GPUs of each, and how many the object wants at `least`."""

    likeness: Hashable
    gpus: int
    pods: int
    least: int | None


def pods_to_start(roles: Sequence[PodRole], manifest: Mapping[str, Json], kind: WorkloadKind) -> Mapping[Hashable, int]:
    """Return how many pods of each likeness have to be there at once; nothing where all have to be.

    A role has its own minimum. Without one it is there with all of its pods, or with one for each group where the
    object has a minimum as a whole: nothing trains without its master.
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
