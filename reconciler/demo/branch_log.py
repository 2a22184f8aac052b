"""Commits of the output branch, read from `git log`. Pure: text comes in, values go out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.core.commits.trailers import Trailer, is_trailer
from reconciler.text.timestamps import parse_time

FORMAT = "--format=%x00%h%x1f%an%x1f%ct%x1f%s%x1f%b"
"""The option of `git log` that `read_log` reads."""

OVERSPILL = "Overspill"
"""The author of all commits that no person has made."""

_UNDOES = "This reverts commit "


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedCommit:
    """A commit of the output branch."""

    id: str
    """Its id, shortened."""
    author: str
    at: int
    """Seconds since the epoch."""
    subject: str
    reasons: tuple[str, ...]
    """The paragraphs of its body, without trailers and without the id of what it reverts."""
    placement: str = ""
    """The name of its placement; empty where it is about none."""
    expires: datetime | None = None
    """When its placement ends."""


def read_log(text: str) -> tuple[LandedCommit, ...]:
    """Read what `git log` prints with `FORMAT`, in its order."""
    return tuple(_read_commit(entry) for entry in text.split("\0")[1:])


def _read_commit(entry: str) -> LandedCommit:
    number, author, at, subject, body = entry.split("\x1f")
    lines = [line.partition(": ") for line in body.splitlines() if is_trailer(line)]
    trailers = {key: value for key, _, value in lines}
    expires = trailers.get(Trailer.EXPIRES)
    return LandedCommit(
        id=number,
        author=author,
        at=int(at),
        subject=subject,
        reasons=tuple(
            " ".join(paragraph.split())
            for paragraph in body.strip().split("\n\n")
            if paragraph and not (is_trailer(paragraph.partition("\n")[0]) or paragraph.startswith(_UNDOES))
        ),
        placement=trailers.get(Trailer.PLACEMENT, "").rpartition("/")[2],
        expires=None if expires is None else parse_time(expires),
    )
