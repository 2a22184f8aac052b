"""Paths that still stand without the objects that they held: only a deletion deletes.

A file that becomes a pointer, an error page, a link or anything else is broken, and not gone. So is one document of
several that stays without its kind, and so are the files of a directory in whose place another entry stands, of any
type and name. An object that has moved to another file is there; whoever wants one away deletes the file, or the
document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.fleet.assemble import is_ignored, without_definitions_elsewhere
from reconciler.core.fleet.file import Declared, ParsedFile, Value
from reconciler.core.fleet.objects import Identity, identity
from reconciler.core.fleet.paths import FLEET_FILE
from reconciler.core.fleet.read_file import is_hidden, is_read
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.errors import Problem, Severity
from reconciler.model.ids import BlobId
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.text.file_names import ENDINGS
from reconciler.text.wording import join_names

_MOST_NAMES = 3


def _is_suspect(file: ParsedFile) -> bool:
    """Return whether something may stand in a file in the place of an object."""
    return not file.broken and (not file.objects or bool(file.foreign))


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
    lost = {key(each.value) for each in held.objects} - {key(each.value) for each in file.objects}
    return bool(lost) and (not file.objects or bool(Counter(file.foreign) - Counter(held.foreign)))


def held_names(files: Iterable[ParsedFile]) -> dict[Identity, set[str]]:
    """Return the objects of good files by kind and name, each with the workspaces that it names."""
    names: dict[Identity, set[str]] = {}
    for file in files:
        for declared in () if file.broken else file.objects:
            names.setdefault(identity(declared.value), set()).add(_workspace(declared.value))
    return names


def without_objects_elsewhere(file: ParsedFile, elsewhere: Mapping[Identity, Collection[str]]) -> ParsedFile:
    """Return the content of a file without the objects that another file holds now."""
    return replace(file, objects=tuple(each for each in file.objects if not is_elsewhere(each, elsewhere)))


def is_elsewhere(declared: Declared, elsewhere: Mapping[Identity, Collection[str]]) -> bool:
    """Return whether an object is among others, which are as `held_names` returns them."""
    workspaces = elsewhere.get(identity(declared.value), ())
    own = _workspace(declared.value)
    return bool(workspaces) and (not own or own in workspaces or "" in workspaces)


def lost_problem(path: str, current: ParsedFile, lost: ParsedFile, place: str = "") -> Problem:
    """Report what stands in the place of objects, and the way to be rid of them.

    `place` is the entry that stands in the place of the directory of the file; empty where it is at the path itself.
    """
    present = {key(each.value) for each in current.objects}
    absent = [identity(each.value) for each in lost.objects if key(each.value) not in present]
    names = [" ".join(name) for name in absent[:_MOST_NAMES]]
    names += [f"{len(absent) - _MOST_NAMES} more"] if len(absent) > _MOST_NAMES else []
    if current.objects:
        message = f"has something else in the place of {join_names(names)}"
        hint = "mend it; if that is to go, take out what stands in its place"
    else:
        message = f"{current.content}, and {join_names(names)} stood in it"
        hint = f"delete {place or 'the file'} if that is to go"
    return Problem(path=path, message=message, hint=hint)


def last_good_version(blob: BlobId | None) -> Problem:
    """Report which version of a broken file is in force; the problem has no path yet."""
    if blob is None:
        message, hint = "it has never been valid, so nothing in it is in force", ""
    else:
        message = f"its last good version, blob {blob[:12]}, stays in force until this is mended"
        hint = f"see it with git cat-file -p {blob[:12]}"
    return Problem(path="", message=message, hint=hint, severity=Severity.WARNING)


def suspects(files: Mapping[str, ParsedFile], others: Collection[str], directories: Iterable[str]) -> Collection[str]:
    """Return the paths that may stand without objects that they held.

    `files` are those that are read, `others` all further entries: links, submodules, and files with other names.
    `directories` are those with names of files.
    """
    may_hold_files = (path for path in others if is_read(path) or not is_hidden(path))
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
    names_beside: Callable[[str, BlobId], Mapping[Identity, Collection[str]]],
) -> Iterator[LostContent]:
    """Yield what stood in paths in whose place something else stands.

    `pasts` are the earlier versions with objects, oldest first; `files` are what is read now, and `others` all further
    entries. What other files held after the commit that took a version away, by `names_beside`, was moved there,
    wherever it is now.
    """
    fleets = {FLEET_FILE: files[FLEET_FILE]} if FLEET_FILE in files else {}
    for path in sorted(pasts, key=lambda path: (path != FLEET_FILE, path)):
        if not is_read(path) or is_ignored(path, fleets):
            continue
        place, file = _standing(path, files, others)
        position = version_in_force([version for _, version in pasts[path]], file)
        if position is None:
            continue
        blob, version = pasts[path][position]
        elsewhere = held_names(other for name, other in files.items() if name != path)
        lost = without_objects_elsewhere(version, elsewhere)
        if version_in_force([lost], file) is not None:
            lost = without_objects_elsewhere(lost, names_beside(path, blob))
        lost = without_definitions_elsewhere({**fleets, path: lost})[path]
        if version_in_force([lost], file) is not None:
            fleets |= {path: lost} if path == FLEET_FILE else {}
            yield LostContent(path=path, blob=blob, file=lost, problem=lost_problem(path, file, lost, place))


def is_at(entry: str, path: str) -> bool:
    """Return whether a link or a submodule stands at a path, or above it."""
    return path == entry or path.startswith(f"{entry}/")


def _standing(path: str, files: Mapping[str, ParsedFile], others: Mapping[str, TreeEntry]) -> tuple[str, ParsedFile]:
    """Return what stands at a path now, and the entry in the place of its directory; empty where there is none."""
    if path in files:
        return "", files[path]
    if path in others:
        return "", ParsedFile(content=_content(others[path].type))
    for above in _parents(path):
        if above in files or above in others:
            content = files[above].content or "is a file" if above in files else _content(others[above].type)
            return above, ParsedFile(content=f"is gone with its directory {above}, which {content} now")
    return "", ParsedFile(content="is a directory")


def _content(entry: EntryType) -> str:
    """Describe an entry that is not read."""
    return {EntryType.SUBMODULE: "is a submodule", EntryType.LINK: "is a symbolic link"}.get(entry, "is a file")


def _parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, from the top."""
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def directories_like_files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the directories whose names are those of files that are read."""
    seen: set[str] = set()
    for path in paths:
        folded = path.lower()
        if not any(f"{ending}/" in folded for ending in ENDINGS):
            continue
        for directory in _parents(path):
            if directory not in seen:
                seen.add(directory)
                if is_read(directory):
                    yield directory


def key(value: Value) -> tuple[Identity, str]:
    """Return what identifies an object in the fleet: its kind and name, and the workspace that it names."""
    return identity(value), _workspace(value)


def _workspace(value: Value) -> str:
    """Return the workspace that an object names; objects of two tenants may have one name."""
    return str(value.workspace or "") if isinstance(value, (TemplateDraft, RequestDraft)) else ""
