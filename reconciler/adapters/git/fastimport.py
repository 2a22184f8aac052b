"""Commits as one stream for `git fast-import`, which writes them without an index or a work tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from reconciler.adapters.git.commits import parse
from reconciler.core.commits.commit_date import date_after
from reconciler.core.commits.trailers import Trailer, naming_branch
from reconciler.model.ids import CommitId, TreeId
from reconciler.model.tree import ROOT, Commit, Identity, Projection, branch_of
from reconciler.text.redaction import redacted
from reconciler.text.targets import TextTarget, escape

_BRANCH = "refs/overspill/writing"
_TRAILER = re.compile(r"[A-Za-z0-9-]+: .*")
_STORED_PERSON = re.compile(rb"(?:[^<>\0]* )?<[^<>\0]*> [0-9]{1,12} [+-](?:0[0-9]|1[0-3])[0-5][0-9]")
"""A name, an address, seconds and a time zone as fast-import takes them."""
_END = f"reset {_BRANCH}\nfrom {'0' * 40}\ndone\n".encode()
"""The object id that deletes a ref."""


def stream(
    base: CommitId | None,
    after: datetime | None,
    commits: Sequence[Commit],
    committer: Identity,
    *,
    branch: str,
    trailers: Sequence[str] = (),
) -> bytes:
    """Write the commits on top of `base` as fast-import reads them, each asking for its id back.

    `after` is the date of the base; each commit is dated by `date_after`. Messages of ours name the `branch` that they
    are written for, by its short name, and `trailers` end each message. The branch of the stream is deleted at the end,
    so that no ref is left; fast-import keeps the objects all the same.
    """
    parts: list[bytes] = []
    for number, commit in enumerate(commits, start=1):
        after = date_after(commit.at, after)
        parts.append(_head(number, _message(commit.message, branch, trailers), commit.author, committer, after))
        if number == 1 and base is not None:
            parts.append(f"from {base}\n".encode())
        parts += [f"D {_quote(path)}\n".encode() for path in commit.removes]
        for path, content in commit.writes.items():
            parts.append(f"M 100644 inline {_quote(path)}\n".encode())
            parts.append(_data(content))
        parts.append(f"get-mark :{number}\n".encode())
    parts.append(_END)
    return b"".join(parts)


def projected_stream(
    projections: Sequence[Projection], committer: Identity, *, output: str, trailers: Sequence[str] = ()
) -> bytes:
    """Write the commits of clusters' branches in one stream; fast-import prints the id of the last one of each branch.

    A directory is added by its tree id, so none of its files is read or written. `output` is the short name of the
    output branch; times and messages are as in `stream`.
    """
    parts: list[bytes] = []
    number = 0
    for projection in projections:
        # Without a parent, the first commit would get the last one of the branch before as its parent.
        parts.append(f"reset {_BRANCH}\n\n".encode())
        base = projection.base
        after = None if base is None else base.at
        for position, snapshot in enumerate(projection.snapshots):
            number += 1
            after = date_after(snapshot.at, after)
            message = _message(snapshot.message, branch_of(output, projection.cluster), trailers)
            parts.append(_head(number, message, snapshot.author, committer, after))
            if position == 0 and base is not None:
                parts.append(f"from {base.commit}\n".encode())
            parts.append(b"deleteall\n")
            if snapshot.directory is not None:
                path = _quote(f"{ROOT}/{projection.cluster}")
                parts.append(f"M 040000 {snapshot.directory} {path}\n".encode())
        parts.append(f"get-mark :{number}\n".encode())
    parts.append(_END)
    return b"".join(parts)


def settling_stream(
    tree: TreeId,
    parents: Sequence[CommitId],
    commit: Commit,
    committer: Identity,
    *,
    branch: str,
    trailers: Sequence[str] = (),
) -> bytes:
    """Write one commit of a whole tree on any number of parents; fast-import prints its id.

    Its date is that of `commit`, of whose files only the removed ones count. The message is as in `stream`.
    """
    parts = [f"reset {_BRANCH}\n\n".encode()]
    parts.append(_head(1, _message(commit.message, branch, trailers), commit.author, committer, commit.at))
    parts += [f"{'merge' if number else 'from'} {parent}\n".encode() for number, parent in enumerate(parents)]
    parts.append(f'deleteall\nM 040000 {tree} ""\n'.encode())
    parts += [f"D {_quote(path)}\n".encode() for path in commit.removes]
    parts += [b"get-mark :1\n", _END]
    return b"".join(parts)


def _message(message: str, branch: str, trailers: Sequence[str]) -> str:
    """Write a message as hosts of git show it as text; the trailers of an organisation are its own words.

    Messages come without credentials; they are redacted once more here, right before git reads them.
    """
    return redacted(with_trailers(escape(redacted(naming_branch(message, branch)), TextTarget.COMMIT), trailers))


def with_trailers(message: str, trailers: Sequence[str]) -> str:
    """Add lines of an organisation to the trailers of a message, or begin them."""
    if not trailers:
        return message
    text = message.rstrip("\n")
    _, paragraph, last = text.rpartition("\n\n")
    begun = bool(paragraph) and all(_TRAILER.fullmatch(line) or line[:1].isspace() for line in last.split("\n"))
    return text + ("\n" if begun else "\n\n") + "\n".join(trailers) + "\n"


def grafted_stream(base: CommitId | None, commits: Sequence[tuple[str, bytes]]) -> bytes:
    """Write existing commits again on top of another base, as git stored them: their files, people, times and words.

    Each comes with its id, oldest first; fast-import prints the new ids in that order. A trailer names the commit that
    a new one stands for, by which whoever knows that sees that it is not lost. People and times that fast-import does
    not take, as other programs have written them, are written as they are read.
    """
    parts: list[bytes] = [f"reset {_BRANCH}\n\n".encode()]
    for number, (original, raw) in enumerate(commits, start=1):
        head, _, written = raw.partition(b"\n\n")
        text = with_trailers(written.decode(errors="surrogateescape"), [f"{Trailer.SUPERSEDES}: {original}"])
        message = text.encode(errors="surrogateescape")
        people = _stored_people(CommitId(original), raw)
        tree = head.partition(b"\n")[0].removeprefix(b"tree ")
        parts.append(f"commit {_BRANCH}\nmark :{number}\n".encode() + people + b"\n" + _data(message))
        if number == 1 and base is not None:
            parts.append(f"from {base}\n".encode())
        parts.append(b"deleteall\nM 040000 " + tree + b' ""\n')
        parts.append(f"get-mark :{number}\n".encode())
    parts.append(_END)
    return b"".join(parts)


def _stored_people(original: CommitId, raw: bytes) -> bytes:
    """Return the lines of author and committer of a stored commit."""
    logged = parse(original, raw).logged
    lines: list[bytes] = []
    for role, person in ((b"author ", logged.author), (b"committer ", logged.committer)):
        stored = next((line for line in raw.partition(b"\n\n")[0].split(b"\n") if line.startswith(role)), b"")
        if _STORED_PERSON.fullmatch(stored.removeprefix(role)) is None:
            stored = role + f"{_person(person)} {int(logged.at.timestamp())} +0000".encode(errors="replace")
        lines.append(stored)
    return b"\n".join(lines)


def _head(number: int, message: str, author: Identity, committer: Identity, at: datetime) -> bytes:
    """Write the head of a commit: author, committer, time and message."""
    seconds = int(at.timestamp())
    people = (
        f"commit {_BRANCH}\nmark :{number}\n"
        f"author {_person(author)} {seconds} +0000\n"
        f"committer {_person(committer)} {seconds} +0000\n"
    )
    text = message.replace("\0", "").rstrip("\n") + "\n"
    return people.encode(errors="replace") + _data(text.encode(errors="replace"))


def _data(content: bytes) -> bytes:
    """Write bytes after their length; the line end after them is optional."""
    return b"data %d\n%b\n" % (len(content), content)


def _quote(path: str) -> str:
    """Quote a path as git does: those of others hold any bytes but zero."""
    if path.isprintable() and "\\" not in path:
        return '"' + path.replace('"', '\\"') + '"'
    return '"' + "".join(f"\\{byte:03o}" for byte in path.encode(errors="surrogateescape")) + '"'


def _person(identity: Identity) -> str:
    """Write a name and an address without the characters that delimit them."""
    name = re.sub(r"[<>\x00-\x1f\x7f]", "", identity.name).strip()
    email = re.sub(r"[<>\s\x00-\x1f\x7f]", "", identity.email)
    return f"{name or email or 'unknown'} <{email}>"
