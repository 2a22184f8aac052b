"""The Fleet's ``spec.ignore``: which files of the source branch are nobody's business here."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANS = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}


def ignored(path: str, patterns: Iterable[str]) -> bool:
    """Tell whether any pattern covers a path.

    ``*`` and ``?`` stop at a slash, ``**`` does not; a pattern that covers a directory covers all below it.
    """
    return any(_expression(pattern).match(path) is not None for pattern in patterns)


def _expression(pattern: str) -> re.Pattern[str]:
    """Translate a pattern; re caches the result."""
    text = pattern.removeprefix("./").strip("/")
    return re.compile(
        "".join(_MEANS.get(part, re.escape(part)) for part in _PARTS.findall(text)) + r"(?:/|\Z)", re.DOTALL
    )
