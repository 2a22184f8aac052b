"""The fields that records of the output branch are made of: names, moments, durations, commit ids, amounts as text."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, PlainValidator
from pydantic.alias_generators import to_camel

from reconciler.core.findings import shortened
from reconciler.core.schema.strict import refusal
from reconciler.core.times import NO_SUCH_YEAR, is_plausible, parse_time
from reconciler.model.ids import is_name
from reconciler.model.units import parse_duration
from reconciler.model.workload import Json

RECORD = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)
"""How a part of a record is read: its fields in camelCase, no others, each of exactly its type."""

NOTES = ConfigDict(
    extra="ignore",
    frozen=True,
    strict=True,
    alias_generator=lambda field: f"overspill.dev/{field.replace('_', '-')}",
)
"""How annotations are read. They are open by nature: unknown ones are passed over."""

_COMMIT_DIGITS = frozenset("0123456789abcdef")
_COUNT = re.compile(r"[0-9]{1,9}")


def name(text: str) -> str:
    """Accept what may stand in a path (`model.ids.NAME`)."""
    if not is_name(text):
        raise refusal(f"{shortened(text)!r} is not a name", "try lower-case letters, digits and '-', 63 at most")
    return text


def _commit(text: str) -> str:
    if not text or not _COMMIT_DIGITS.issuperset(text):
        raise refusal(f"{shortened(text)!r} is not a commit id")
    return text


def _count(value: Json) -> int:
    """Read a number that stands in an annotation, which is text."""
    if type(value) is not str or _COUNT.fullmatch(value) is None:
        raise refusal(f"{shown(value)} is not a number", 'try "3"')
    return int(value)


def _moment(value: Json) -> datetime:
    try:
        moment = parse_time(value)
    except (TypeError, ValueError) as error:
        raise refusal(f"{shown(value)} is not a time", 'try "2026-11-20T10:15:00Z"') from error
    if not is_plausible(moment):
        raise refusal(f"{shown(value)} {NO_SUCH_YEAR}", 'try "2026-11-20T10:15:00Z"')
    return moment


def duration(value: Json) -> timedelta:
    """Read a duration such as ``10m``."""
    try:
        return parse_duration(value)
    except (TypeError, ValueError) as error:
        raise refusal(f"{shown(value)} is not a duration", 'try "10m"') from error


def shown(value: Json) -> str:
    """Quote what was found: a text in quotes, all else as it is."""
    return repr(shortened(value)) if type(value) is str else shortened(str(value))


Name = Annotated[str, AfterValidator(name)]
Moment = Annotated[datetime, PlainValidator(_moment)]
Commit = Annotated[str, AfterValidator(_commit)]
Duration = Annotated[timedelta, PlainValidator(duration)]
Count = Annotated[int, PlainValidator(_count)]
