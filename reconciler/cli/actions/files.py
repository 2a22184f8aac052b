"""`check` and `schema`: the fleet repository as files on this disk."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import click

from reconciler import __version__
from reconciler.adapters.observations.observation_files import FileObservations
from reconciler.cli import printing
from reconciler.cli.actions.committed_files import committed_files
from reconciler.cli.commands.files import CheckForm
from reconciler.core.fleet.assemble import is_ignored, without_definitions_elsewhere
from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.paths import FLEET_FILE, fleets_below
from reconciler.core.fleet.read_file import assemble, is_read, parse_file
from reconciler.core.fleet.sources.plain_manifests import in_source, path_sources, read_source
from reconciler.core.fleet.standing_paths import directories_like_files, is_at
from reconciler.core.fleet.unread_files import FileSurroundings, UnreadFile, folder_summary, unread_entries, unread_file
from reconciler.core.observe.node_pool_differences import with_node_pool_differences
from reconciler.core.observe.template_differences import with_template_differences
from reconciler.core.observe.unknown_clusters import with_unknown_clusters
from reconciler.core.schema import KINDS, json_schema
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.yaml import MAX_BYTES, too_large
from reconciler.core.validation.objects import unchecked_kinds
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.manifest_source import SourceContents, SourceKey
from reconciler.model.policy import Desired
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.text.file_names import may_hold_objects
from reconciler.text.problem_reports import codequality, github_annotations, junit, sarif
from reconciler.text.wording import count, join_names


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryCheck:
    """The answer of a check of all files, or of one."""

    problems: Sequence[Problem]
    elsewhere: Sequence[Problem]
    """Those of other files, where one file is checked."""
    counts: Mapping[str, tuple[int, str, str]]
    unread: Sequence[UnreadFile]
    unchecked: Sequence[str]
    """Kinds without a CustomResourceDefinition."""
    paths: Sequence[str]
    """The files that were checked."""
    title: str
    """The one file that was checked; empty for all."""
    is_cut: bool = False
    """Whether older commits would count that this shallow clone does not have."""


def check(path: Path, observations: Path | None, form: CheckForm) -> None:
    """Print all problems of the files of a directory; exit with 1 when there is an error.

    Of a file, or of a directory within a fleet repository, its own problems are printed, as the repository has them.
    With `observations`, templates are compared with what their primaries run.
    """
    top, name = _repository_of(path)
    result = _check(path, top, name, observations)
    match form:
        case "json":
            printing.json_out(_document(result))
        case "table":
            _print_check(result, top)
        case _:
            printing.document(_report(form, result))
    printing.bugs(result.problems)
    if _errors(result.problems):
        raise click.exceptions.Exit(1)


def _normal(path: Path) -> str:
    """Return a path without detours, with slashes on Windows as well, as reports for git hosts need them."""
    return Path(os.path.normpath(path)).as_posix()


def _check(path: Path, top: Path, name: str, observations: Path | None) -> RepositoryCheck:
    """Check the files below a directory, or the file or directory of them that is named."""
    directory = read_directory(top)
    committed = committed_files(
        top,
        directory.files,
        {entry.path: entry for entry in _other_entries(top)},
        directories_like_files(path.relative_to(top).as_posix() for path in _walk(top)),
    )
    files = committed.files
    seen = Observed() if observations is None else FileObservations(observations).observe()
    desired = replace(directory, files=files, contents=_contents(top, files)).desired(seen=seen.clusters)
    used = [source.path for source in path_sources(files.values())]
    unread = [
        file
        for file in _unread_files(top, without_definitions_elsewhere(files))
        if not any(in_source(path, file.path) for path in used)
    ]
    specs = [template.spec for template in desired.templates.values() if _is_within(name, template.path)]
    specs += [request.spec for request in desired.requests.values() if _is_within(name, request.path)]
    parted = with_template_differences(replace(seen, problems=()), desired).problems
    seen = with_node_pool_differences(with_unknown_clusters(seen, desired), desired)
    others = [
        entry for entry in committed.others.values() if not any(is_at(entry.path, path) for path in committed.lost)
    ]
    entries = [*unread_entries(others, files, partial(_misnamed, top)), *committed.problems]
    passed_over = (problem for problem in entries if not is_ignored(problem.path, files))
    reported = (
        *(problem for problem in desired.problems if problem.path not in committed.lost),
        *parted,
        *passed_over,
        *(file.problem for file in unread if file.problem is not None),
    )
    problems = [replace(problem, path=_normal(top / problem.path)) for problem in reported]
    problems = sorted(
        {*problems, *directory.unreadable, *seen.problems},
        key=lambda problem: (problem.severity is Severity.WARNING, problem),
    )
    elsewhere: list[Problem] = []
    declared = [
        file for file, parsed in files.items() if (parsed.objects or parsed.problems) and _is_within(name, file)
    ]
    if name:
        own = _normal(top / name)
        elsewhere = [problem for problem in problems if not _is_within(own, problem.path)]
        problems = [
            replace(problem, path=_normal(path / problem.path.removeprefix(own).lstrip("/")))
            for problem in problems
            if _is_within(own, problem.path)
        ]
        unread = [file for file in unread if _is_within(name, file.path)]
        if (top / name).is_symlink() or not (problems or path.is_dir() or name in files):
            raise InvalidInput(f"{path} is not read: links and special files are passed over (try the file itself)")
    if not declared and not problems and (not name or path.is_dir()):
        raise InvalidInput(
            f"{path}: no file of a fleet repository is in here (try `overspill init DIRECTORY` to begin one)"
        )
    if not name and not (desired.clusters or desired.workspaces) and (below := fleets_below(declared)):
        raise InvalidInput(
            f"{path}: no fleet repository begins here, but in {join_names(below)}"
            f" (try `overspill check {_normal(path / below[0])}`)"
        )
    ignored = ", passed over by spec.ignore of the Fleet" if name and is_ignored(name, files) else ""
    return RepositoryCheck(
        problems=problems,
        elsewhere=elsewhere,
        counts=_counts(desired, files, len(declared)),
        unread=unread,
        unchecked=unchecked_kinds(specs, desired.schemas, desired.kinds),
        paths=[_normal(path)] if name and not path.is_dir() else [_normal(top / file) for file in declared],
        title=f"{_normal(path)}{ignored}" if name else "",
        is_cut=committed.is_cut,
    )


def _document(result: RepositoryCheck) -> dict[str, object]:
    """Return the answer as JSON has it."""
    return {
        **{name: number for name, (number, _, _) in result.counts.items()},
        "errors": _errors(result.problems),
        "warnings": len(result.problems) - _errors(result.problems),
        "problems": result.problems,
        "unread": [{"path": file.path, "content": file.content} for file in result.unread],
        "unchecked": result.unchecked,
    }


def _print_check(result: RepositoryCheck, top: Path) -> None:
    """Print problems, what was not read or checked, and the counts of it all."""
    _print_problems(result.problems, _errors(result.problems))
    if foreign := folder_summary(result.unread):
        printing.say(f"Not read: {foreign}")
    if result.is_cut:
        printing.say("Not compared with older commits: this clone is shallow (try `git fetch --unshallow`)")
    if result.unchecked:
        kinds = join_names(result.unchecked)
        printing.say(f"Not checked, for want of a CustomResourceDefinition in the fleet repository: {kinds}")
    shown = [words for name, words in result.counts.items() if words[0] or name not in _SELDOM]
    things = ", ".join(f"{number} {singular if number == 1 else plural}" for number, singular, plural in shown)
    printing.say(f"{result.title or things}: {_tally(result.problems)}")
    if not (result.title or _errors(result.problems)):
        printing.say(_next_step(result.counts, top))
    if result.elsewhere:
        printing.say(f"In other files: {_tally(result.elsewhere)} (`overspill check {top}` tells them)")


def _next_step(counts: Mapping[str, tuple[int, str, str]], top: Path) -> str:
    """Say what a fleet without templates lacks; nothing for any other."""
    if not counts["workspaces"][0] or counts["templates"][0] or counts["requests"][0]:
        return ""
    where = "" if top == Path() else f" --fleet {top}"
    command = f"overspill lend deployment/NAME --namespace NAMESPACE{where}"
    return f"Nothing bursts yet. Next: `{command}` writes the template of a live workload."


def _report(form: Literal["github", "codequality", "sarif", "junit"], result: RepositoryCheck) -> str:
    """Write problems as another tool reads them."""
    match form:
        case "github":
            return github_annotations(result.problems)
        case "codequality":
            return codequality(result.problems)
        case "sarif":
            return sarif(result.problems, __version__)
        case "junit":
            return junit(result.problems, result.paths)


def _errors(problems: Sequence[Problem]) -> int:
    return sum(problem.severity is Severity.ERROR for problem in problems)


def _tally(problems: Sequence[Problem]) -> str:
    """Count errors and warnings."""
    errors = _errors(problems)
    return f"{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}"


def _is_within(name: str, path: str) -> bool:
    """Return whether a path is a file or below a directory; all are below the empty one."""
    return name in ("", path) or path.startswith(f"{name}/")


def _is_fleet(folder: Path) -> bool:
    """Return whether a directory has a Fleet, or Clusters and Workspaces, where a fleet repository has them."""
    names = [(folder / kind, folder / f"{kind}.yaml") for kind in ("clusters", "workspaces")]
    return (folder / FLEET_FILE).is_file() or all(any(path.exists() for path in paths) for paths in names)


def _repository_of(file: Path) -> tuple[Path, str]:
    """Return the fleet repository that a file or a directory is in, and its path there.

    A directory that is a repository itself, or in none, is taken for one. Raises InvalidInput for a file in none, and
    for one that no daemon reads.
    """
    absolute = Path(os.path.abspath(file))  # noqa: PTH100 -- resolve() would follow links, which are passed over
    if file.is_dir():
        above = absolute.parents if not (_is_fleet(absolute) or (absolute / ".git").exists()) else ()
        inside = next(filter(_is_fleet, above), None)
        if inside is None:
            return file, ""
        name = absolute.relative_to(inside).as_posix()
        return inside if file.is_absolute() else Path(os.path.relpath(inside)), name
    tops = (folder for folder in absolute.parents if (folder / FLEET_FILE).is_file() or (folder / ".git").exists())
    top = next(tops, None)
    if top is None:
        raise InvalidInput(
            f"{file} is in no fleet repository: no directory above it holds {FLEET_FILE} or .git (try `overspill check"
            " DIRECTORY`)"
        )
    name = absolute.relative_to(top).as_posix()
    if not is_read(name):
        raise InvalidInput(
            f"{file} is not read: objects are in *.yaml, *.yml and *.json, and in no directory that begins with a dot"
        )
    return top if file.is_absolute() else Path(os.path.relpath(top)), name


def schema(kind: str | None, out: Path | None, *, every: bool) -> None:
    """Print the JSON Schema of a kind, write those of all kinds to files, or list the kinds."""
    if every and (kind or out is None):
        raise click.UsageError("--all goes with --out DIR and without a KIND")
    if kind is None and not every:
        for name in KINDS:
            printing.say(name)
        return
    for name in KINDS if kind is None else (kind,):
        text = json.dumps(json_schema(name), indent=2)
        if out is None:
            printing.write(text)
            return
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")
        except OSError as error:
            raise InvalidInput(f"writing {out}: {error.strerror or error}") from error
        printing.say(str(out / f"{name}.json"))


_SELDOM = frozenset({"requests", "gprTemplates", "bindings", "limits", "kinds"})
"""Counts that are left out of the last line where they are 0: many fleets have none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDirectory:
    """The files of a fleet repository that is checked out."""

    files: Mapping[str, ParsedFile]
    """By path from the top."""
    contents: SourceContents
    """What templates are made from in the directory itself: what is pinned to a commit is not on this disk."""
    unreadable: tuple[Problem, ...]

    def desired(
        self,
        new: Mapping[str, ParsedFile] | None = None,
        *,
        seen: Mapping[ClusterName, ClusterObservation] | None = None,
    ) -> Desired:
        """Return what the files say, with `new` ones added, and the warnings that follow from observed clusters."""
        return assemble(CommitId(""), {**self.files, **(new or {})}, contents=self.contents, seen=seen)


