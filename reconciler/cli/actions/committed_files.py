"""What git holds of files that `check` reads: the daemon reads commits, and never a work tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reconciler.adapters.git.work_tree import Conversion, WorkTree, open_work_tree
from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.read_file import parse_file
from reconciler.core.fleet.standing_paths import (
    LostContent,
    last_good_version,
    lost_contents,
    suspects,
)
from reconciler.daemon.lost_objects import LostObjects
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.ids import BlobId
from reconciler.model.tree import EntryType, TreeEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFiles:
    """What differs between the files of a directory and what the daemon reads of them."""

    files: Mapping[str, ParsedFile]
    """The files of the directory, with the last good version of those that stand without their objects."""
    others: Mapping[str, TreeEntry]
    """Entries that are not read: links, submodules, those among them that have not been fetched, and further files."""
    lost: Collection[str] = ()
    """Paths that stand without the objects that they held."""
    problems: tuple[Problem, ...] = ()
    """Their paths are from the directory."""
    is_cut: bool = False
    """Whether older commits would count, and are not in this shallow clone."""


def committed_files(
    top: Path, files: Mapping[str, ParsedFile], others: Mapping[str, TreeEntry], directories: Iterable[str]
) -> CommittedFiles:
    """Compare the files of a directory with what git holds of them; in no checkout all of them are as they are.

    `directories` are those with names of files.
    """
    unchanged = CommittedFiles(files=files, others=others)
    try:
        with open_work_tree(top) as tree:
            return unchanged if tree is None else _compared(top, tree, files, others, directories)
    except InvalidInput as error:
        hint = "the files are checked without their history; try `git fsck`"
        problem = Problem(path="", message=str(error), hint=hint, severity=Severity.WARNING)
        return CommittedFiles(files=files, others=others, problems=(problem,))


def _compared(
    top: Path,
    tree: WorkTree,
    files: Mapping[str, ParsedFile],
    others: Mapping[str, TreeEntry],
    directories: Iterable[str],
) -> CommittedFiles:
    submodules = {
        path: entry
        for path, entry in tree.index.items()
        if entry.type is EntryType.SUBMODULE and (top / path).is_dir() and not (top / path).is_symlink()
    }
    others = {**others, **submodules}
    conversions = tree.conversions([path for path, file in files.items() if file.objects or file.problems])
    files = {**files, **dict(_decoded(top, conversions))}
    problems = list(_converted(top, tree, conversions))
    lost = list(_lost(tree, files, others, suspects(files, others.keys(), directories)))
    for each in lost:
        problems += [each.problem, last_good_version(each.blob).at(each.path)]
    return CommittedFiles(
        files=files | {each.path: each.file for each in lost},
        others=others,
        lost=[each.path for each in lost],
        problems=tuple(problems),
        is_cut=tree.is_cut,
    )


def _lost(
    tree: WorkTree, files: Mapping[str, ParsedFile], others: Mapping[str, TreeEntry], paths: Collection[str]
) -> Iterator[LostContent]:
    """Yield what stood in paths that stand without it, as the daemon does."""
    if not tree.head:
        return
    parsed: dict[BlobId, ParsedFile] = {}

    def read(blobs: Iterable[BlobId]) -> Mapping[BlobId, ParsedFile]:
        wanted = list(blobs)
        contents = tree.read(blob for blob in wanted if blob not in parsed)
        parsed.update({blob: parse_file(data) for blob, data in contents.items()})
        return {blob: parsed.get(blob, ParsedFile()) for blob in wanted}

    history = LostObjects(tree)
    pasts = history.versions(tree.head, paths, read)
    versions = {path: [(blob, read((blob,))[blob]) for blob in blobs] for path, blobs in pasts.items()}
    yield from lost_contents(versions, files, others, partial(history.names_beside, read=read))


def _decoded(top: Path, conversions: Mapping[str, Conversion]) -> Iterator[tuple[str, ParsedFile]]:
    """Yield the files that git converts to UTF-8, as it stores them."""
    for path, conversion in conversions.items():
        if conversion.encoding:
            try:
                text = (top / path).read_bytes().decode(conversion.encoding.removesuffix("-BOM"))
            except (LookupError, UnicodeDecodeError):
                continue  # git refuses it as well
            yield path, parse_file(text.encode())


def _converted(top: Path, tree: WorkTree, conversions: Mapping[str, Conversion]) -> Iterator[Problem]:
    """Report files that a filter makes from something in which no daemon finds their objects."""
    filters = {path: conversion.filter for path, conversion in conversions.items() if conversion.filter}
    staged = {path: tree.index[path].blob for path in filters if path in tree.index}
    contents = tree.read(staged.values())
    for path, name in filters.items():
        data = contents.get(staged.get(path, BlobId("")))
        if data is None:
            message = f"goes through the filter {name} once it is added, and the daemon reads what git stores then"
            hint = "exclude it in .gitattributes (`*.yaml !filter`) if that is no YAML"
            yield Problem(path=path, message=message, hint=hint, severity=Severity.WARNING)
            continue
        stored = parse_file(data)
        if data != (top / path).read_bytes() and (stored.broken or not stored.objects):
            what = stored.content or "is broken"
            message = f"{what} where git stores it, and the daemon reads that: filter={name} of .gitattributes"
            hint = f"take it out of .gitattributes, then git add --renormalize {path}"
            yield Problem(path=path, message=message, hint=hint)
