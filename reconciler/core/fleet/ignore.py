"""The Fleet's ``spec.ignore``: which files of the source branch are nobody's business here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def ignored(path: str, patterns: Iterable[str]) -> bool:
    """Tell whether any pattern covers a path, or a directory above it.

    ``*`` and ``?`` stop at a slash; ``**`` between slashes stands for any number of directories. The work is bounded by
    pattern times path, whatever the pattern.
    """
    parts = path.split("/")
    return any(_covers(_segments(pattern), parts) for pattern in patterns)


def _covers(pattern: Sequence[re.Pattern[str] | None], parts: Sequence[str]) -> bool:
    """Walk a path's parts with every place in the pattern that can have been reached; None stands for ``**``."""
    reached = _onward({0}, pattern)
    for part in parts:
        step = {at for at in reached if pattern[at] is None}
        step |= {at + 1 for at in reached if (segment := pattern[at]) is not None and segment.fullmatch(part)}
        reached = _onward(step, pattern)
        if len(pattern) in reached:
            return True
    return False


def _onward(reached: set[int], pattern: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Add the places behind a ``**``, which may stand for nothing."""
    for at, segment in enumerate(pattern):
        if at in reached and segment is None:
            reached.add(at + 1)
    return reached


@lru_cache(maxsize=256)
def _segments(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Translate a pattern part by part; atomic groups keep a part's stars from being tried in every combination."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return tuple(None if part == "**" else re.compile(_segment(part), re.DOTALL) for part in parts)


def _segment(part: str) -> str:
    """Translate one part: the pieces between stars are found leftmost first, the last one at the end."""
    first, *pieces = [re.escape(piece).replace(r"\?", ".") for piece in part.split("*")]
    if not pieces:
        return first
    *middle, last = pieces
    return first + "".join(f"(?>.*?{piece})" for piece in middle) + f".*{last}"
