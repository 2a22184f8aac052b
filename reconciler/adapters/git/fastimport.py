"""Commits as one stream for `git fast-import`, which writes them without an index or a work tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from reconciler.model.ids import CommitId
from reconciler.model.tree import ROOT, Commit, Identity, Projection
from reconciler.text.redaction import redacted

_BRANCH = "refs/overspill/writing"
_END = f"reset {_BRANCH}\nfrom {'0' * 40}\ndone\n".encode()
"""What takes the branch back."""


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
        parts.append(_head(number, commit.message, commit.author, committer, seconds))
        if number == 1 and base is not None:
            parts.append(f"from {base}\n".encode())
        parts += [f"D {_quoted(path)}\n".encode() for path in commit.removes]
        for path, content in commit.writes.items():
            parts.append(f"M 100644 inline {_quoted(path)}\n".encode())
            parts.append(_data(content))
        parts.append(f"get-mark :{number}\n".encode())
    parts.append(_END)
    return b"".join(parts)


def projected_stream(projections: Sequence[Projection], committer: Identity) -> bytes:
    """Write the commits of clusters' branches, all in one stream, each branch's last one asking for its id back.

    A directory is put in by its id, so that none of its files is read or written. Times are as in `stream`.
    """
    parts: list[bytes] = []
    number = 0
    for projection in projections:
        # Without a commit to come from, the first one of this branch would come from the last one of the branch before.
        parts.append(f"reset {_BRANCH}\n\n".encode())
        base = projection.base
        seconds = 0 if base is None else int(base.at.timestamp())
        for position, snapshot in enumerate(projection.snapshots):
            number += 1
            seconds = max(seconds, int(snapshot.at.timestamp()))
            parts.append(_head(number, snapshot.message, snapshot.author, committer, seconds))
            if position == 0 and base is not None:
                parts.append(f"from {base.commit}\n".encode())
            parts.append(b"deleteall\n")
            if snapshot.directory is not None:
                path = _quoted(f"{ROOT}/{projection.cluster}")
                parts.append(f"M 040000 {snapshot.directory} {path}\n".encode())
        parts.append(f"get-mark :{number}\n".encode())
    parts.append(_END)
    return b"".join(parts)


def _head(number: int, message: str, author: Identity, committer: Identity, seconds: int) -> bytes:
    """Begin a commit with its people, its time and its message.

    Whoever wrote the message should have taken credentials out of it; here is the last place to do so.
    """
    people = (
        f"commit {_BRANCH}\nmark :{number}\n"
        f"author {_person(author)} {seconds} +0000\n"
        f"committer {_person(committer)} {seconds} +0000\n"
    )
    text = redacted(message).replace("\0", "").rstrip("\n") + "\n"
    return people.encode() + _data(text.encode(errors="replace"))


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
