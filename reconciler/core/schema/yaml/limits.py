"""The size limits of files."""

from __future__ import annotations

from reconciler.errors import Problem
from reconciler.model.bounds import FILE_DEPTH, FILE_SIZE, FILE_VALUES
from reconciler.text.findings import MOST_TOLD

MAX_BYTES = FILE_SIZE.most
MAX_DEPTH = FILE_DEPTH.most
MAX_NODES = FILE_VALUES.most
MAX_PROBLEMS = MOST_TOLD


def too_large(path: str, size: int) -> Problem:
    """Report a file above the size limit."""
    return Problem(
        path=path,
        message=f"is {size / MAX_BYTES:.1f} MB; files over {FILE_SIZE} are not read",
        hint="try splitting it, or list it in the Fleet's spec.ignore",
    )
