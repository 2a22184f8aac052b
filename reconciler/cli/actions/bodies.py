"""What `-f` names, as bodies for a daemon: EGS's files in any of their groups, and bodies of its REST interface.

A file's spec is a body that lacks its name, and the daemon reads every spelling of either; nothing is judged here but
what would be no placement at all. What a daemon finds wrong is placed in the file again, by line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.core.schema.yaml import MAX_BYTES, Document, parse
from reconciler.errors import InvalidInput, Problem
from reconciler.model.workload import Json
from reconciler.text.findings import Loc

if TYPE_CHECKING:  # it takes long to import, and most commands ask no daemon
    from reconciler.client import Refused

STDIN = "-"
KIND = "WorkloadPlacement"

_TOLD = frozenset({"status", "createdAt", "updatedAt", "origin"})
"""What a daemon says of a placement and takes from nobody: what was read with `get` may be sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedPlacement:
    """One placement that a file asks for, and where it stands there: its fields are below `root` of the document."""

    body: Mapping[str, Json]
    document: Document
    root: Loc = ()

    @property
    def name(self) -> str:
        """What it is called; empty where nothing says so."""
        return str(self.body.get("name") or "")

    def problems(self, refused: Refused) -> tuple[Problem, ...]:
        """Place what a daemon found wrong in the file; what it says without a field is about the whole."""
        told = f"{self.name}: {refused}" if self.name else str(refused)
        whole = Problem(path=self.document.path, line=self.document.line(self.root), message=told)
        return tuple(self._placed(problem) for problem in refused.problems) or (whole,)

    def _placed(self, problem: Problem) -> Problem:
        words = re.findall(r"[^.\[\]]+", problem.field)
        below = tuple(int(word) if word.isdecimal() else word for word in words)
        field = ".".join(filter(None, (*(str(part) for part in self.root), problem.field)))
        line = self.document.line((*self.root, *below))
        return Problem(path=self.document.path, line=line, field=field, message=problem.message, hint=problem.hint)


def read_bodies(files: tuple[str, ...]) -> tuple[RequestedPlacement, ...]:
    """Read all placements of some files, in their order; ``-`` is standard input.

    Raises InvalidInput with everything that is no placement: a part of what was asked for is worse than nothing.
    """
    found: list[RequestedPlacement] = []
    problems: list[Problem] = []
    for file in files:
        documents = parse(*_content(file))
        if not documents:
            raise InvalidInput(f"{file} holds nothing (try a WorkloadPlacement)")
        for document in documents:
            for value, root in _objects(document):
                asked = _asked(value, document, root)
                if isinstance(asked, Problem):
                    problems.append(asked)
                else:
                    found.append(asked)
    if problems:
        raise InvalidInput(problems=tuple(problems))
    return tuple(found)


def _content(file: str) -> tuple[bytes, str]:
    """Read a file, and say what it is called."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1), "standard input"
        with Path(file).open("rb") as stream:
            return stream.read(MAX_BYTES + 1), file
    except OSError as error:
        raise InvalidInput(f"reading {file}: {error.strerror or error}") from error


def _objects(document: Document) -> Iterator[tuple[Json, Loc]]:
    """Take a list apart, as kubectl prints one."""
    value = document.value
    if isinstance(value, Mapping) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"]):
            yield item, ("items", number)
    else:
        yield value, ()


def _asked(value: Json, document: Document, root: Loc) -> RequestedPlacement | Problem:
    """Make a body of an object, or say why it is none."""
    if not isinstance(value, Mapping):
        return _wrong(document, root, "is not an object", "try a WorkloadPlacement")
    if "kind" not in value and "apiVersion" not in value:
        body = {name: inner for name, inner in value.items() if name not in _TOLD}
        return RequestedPlacement(body=body, document=document, root=root)
    if value.get("kind") != KIND:
        hint = "its place is a file of the fleet repository, by a pull request"
        return _wrong(document, (*root, "kind"), f"{value.get('kind')} is no {KIND}", hint)
    spec, metadata = value.get("spec"), value.get("metadata")
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping):
        missing = "metadata" if isinstance(spec, Mapping) else "spec"
        return _wrong(
            document, (*root, missing), "is required", "`overspill schema WorkloadPlacement` shows the fields"
        )
    return RequestedPlacement(body={"name": metadata.get("name"), **spec}, document=document, root=(*root, "spec"))


def _wrong(document: Document, loc: Loc, message: str, hint: str) -> Problem:
    field = ".".join(map(str, loc))
    return Problem(path=document.path, line=document.line(loc), field=field, message=message, hint=hint)
