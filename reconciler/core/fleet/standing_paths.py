"""Paths that still stand without the objects that they held: only a deletion deletes.

A file that becomes a pointer, an error page, a link or anything else is broken, and not gone. So is one document of
several that stays without its kind. An object that has moved to another file is there; whoever wants one away deletes
the file, or the document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.fleet.file import Declared, ParsedFile, Value
from reconciler.core.fleet.objects import Identity, identity
from reconciler.core.fleet.read_file import ENDINGS, is_read
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.errors import Problem
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.text.wording import join_names

_MOST_NAMES = 3


def is_suspect(file: ParsedFile) -> bool:
    """Return whether something may stand in a file in the place of an object."""
    return not file.broken and (not file.objects or file.foreign > 0)


def is_whole(file: ParsedFile) -> bool:
    """Return whether a version of a file holds objects of ours alone, so that no older version counts."""
    return not file.broken and bool(file.objects) and not file.foreign


def version_in_force(versions: Iterable[ParsedFile], current: ParsedFile) -> int | None:
    """Return the position of the version in whose place the current one stands, None where that is in force itself.

    `versions` are the earlier ones, oldest first.
    """
    held: ParsedFile | None = None
    place: int | None = None
    for position, version in enumerate(versions):
        if not version.broken and (held is None or not _displaces(version, held)):
            held, place = (version, position) if version.objects else (None, None)
    return place if held is not None and _displaces(current, held) else None


def _displaces(file: ParsedFile, held: ParsedFile) -> bool:
    """Return whether a version of a file lacks an object of another, and has something else in its place."""
    lost = {_key(each.value) for each in held.objects} - {_key(each.value) for each in file.objects}
    return bool(lost) and (not file.objects or file.foreign > held.foreign)


def held_names(files: Iterable[ParsedFile]) -> dict[Identity, set[str]]:
    """Return the objects of good files by kind and name, each with the workspaces that it names."""
    names: dict[Identity, set[str]] = {}
    for file in files:
        for declared in () if file.broken else file.objects:
            names.setdefault(identity(declared.value), set()).add(_workspace(declared.value))
    return names


def without_objects_elsewhere(file: ParsedFile, elsewhere: Mapping[Identity, Collection[str]]) -> ParsedFile:
    """Return the content of a file without the objects that another file holds now."""
    return replace(file, objects=tuple(each for each in file.objects if not _is_elsewhere(each, elsewhere)))


def _is_elsewhere(declared: Declared, elsewhere: Mapping[Identity, Collection[str]]) -> bool:
    workspaces = elsewhere.get(identity(declared.value), ())
    own = _workspace(declared.value)
    return bool(workspaces) and (not own or own in workspaces or "" in workspaces)


def lost_problem(path: str, current: ParsedFile, lost: ParsedFile) -> Problem:
    """Report what stands in the place of objects, and the way to be rid of them."""
    present = {_key(each.value) for each in current.objects}
    absent = [identity(each.value) for each in lost.objects if _key(each.value) not in present]
    names = [" ".join(name) for name in absent[:_MOST_NAMES]]
    names += [f"{len(absent) - _MOST_NAMES} more"] if len(absent) > _MOST_NAMES else []
    if current.objects:
        message = f"has something else in the place of {join_names(names)}"
        hint = "mend it; if that is to go, take it out with all of its document"
    else:
        message = f"{current.content}, and {join_names(names)} stood in it"
        hint = "delete the file if that is to go"
    return Problem(path=path, message=message, hint=hint)


def may_hold_files(path: str) -> bool:
    """Return whether a link or a submodule may stand in the place of a file that is read, or of its directory."""
    return not any(part.startswith(".") for part in path.split("/"))


def other_content(entry: TreeEntry) -> str:
    """Describe a path that is no regular file, as a predicate."""
    return "is a submodule" if entry.type is EntryType.SUBMODULE else "is a symbolic link"


def directories_like_files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the directories whose names are those of files that are read."""
    seen: set[str] = set()
    for path in paths:
        if not any(f"{ending}/" in path for ending in ENDINGS):
            continue
        parts = path.split("/")
        for length in range(1, len(parts)):
            directory = "/".join(parts[:length])
            if directory not in seen:
                seen.add(directory)
                if is_read(directory):
                    yield directory


def _key(value: Value) -> tuple[Identity, str]:
    return identity(value), _workspace(value)


def _workspace(value: Value) -> str:
    """Return the workspace that an object names; objects of two tenants may have one name."""
    return str(value.workspace or "") if isinstance(value, (TemplateDraft, RequestDraft)) else ""
