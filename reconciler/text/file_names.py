"""The names of files that may hold objects: one list for fleets, sources of templates, observations and completion."""

from __future__ import annotations

ENDINGS = (".yaml", ".yml", ".json")
"""How they end, in letters of either case: a file system may not know the difference, and git does."""

_MISSPELT_ENDINGS = (".yalm", ".ymal", ".yamll", ".yaaml", ".yam", ".ymll", ".jsn", ".jsno")


def may_hold_objects(name: str) -> bool:
    """Return whether a file is YAML or JSON by its name or path."""
    return name.lower().endswith(ENDINGS)


def resembles_objects(name: str) -> bool:
    """Return whether a name, and no path, has such an ending before another one, or a misspelt one: ``a.yaml.bak``."""
    folded = name.lower()
    return not folded.endswith(ENDINGS) and (
        any(ending in folded for ending in ENDINGS) or folded.endswith(_MISSPELT_ENDINGS)
    )
