"""Commits as one stream for `git fast-import`, which writes them without an index or a work tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from reconciler.model.ids import CommitId
from reconciler.model.tree import Commit, Identity

_BRANCH = "refs/overspill/writing"
_NOTHING = "0" * 40


def stream(base: CommitId | None, after: datetime | None, commits: Sequence[Commit], committer: Identity) -> bytes:
    """Write the commits on top of `base` as fast-import reads them, each asking for its id back.

    A commit's time is its own or that of the commit before it (`after` for the first), whichever is later: git log and
    the engines take history for ordered. The branch that carries them is taken back at the end, so that no ref is ever
    made: fast-import keeps the objects all the same, and there is nothing to clear away.
    """
    parts: list[bytes] = []
    seconds = 0 if after is None else int(after.timestamp())
    for number, commit in enumerate(commits, start=1):
        seconds = max(seconds, int(commit.at.timestamp()))
        message = commit.message.replace("\0", "").rstrip("\n") + "\n"
        parts.append(
            f"commit {_BRANCH}\nmark :{number}\n"
            f"author {_person(commit.author)} {seconds} +0000\n"
            f"committer {_person(committer)} {seconds} +0000\n".encode()
        )
        parts.append(_data(message.encode(errors="replace")))
        if number == 1 and base is not None:
            parts.append(f"from {base}\n".encode())
        parts += [f"D {_quoted(path)}\n".encode() for path in commit.removes]
        for path, content in commit.writes.items():
            parts.append(f"M 100644 inline {_quoted(path)}\n".encode())
            parts.append(_data(content))
        parts.append(f"get-mark :{number}\n".encode())
    parts.append(f"reset {_BRANCH}\nfrom {'0' * len(base) if base else _NOTHING}\ndone\n".encode())
    return b"".join(parts)


def _data(content: bytes) -> bytes:
    """Frame bytes by their length; the line end after them is optional and eases reading."""
    return b"data %d\n%b\n" % (len(content), content)


def _quoted(path: str) -> str:
    """Quote a path; `checked_path` has refused the backslashes and control characters that would need more."""
    return '"' + path.replace('"', '\\"') + '"'


def _person(identity: Identity) -> str:
    """Write a name and an address without the characters that would end them early."""
    name = re.sub(r"[<>\x00-\x1f\x7f]", "", identity.name).strip()
    email = re.sub(r"[<>\s\x00-\x1f\x7f]", "", identity.email)
    return f"{name or email or 'unknown'} <{email}>"
