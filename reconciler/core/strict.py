"""One document of a file we wrote ourselves, read strictly: everything that is wrong with it, at its line."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from reconciler.core.findings import Finding
from reconciler.core.yamlio import Document, parse
from reconciler.errors import InvalidInput, Problem

_Model = TypeVar("_Model", bound=BaseModel)

_SAID = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this file",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
}


def read_model(data: bytes, path: str, model: type[_Model]) -> tuple[_Model, Document]:
    """Read the only document of a file as `model`.

    Raises InvalidInput with every problem, each with its line.
    """
    documents = parse(data, path)
    if len(documents) != 1:
        found = "is empty" if not documents else f"holds {len(documents)} documents, and one is read"
        raise InvalidInput(problems=(Problem(path=path, message=found),))
    document = documents[0]
    try:
        return model.model_validate(document.value), document
    except ValidationError as error:
        findings = [_finding(detail) for detail in error.errors(include_url=False)]
        raise refused(findings, document, path) from error


def refused(findings: list[Finding], document: Document, path: str) -> InvalidInput:
    """Give findings their places, and make them the error to raise."""
    return InvalidInput(
        problems=tuple(finding.problem(path=path, line=document.line(finding.loc)) for finding in findings)
    )


def _finding(detail: ErrorDetails) -> Finding:
    """Put one of pydantic's complaints in our words."""
    said = _SAID.get(detail["type"])
    if said is None:
        said = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        return Finding(loc=detail["loc"], message=said, hint="try restoring the file from git")
    return Finding(loc=detail["loc"], message=said)
