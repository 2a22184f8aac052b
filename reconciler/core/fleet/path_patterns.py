"""Path patterns of the Fleet and of Workspaces, in the manner of .gitignore files from the root of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def covered(path: str, patterns: Iterable[str]) -> bool:
    """Return whether any pattern covers a path, or a directory above it.

    ``*`` and ``?`` stop at a slash; ``**`` between slashes stands for any number of directories. The time is bounded by
    the length of the pattern times that of the path.
    """
    parts = path.split("/")
    return any(_covers(_segments(pattern), parts) for pattern in patterns)


def _covers(pattern: Sequence[re.Pattern[str] | None], parts: Sequence[str]) -> bool:
    """Match a path against a pattern, keeping the set of reachable positions; None stands for ``**``."""
    reached = _onward({0}, pattern)
    if len(pattern) in reached:
        return True
    for part in parts:
        step = {at for at in reached if pattern[at] is None}
        step |= {at + 1 for at in reached if (segment := pattern[at]) is not None and segment.fullmatch(part)}
        reached = _onward(step, pattern)
        if len(pattern) in reached:
            return True
    return False


def _onward(reached: set[int], pattern: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Add the positions after a ``**``, which also matches no directory."""
    for at, segment in enumerate(pattern):
        if at in reached and segment is None:
            reached.add(at + 1)
    return reached


@lru_cache(maxsize=256)
def _segments(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Compile a pattern segment by segment; atomic groups keep stars from backtracking over all combinations."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return tuple(None if part == "**" else re.compile(_segment(part), re.DOTALL) for part in parts)


def _segment(part: str) -> str:
    """Translate one segment: the pieces between stars match leftmost first, the last one at the end."""
    first, *pieces = [re.escape(piece).replace(r"\?", ".") for piece in part.split("*")]
    if not pieces:
        return first
    *middle, last = pieces
    return first + "".join(f"(?>.*?{piece})" for piece in middle) + f".*{last}"
