"""How much of a file is read before it is refused."""

from __future__ import annotations

from reconciler.errors import Problem

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_PROBLEMS = 100
"""Problems of one file that are worth telling; whoever mends a hundred gets to hear the rest."""


def too_large(path: str, size: int) -> Problem:
    """Describe a file that nobody will read, by its size in bytes."""
    return Problem(
        path=path,
        message=f"is {size / MAX_BYTES:.1f} MB; files over 1 MiB are not read",
        hint="try splitting it, or list it in the Fleet's spec.ignore",
    )
