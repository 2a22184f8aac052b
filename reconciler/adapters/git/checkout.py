"""The checkout that a person stands in: where it came from, who the person is, and a new one.

Unlike the mirror this is somebody's own repository, so their configuration, hooks and signing hold.
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


def create(directory: Path, branch: str, message: str) -> None:
    """Make a repository of a directory, and commit all that is in it to `branch`.

    Raises InvalidInput with git's own words, as when it does not know who commits.
    """
    for arguments in (("init", "--quiet", f"--initial-branch={branch}"), ("add", "--all"), ("commit", "-qm", message)):
        result = _run(directory, arguments)
        if result.returncode:
            raise InvalidInput(f"git {arguments[0]} in {directory}: {result.stderr.strip()}")


def _ask(directory: Path, *arguments: str) -> str:
    """Return what git answers, empty when it has no answer."""
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
