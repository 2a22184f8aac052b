"""The refs of a mirror that hold the last known tips of the branches that Overspill writes.

They are named and read here without git and without libraries: the completion of the command line looks at them too.
Whoever may push can make branches of any name beside those of clusters, and git has files of its own among the refs
while it moves one. So a ref counts only by the names that Overspill gives (`is_known_ref`).
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from urllib.parse import quote

from reconciler.model.ids import CommitId, is_name

KNOWN = "refs/overspill/known/"
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LOCK = ".lock"
"""How git's file ends that holds the next commit of a ref until that moves; no ref may end so."""


def output_ref(branch: str) -> str:
    """Return the ref of the mirror for the known tip of an output branch, by its full name."""
    return f"{KNOWN}output/{quote(branch.removeprefix('refs/heads/'), safe='')}"


def cluster_refs(output: str) -> str:
    """Return the prefix of the refs of the mirror for the known tips of clusters' branches."""
    return f"{KNOWN}clusters/{quote(output.removeprefix('refs/heads/'), safe='')}/"


def is_known_ref(ref: str) -> bool:
    """Return whether a ref of a mirror is for the known tip of an output branch, or of the branch of a cluster."""
    kind, _, name = ref.removeprefix(KNOWN).partition("/")
    if not ref.startswith(KNOWN) or ref.endswith(_LOCK):
        return False
    if kind == "output":
        return bool(name) and "/" not in name
    output, _, cluster = name.partition("/")
    return kind == "clusters" and bool(output) and is_name(cluster)


def known_refs(git_dir: Path) -> list[tuple[str, CommitId]]:
    """Read the known tips of a mirror from its files, also where git itself finds it broken.

    Another process may move refs meanwhile, and remove directories of them.
    """
    refs: dict[str, str] = {}
    for line in _text(git_dir / "packed-refs").split("\n"):
        commit, _, ref = line.partition(" ")
        refs[ref] = commit
    for directory, _, names in os.walk(git_dir / KNOWN):  # unlike rglob, it goes on where one has vanished
        for file in (Path(directory) / name for name in names):
            if commit := _text(file).strip():
                refs[file.relative_to(git_dir).as_posix()] = commit
    return [(ref, CommitId(commit)) for ref, commit in refs.items() if is_known_ref(ref) and _ID.fullmatch(commit)]


def _text(file: Path) -> str:
    """Read a file; empty where there is none, and for a pipe, which might have no end."""
    with contextlib.suppress(OSError):
        if file.is_file():
            return file.read_text(encoding="utf-8", errors="surrogateescape")
    return ""
