"""The rules of a single WorkloadSpread: the checks of OpenKruise's webhook, in its words and at its fields.

1. The rules of the set and its subsets (docs/background/upstream/workloadspread.md, "Validation").
2. Kubernetes' own validation of node selector terms, tolerations and label selectors.
3. A warning for each field of a patch that no Pod has, which is left out of the patch (`pod_patches`).

Rules that need other files are in `files`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import islice

from reconciler.core.pods.label_syntax import is_label_key, is_label_value
from reconciler.core.schema.egs.ignored_fields import warn_ignored_fields
from reconciler.core.schema.taints import TolerationFile
from reconciler.core.schema.workloadkind import fault
from reconciler.core.schema.workloadspread import (
    MOST,
    SpreadLabelRequirementFile,
    SpreadLabelSelectorFile,
    StrategyFile,
    SubsetFile,
    TargetFile,
    TargetFilterFile,
    TermFile,
    WorkloadSpreadFile,
    bound,
)
from reconciler.core.validation import kubernetes
from reconciler.core.validation.pod_patches import known_fields, unknown_fields
from reconciler.core.workloads import pod_template
from reconciler.core.workloads.builtin_kinds import NO_KINDS, SPREAD, kinds_named
from reconciler.errors import Severity
from reconciler.model.kubernetes.object_schema import Schema
from reconciler.model.kubernetes.workload_spread import Bound, WorkloadSpread
from reconciler.model.units import MAX_DURATION
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest

_MOST = 20
_PARTS = ("metadata", "spec")
_WORKLOAD = frozenset(
    {"paused", "replicas", "selector", "strategy", "template", "updateStrategy", "volumeClaimTemplates"}
)
"""Fields beside the pod template in the spec of a workload."""

_CALLED = {
    kubernetes.POD: "a Pod",
    kubernetes.OBJECT_META: "metadata",
    kubernetes.POD_SPEC: "the spec of a Pod",
    "core.v1.Container": "a container",
}
_HOMES = ((kubernetes.OBJECT_META, "metadata"), (kubernetes.POD_SPEC, "spec"))


def spread_of(file: WorkloadSpreadFile, target: TargetFile, *, path: str, line: int) -> WorkloadSpread:
    """Make the spread of a valid file at a path and line; its patches are what a Pod has fields for."""
    spread = file.value_of(target, path=path, line=line)
    subsets = tuple(replace(subset, patch=known_fields(subset.patch)) for subset in spread.subsets)
    return replace(spread, subsets=subsets)


def warn_unknown_fields(patch: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Warn of the fields of a patch that no Pod has, each at its location below `loc`."""
    for place, schema, value in islice(unknown_fields(patch, loc), _MOST):
        name = str(place[-1])
        names = (called for key, called in _CALLED.items() if kubernetes.definition(key) is schema)
        owner = next(names, str(next(part for part in reversed(place[:-1]) if isinstance(part, str))))
        message = f"{owner} has no such field, and nothing is patched by it"
        hint = _field_hint(name, value, schema)
        yield Finding(loc=place, message=message, hint=hint, severity=Severity.WARNING)


def _field_hint(name: str, value: Json, schema: Schema) -> str:
    """Suggest a remedy: the patch form of a workload field, the right section, or the nearest name."""
    if name in _WORKLOAD:
        parts = [f"{part}: …" for part in _PARTS if isinstance(value, Mapping) and part in value]
        instead = f"write it as patch: {{{', '.join(parts)}}}" if parts else "leave it out"
        return f"a patch is one of the pod, not of the workload: {instead}"
    for key, home in _HOMES:
        other = kubernetes.definition(key)
        if other is not schema and name in other.fields:
            return f"try {home}.{name}"
    return nearest(name, schema.fields)


def check_term(file: TermFile, loc: Loc) -> Iterator[Finding]:
    """Check a node selector term at `loc`."""
    for index, requirement in enumerate(file.match_expressions):
        where = (*loc, "matchExpressions", index)
        message, hint = requirement.fault()
        if message:
            yield Finding(loc=(*where, "values"), message=message, hint=hint)
        yield from _label(requirement.key, (*where, "key"))


