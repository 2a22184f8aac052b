"""A record's file: one document, read strictly as a model, with everything that is wrong at its line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from reconciler.core.findings import Finding
from reconciler.core.schema.complaints import complaints
from reconciler.core.yamlio import Document, parse
from reconciler.errors import InvalidInput, Problem

_Model = TypeVar("_Model", bound=BaseModel)


def read_model(data: bytes, path: str, model: type[_Model]) -> tuple[_Model, Document]:
    """Read the only document of a file. Raises InvalidInput with every problem."""
    documents = parse(data, path)
    if len(documents) != 1:
        found = f"holds {len(documents)} documents, and one is read" if documents else "is empty"
        raise InvalidInput(problems=(Problem(path=path, message=found, hint="try restoring it from git"),))
    return as_model(documents[0], path, model), documents[0]


def as_model(document: Document, path: str, model: type[_Model]) -> _Model:
    """Read a document that has been parsed. Raises InvalidInput with every problem."""
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        raise refused(complaints(error, model), document, path) from error


def refused(findings: Iterable[Finding], document: Document, path: str) -> InvalidInput:
    """Give findings their places, and make them the error to raise."""
    return InvalidInput(
        problems=tuple(finding.problem(path=path, line=document.line(finding.loc)) for finding in findings)
    )
