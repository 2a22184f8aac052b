"""What OpenKruise's webhook refuses of a WorkloadSpread by itself, in its words and at its fields, all of it at once.

The rules are those of the table in spread-and-groups.md, section 2; what Kubernetes' own validation says of terms and
tolerations there, it says here in the words of Overspill. What other files are needed for is in `spreads`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from reconciler.core import patchfields, podtemplate, termrules
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.ineffective import ineffective
from reconciler.core.schema.workloadkind import fault
from reconciler.core.schema.workloadspread import (
    MOST,
    StrategyFile,
    SubsetFile,
    TargetFile,
    TargetFilterFile,
    WorkloadSpreadFile,
    bound,
)
from reconciler.errors import Severity
from reconciler.model.workloadspread import Bound

WORKSPACE = "overspill.dev/workspace"
"""The annotation that names the one Workspace of which a spread is, where several may touch its namespace."""


class KruiseRule(StrEnum):
    """What Kruise says where it refuses a spread. `{}` is filled in."""

    NO_TARGET = "no targetRef defined in WorkloadSpread"
    EMPTY_TARGET = "empty TargetReference is not valid for WorkloadSpread."
    WRONG_GROUP = "TargetReference is not valid for {}."
    NOT_PERMITTED = "TargetReference's GroupKind is not permitted."
    CONFLICT = "ws.spec.targetRef is in conflict with other WorkloadSpread {}"
    NO_SUBSETS = "subsets number must >= 1 in WorkloadSpread"
    TWICE = "duplicated subset name {}"
    MIXED = "the maxReplicas type of all subsets must be the same"
    ORDINALS = "the maxReplicas type must be Int for StatefulSet"
    INVALID = "maxReplicas is not valid for subset"
    TOO_MUCH = "the sum of all subset's maxReplicas exceeds 100% is no permitted"
    TOO_LITTLE = "maxReplicas sum of all subsets must equal 100% when type is specified as percent"
    NO_STRATEGY = "ScheduleStrategy's type is not valid"
    NOT_ADAPTIVE = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy"
    LAST_LIMITED = "the last subset's maxReplicas must be not specified when using adaptive scheduleStrategy"
    SECONDS = "rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {} is not permitted"
    SELECTOR = "selector parse error: {}"


GROUPS = {
    "Deployment": ("apps",),
    "ReplicaSet": ("apps",),
    "StatefulSet": ("apps", "apps.kruise.io"),
    "CloneSet": ("apps.kruise.io",),
    "Job": ("batch", "batch.volcano.sh"),
}
"""The kinds that Kruise knows without a whitelist, with their groups; Volcano's Job is known here beside them."""

_WHOLE = 100
_LONGEST_SUBSET_NAME = 100
"""Characters of a subset's name: it is told in commits. OpenKruise knows no bound."""
_SUBSETS: Loc = ("spec", "subsets")
_TARGET: Loc = ("spec", "targetRef")
_STRATEGY: Loc = ("spec", "scheduleStrategy")
_ADAPTIVE: Loc = (*_STRATEGY, "adaptive")


def check_spread(file: WorkloadSpreadFile) -> Iterator[Finding]:
    """Find what is wrong between the parts of a file that fits the schema, and what is without effect."""
    spec = file.spec
    for key in file.metadata.annotations:
        if key.startswith("overspill.dev/") and key != WORKSPACE:
            loc: Loc = ("metadata", "annotations", key)
            yield _warning(loc, "unknown annotation", f"try '{WORKSPACE}'")
    yield from _target(spec.target_ref)
    if not spec.subsets:
        yield Finding(loc=_SUBSETS, message=KruiseRule.NO_SUBSETS, hint="try subsets: [{name: all}]")
    yield from _names(spec.subsets)
    for index, subset in enumerate(spec.subsets):
        yield from _subset(subset, (*_SUBSETS, index))
    yield from _limits(spec.subsets, ordinal=spec.target_ref is not None and spec.target_ref.kind == "StatefulSet")
    yield from _strategy(spec.schedule_strategy, spec.subsets)
    yield from _filter(spec.target_filter)