def check_toleration(file: TolerationFile, loc: Loc) -> Iterator[Finding]:
    """Check a toleration at `loc`."""
    for field, message, hint in file.faults():
        yield Finding(loc=(*loc, field), message=message, hint=hint)


def selector_faults(file: SpreadLabelSelectorFile) -> Iterator[tuple[str, str]]:
    """Yield the faults of a label selector, each with a remedy."""
    for key, value in file.match_labels.items():
        yield from _labels(key, (value,))
    for index, requirement in enumerate(file.match_expressions):
        yield from ((f"matchExpressions[{index}]: {message}", hint) for message, hint in _requirement(requirement))


def _requirement(requirement: SpreadLabelRequirementFile) -> Iterator[tuple[str, str]]:
    yield from _labels(requirement.key, tuple(requirement.values))
    if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield f"{shortened(requirement.operator)!r} is no operator", "try In, NotIn, Exists or DoesNotExist"
    elif requirement.operator in ("In", "NotIn") and not requirement.values:
        yield f"{requirement.operator} needs values", "try 'values: [a, b]'"
    elif requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        yield f"{requirement.operator} takes no values", "leave out values, or try 'operator: In'"


def _labels(key: str, values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not is_label_key(key):
        yield f"{shortened(key)!r} cannot be the name of a label", "try one like app.kubernetes.io/name"
    for value in values:
        if not is_label_value(value):
            yield f"{shortened(value)!r} cannot be the value of a label", "try letters, digits, '-', '_' and '.'"


def _label(key: str, loc: Loc) -> Iterator[Finding]:
    if not is_label_key(key):
        hint = "try one like topology.kubernetes.io/zone"
        yield Finding(loc=loc, message=f"{shortened(key)!r} cannot be the name of a label", hint=hint)


WORKSPACE = "overspill.dev/workspace"
"""The annotation that names the Workspace of a spread, if several may use its namespace."""


class KruiseRule(StrEnum):
    """Messages of Kruise's webhook; `{}` is filled in."""

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


_WHOLE = 100
_LONGEST_SUBSET_NAME = 100
"""Characters of a subset's name, which appears in commits. OpenKruise sets no bound."""
_SUBSETS: Loc = ("spec", "subsets")
_TARGET: Loc = ("spec", "targetRef")
_STRATEGY: Loc = ("spec", "scheduleStrategy")
_ADAPTIVE: Loc = (*_STRATEGY, "adaptive")


def check_spread(file: WorkloadSpreadFile) -> Iterator[Finding]:
    """Check the parts of a valid file against each other, and warn of fields without effect."""
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
        yield from _check_subset(subset, (*_SUBSETS, index))
    yield from _limits(spec.subsets, ordinal=_is_numbered(spec.target_ref))
    yield from _strategy(spec.schedule_strategy, spec.subsets)
    yield from _filter(spec.target_filter)


def _is_numbered(target: TargetFile | None) -> bool:
    """Return whether the pods of a target have ordinals."""
    return target is not None and any(kind.ordinals for kind in kinds_named(target.kind, NO_KINDS))


def _target(target: TargetFile | None) -> Iterator[Finding]:
    example = "try targetRef: {apiVersion: apps/v1, kind: Deployment, name: ...}"
    if target is None:
        yield Finding(loc=_TARGET, message=KruiseRule.NO_TARGET, hint=example)
        return
    given = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name}
    missing = [name for name, text in given.items() if not text]
    groups = SPREAD.get(target.kind, ())
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


