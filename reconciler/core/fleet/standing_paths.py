"""Paths that still stand without the objects that they held: only a deletion deletes.

A file that becomes a pointer, an error page, a link or anything else is broken, and not gone. So is one document of
several that stays without its kind. An object that has moved to another file is there; whoever wants one away deletes
the file, or the document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.fleet.assemble import is_ignored, without_definitions_elsewhere
from reconciler.core.fleet.file import Declared, ParsedFile, Value
from reconciler.core.fleet.objects import Identity, identity
from reconciler.core.fleet.paths import FLEET_FILE
from reconciler.core.fleet.read_file import ENDINGS, is_read
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.errors import Problem, Severity
from reconciler.model.ids import BlobId
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.text.wording import join_names

_MOST_NAMES = 3


def _is_suspect(file: ParsedFile) -> bool:
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


def last_good_version(blob: BlobId | None) -> Problem:
    """Report which version of a broken file is in force; the problem has no path yet."""
    if blob is None:
        message, hint = "no earlier version of it is good: nothing in it is in force", ""
    else:
        message = f"its last good version, blob {blob[:12]}, stays in force until this is mended"
        hint = f"see it with git cat-file -p {blob[:12]}"
    return Problem(path="", message=message, hint=hint, severity=Severity.WARNING)


def suspects(files: Mapping[str, ParsedFile], others: Collection[str], directories: Iterable[str]) -> Collection[str]:
    """Return the paths that may stand without objects that they held.

    `files` are those that are read, `others` links and submodules, `directories` those with names of files.
    """
    may_hold_files = (path for path in others if not any(part.startswith(".") for part in path.split("/")))
    return {*(path for path, file in files.items() if _is_suspect(file)), *may_hold_files, *directories}


@dataclass(frozen=True, slots=True, kw_only=True)
class LostContent:
    """The objects that a path held, and holds no more."""

    path: str
    blob: BlobId
    """The last good version of the file."""
    file: ParsedFile
    """Its objects, without those that another file holds now."""
    problem: Problem


def lost_contents(
    pasts: Mapping[str, Sequence[tuple[BlobId, ParsedFile]]],
    files: Mapping[str, ParsedFile],
    others: Mapping[str, TreeEntry],
) -> Iterator[LostContent]:
    """Yield what stood in paths in whose place something else stands.

    `pasts` are the earlier versions with objects, oldest first; `files` and `others` are what stands now.
    """
    fleets = {FLEET_FILE: files[FLEET_FILE]} if FLEET_FILE in files else {}
    for path in sorted(pasts, key=lambda path: (path != FLEET_FILE, path)):
        if not is_read(path) or is_ignored(path, fleets):
            continue
        file = files[path] if path in files else ParsedFile(content=_content(path, others))
        place = version_in_force([version for _, version in pasts[path]], file)
        if place is None:
            continue
        blob, version = pasts[path][place]
        elsewhere = held_names(other for name, other in files.items() if name != path)
        lost = without_objects_elsewhere(version, elsewhere)
        lost = without_definitions_elsewhere({**fleets, path: lost})[path]
        if version_in_force([lost], file) is not None:
            fleets |= {path: lost} if path == FLEET_FILE else {}
            yield LostContent(path=path, blob=blob, file=lost, problem=lost_problem(path, file, lost))


def is_at(entry: str, path: str) -> bool:
    """Return whether a link or a submodule stands at a path, or above it."""
    return path == entry or path.startswith(f"{entry}/")


def _content(path: str, others: Mapping[str, TreeEntry]) -> str:
    """Describe what stands where there is no file of this path."""
    for entry in others.values():
        if is_at(entry.path, path):
            content = "is a submodule" if entry.type is EntryType.SUBMODULE else "is a symbolic link"
            return content if path == entry.path else f"is gone with its directory {entry.path}, which {content} now"
    return "is a directory"


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
