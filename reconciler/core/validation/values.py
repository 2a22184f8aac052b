"""The check of a value against a schema, as API servers do it with strict field validation.

A text with an expression may become a value of any type, and passes until it is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.model.kubernetes.object_schema import Schema
from reconciler.model.units import parse_quantity, quantity_hint
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest

MAX_FINDINGS = 20
"""Findings about one object; further ones are not sought."""

_WORDS_WITH_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "apps.v1.DaemonSetUpdateStrategy": ("type",),
    "apps.v1.DeploymentStrategy": ("type",),
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": ("whenDeleted", "whenScaled"),
    "apps.v1.StatefulSetSpec": ("podManagementPolicy",),
    "batch.v1.CronJobSpec": ("concurrencyPolicy",),
    "core.v1.Container": ("imagePullPolicy", "terminationMessagePolicy"),
    "core.v1.ContainerPort": ("protocol",),
    "core.v1.HTTPGetAction": ("scheme",),
    "core.v1.ImageVolumeSource": ("pullPolicy",),
    "core.v1.PodSpec": ("dnsPolicy", "restartPolicy"),
    "core.v1.ServicePort": ("protocol",),
    "core.v1.ServiceSpec": ("externalTrafficPolicy", "sessionAffinity", "type"),
    "core.v1.Toleration": ("effect", "operator"),
}
"""Fields whose default API servers put in the place of an empty word, by definition. Charts leave such words empty."""
_INT32 = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How strictly values are checked."""

    # Whether expressions have been rendered already, so that braces are only braces.
    rendered: bool
    # Whether a required field may be missing, because something completes the object.
    partial: bool = False
    # Whether only the types of known fields count, as for an object of a newer API server.
    types_alone: bool = False


def check_value(value: Json, schema: Schema, loc: Loc, judgement: Judgement) -> tuple[Finding, ...]:
    """Return what an API server would refuse in a value; a bounded number of findings, in the order of the file."""
    findings: list[Finding] = []
    for finding in _check(value, schema, loc, judgement):
        findings.append(finding)
        if len(findings) == MAX_FINDINGS:
            break
    return tuple(findings)


def _check(value: Json, schema: Schema, loc: Loc, judgement: Judgement) -> Iterator[Finding]:
    # 1. Anything goes, or nothing is said: API servers take null for a field that is absent.
    if (value is None and not (judgement.types_alone and loc and isinstance(loc[-1], int))) or not schema.type:
        return
    # 2. An expression becomes what it renders to.
    if isinstance(value, str) and not judgement.rendered and has_expression(value):
        return
    # 3. A value of another type.
    if not _TYPES[schema.type](value):
        yield _wrong_type(value, schema.type, loc)
    # 4. A word that is none of those that are taken.
    elif schema.words and value not in schema.words and not judgement.types_alone:
        words = [str(word) for word in schema.words]
        message = f"{_shown(value)} is not one of {', '.join(words)}"
        yield Finding(loc=loc, message=message, hint=nearest(str(value), words) if len(words) > 1 else "")
    # 5. What is in it.
    elif isinstance(value, dict):
        yield from _check_object(value, schema, loc, judgement)
    elif isinstance(value, list) and schema.values is not None:
        for index, item in enumerate(value):
            yield from _check(item, schema.values, (*loc, index), judgement)


def _check_object(value: Mapping[str, Json], schema: Schema, loc: Loc, judgement: Judgement) -> Iterator[Finding]:
    fields = schema.fields
    missing = [] if judgement.partial else [name for name in schema.required if value.get(name) is None]
    is_open = schema.is_open or schema.values is not None or judgement.types_alone
    strangers = [] if is_open else [name for name in value if name not in fields]
    for name in strangers:
        if judgement.rendered or not has_expression(name):
            yield Finding(loc=(*loc, name), message="unknown field", hint=nearest(name, fields))
    # A misspelt field is told once, as such: what is missing may be what an unknown field was to be.
    if not strangers:
        for name in missing:
            yield Finding(loc=loc, message=f"{name} is required")
    unset = _WORDS_WITH_DEFAULTS.get(schema.name, ())
    for name, item in value.items():
        if item == "" and name in unset:
            continue
        below = fields.get(name, schema.values)
        if below is not None and below.type:
            yield from _check(item, below, (*loc, name), judgement)


def _is_whole(value: Json) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_quantity(value: Json) -> bool:
    if not isinstance(value, str):
        return _is_number(value)
    try:
        parse_quantity(value)
    except ValueError:
        return False
    return True


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "int32": lambda value: _is_whole(value) and -_INT32 <= value < _INT32,
    "int64": _is_whole,
    "number": _is_number,
    "quantity": _is_quantity,
    "int-or-string": lambda value: isinstance(value, str) or _is_whole(value),
}
"""Whether a value is of a type."""

_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number",
    "number": "a number",
    "quantity": "a quantity",
    "int-or-string": "a whole number or a text",
}


def _wrong_type(value: Json, wanted: str, loc: Loc) -> Finding:
    hint = ""
    if wanted == "string" and not isinstance(value, dict | list):
        hint = "quote it, or end the expression with | string"
    elif wanted == "quantity":
        hint = quantity_hint(str(value))
    elif isinstance(value, str) and wanted in ("integer", "int32", "int64", "number", "boolean"):
        hint = "leave the quotes out" if is_digits(value) or value in ("true", "false") else ""
    elif wanted == "array":
        hint = "try a list of one: begin it with a dash"
    return Finding(loc=loc, message=f"Kubernetes takes {_NAMES[wanted]} here, not {_shown(value)}", hint=hint)


def _shown(value: Json) -> str:
    """Name a value for a message."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(shortened(value, 40)) if isinstance(value, str) else shortened(str(value), 40)