def read_directory(top: Path) -> FleetDirectory:
    """Read all files that the daemon would."""
    files: dict[str, ParsedFile] = {}
    unreadable: list[Problem] = []
    for path in _walk(top):
        name = path.relative_to(top).as_posix()
        if not is_read(name):
            continue
        try:
            files[name] = _parse(path)
        except OSError as error:
            unreadable.append(Problem(path=_normal(path), message=f"cannot be read: {error.strerror or error}"))
    return FleetDirectory(files=files, contents=_contents(top, files), unreadable=tuple(unreadable))


def _parse(path: Path) -> ParsedFile:
    """Read a file, unless it is too large: then the daemon does not read it either. Raises OSError."""
    size = path.stat().st_size
    return ParsedFile(problems=(too_large("", size),)) if size > MAX_BYTES else parse_file(path.read_bytes())


def _contents(top: Path, files: Mapping[str, ParsedFile]) -> SourceContents:
    """Read what templates are made from in a directory; what is pinned to a commit is not on this disk."""
    sources = [source for source in path_sources(files.values()) if not source.commit]
    entries = [*(_manifests(top, files) if sources else ()), *(_other_entries(top) if sources else ())]

    def read(names: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        return {name: (top / name).read_bytes() for name in names}

    return {SourceKey(source): read_source(source, entries, read, "") for source in sources}


def _manifests(top: Path, names: Iterable[str]) -> Iterator[TreeEntry]:
    """Yield the regular files among some, with their names in the place of ids."""
    for name in names:
        if (top / name).is_file() and not (top / name).is_symlink():
            yield TreeEntry(path=name, blob=BlobId(name), size=(top / name).stat().st_size)


def _unread_files(top: Path, files: Mapping[str, ParsedFile]) -> list[UnreadFile]:
    """List the YAML and JSON files that hold nothing of ours, but for those that the Fleet ignores."""
    surroundings = FileSurroundings.of(files)
    unread = [
        unread_file(name, (top / name).read_bytes(), surroundings)
        for name, file in files.items()
        if not (file.objects or file.problems or file.blank or is_ignored(name, files))
    ]
    names = (path.relative_to(top).as_posix() for path in _walk(top, hidden=True))
    hidden = (name for name in names if name not in files and may_hold_objects(name))
    return [*unread, *(UnreadFile(path=name, content="a hidden directory") for name in hidden)]


def _misnamed(top: Path, entry: TreeEntry) -> ParsedFile:
    """Return what a file holds whose name is not read; nothing where it cannot be."""
    path = top / entry.path
    try:
        return ParsedFile() if path.stat().st_size > MAX_BYTES else _parse(path)
    except OSError:
        return ParsedFile()


def _walk(top: Path, *, hidden: bool = False) -> Iterator[Path]:
    """Yield the regular files below a directory, sorted; no links, as the daemon has it.

    Of `hidden` directories, which the daemon passes over, those of git are left out.
    """
    for directory, names, files in os.walk(top):
        names[:] = sorted(
            name
            for name in names
            if (not name.startswith(".") or (hidden and name != ".git")) and not Path(directory, name, ".git").exists()
        )
        for name in sorted(files):
            path = Path(directory, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _other_entries(top: Path) -> Iterator[TreeEntry]:
    """Yield what is not read: links, the repositories that git takes for submodules, and files with other names."""
    for directory, names, files in os.walk(top):
        where = Path(directory)
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in (*names, *sorted(files)):
            path = where / name
            if path.is_symlink():
                kind = EntryType.LINK
            elif name in names and (path / ".git").exists():
                kind = EntryType.SUBMODULE
                names.remove(name)
            elif name not in names and not is_read(path.relative_to(top).as_posix()) and path.is_file():
                kind = EntryType.FILE
            else:
                continue
            yield TreeEntry(path=path.relative_to(top).as_posix(), blob=BlobId(""), type=kind)


def _print_problems(problems: Sequence[Problem], errors: int) -> None:
    """Print errors, then warnings under a heading; each alone on its line, for editors."""
    for problem in problems[:errors]:
        printing.say(str(problem))
    if problems[errors:]:
        printing.heading("Warnings", first=not errors)
        for problem in problems[errors:]:
            printing.say(str(problem))
    if problems:
        printing.write()


def _counts(desired: Desired, files: Mapping[str, ParsedFile], declared: int) -> dict[str, tuple[int, str, str]]:
    """Count the objects in force, by their name in JSON: the number, the singular and the plural."""
    policies = sum(
        isinstance(declared_object.value, BurstPolicyFile)
        for file in files.values()
        if not file.broken
        for declared_object in file.objects
    )
    return {
        "files": (declared, "file", "files"),
        "clusters": (len(desired.clusters), "cluster", "clusters"),
        "workspaces": (len(desired.workspaces), "workspace", "workspaces"),
        "templates": (len(desired.templates), "template", "templates"),
        "policies": (policies, "policy", "policies"),
        "requests": (len(desired.requests), "request", "requests"),
        "gprTemplates": (len(desired.gpr_templates), "GPR template", "GPR templates"),
        "bindings": (len(desired.bindings), "binding", "bindings"),
        "limits": (len(desired.limits), "workspace policy", "workspace policies"),
        "kinds": (len(desired.kinds), "kind of workload", "kinds of workloads"),
    }
