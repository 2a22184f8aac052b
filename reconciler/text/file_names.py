"""The names of files that may hold objects: one list for fleets, sources of templates, observations and completion."""

from __future__ import annotations

ENDINGS = (".yaml", ".yml", ".json")
"""How they end, in letters of either case: a file system may not know the difference, and git does."""


def may_hold_objects(name: str) -> bool:
    """Return whether a file is YAML or JSON by its name or path."""
    return name.lower().endswith(ENDINGS)
