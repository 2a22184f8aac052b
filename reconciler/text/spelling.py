"""The hint for an unknown name: the nearest known name, or the list of known ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LISTED = 12
"""Names that a hint lists; further ones are counted."""


def closest(name: str, candidates: Iterable[str]) -> str:
    """Return the known name that is spelt most alike; empty where none is alike."""
    close = difflib.get_close_matches(name[:100], sorted(candidates), n=1)
    return close[0] if close else ""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Suggest a replacement for `name`: ``try 'replicas'``, else ``there are a, b``; empty without candidates."""
    names = sorted(candidates)
    close = closest(name, names)
    if close:
        return f"try {close!r}"
    if not names:
        return ""
    listed = ", ".join(names[:MAX_LISTED])
    return f"there are {listed}" + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")
