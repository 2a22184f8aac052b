"""Commits as git stores them, read into values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.commits.commit_date import read_date
from reconciler.model.ids import CommitId
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.targets import read_commit_text

_PERSON = re.compile(r"(?P<name>[^<]*?) ?<(?P<email>[^>]*)> ?(?P<time>-?[0-9]+)?.*")
_TRAILER = re.compile(r"([A-Za-z0-9-]+): *(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCommit:
    """A commit with its parents, first parent first."""

    logged: LoggedCommit
    parents: tuple[CommitId, ...]


def parse(commit: CommitId, raw: bytes) -> StoredCommit:
    """Parse a commit object. Invalid UTF-8 is replaced: no decision depends on it.

    Messages are as they were before `fastimport` wrote them as text for hosts.
    """
    head, _, written = raw.decode(errors="replace").partition("\n\n")
    message = read_commit_text(written)
    headers = [line.partition(" ") for line in head.split("\n")]
    fields = {key: value for key, _, value in headers}
    author, _ = _person(fields.get("author", ""))
    committer, at = _person(fields.get("committer", ""))
    subject, _, body = message.strip("\n").partition("\n")
    return StoredCommit(
        logged=LoggedCommit(
            id=commit,
            at=at,
            author=author,
            committer=committer,
            subject=subject,
            body=body.strip("\n"),
            trailers=_trailers(message),
        ),
        parents=tuple(CommitId(value) for key, _, value in headers if key == "parent"),
    )


def _person(line: str) -> tuple[Identity, datetime]:
    """Parse ``Name <email> seconds zone``."""
    match = _PERSON.fullmatch(line)
    if match is None:
        return Identity(name=line, email=""), read_date("")
    return Identity(name=match["name"], email=match["email"]), read_date(match["time"] or "")


def _trailers(message: str) -> Mapping[str, str]:
    """Parse ``Key: value`` lines of the last paragraph; the last value of a key wins.

    As in git, a single paragraph is a subject, and an indented line continues the one before.
    """
    paragraphs = re.split(r"\n(?:[ \t]*\n)+", message.strip("\n"))
    if len(paragraphs) == 1:
        return {}
    values: dict[str, list[str]] = {}
    key = ""
    for line in paragraphs[-1].split("\n"):
        match = _TRAILER.fullmatch(line)
        if match is not None:
            key = match[1]
            values[key] = [match[2].strip()]
        elif line[:1].isspace() and key:
            values[key].append(line.strip())
    return {key: " ".join(parts) for key, parts in values.items()}
