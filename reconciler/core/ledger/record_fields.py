"""Common parts of the records of the output branch: one strict document a file, problems with lines, shared fields.

The fields are names, moments, durations, commit ids and amounts, each as text in one canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator, ValidationError
from pydantic.alias_generators import to_camel

from reconciler.core.schema.errors import validation_findings
from reconciler.core.schema.strict_model import refusal
from reconciler.core.schema.yaml import Document, parse
from reconciler.errors import InvalidInput, Problem
from reconciler.model.ids import is_name
from reconciler.model.units import parse_duration
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, shortened
from reconciler.text.timestamps import NO_SUCH_YEAR, is_plausible, parse_time

RECORD = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)
"""Settings of record models: fields in camelCase, no others, each of exactly its type."""

ANNOTATIONS = ConfigDict(
    extra="ignore",
    frozen=True,
    strict=True,
    alias_generator=lambda field: f"overspill.dev/{field.replace('_', '-')}",
)
"""Settings of annotation models. Annotations are open by nature: unknown ones are ignored."""

_COMMIT_DIGITS = frozenset("0123456789abcdef")
_COUNT = re.compile(r"[0-9]{1,9}")


def name(text: str) -> str:
    """Accept a name that may be part of a path (`model.ids.NAME`)."""
    if not is_name(text):
        raise refusal(f"{shortened(text)!r} is not a name", "try lower-case letters, digits and '-', 63 at most")
    return text


def _commit(text: str) -> str:
    if not text or not _COMMIT_DIGITS.issuperset(text):
        raise refusal(f"{shortened(text)!r} is not a commit id")
    return text


def _count(value: Json) -> int:
    """Read a number from an annotation, whose values are text."""
    if type(value) is not str or _COUNT.fullmatch(value) is None:
        raise refusal(f"{quote_value(value)} is not a number", 'try "3"')
    return int(value)


def _moment(value: Json) -> datetime:
    try:
        moment = parse_time(value)
    except (TypeError, ValueError) as error:
        raise refusal(f"{quote_value(value)} is not a time", 'try "2026-11-20T10:15:00Z"') from error
    if not is_plausible(moment):
        raise refusal(f"{quote_value(value)} {NO_SUCH_YEAR}", 'try "2026-11-20T10:15:00Z"')
    return moment


def duration(value: Json) -> timedelta:
    """Read a duration such as ``10m``."""
    try:
        return parse_duration(value)
    except (TypeError, ValueError) as error:
        raise refusal(f"{quote_value(value)} is not a duration", 'try "10m"') from error


def quote_value(value: Json) -> str:
    """Quote a value in a message: a text in quotes, any other value as it is."""
    return repr(shortened(value)) if type(value) is str else shortened(str(value))


Name = Annotated[str, AfterValidator(name)]
Moment = Annotated[datetime, PlainValidator(_moment)]
Commit = Annotated[str, AfterValidator(_commit)]
Duration = Annotated[timedelta, PlainValidator(duration)]
Count = Annotated[int, PlainValidator(_count)]


_Model = TypeVar("_Model", bound=BaseModel)


def read_model(data: bytes, path: str, model: type[_Model]) -> tuple[_Model, Document]:
    """Read the only document of a file. Raises InvalidInput with every problem."""
    documents = parse(data, path)
    if len(documents) != 1:
        message = f"holds {len(documents)} documents, and one is read" if documents else "is empty"
        raise InvalidInput(problems=(Problem(path=path, message=message, hint="try restoring it from git"),))
    return validate_document(documents[0], path, model), documents[0]


def validate_document(document: Document, path: str, model: type[_Model]) -> _Model:
    """Validate a parsed document. Raises InvalidInput with every problem."""
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        raise record_error(validation_findings(error, model), document, path) from error


def record_error(findings: Iterable[Finding], document: Document, path: str) -> InvalidInput:
    """Locate findings in their document, and return them as one error."""
    return InvalidInput(
        problems=tuple(finding.problem(path=path, line=document.line(finding.loc)) for finding in findings)
    )