def _target(target: TargetFile | None) -> Iterator[Finding]:
    example = "try targetRef: {apiVersion: apps/v1, kind: Deployment, name: ...}"
    if target is None:
        yield Finding(loc=_TARGET, message=KruiseRule.NO_TARGET, hint=example)
        return
    given = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name}
    missing = [name for name, text in given.items() if not text]
    groups = GROUPS.get(target.kind, ())
    if missing:
        yield Finding(loc=_TARGET, message=KruiseRule.EMPTY_TARGET, hint=f"say its {' and '.join(missing)}")
    elif groups and target.group not in groups:
        hint = f"{target.kind} is of {' or '.join(groups[:2])}"
        yield Finding(loc=_TARGET, message=KruiseRule.WRONG_GROUP.format(target.kind), hint=hint)


def _names(subsets: list[SubsetFile]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, subset in enumerate(subsets):
        loc = (*_SUBSETS, index, "name")
        if not subset.name:
            yield Finding(loc=loc, message="is empty", hint="name it after what it selects")
        elif not subset.name.isprintable() or len(subset.name) > _LONGEST_SUBSET_NAME:
            message = f"{shortened(subset.name, 20)!r} cannot be told in one line"
            hint = f"at most {_LONGEST_SUBSET_NAME} characters, and no line ends among them"
            yield Finding(loc=loc, message=message, hint=hint)
        elif subset.name in seen:
            yield Finding(loc=loc, message=KruiseRule.TWICE.format(shortened(subset.name)), hint="try another name")
        seen.add(subset.name)


def _subset(subset: SubsetFile, loc: Loc) -> Iterator[Finding]:
    """Check what one subset says without its limits: terms, tolerations, and how many come first."""
    spellings = (
        ("requiredNodeSelectorTerm", "requiredNodeSelector"),
        ("preferredNodeSelectorTerms", "preferredNodeSelector"),
    )
    values = (
        (subset.required_node_selector_term, subset.required_node_selector),
        (subset.preferred_node_selector_terms, subset.preferred_node_selector),
    )
    for (usual, other), (first, second) in zip(spellings, values, strict=True):
        if first and second and first != second:
            message = f"is {usual} under another name, and they differ"
            yield Finding(loc=(*loc, other), message=message, hint=f"keep {usual}")
    name, required = subset.required()
    if required is not None:
        yield from termrules.term(required, (*loc, name))
        if not required.match_expressions and not required.match_fields:
            hint = f"leave {name} out to select all"
            yield _warning((*loc, name), "a term that asks for nothing is met by nothing", hint)
    name, preferred = subset.preferred()
    for index, one in enumerate(preferred):
        where = (*loc, name, index)
        if not 1 <= one.weight <= _WHOLE:
            hint = f"try {min(max(one.weight, 1), _WHOLE)}"
            yield Finding(loc=(*where, "weight"), message=f"{one.weight} is not in the range 1-100", hint=hint)
        yield from termrules.term(one.preference, (*where, "preference"))
    for index, toleration in enumerate(subset.tolerations):
        yield from termrules.toleration(toleration, (*loc, "tolerations", index))
    yield from podtemplate.patched(subset.patch, (*loc, "patch"))
    yield from patchfields.unknown(subset.patch, (*loc, "patch"))
    least, most = subset.min_replicas, None if subset.max_replicas is None else bound(subset.max_replicas)
    if least < 0:
        yield Finding(loc=(*loc, "minReplicas"), message=f"{least} is less than 0", hint="try 0")
    elif most is not None and least > most.number and not (most.percent and most.number):
        message = f"minReplicas {least} is more than maxReplicas {subset.max_replicas}"
        yield Finding(loc=(*loc, "minReplicas"), message=message, hint=f"try {most.number}")


def _limits(subsets: list[SubsetFile], *, ordinal: bool) -> Iterator[Finding]:
    """Check the limits in order, until the first that leaves the others without a meaning."""
    total, limited, percents = 0, 0, False
    for index, subset in enumerate(subsets):
        given, loc = subset.max_replicas, (*_SUBSETS, index, "maxReplicas")
        if given is None:
            continue
        if limited and isinstance(given, str) != percents:
            wanted = "a percentage" if percents else "a whole number"
            yield Finding(loc=loc, message=KruiseRule.MIXED, hint=f"try {wanted} here, too")
            return
        limited, percents = limited + 1, isinstance(given, str)
        if percents and ordinal:
            yield Finding(loc=loc, message=KruiseRule.ORDINALS, hint="try a whole number")
            return
        most = bound(given)
        if most is None:
            yield Finding(loc=loc, message=KruiseRule.INVALID, hint=_alternative_number(given))
            return
        total += _share(most)
        if total > _WHOLE:
            hint = f"try '{_WHOLE - total + most.number}%', or none for the last subset"
            yield Finding(loc=loc, message=KruiseRule.TOO_MUCH, hint=hint)
            return
    if percents and total < _WHOLE and subsets[-1].max_replicas is not None:
        loc = (*_SUBSETS, 0, "maxReplicas")
        yield Finding(loc=loc, message=KruiseRule.TOO_LITTLE, hint=f"they come to {total}%; leave the last one's out")


def _share(most: Bound) -> int:
    return most.number if most.percent else 0


def _alternative_number(given: int | str) -> str:
    """Guess at the limit that was meant."""
    if isinstance(given, int):
        return "leave it out for no limit" if given > MOST else "try 0, or leave it out for no limit"
    found = re.search(r"([0-9]{1,3})(\.[0-9]+)?", given)
    likely = int(found[1]) + bool(found[2]) if found else 0
    return f"try {likely} or '{likely}%'" if found else "try 3 or '30%'"


def longest(subsets: int, recovery: int) -> int:
    """Return the most seconds that a replica may wait for a node, so that it has tried all before the first recovers.

    `recovery` are the seconds after which a subset counts as schedulable again, of which 5 are kept back.
    """
    return (recovery - 5) // (subsets - 1) if subsets > 1 else MOST


def _strategy(strategy: StrategyFile, subsets: list[SubsetFile]) -> Iterator[Finding]:
    adaptive, loc = strategy.adaptive, (*_STRATEGY, "type")
    if strategy.type not in ("", "Fixed", "Adaptive"):
        yield Finding(loc=loc, message=KruiseRule.NO_STRATEGY, hint="try Fixed or Adaptive")
    if strategy.type == "Adaptive" and not (adaptive and adaptive.reschedule_critical_seconds):
        yield _warning(
            loc, "is like Fixed without adaptive.rescheduleCriticalSeconds", "try rescheduleCriticalSeconds: 30"
        )
    if adaptive is None:
        return
    if strategy.type != "Adaptive":
        yield Finding(loc=loc, message=KruiseRule.NOT_ADAPTIVE, hint="try type: Adaptive, or leave adaptive out")
    if len(subsets) > 1 and subsets[-1].max_replicas is not None:
        hint = "leave it out, or add a subset without"
        yield Finding(loc=_ADAPTIVE, message=KruiseRule.LAST_LIMITED, hint=hint)
    seconds, most = adaptive.reschedule_critical_seconds, longest(len(subsets), adaptive.unschedulable_duration)
    if adaptive.unschedulable_duration < 0:
        message = f"{adaptive.unschedulable_duration} is less than 0"
        yield Finding(loc=(*_ADAPTIVE, "unschedulableDuration"), message=message, hint="try 300")
    elif seconds is not None and not 0 <= seconds <= most:
        hint = "try 30" if most > 0 and seconds < 0 else f"try {most}" if most > 0 else "raise unschedulableDuration"
        loc = (*_ADAPTIVE, "rescheduleCriticalSeconds")
        yield Finding(loc=loc, message=KruiseRule.SECONDS.format(most), hint=hint)
    yield from ineffective(adaptive, _ADAPTIVE)


def _filter(target: TargetFilterFile) -> Iterator[Finding]:
    loc: Loc = ("spec", "targetFilter")
    for message, hint in termrules.selector(target.selector):
        yield Finding(loc=loc, message=KruiseRule.SELECTOR.format(message), hint=hint)
    for index, way in enumerate(target.replicas_path_list):
        message, hint = fault(way) if way else ("", "")  # Kruise counts none for an empty one
        if message:
            yield Finding(loc=(*loc, "replicasPathList", index), message=message, hint=hint)


def _warning(loc: Loc, message: str, hint: str) -> Finding:
    return Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING)
