"""Objects that are gone from their files, while a file that is not in force may hold them: they have moved.

A file that breaks, that may not hold what it holds now, or that becomes a pointer keeps its last good version, and what
a commit moves into it is in no version in force. It stays in force where it stood until that file is mended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.fleet.file import Declared, ParsedFile, Value
from reconciler.core.fleet.kruise_whitelist import CONFIGURATION, Whitelist
from reconciler.core.fleet.objects import identity
from reconciler.core.fleet.paths import REACH, Scope, kind_of_value
from reconciler.core.fleet.standing_paths import held_names, is_elsewhere, key
from reconciler.errors import Problem
from reconciler.model.ids import BlobId
from reconciler.model.kubernetes.object_schema import CustomKind


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneVersion:
    """A version of a file that stood before commits that changed files which are not in force now."""

    path: str
    blob: BlobId
    file: ParsedFile
    digest: str
    """SHA-256 of its bytes; empty where no pointer is among those files."""
    before: Mapping[str, str]
    """The paths of those files; of a pointer with what it stood for at first, otherwise with nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedObject:
    """An object that is in no file in force, and may be in one that is not."""

    path: str
    """The file in which it stood."""
    blob: BlobId
    """The last version of that file that held it."""
    declared: Declared
    problem: Problem

    @property
    def rank(self) -> int:
        """The turn in which it comes in force again: after those that say whether it may."""
        return list(Scope).index(REACH[kind_of_value(self.declared.value)].scope)


def moved_objects(
    gone: Iterable[GoneVersion], unread: Mapping[str, ParsedFile], in_force: Iterable[ParsedFile]
) -> Iterator[MovedObject]:
    """Yield the objects that may be in the `unread` files, which are not in force; of each its newest version.

    `gone` are newest first.
    """
    present = held_names(in_force)
    yielded: set[object] = set()
    for version in gone:
        for declared in () if version.file.broken else version.file.objects:
            name = key(declared.value)
            if name in yielded or is_elsewhere(declared, present):
                continue
            place = next(
                (path for path in sorted(version.before) if _may_hold(path, unread[path], declared.value, version)), ""
            )
            if place:
                yielded.add(name)
                problem = _problem(version, place, unread[place], declared.value)
                yield MovedObject(path=version.path, blob=version.blob, declared=declared, problem=problem)


def _may_hold(path: str, file: ParsedFile, value: Value, version: GoneVersion) -> bool:
    """Return whether a file that is not in force may hold an object.

    A broken one that names nothing may hold any, and a pointer what went from its directory as it came, or the same
    bytes from anywhere.
    """
    if file.pointer_to:
        return version.before[path] == version.digest or path.rpartition("/")[0] == version.path.rpartition("/")[0]
    if any(key(declared.value) == key(value) for declared in file.objects):
        return True
    if not file.broken:
        return False
    return not file.mentioned or _words(value) <= file.mentioned


def _words(value: Value) -> frozenset[str]:
    """Return the kind of an object and its name, as its file writes them."""
    match value:
        case Whitelist():
            return frozenset({"ConfigMap", CONFIGURATION})
        case CustomKind():
            return frozenset({"CustomResourceDefinition", value.kind})
        case _:
            kind, *_, name = identity(value)
            return frozenset({kind, str(name)})


def _problem(version: GoneVersion, place: str, file: ParsedFile, value: Value) -> Problem:
    """Report where an object may be, and the way to be rid of it."""
    name = " ".join(map(str, identity(value)))
    content = "is a Git LFS pointer" if file.pointer_to else "is broken" if file.broken else "is not in force"
    return Problem(
        path=version.path,
        message=f"{name} is gone from it, and may be in {place}, which {content}: it stays in force as in blob"
        f" {version.blob[:12]}",
        hint=f"mend {place}; if {name} is to go, take it out there as well",
    )
