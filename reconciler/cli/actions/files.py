"""`init`, `check` and `schema`: the fleet repository as files on this disk."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

import reconciler
from reconciler.adapters.git import checkout
from reconciler.cli import options, printing
from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.read_file import assemble, is_read, parse_file
from reconciler.core.schema import KINDS, json_schema
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.text.wording import count


def init(directory: Path, *, with_git: bool) -> None:
    """Copy the recommended layout into a directory."""
    names = sorted(entry.name for entry in directory.iterdir()) if directory.exists() else []
    others = [name for name in names if name != ".git"]
    if others:
        raise InvalidInput(f"{directory} is not empty: it holds {others[0]} (try a new directory)")
    if with_git and ".git" in names:
        raise InvalidInput(f"{directory} is a git repository already (try without --git)")
    try:
        # Contents only: a package that was installed read-only must not make a repository that is.
        shutil.copytree(_layout(), directory, dirs_exist_ok=True, copy_function=shutil.copyfile)
    except OSError as error:
        raise InvalidInput(f"writing {directory}: {error.strerror or error}") from error
    if with_git:
        checkout.create(directory, "main", "Begin the fleet repository")
    number = sum(1 for path in _walk(directory))
    printing.say(f"Wrote {count(number, 'file')} to {directory}{' and committed them to main' if with_git else ''}.")
    printing.say(f"Next: describe your clusters and templates there, then `overspill check {directory}`.")


def check(path: Path, form: options.Output) -> None:
    """Print all problems of the files of a directory; exit with 1 when there is an error."""
    files, unreadable = _read(path)
    desired = assemble(CommitId(""), files)
    problems = [replace(problem, path=os.path.normpath(path / problem.path)) for problem in desired.problems]
    problems = sorted({*problems, *unreadable}, key=lambda problem: (problem.severity is Severity.WARNING, problem))
    declared = [file for file in files.values() if file.objects or file.problems]
    if not declared and not problems:
        raise InvalidInput(
            f"{path}: no file of a fleet repository is in here (try `overspill init DIRECTORY` to begin one)"
        )
    errors = sum(1 for problem in problems if problem.severity is Severity.ERROR)
    counts = _counts(desired, files, len(declared))
    if form == "json":
        numbers = {name: number for name, (number, _, _) in counts.items()}
        printing.json_out({**numbers, "errors": errors, "warnings": len(problems) - errors, "problems": problems})
    else:
        _print_problems(problems, errors)
        shown = [words for name, words in counts.items() if words[0] or name not in _SELDOM]
        things = ", ".join(f"{number} {singular if number == 1 else plural}" for number, singular, plural in shown)
        printing.say(f"{things}: {count(errors, 'error')}, {count(len(problems) - errors, 'warning')}")
    if errors:
        raise click.exceptions.Exit(1)


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
            click.echo(text)
            return
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{name}.json").write_text(text + "\n")
        except OSError as error:
            raise InvalidInput(f"writing {out}: {error.strerror or error}") from error
        printing.say(str(out / f"{name}.json"))


_SELDOM = frozenset({"requests", "gprTemplates", "bindings", "limits", "kinds"})
"""Counts that are left out of the last line where they are 0: many fleets have none of these."""


def _layout() -> Path:
    """Return the layout to copy: inside the installed package, or beside it in a checkout of this project."""
    package = Path(reconciler.__file__).parent
    inside = package / "repo-layout"
    return inside if inside.is_dir() else package.parent / "repo-layout"


def _read(top: Path) -> tuple[dict[str, ParsedFile], list[Problem]]:
    """Read all files that the daemon would, by path from `top`; the problems are of files that cannot be read."""
    files: dict[str, ParsedFile] = {}
    unreadable: list[Problem] = []
    for path in _walk(top):
        name = path.relative_to(top).as_posix()
        if not is_read(name):
            continue
        try:
            files[name] = parse_file(path.read_bytes())
        except OSError as error:
            unreadable.append(
                Problem(path=os.path.normpath(path), message=f"cannot be read: {error.strerror or error}")
            )
    return files, unreadable


def _walk(top: Path) -> Iterator[Path]:
    """Yield the regular files below a directory, sorted; no links and no hidden directories, as the daemon has it."""
    for directory, names, files in os.walk(top):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(directory, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _print_problems(problems: list[Problem], errors: int) -> None:
    """Print errors, then warnings under a heading; each alone on its line, for editors."""
    for problem in problems[:errors]:
        printing.say(str(problem))
    if problems[errors:]:
        printing.heading("Warnings", first=not errors)
        for problem in problems[errors:]:
            printing.say(str(problem))
    if problems:
        click.echo()


def _counts(desired: Desired, files: dict[str, ParsedFile], declared: int) -> dict[str, tuple[int, str, str]]:
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
