"""Model values as JSON: the form of ``-o json``, which docs/reference/cli.md specifies, and of the API's answers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum

from reconciler.errors import Bug
from reconciler.model.action import TRAITS
from reconciler.model.budget import BudgetOwner
from reconciler.model.demand import Demand, Sample
from reconciler.model.ids import WorkloadId
from reconciler.model.plan import Change
from reconciler.model.tree import Identity
from reconciler.model.units import Resources, format_duration, format_quantity
from reconciler.model.workload import Json
from reconciler.text.timestamps import format_time

_PUBLISHED = {"missing": "deficit", "stale": "unheard"}
"""Fields of a Demand and its samples with another published name."""
_BUG = "bug"
"""The field of an exception that nothing foresaw, which is left out where there is none."""


def json_value(value: object) -> Json:
    """Turn a value into plain JSON.

    Fields get camelCase names. A moment is RFC 3339 in UTC, a duration ``1h30m``, a quantity as Kubernetes writes it, a
    workload ``workspace/template``, who has a budget ``workspace llm``. A change says in ``action`` which kind it is.
    Bytes that are not UTF-8 become ``{"base64": ...}``. Fields that follow from others are left out.
    """
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return _text(value)
        case datetime():
            return format_time(value)
        case timedelta():
            return format_duration(value)
        case WorkloadId() | BudgetOwner() | Bug():
            return str(value)
        case Resources():
            return {name: format_quantity(amount) for name, amount in sorted(value.amounts.items())}
        case Demand() | Change() | Identity():
            return json_value(_parts(value))
        case Mapping():
            return {str(key): json_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [json_value(inner) for inner in value]
    if not is_dataclass(value):
        return str(value)
    names = _PUBLISHED if isinstance(value, Sample) else {}
    return {
        names.get(field.name, camel_case(field.name)): json_value(getattr(value, field.name))
        for field in fields(value)
        if field.init and (field.name != _BUG or getattr(value, _BUG) is not None)
    }


def _parts(value: Demand | Change | Identity) -> dict[str, object]:
    """Return what is shown of a demand, of a change by its action, or of the author of a commit."""
    if isinstance(value, Identity):
        return {"name": value.name, "email": value.email}
    if isinstance(value, Demand):
        parts = value._asdict()
        del parts["past"]  # days of it; its forecasts say what came of it
        return {_PUBLISHED.get(name, camel_case(name)): part for name, part in parts.items()}
    parts = {name: getattr(value, field) for name, field in TRAITS[value.action].published.items()}
    if value.why is None:
        parts.pop("why", None)  # a Resize that takes no replicas away
    return {"action": value.action, **parts}


def camel_case(name: str) -> str:
    """Write ``created_at`` as ``createdAt``."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _text(data: bytes) -> Json:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
