"""`init`: the first files of a fleet repository on this disk."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

import click

from reconciler.adapters.git import checkout
from reconciler.cli import package_files, printing
from reconciler.core.fleet.paths import FLEET_FILE
from reconciler.errors import InvalidInput
from reconciler.model.tree import Identity
from reconciler.text.spelling import nearest
from reconciler.text.wording import count

WORKFLOWS: Mapping[str, str] = {
    "github": ".github/workflows/overspill.yaml",
    "gitlab": ".gitlab-ci.yml",
    "pre-commit": ".pre-commit-config.yaml",
}
"""The path of the pipeline by git host, and that of the hook."""


def init(directory: Path, *, with_git: bool, policy: str | None, host: str | None = None) -> None:
    """Copy the recommended layout into a directory, with a ready-made policy in the place of its own if one is named.

    With the name of a git `host` its pipeline comes along, and it alone where the fleet repository has begun before.
    See `write_files` on any other directory that is not empty.
    """
    files = layout_files() | workflow_files(host)
    if policy is not None:
        files = {path: data for path, data in files.items() if not path.startswith("policies/")}
        files[f"policies/{policy}.yaml"] = ready_made_policy(policy)
    if host is not None and _has_begun(directory, files):
        add_workflow(directory, host)
        return
    write_files(directory, files, with_git=with_git)
    printing.say(f"Next: describe your clusters and templates there, then `overspill check {directory}`.")


def _has_begun(directory: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a directory holds a fleet repository that somebody has worked on."""
    if not (directory / FLEET_FILE).is_file() and not (directory / "clusters").is_dir():
        return False
    try:
        _missing_files({Path(path): data for path, data in files.items()}, directory)
    except InvalidInput:
        return True
    return False


def add_workflow(directory: Path, host: str) -> None:
    """Add the pipeline of a git host to a fleet repository that has begun; one that is there already is left alone."""
    for path, data in workflow_files(host).items():
        target = directory / path
        if target.exists() and not _same(data, target):
            raise InvalidInput(f"{target} is there already (take it away first, or add its steps by hand)")
        _write(target, data)
        printing.say(f"Wrote {target}.")


def workflow_files(host: str | None) -> dict[str, bytes]:
    """Read the pipeline of a git host, by its path; none where none is named."""
    return {} if host is None else {WORKFLOWS[host]: package_files.workflow(host)}


def layout_files() -> dict[str, bytes]:
    """Read the files of the recommended layout, by path."""
    layout = package_files.layout()
    return {
        path.relative_to(layout).as_posix(): path.read_bytes() for path in sorted(layout.rglob("*")) if path.is_file()
    }


def ready_made_policy(name: str) -> bytes:
    """Read a ready-made policy. A name that there is not is a usage error."""
    policies = {path.stem: path for path in package_files.ready_made_policies().glob("*.yaml")}
    if name not in policies:
        raise click.UsageError(f"--policy: there is no ready-made policy {name!r} ({nearest(name, policies)})")
    return policies[name].read_bytes()


def write_files(directory: Path, files: Mapping[str, bytes], *, with_git: bool) -> None:
    """Write the files of a new fleet repository; go on where an earlier call was broken off.

    A file that is there already, unchanged, is left as it is. Raises InvalidInput, before the first file is written,
    where anything else lies in the way.
    """
    state = checkout.state(directory) if with_git else None
    wanted = {Path(path): data for path, data in files.items()}
    missing = _missing_files(wanted, directory)
    if state is checkout.State.HAS_COMMITS and missing:
        raise _with_commits(directory)
    for path in missing:
        _write(directory / path, wanted[path])
    number = count(len(files), "file")
    if not missing and state in {None, checkout.State.HAS_COMMITS}:
        printing.say(f"{directory} holds the {number} of the layout already.")
    elif state is None:
        printing.say(f"Wrote {number} to {_shown(directory)}.")
    else:
        author = checkout.create(directory, "main", "Begin the fleet repository", fallback=_SCAFFOLD_AUTHOR)
        printing.say(f"Wrote {number} to {_shown(directory)} and committed them to main.")
        if author is _SCAFFOLD_AUTHOR:
            printing.say(
                f"git knows no user.name and user.email here: the author of that commit is {author.name}. Before the"
                " next commit: git config --global user.name 'Ada Lovelace', and user.email."
            )


def _shown(directory: Path) -> str:
    return "this directory" if directory == Path() else str(directory)


def refuse_other_files(directory: Path, paths: Collection[str], folders: Collection[str]) -> None:
    """Raise InvalidInput where a directory holds anything but files of these paths, or in these folders, and `.git`."""
    expected = {Path(path) for path in paths}
    parents = {parent for path in expected for parent in path.parents} | {Path(folder) for folder in folders}
    for path, is_folder in _entries(directory):
        if is_folder and path not in parents:
            raise InvalidInput(_in_the_way(directory, path))
        partial = path.name.startswith(".") and path.name.endswith(".partial")
        if not is_folder and path not in expected and path.parent.as_posix() not in folders and not partial:
            raise InvalidInput(_in_the_way(directory, path))


def refuse_commits(directory: Path) -> None:
    """Raise InvalidInput for a git repository with commits that are none of a fleet's."""
    if checkout.state(directory) is checkout.State.HAS_COMMITS and not (directory / FLEET_FILE).exists():
        raise _with_commits(directory)


def _with_commits(directory: Path) -> InvalidInput:
    return InvalidInput(f"{directory} is a git repository with commits already (try without --git)")


_SCAFFOLD_AUTHOR = Identity(name="Overspill", email="overspill@overspill.dev")
"""Author of the first commit if git has no user: all its files are the project's."""


def _missing_files(files: Mapping[Path, bytes], directory: Path) -> list[Path]:
    """List the files that a directory lacks, as paths below it.

    Raises InvalidInput where the directory holds anything but these files, unchanged, and `.git`.
    """
    folders = {parent for path in files for parent in path.parents}
    partial = {_partial(path) for path in files}
    missing = set(files)
    for path, is_folder in _entries(directory):
        if path in missing and not is_folder and _same(files[path], directory / path):
            missing.remove(path)
        elif path not in (folders if is_folder else partial):
            raise InvalidInput(_in_the_way(directory, path))
    return sorted(missing)


def _entries(directory: Path) -> list[tuple[Path, bool]]:
    """List what is in a directory, sorted, but for `.git` at its top: paths below it, and whether each is a folder."""
    entries = []
    for top, names, present in os.walk(directory):
        folder = Path(top).relative_to(directory)
        names[:] = sorted(name for name in names if folder / name != Path(".git"))
        entries += [(folder / name, True) for name in names]
        entries += [(folder / name, False) for name in sorted(present) if folder / name != Path(".git")]
    return entries


def _in_the_way(directory: Path, path: Path) -> str:
    """Say which file keeps a new fleet repository out of a directory."""
    copy = f"cp -Rn NEW/. {shlex.quote(str(directory))}"  # neither a README nor .git of the clone is written over
    return f"{directory} is not empty: it holds {path} (try a new directory, and copy what is missing here: `{copy}`)"


def _same(data: bytes, copy: Path) -> bool:
    """Return whether a file is an unchanged copy."""
    return stat.S_ISREG(copy.lstat().st_mode) and copy.read_bytes() == data


def _partial(path: Path) -> Path:
    """Return the name of a file while it is written."""
    return path.with_name(f".{path.name}.partial")


def _write(target: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _partial(target).write_bytes(data)
        _partial(target).replace(target)
    except OSError as error:
        raise InvalidInput(f"writing {target}: {error.strerror or error}") from error
