"""The newest state of the fleet repository that this disk has: a path, the mirror, or the checkout of a directory.

Read-only and without the network, for the completion of the command line.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.adapters import operating_system
from reconciler.adapters.git import checkout, remote
from reconciler.adapters.git.known_refs import output_ref

_MIRROR = "refs/overspill"
_SECONDS = 5
"""Time-out of a git process: the user waits at the prompt."""
_MOST_BYTES = 32 << 20
"""Files beyond this many bytes are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBranches:
    """The two branches in a repository on this disk."""

    git_dir: Path
    """A directory from which git finds the repository."""
    source: str
    """The id of the source branch's commit; empty where the repository does not have it."""
    output: str
    """The id of the output branch's commit; empty where the repository does not have it."""

    def directories(self, parents: Sequence[str]) -> tuple[str, ...]:
        """List the directories of the output branch right below some others."""
        if not self.output or not parents:
            return ()
        paths = _git(self.git_dir, "ls-tree", "-dz", "--name-only", self.output, *(f"{path}/" for path in parents))
        return tuple(path.decode() for path in paths.split(b"\0") if path)

    def files(self, pattern: str, endings: Sequence[str]) -> Iterator[bytes]:
        """Yield the files of the source branch outside hidden directories that match an extended regular expression.

        Endings are those of paths, in letters of either case.
        """
        if not self.source:
            return
        globs = [*(f":(icase)*{ending}" for ending in endings), ":(exclude,glob)**/.*/**"]
        matches = _git(self.git_dir, "grep", "--threads=1", "-lzE", "-e", pattern, self.source, "--", *globs)
        paths = {match.partition(b":")[2] for match in matches.split(b"\0") if match}
        if paths:
            # By id: a look-up by path would read the parent directories of each file again.
            entries = (
                entry.partition(b"\t") for entry in _git(self.git_dir, "ls-tree", "-rz", self.source).split(b"\0")
            )
            blobs = [entry.split(b" ")[2] for entry, _, path in entries if path in paths]
            yield from _contents(_git(self.git_dir, "cat-file", "--batch", "--buffer", stdin=b"\n".join(blobs) + b"\n"))


def local_branches(
    url: str, *, cache: Path | None, source_branch: str, output_branch: str, directory: Path
) -> LocalBranches | None:
    """Find the branches on this disk; None if no repository here has either branch.

    `url` is the address that the user gave; where it is empty, the checkout of `directory` and the mirror of its
    remote ``origin`` are read. Raises OverspillError and OSError for an address or a directory that cannot be read.
    """
    heads = (f"refs/heads/{source_branch}", f"refs/heads/{output_branch}")
    address = remote.check_address(url or checkout.origin(directory), None)
    # 1. The fleet repository itself is on this disk.
    if address.directory and (branches := _branches(address.directory, *heads)):
        return branches
    # 2. A command has fetched it before.
    mirror = cache / hashlib.sha256(address.url.encode()).hexdigest()[:16] / "mirror.git" if cache else None
    if mirror and _is_ours(mirror) and (branches := _branches(mirror, f"{_MIRROR}/source", output_ref(output_branch))):
        return branches
    # 3. The current directory is a checkout of it.
    if url and checkout.origin(directory) != url:
        return None
    tracked = (f"refs/remotes/origin/{source_branch}", f"refs/remotes/origin/{output_branch}")
    return _branches(directory, *tracked) or _branches(directory, *heads)


def _is_ours(mirror: Path) -> bool:
    """Tell whether a mirror exists that only this user can have written: git runs programs that it names."""
    try:
        places = [directory.stat() for directory in (mirror, mirror.parent, mirror.parent.parent)]
    except FileNotFoundError:
        return False
    return all(operating_system.is_ours(place) and not operating_system.is_open_to_others(place) for place in places)


def _branches(git_dir: Path, source: str, output: str) -> LocalBranches | None:
    lines = _git(git_dir, "for-each-ref", "--format=%(refname) %(objectname)", source, output).decode().splitlines()
    commits: Mapping[str, str] = dict(line.split(" ") for line in lines)
    if not commits:
        return None
    return LocalBranches(git_dir=git_dir, source=commits.get(source, ""), output=commits.get(output, ""))


def _contents(batch: bytes) -> Iterator[bytes]:
    """Take the answer of ``git cat-file --batch`` apart."""
    position = 0
    while position < min(len(batch), _MOST_BYTES):
        end = batch.index(b"\n", position)
        size = batch[position:end].rsplit(b" ", 1)[1]
        if not size.isdigit():  # "<name> missing": a clone without all blobs
            position = end + 1
            continue
        yield batch[end + 1 : end + 1 + int(size)]
        position = end + int(size) + 2


def _git(directory: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git without prompts, locks and the network; the answer is empty where git fails."""
    command = ["git", "-C", str(directory), "-c", "protocol.allow=never", "-c", "core.fsmonitor=false", *arguments]
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    environment = {**operating_system.foreign_environment(), **quiet}
    return subprocess.run(
        command, input=stdin, env=environment, capture_output=True, timeout=_SECONDS, check=False
    ).stdout
