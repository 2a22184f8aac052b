"""What Kubernetes refuses of node selector terms, tolerations and label selectors that fit their schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.schema.taints import Operator, TolerationFile
from reconciler.core.schema.workloadspread import SpreadLabelRequirementFile, SpreadLabelSelectorFile, TermFile

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"({_DOMAIN}/)?{_NAME}")
_LONGEST_LABEL_KEY = 253 + 1 + 63
"""Characters of a domain, a slash and a name; matching a much longer text would take its time."""
_VALUE = re.compile(rf"({_NAME})?")


def term(file: TermFile, loc: Loc) -> Iterator[Finding]:
    """Find what is wrong in a term at `loc`."""
    for index, requirement in enumerate(file.match_expressions):
        where = (*loc, "matchExpressions", index)
        message, hint = requirement.fault()
        if message:
            yield Finding(loc=(*where, "values"), message=message, hint=hint)
        yield from _label(requirement.key, (*where, "key"))


def toleration(file: TolerationFile, loc: Loc) -> Iterator[Finding]:
    """Find what is wrong in a toleration at `loc`."""
    exists = file.operator is Operator.EXISTS
    if file.key:
        yield from _label(file.key, (*loc, "key"))
    elif not exists:
        yield Finding(loc=(*loc, "operator"), message="an empty key needs the operator Exists", hint="try Exists")
    if file.toleration_seconds is not None and file.effect != "NoExecute":
        message = "tolerationSeconds needs the effect NoExecute"
        yield Finding(loc=(*loc, "effect"), message=message, hint="leave tolerationSeconds out")
    if exists and file.value:
        yield Finding(loc=(*loc, "value"), message="Exists takes no value", hint="leave it out, or try Equal")
    elif not exists and not _VALUE.fullmatch(file.value):
        message = f"{shortened(file.value)!r} cannot be the value of a taint"
        yield Finding(loc=(*loc, "value"), message=message, hint="try letters, digits, '-', '_' and '.'")


def selector(file: SpreadLabelSelectorFile) -> Iterator[tuple[str, str]]:
    """Say what is wrong in a label selector, each time with the way out."""
    for key, value in file.match_labels.items():
        yield from _labels(key, (value,))
    for index, one in enumerate(file.match_expressions):
        yield from ((f"matchExpressions[{index}]: {message}", hint) for message, hint in _requirement(one))


def _requirement(one: SpreadLabelRequirementFile) -> Iterator[tuple[str, str]]:
    yield from _labels(one.key, tuple(one.values))
    if one.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield f"{shortened(one.operator)!r} is no operator", "try In, NotIn, Exists or DoesNotExist"
    elif one.operator in ("In", "NotIn") and not one.values:
        yield f"{one.operator} needs values", "try 'values: [a, b]'"
    elif one.operator in ("Exists", "DoesNotExist") and one.values:
        yield f"{one.operator} takes no values", "leave out values, or try 'operator: In'"


def _labels(key: str, values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not _is_key(key):
        yield f"{shortened(key)!r} cannot be the name of a label", "try one like app.kubernetes.io/name"
    for value in values:
        if not _VALUE.fullmatch(value):
            yield f"{shortened(value)!r} cannot be the value of a label", "try letters, digits, '-', '_' and '.'"


def _label(key: str, loc: Loc) -> Iterator[Finding]:
    if not _is_key(key):
        hint = "try one like topology.kubernetes.io/zone"
        yield Finding(loc=loc, message=f"{shortened(key)!r} cannot be the name of a label", hint=hint)


def _is_key(text: str) -> bool:
    return len(text) <= _LONGEST_LABEL_KEY and _KEY.fullmatch(text) is not None
