"""The hint for a name that is not known: the one that was probably meant, or those that there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LISTED = 12
"""Names that a hint lists; beyond that it only says how many there are."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Say what to try instead of `name`: ``try 'replicas'``, else ``there are a, b``; empty when nothing is known."""
    names = sorted(candidates)
    close = difflib.get_close_matches(name[:100], names, n=1)
    if close:
        return f"try {close[0]!r}"
    if not names:
        return ""
    listed = ", ".join(names[:MAX_LISTED])
    return f"there are {listed}" + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")
