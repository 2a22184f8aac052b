"""The user's own checkout: its origin, the user's identity, and a new repository.

Unlike in the mirror, the user's configuration, hooks and signing apply.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from reconciler.errors import InvalidInput
from reconciler.model.tree import Identity

_IDENTITY = re.compile(r"\s*([^<>]*?)\s*<([^<>\s]+)>.*")
_SCHEME = re.compile(r"[\w+.-]+://|(?:[^/\s]+@)?[^/:\s]+:")


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
    return Identity(name=match[1], email=match[2]) if match and match[1] else None


def create(directory: Path, branch: str, message: str) -> None:
    """Make a repository of a directory, and commit all of its files to `branch`.

    Raises InvalidInput with git's own message, for example for a missing committer identity.
    """
    for arguments in (("init", "--quiet", f"--initial-branch={branch}"), ("add", "--all"), ("commit", "-qm", message)):
        result = _run(directory, arguments)
        if result.returncode:
            raise InvalidInput(f"git {arguments[0]} in {directory}: {result.stderr.strip()}")


def _ask(directory: Path, *arguments: str) -> str:
    """Return the output of git, empty if it fails."""
    result = _run(directory, arguments)
    return "" if result.returncode else result.stdout.removesuffix("\n")


def _run(directory: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run git in a directory, with messages in English. Raises InvalidInput where git is not installed."""
    try:
        return subprocess.run(
            ["git", "-C", str(directory), *arguments],
            env={**os.environ, "LANGUAGE": "C", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except FileNotFoundError as error:
        raise InvalidInput("running git: it is not installed, or not on the PATH (try installing git)") from error
