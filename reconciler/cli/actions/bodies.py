"""Files of `-f` as bodies for a daemon: EGS's objects in any of their groups, and bodies of its REST interface.

A file's spec is a body that lacks its name, and the daemon reads every spelling of either; only objects that are no
placement are refused here. Problems that a daemon finds are reported with their line in the file.
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
from reconciler.text.digits import is_digits
from reconciler.text.findings import Loc

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Refused

STDIN = "-"
KIND = "WorkloadPlacement"

_READ_ONLY = frozenset({"status", "createdAt", "updatedAt", "origin"})
"""Fields that a daemon writes and does not read: the answer of `get` may be sent back."""

_OPEN_GROUP = "aiops.kubeslice.io/"
"""The group whose placements go to any cluster of their workspace where they name none, as in a file of the fleet."""
_DESTINATIONS = frozenset(
    {"clusterNames", "clusterName", "ClusterName", "clusters", "autoSelectCluster", "enableBurst"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedPlacement:
    """A placement requested by a file."""

    body: Mapping[str, Json]
    """The fields for the daemon."""
    document: Document
    """The document of the file, for the lines of problems."""
    root: Loc = ()
    """The path of the object in the document."""

    @property
    def name(self) -> str:
        """The placement's name; empty where the file has none."""
        return str(self.body.get("name") or "")

    def problems(self, refused: Refused) -> tuple[Problem, ...]:
        """Locate a daemon's problem in the file; a problem without a field is about the whole object."""
        message = f"{self.name}: {refused}" if self.name else str(refused)
        whole = Problem(path=self.document.path, line=self.document.line(self.root), message=message)
        return tuple(self._locate(problem) for problem in refused.problems) or (whole,)

    def _locate(self, problem: Problem) -> Problem:
        words = re.findall(r"[^.\[\]]+", problem.field)
        below = tuple(int(word) if is_digits(word) else word for word in words)
        field = ".".join(filter(None, (*(str(part) for part in self.root), problem.field)))
        line = self.document.line((*self.root, *below))
        hint = problem.hint or ("try --workspace" if words == ["workspaceName"] else "")
        return Problem(path=self.document.path, line=line, field=field, message=problem.message, hint=hint)


def read_bodies(files: tuple[str, ...]) -> tuple[RequestedPlacement, ...]:
    """Read all placements of some files, in their order; ``-`` is standard input.

    Raises InvalidInput with every object that is no placement: half of the files would be worse than none.
    """
    placements: list[RequestedPlacement] = []
    problems: list[Problem] = []
    for file in files:
        documents = parse(*_content(file))
        if not documents:
            raise InvalidInput(f"{file} holds nothing (try a WorkloadPlacement)")
        for document in documents:
            for value, root in _objects(document):
                result = _placement(value, document, root)
                if isinstance(result, Problem):
                    problems.append(result)
                else:
                    placements.append(result)
    if problems:
        raise InvalidInput(problems=tuple(problems))
    return tuple(placements)


def _content(file: str) -> tuple[bytes, str]:
    """Read a file; return its bytes and its name."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1), "standard input"
        with Path(file).open("rb") as stream:
            return stream.read(MAX_BYTES + 1), file
    except OSError as error:
        raise InvalidInput(f"reading {file}: {error.strerror or error}") from error


def _objects(document: Document) -> Iterator[tuple[Json, Loc]]:
    """Yield the items of a List, as kubectl prints one, or the object itself."""
    value = document.value
    if isinstance(value, Mapping) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"]):
            yield item, ("items", number)
    else:
        yield value, ()


def _placement(value: Json, document: Document, root: Loc) -> RequestedPlacement | Problem:
    """Return an object as a placement, or the problem that keeps it from being one."""
    if not isinstance(value, Mapping):
        return _wrong(document, root, "is not an object", "try a WorkloadPlacement")
    if "kind" not in value and "apiVersion" not in value:
        body = {name: inner for name, inner in value.items() if name not in _READ_ONLY}
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
    body = {"name": metadata.get("name"), **spec}
    if str(value.get("apiVersion")).startswith(_OPEN_GROUP) and not body.keys() & _DESTINATIONS:
        body["autoSelectCluster"] = True
    return RequestedPlacement(body=body, document=document, root=(*root, "spec"))


def _wrong(document: Document, loc: Loc, message: str, hint: str) -> Problem:
    field = ".".join(map(str, loc))
    return Problem(path=document.path, line=document.line(loc), field=field, message=message, hint=hint)
