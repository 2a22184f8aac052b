"""The file that says who may what, from bytes to values; and an entry for it, to be put there."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from reconciler.access.rights import Access, Token
from reconciler.core.schema import yaml
from reconciler.core.schema.access import AccessFile
from reconciler.core.schema.errors import complaints
from reconciler.errors import InvalidInput, Problem
from reconciler.model.workload import Json
from reconciler.text.findings import Finding
from reconciler.text.timestamps import format_time


def read(data: bytes, path: str) -> Access:
    """Read the file. Raises InvalidInput with every problem; none repeats a token."""
    documents = yaml.parse(data, path)
    if len(documents) != 1:
        message = "holds several documents" if documents else "is empty"
        hint = "try one with all tokens" if documents else "try {}, which lets nobody in"
        raise InvalidInput(problems=(Problem(path=path, message=message, hint=hint),))
    (document,) = documents
    try:
        file = AccessFile.model_validate(document.value)
    except ValidationError as error:
        findings: tuple[Finding, ...] = complaints(error, AccessFile)
    else:
        findings = tuple(_twice(file))
    if findings:
        problems = (found.problem(path=path, line=document.line(found.loc)) for found in findings)
        raise InvalidInput(problems=tuple(sorted(problems)))
    return file.value_of()


def entry(token: Token) -> str:
    """Write the entry of a token, to be put below ``tokens:``."""
    fields: dict[str, Json] = {"name": token.name}
    if token.email:
        fields["email"] = token.email
    fields["sha256"] = token.digest
    if token.expires is not None:
        fields["expires"] = format_time(token.expires)
    fields["roles"] = {scope: str(role) for scope, role in token.roles.items()}
    return yaml.emit([fields])


def _twice(file: AccessFile) -> Iterator[Finding]:
    """Find tokens that stand there twice, and names that are two's: the log could not tell them apart."""
    names: set[str] = set()
    digests: set[str] = set()
    for index, token in enumerate(file.tokens):
        if token.name in names:
            loc = ("tokens", index, "name")
            yield Finding(loc=loc, message="is another token's name as well", hint=f"try {token.name + '-2'!r}")
        if token.sha256 in digests:
            loc = ("tokens", index, "sha256")
            yield Finding(loc=loc, message="is another entry's token as well", hint="try a token for each")
        names.add(token.name)
        digests.add(token.sha256)
