"""A table of what a component says, and what it means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.wait_reason import WaitReason
from reconciler.text.redaction import redacted

_LONGEST_MESSAGE = 8192
_LONGEST_CAUSE = 160
_PLACEHOLDER = re.compile(r"\\{(\w*)\\}|…")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWait:
    """What a pod waits for."""

    reason: WaitReason
    cause: str
    """In a few words, the same while the wait lasts."""
    way_out: str = ""
    """What ends the wait, as a clause; empty where it ends by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """Words with which a component begins a message, and their meaning."""

    says: str
    """``{name}`` is a word that `cause` and `way_out` may repeat, at the end all the rest, ``…`` any text, and ``$`` at
    the end the end of the message."""
    reason: WaitReason
    cause: str
    way_out: str = ""
    source: str
    """The component, its version and the file."""

    def wait(self, texts: Mapping[str, str]) -> PodWait:
        """Return what a pod waits for, with the texts that the message has in place of names."""
        return PodWait(
            reason=self.reason,
            cause=self.cause.format_map(texts)[:_LONGEST_CAUSE],
            way_out=self.way_out.format_map(texts)[:_LONGEST_CAUSE],
        )


class Sayings:
    """The sayings of one source, in the order in which they are tried."""

    def __init__(self, *sayings: Saying) -> None:
        self._sayings = tuple((_pattern(saying.says), saying) for saying in sayings)

    def __iter__(self) -> Iterator[Saying]:
        return iter([saying for _, saying in self._sayings])

    def wait(self, message: str) -> PodWait | None:
        """Return the meaning of the first saying with which a message begins; None if the table has none."""
        for pattern, saying in self._sayings:
            if found := pattern.match(message):
                return saying.wait(found.groupdict())
        return None


def one_line(message: str) -> str:
    """Put a message on one line, without credentials, and without what is far behind its beginning."""
    return " ".join(redacted(message[:_LONGEST_MESSAGE]).split())


def _pattern(says: str) -> re.Pattern[str]:
    parts: list[str] = []
    ends = says.endswith("$")
    escaped, end = re.escape(says.removesuffix("$")), 0
    for found in _PLACEHOLDER.finditer(escaped):
        parts.append(escaped[end : found.start()])
        end = found.end()
        text = ".*" if end == len(escaped) and not ends else r"\S+?" if found[1] else ".*?"
        parts.append(f"(?P<{found[1]}>{text})" if found[1] else text)
    return re.compile("".join((*parts, escaped[end:])) + (r"\Z" if ends else ""))
