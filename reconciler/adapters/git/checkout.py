"""The checkout that a person stands in: where it came from, who the person is, and a new one.

Unlike the mirror this is somebody's own repository, so their configuration, hooks and signing hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from git.cmd import Git
from git.exc import GitCommandError, GitCommandNotFound

from reconciler.errors import InvalidInput
from reconciler.model.tree import Identity

_IDENTITY = re.compile(r"\s*([^<>]*?)\s*<([^<>\s]+)>.*")
_SCHEME = re.compile(r"[\w+.-]+://|(?:[^/\s]+@)?[^/:\s]+:")


def origin(directory: Path = Path()) -> str:
    """Return the URL of the remote ``origin``, empty when there is no checkout or no such remote.

    A relative path is taken from the top of the checkout, as git does.
    """
    url = _ask(directory, "remote", "get-url", "origin")
    if url and not _SCHEME.match(url):
        return os.path.normpath(Path(_ask(directory, "rev-parse", "--show-toplevel"), url))
    return url


def identity(directory: Path = Path()) -> Identity | None:
    """Return the name and address that git would write as an author here; None when git was never told them."""
    return parse_identity(_ask(directory, "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"))


def parse_identity(text: str) -> Identity | None:
    """Read ``Name <address>``; None for anything else."""
    match = _IDENTITY.fullmatch(text)
    return Identity(name=match[1], email=match[2]) if match and match[1] else None


def start(directory: Path, branch: str, message: str) -> None:
    """Make a repository of a directory, and commit all that is in it to `branch`.

    Raises InvalidInput with git's own words, as when it does not know who commits.
    """
    for arguments in (("init", "--quiet", f"--initial-branch={branch}"), ("add", "--all"), ("commit", "-qm", message)):
        try:
            _run(directory, arguments)
        except GitCommandError as error:
            said = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
            raise InvalidInput(f"git {arguments[0]} in {directory}: {said}") from error


def _ask(directory: Path, *arguments: str) -> str:
    """Return what git answers, empty when it has no answer."""
    try:
        return _run(directory, arguments)
    except GitCommandError:
        return ""


def _run(directory: Path, arguments: Sequence[str]) -> str:
    try:
        return str(Git(directory).execute(["git", *arguments]))
    except GitCommandNotFound as error:
        raise InvalidInput("running git: it is not installed, or not on the PATH (try installing git)") from error
