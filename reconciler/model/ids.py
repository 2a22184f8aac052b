"""Names, and which names may become a path in git or a label in a cluster."""

from __future__ import annotations

import re
from typing import NamedTuple, NewType

ClusterName = NewType("ClusterName", str)
WorkspaceName = NewType("WorkspaceName", str)
TemplateName = NewType("TemplateName", str)
PlacementName = NewType("PlacementName", str)
CommitId = NewType("CommitId", str)
BlobId = NewType("BlobId", str)
TreeId = NewType("TreeId", str)

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Every name that becomes part of a path or a label: a DNS label of at most 63 characters (RFC 1123)."""

MAX_PLACEMENT_NAME = 50
"""A stage or a release name is the placement's name and a suffix, and has to fit in a 63-character label."""


def is_name(text: str) -> bool:
    """Return whether `text` may stand in a path of the output branch."""
    return NAME.fullmatch(text) is not None


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def read_commit_id(text: object) -> CommitId:
    """Return the full id of a commit that somebody else named. Raises ValueError for anything else.

    Each id that comes from outside passes here before a command of git sees it: a text with a dash is an option there.
    """
    if not isinstance(text, str) or _COMMIT.fullmatch(text) is None:
        shown = text[:60] if isinstance(text, str) else type(text).__name__
        raise ValueError(f"{shown!r} is no id of a commit (40 or 64 digits of 0-9 and a-f)")
    return CommitId(text)


class WorkloadId(NamedTuple):
    """A workload: one template of one workspace, or a person's request by name (`request`).

    Commits name it by its text, ``llm/vllm``. A tuple, since nearly every table is keyed by it and a tuple's hash costs
    no call.
    """

    workspace: WorkspaceName
    name: TemplateName
    request: bool = False

    def __str__(self) -> str:
        """Write ``workspace/template``."""
        return f"{self.workspace}/{self.name}"
