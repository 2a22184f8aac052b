"""The user's own checkout: its origin, the user's identity, and a new repository.

Unlike in the mirror, the user's configuration, hooks and signing apply.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from reconciler.adapters.operating_system import foreign_environment
from reconciler.errors import InvalidInput
from reconciler.model.tree import Identity

_IDENTITY = re.compile(r"([^<>]*)<([^<>\s]+)>.*")
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
_ANSWERS = 7
_SCHEME = re.compile(r"[A-Za-z0-9_+.-]+://|(?:[^/\s]+@)?[^/:\s]+:")


def origin(directory: Path = Path()) -> str:
    """Return the URL of the remote ``origin``, empty without a checkout or such a remote.

    A relative path is taken from the top of the checkout, as git does.
    """
    url = _ask(directory, "remote", "get-url", "origin")
    if url and not _SCHEME.match(url):
        return os.path.normpath(Path(_ask(directory, "rev-parse", "--show-toplevel"), url))
    return url


def identity(directory: Path = Path()) -> Identity | None:
    """Return the name and address of git's author here; None if none is configured."""
    return parse_identity(_ask(directory, "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"))


def parse_identity(text: str) -> Identity | None:
    """Read ``Name <address>``; None for anything else."""
    match = _IDENTITY.fullmatch(text)
    name = match[1].strip() if match else ""
    return Identity(name=name, email=match[2]) if match and name else None


class State(Enum):
    """State of a directory as a git repository."""

    NO_REPOSITORY = "no repository"
    NO_COMMITS = "no commits"  # as a fresh clone of an empty repository, or where `create` was broken off
    HAS_COMMITS = "has commits"


def state(directory: Path) -> State:
    """Tell whether a directory is the top of a git repository, and whether HEAD has a commit.

    Raises InvalidInput where git is not installed.
    """
    _run(Path(), ("--version",))
    if not (directory / ".git").exists():
        return State.NO_REPOSITORY
    return State.HAS_COMMITS if _ask(directory, "rev-parse", "--verify", "--quiet", "HEAD") else State.NO_COMMITS


def is_work_tree(directory: Path) -> bool:
    """Tell whether a directory is a git checkout, or within one. Raises InvalidInput where git is not installed."""
    return _ask(directory, "rev-parse", "--is-inside-work-tree") == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutPlaces:
    """Where a checkout has what git knows of its files."""

    prefix: str
    """From the top of the checkout to the directory that was asked about: empty, or with a slash at its end."""
    head: str
    """Empty before the first commit."""
    format: str
    """The hash of object ids: ``sha1`` or ``sha256``."""
    objects: Path
    index: Path
    shallow: Path
    attributes: Path


def locate(directory: Path) -> CheckoutPlaces | None:
    """Return where the checkout that a directory is in has its objects; None without a checkout, or without git.

    Only `directory` counts, and no variable of a hook that this runs in. The commands run no program that a
    configuration names.
    """
    variables = {name: value for name, value in foreign_environment().items() if name not in _OF_A_HOOK}
    names = [part for name in ("objects", "index", "shallow", "info/attributes") for part in ("--git-path", name)]

    def ask(*arguments: str) -> list[str]:
        command = ["git", "-C", str(directory), "-c", "core.fsmonitor=false", "rev-parse", *arguments]
        result = subprocess.run(
            command,
            env={**variables, "LANGUAGE": "C", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
        return [] if result.returncode else result.stdout.removesuffix("\n").split("\n")

    try:
        answers = ask(
            "--is-inside-work-tree", "--show-object-format", "--show-prefix", "--path-format=absolute", *names
        )
        if len(answers) != _ANSWERS or answers[0] != "true":
            return None
        head = ask("--verify", "--quiet", "HEAD^{commit}")
    except OSError:
        return None
    objects, index, shallow, attributes = (Path(answer) for answer in answers[3:])
    return CheckoutPlaces(
        prefix=answers[2], head="".join(head), format=answers[1],
        objects=objects, index=index, shallow=shallow, attributes=attributes,
    )  # fmt: skip # one line for each kind


def version() -> str:
    """Return what git prints of its version. Raises InvalidInput where git is not installed."""
    return _run(Path(), ("--version",)).stdout.strip()


def create(directory: Path, branch: str, message: str, *, fallback: Identity) -> Identity:
    """Make a repository of a directory that has no commit, commit all of its files to `branch`; return the author.

    The author is git's, or `fallback` where git knows none. Raises InvalidInput with git's own message, for example of
    a hook that refuses the commit; the call can be repeated then.
    """
    author = identity(directory)
    commands = (
        ("init", "--quiet", f"--initial-branch={branch}"),
        ("symbolic-ref", "HEAD", f"refs/heads/{branch}"),  # a repository that was there has a first branch of its own
        ("add", "--all"),
        ("commit", "-qm", message),
    )
    variables = {} if author else _variables(fallback)
    for arguments in commands:
        result = _run(directory, arguments, variables)
        if result.returncode:
            raise InvalidInput(f"git {arguments[0]} in {directory}: {result.stderr.strip()}")
    return author or fallback


def _variables(person: Identity) -> dict[str, str]:
    """Return the environment variables that make a person git's author and committer."""
    return {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", person.name), ("EMAIL", person.email))
    }


def _ask(directory: Path, *arguments: str) -> str:
    """Return the output of git, empty if it fails."""
    result = _run(directory, arguments)
    return "" if result.returncode else result.stdout.removesuffix("\n")


def _run(
    directory: Path, arguments: Sequence[str], variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """Run git in a directory, with messages in English. Raises InvalidInput where git is not installed."""
    try:
        return subprocess.run(
            ["git", "-C", str(directory), *arguments],
            env={**foreign_environment(), **variables, "LANGUAGE": "C", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except FileNotFoundError as error:
        raise InvalidInput("running git: it is not installed, or not on the PATH (try installing git)") from error