def _check_subset(subset: SubsetFile, loc: Loc) -> Iterator[Finding]:
    """Check one subset without its limits: terms, tolerations and weights."""
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
        yield from check_term(required, (*loc, name))
        if not required.match_expressions and not required.match_fields:
            hint = f"leave {name} out to select all"
            yield _warning((*loc, name), "a term that asks for nothing is met by nothing", hint)
    name, preferred = subset.preferred()
    for index, preference in enumerate(preferred):
        where = (*loc, name, index)
        if not 1 <= preference.weight <= _WHOLE:
            hint = f"try {min(max(preference.weight, 1), _WHOLE)}"
            yield Finding(loc=(*where, "weight"), message=f"{preference.weight} is not in the range 1-100", hint=hint)
        yield from check_term(preference.preference, (*where, "preference"))
    for index, toleration in enumerate(subset.tolerations):
        yield from check_toleration(toleration, (*loc, "tolerations", index))
    yield from pod_template.check_pod_patch(subset.patch, (*loc, "patch"))
    yield from warn_unknown_fields(subset.patch, (*loc, "patch"))
    least, most = subset.min_replicas, None if subset.max_replicas is None else bound(subset.max_replicas)
    if least < 0:
        yield Finding(loc=(*loc, "minReplicas"), message=f"{least} is less than 0", hint="try 0")
    elif most is not None and least > most.number and not (most.percent and most.number):
        message = f"minReplicas {least} is more than maxReplicas {subset.max_replicas}"
        yield Finding(loc=(*loc, "minReplicas"), message=message, hint=f"try {most.number}")


def _limits(subsets: list[SubsetFile], *, ordinal: bool) -> Iterator[Finding]:
    """Check the limits in order, up to the first that makes the others meaningless."""
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
            yield Finding(loc=loc, message=KruiseRule.INVALID, hint=_bound_hint(given))
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


def _bound_hint(given: int | str) -> str:
    """Suggest the limit that was probably meant."""
    if isinstance(given, int):
        return "leave it out for no limit" if given > MOST else "try 0, or leave it out for no limit"
    match = re.search(r"([0-9]{1,3})(\.[0-9]+)?", given)
    likely = int(match[1]) + bool(match[2]) if match else 0
    return f"try {likely} or '{likely}%'" if match else "try 3 or '30%'"


def max_critical_seconds(subsets: int, recovery: int) -> int:
    """Return the most seconds that a replica may wait for a node in one subset.

    The replica then tries all subsets before the first recovers. `recovery` are the seconds after which a subset counts
    as schedulable again; 5 of them are kept in reserve.
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
    seconds, most = (
        adaptive.reschedule_critical_seconds,
        max_critical_seconds(len(subsets), adaptive.unschedulable_duration),
    )
    if adaptive.unschedulable_duration < 0:
        message = f"{adaptive.unschedulable_duration} is less than 0"
        yield Finding(loc=(*_ADAPTIVE, "unschedulableDuration"), message=message, hint="try 300")
    elif adaptive.unschedulable_duration > MAX_DURATION.total_seconds():
        message = f"{adaptive.unschedulable_duration} seconds are longer than ten years"
        yield Finding(loc=(*_ADAPTIVE, "unschedulableDuration"), message=message, hint="try 300")
    elif seconds is not None and not 0 <= seconds <= most:
        hint = "try 30" if most > 0 and seconds < 0 else f"try {most}" if most > 0 else "raise unschedulableDuration"
        loc = (*_ADAPTIVE, "rescheduleCriticalSeconds")
        yield Finding(loc=loc, message=KruiseRule.SECONDS.format(most), hint=hint)
    yield from warn_ignored_fields(adaptive, _ADAPTIVE)


def _filter(target: TargetFilterFile) -> Iterator[Finding]:
    loc: Loc = ("spec", "targetFilter")
    for message, hint in selector_faults(target.selector):
        yield Finding(loc=loc, message=KruiseRule.SELECTOR.format(message), hint=hint)
    for index, replicas_path in enumerate(target.replicas_path_list):
        message, hint = (
            fault(replicas_path) if replicas_path else ("", "")
        )  # Kruise counts no replicas at an empty path
        if message:
            yield Finding(loc=(*loc, "replicasPathList", index), message=message, hint=hint)


def _warning(loc: Loc, message: str, hint: str) -> Finding:
    return Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING)
