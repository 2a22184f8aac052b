"""The size limits of files."""

from __future__ import annotations

from reconciler.errors import Problem
from reconciler.model.bounds import FILE_DEPTH, FILE_SIZE, FILE_VALUES

MAX_BYTES = FILE_SIZE.most
MAX_DEPTH = FILE_DEPTH.most
MAX_NODES = FILE_VALUES.most
MAX_PROBLEMS = 100
"""Problems of one file that are reported; after these are fixed, the next check reports the rest."""


def too_large(path: str, size: int) -> Problem:
    """Report a file above the size limit."""
    return Problem(
        path=path,
        message=f"is {size / MAX_BYTES:.1f} MB; files over {FILE_SIZE} are not read",
        hint="try splitting it, or list it in the Fleet's spec.ignore",
    )
