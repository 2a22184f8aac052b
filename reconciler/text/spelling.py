"""The hint for an unknown name: the nearest known name, or the list of known ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LISTED = 12
"""Names that a hint lists; further ones are counted."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Suggest a replacement for `name`: ``try 'replicas'``, else ``there are a, b``; empty without candidates."""
    names = sorted(candidates)
    close = difflib.get_close_matches(name[:100], names, n=1)
    if close:
        return f"try {close[0]!r}"
    if not names:
        return ""
    listed = ", ".join(names[:MAX_LISTED])
    return f"there are {listed}" + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")
