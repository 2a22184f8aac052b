"""Validation errors of Pydantic as findings for the author of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from reconciler.core.schema.strict_model import Strict
from reconciler.core.schema.yaml import MAX_PROBLEMS
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import listed, suggested

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_NUMBERS = {"a whole number": re.compile("[0-9]{1,40}"), "a number": re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")}
"""Texts that would be numbers without their quotes."""

_SECONDS = re.compile("([0-9]{1,40})s")
"""A duration for a field that takes a number of seconds."""

_MOST = MAX_PROBLEMS - 1
"""Bound on findings of one object; further ones are only counted, since hints cost time."""

_BOUNDS = {
    "greater_than_equal": ("less than", "ge"),
    "less_than_equal": ("more than", "le"),
    "greater_than": ("not more than", "gt"),
}


def validation_findings(error: ValidationError, model: type[BaseModel]) -> tuple[Finding, ...]:
    """Turn the errors of a validation into findings, at most a hundred; `model` is the validated model."""
    errors = error.errors(include_url=False)
    findings = [_finding(details, model) for details in errors[:_MOST]]
    if len(errors) > _MOST:
        findings.append(Finding(message=f"has {len(errors) - _MOST} more problems"))
    return tuple(findings)


def _finding(details: ErrorDetails, model: type[BaseModel]) -> Finding:
    """Turn one validation error into a finding."""
    loc = _location(details)
    kind, given, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "refused":
        return Finding(loc=loc, message=str(context["message"]), hint=str(context["hint"]))
    if kind == "missing":
        return Finding(loc=loc, message="is required")
    if kind == "extra_forbidden":
        return _unknown_field(loc, model)
    if kind in ("enum", "literal_error"):
        return _not_one_of(loc, given, str(context["expected"]))
    if kind in _WANTED:
        return _wrong_type(loc, _WANTED[kind], given, _field_names(model, loc) if kind.startswith("model") else ())
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return Finding(loc=loc, message=f"{_shown(given)} is {word} {context[key]:g}")
    if kind == "string_too_short":
        return Finding(loc=loc, message="is empty")
    if kind == "too_short":
        return Finding(loc=loc, message="is empty", hint="try listing one, or leaving the field out")
    if kind == "too_long":
        has, most = len(given), context["max_length"]
        return Finding(loc=loc, message=f"lists {has}, of at most {most}", hint=f"leave {has - most} of them out")
    return Finding(loc=loc, message=details["msg"][:1].lower() + details["msg"][1:])


_UNIONS = {"helmFlags": frozenset({"<text>", "<object>"})}
"""Tags that Pydantic puts behind the field of a union, by field."""

_KEY = "[key]"
"""Pydantic's last part of an error of a key rather than of its value."""


def _location(details: ErrorDetails) -> Loc:
    """Return where an error is, without the parts that are Pydantic's own.

    Whatever a key looks like, it is the file's own unless it stands exactly where Pydantic writes.
    """
    parts = details["loc"]
    own: Loc = tuple(
        part for before, part in zip(("", *parts), parts, strict=False) if part not in _UNIONS.get(str(before), ())
    )
    return own[:-1] if own and own[-1] == _KEY and details["type"] != "extra_forbidden" else own


def _unknown_field(loc: Loc, model: type[BaseModel]) -> Finding:
    """Report an unknown field with the nearest known one, or with all fields if they are few."""
    owner = _model_at(model, loc[:-1])
    if owner is not None and issubclass(owner, Strict) and (hint := owner.strangers.get(str(loc[-1]))):
        return Finding(loc=loc, message="unknown field", hint=hint)
    names = _field_names(model, loc[:-1])
    guess = suggested(str(loc[-1]), names)
    return Finding(
        loc=loc,
        message="unknown field",
        hint=f"try '{guess}'" if guess else f"known here: {', '.join(names)}" if names else "",
    )


def _not_one_of(loc: Loc, given: Json, expected: str) -> Finding:
    """Report a value outside of a closed list. `expected` is Pydantic's listing: ``'a', 'b' or 'c'``."""
    words = (word.strip().strip("'") for part in expected.split(" or ") for word in part.split(","))
    allowed = [{"True": "true", "False": "false"}.get(word, word) for word in words if word]
    guess = suggested(given, allowed) if isinstance(given, str) else ""
    return Finding(
        loc=loc,
        message=f"{_shown(given)} is not one of {', '.join(allowed)}" if len(allowed) > 1 else f"must be {allowed[0]}",
        hint=f"try {allowed[0]}" if allowed[0] in ("true", "false") else f"try '{guess or allowed[0]}'",
    )


def _field_names(model: type[BaseModel], loc: Loc) -> tuple[str, ...]:
    """Return the fields of the node at `loc`, as files write them."""
    owner = _model_at(model, loc)
    return tuple(sorted(field.alias or name for name, field in owner.model_fields.items())) if owner else ()


def _wrong_type(loc: Loc, wanted: str, given: Json, fields: tuple[str, ...] = ()) -> Finding:
    """Report a value of the wrong type, with the spelling of the right one, or the `fields` of the right mapping."""
    hint = ""
    if wanted == "text" and isinstance(given, (bool, int, float)):
        hint = f"try '{_shown(given)}' in quotes"
    elif wanted == "a list" and isinstance(given, str):
        hint = f"try [{shortened(given)}]"
    elif wanted == "a list" and isinstance(given, dict):
        hint = "try a list of one: begin it with a dash"
    elif fields:
        hint = f"known here: {listed(fields)}"
    elif wanted.endswith("number") and isinstance(given, str) and _NUMBERS[wanted].fullmatch(given):
        hint = f"try {given} without quotes"
    elif wanted == "a whole number" and isinstance(given, str) and (seconds := _SECONDS.fullmatch(given)):
        hint = f"try {seconds[1]}"
    elif wanted == "true or false" and isinstance(given, str):
        spellings = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
        hint = f"try {spellings[given.lower()]}" if given.lower() in spellings else ""
    return Finding(loc=loc, message=f"must be {wanted}, not {_describe(given)}", hint=hint)


def _describe(value: Json) -> str:
    """Name a value by its type, and quote it if it is short."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the text {shortened(value, 40)!r}" if isinstance(value, str) else _shown(value)


def _shown(value: Json) -> str:
    """Write a scalar as in a file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(shortened(value, 40))
    return shortened(str(value), 40)


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """Return the model of the node at `loc`."""
    models = [model]
    for part in loc:
        if isinstance(part, int):
            continue  # `_models` has already entered the list
        annotations = [
            field.annotation
            for owner in models
            for name, field in owner.model_fields.items()
            if part in (field.alias, name)
        ]
        models = [model for annotation in annotations for model in _models(annotation)]
    return models[0] if models else None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation contains."""
    if isinstance(annotation, type) and not get_args(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
