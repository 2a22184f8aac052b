"""The size limits of files."""

from __future__ import annotations

from reconciler.errors import Problem

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_PROBLEMS = 100
"""Problems of one file that are reported; after these are fixed, the next check reports the rest."""


def too_large(path: str, size: int) -> Problem:
    """Report a file above the size limit."""
    return Problem(
        path=path,
        message=f"is {size / MAX_BYTES:.1f} MB; files over 1 MiB are not read",
        hint="try splitting it, or list it in the Fleet's spec.ignore",
    )
