"""YAML whose lines carry comments: what a line is for, or where its value comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap

from reconciler.core.schema.yaml import emit
from reconciler.text.wording import sanitize

_WIDTH = 120
"""Columns of a line; a comment that does not fit beside its line stands above it."""


@dataclass(frozen=True, slots=True)
class AnnotatedLine:
    """A line of a file, and its comment; either may be empty."""

    text: str
    """The line with its indent; the indent alone for a comment on a line of its own."""
    comment: str = ""

    def __str__(self) -> str:
        """Write ``text # comment``, or the comment above the text where both are too long for one line."""
        comment = sanitize(self.comment)
        if not comment:
            return self.text
        content = self.text.lstrip(" ")
        indent = self.text[: len(self.text) - len(content)]
        beside = f"{self.text} # {comment}"
        if content and len(beside) <= _WIDTH:
            return beside
        lines = wrap(comment, _WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
        above = "\n".join(f"{indent}# {line}" for line in lines)
        return f"{above}\n{self.text}" if content else above


def annotated_text(lines: Iterable[AnnotatedLine]) -> str:
    """Write the lines of a file, ending in a newline."""
    return "".join(f"{line}\n" for line in lines)


def yaml_scalar(text: str) -> str:
    """Write a text as a YAML value on one line, in quotes where any reader could take it for something else."""
    return emit(text)[:-1] if "\n" in text else emit({"-": text}).partition(": ")[2][:-1]
