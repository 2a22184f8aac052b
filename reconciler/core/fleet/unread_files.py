"""Files of the fleet repository that are not read, and why: for `check`, so that no file is passed over silently.

A file beside files of ours, or in a folder that is named for them, is taken for a mistake and gets a warning with the
way out. Any other is foreign, and only counted by its folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.fleet.file import ParsedFile, describe_opaque
from reconciler.core.fleet.objects import identity
from reconciler.core.schema import yaml
from reconciler.core.validation.custom_resources import is_definition
from reconciler.core.validation.kubernetes import kind_schema
from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.model.workload import Json
from reconciler.text.file_names import may_hold_objects, resembles_objects
from reconciler.text.findings import shortened
from reconciler.text.wording import count, join_names

FOLDERS = frozenset({"clusters", "policies", "requests", "templates", "workspaces"})
"""Folders of the recommended layout for files of ours."""

_IGNORE = "or list its path in spec.ignore of the Fleet"
_WRAP = (
    "make it the manifest of a WorkloadTemplate: spec.manifestResources: [{name: server, manifest: ...}], "
    "and name it in spec.steps"
)
_ENGINES = ("argoproj.io", "fluxcd.io", "kustomize.config.k8s.io")
_MOST_KINDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadFile:
    """A file that holds nothing for Overspill."""

    path: str
    # Its content in a few words.
    content: str
    # The warning, where it looks like a mistake.
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSurroundings:
    """Where files are taken for ours."""

    ours: frozenset[str]
    """The folders that hold files of ours."""
    charts: frozenset[str]
    """The folders of charts, whose files are foreign."""

    @classmethod
    def of(cls, files: Mapping[str, ParsedFile]) -> FileSurroundings:
        """Return the folders of the files that are read."""
        return cls(
            ours=frozenset(_folder(path) for path, file in files.items() if file.objects or file.problems),
            charts=frozenset(_folder(path) for path in files if path.rpartition("/")[2] == "Chart.yaml"),
        )

    def expect(self, path: str) -> bool:
        """Return whether a file is meant to be ours: beside files of ours, or in a folder that is named for them."""
        folder = _folder(path)
        if any(part.startswith(".") for part in path.split("/")):
            return False  # settings of a tool
        if any(f"{path}/".startswith(f"{chart}/" if chart else "") for chart in self.charts):
            return False
        return folder in self.ours or not FOLDERS.isdisjoint(folder.split("/"))


def unread_file(path: str, data: bytes, surroundings: FileSurroundings) -> UnreadFile:
    """Explain why a YAML or JSON file is not read; `unread_entries` warns of those in which nobody can read."""
    if content := describe_opaque(data):
        return UnreadFile(path=path, content=content.removeprefix("is "))
    expected = surroundings.expect(path)
    try:
        documents = yaml.parse(data, path) if expected or len(data) <= yaml.MAX_BYTES else ()
    except InvalidInput as error:
        content = "no YAML that can be read"
        problem = min(error.problems, default=Problem(path=path, message=str(error)))
        message = f"is not read, for it is no YAML: {problem.message.removeprefix('is not YAML: ')}"
        hint = f"mend it, {_IGNORE}"
        return UnreadFile(
            path=path, content=content, problem=_warning(path, problem.line, message, hint, expected=expected)
        )
    objects = [(document.start, document.value) for document in documents if isinstance(document.value, Mapping)]
    named = [(line, value) for line, value in objects if isinstance(value.get("kind"), str)]
    # 1. Nothing in it has a kind: values of a chart, a workflow, data of another tool.
    if not named:
        line = objects[0][0] if objects else 0
        message, hint = "is not read, for nothing in it has a kind", f"add apiVersion and kind, {_IGNORE}"
        return UnreadFile(path=path, content="no kinds", problem=_warning(path, line, message, hint, expected=expected))
    content = join_names(list(dict.fromkeys(shortened(value["kind"]) for _, value in named))[:_MOST_KINDS])
    line, value = named[0]
    api_version = str(value.get("apiVersion", ""))
    # 2. Objects of an engine or of a tool, which reads them itself.
    if any(part in api_version for part in _ENGINES) or value["kind"] == "Kustomization":
        return UnreadFile(path=path, content=content)
    # 3. Objects that people meant to deploy.
    hint = f"{_hint(value, api_version)}, {_IGNORE}"
    message = f"holds a plain {content}, which is not read and goes to no cluster"
    return UnreadFile(path=path, content=content, problem=_warning(path, line, message, hint, expected=expected))


def unread_entries(
    entries: Iterable[TreeEntry], files: Mapping[str, ParsedFile], read: Callable[[TreeEntry], ParsedFile]
) -> Iterator[Problem]:
    """Report what holds files of ours, or is meant to, and is not read: `check` and the daemon say the same.

    `files` are those that are read, and `entries` all others: links, submodules and files with other names, whose
    content `read` returns. What is elsewhere is foreign.
    """
    surroundings = FileSurroundings.of(files)
    for path, file in files.items():
        if not file.readable and surroundings.expect(path):
            yield _unreadable(path, file)
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        if entry.type is EntryType.FILE:
            if resembles_objects(name) and surroundings.expect(entry.path):
                yield from _misnamed(entry.path, read(entry))
            continue
        parts = entry.path.split("/")
        beside = folder in surroundings.ours and (may_hold_objects(name) or folder != "")
        if any(part.startswith(".") for part in parts) or not (beside or not FOLDERS.isdisjoint(parts)):
            continue
        if entry.type is EntryType.SUBMODULE:
            message, hint = "is a submodule, whose files are not read", "commit its files here"
        else:
            message, hint = "is a symbolic link, which is not followed", "commit a copy of the file"
        yield Problem(path=entry.path, message=message, hint=f"{hint}, {_IGNORE}", severity=Severity.WARNING)


def _unreadable(path: str, file: ParsedFile) -> Problem:
    """Report a file in which nobody can read; what a pointer stands for may be objects of ours."""
    message = f"{file.content}, and nothing is read in it"
    if file.pointer_to:
        hint = f"commit its content: exclude it in .gitattributes, then git add --renormalize {path}"
        return Problem(path=path, message=message, hint=f"{hint}, {_IGNORE}")
    return Problem(path=path, message=message, hint=f"commit it as text, {_IGNORE}", severity=Severity.WARNING)


def _misnamed(path: str, file: ParsedFile) -> Iterator[Problem]:
    """Warn of a file that holds objects of ours, and is not read for its name."""
    if file.objects or file.problems:
        names = [" ".join(map(str, identity(declared.value))) for declared in file.objects[:_MOST_KINDS]]
        message = f"is not read for its name, and holds {join_names(names) or 'what looks like objects of Overspill'}"
        hint = f"name it *.yaml if that is to be in force, move it elsewhere, {_IGNORE}"
        yield Problem(path=path, message=message, hint=hint, severity=Severity.WARNING)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def folder_summary(files: Iterable[UnreadFile]) -> str:
    """List foreign files by folder: ``bootstrap (7 files), schemas (13 files)``; empty without any."""
    folders = Counter(_folder(file.path) or "." for file in files if file.problem is None)
    return ", ".join(f"{folder} ({count(number, 'file')})" for folder, number in sorted(folders.items()))


def _hint(value: Mapping[str, Json], api_version: str) -> str:
    if api_version == "v1" and value["kind"] == "Secret":
        return (
            "take it out of git: a template may refer to a Secret of the cluster, a SealedSecret or an ExternalSecret"
        )
    if is_definition(value):
        return "move it to kinds/ if objects are to be held to it"
    if kind_schema(api_version, value["kind"]) is not None or kind_of(value, NO_KINDS) is not None:
        return _WRAP
    return "add it to a WorkloadTemplate if it is to be deployed"


def _warning(path: str, line: int, message: str, hint: str, *, expected: bool) -> Problem | None:
    if not expected:
        return None
    return Problem(path=path, line=line, message=message, hint=hint, severity=Severity.WARNING)
