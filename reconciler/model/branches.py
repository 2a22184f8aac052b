"""Branches that hold the directory of one cluster each, beside the output branch.

The output branch is what counts: these are made from it, and nothing is ever read back from them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.ids import ClusterName, CommitId, TreeId
from reconciler.model.tree import Identity

ROOT = "clusters"
"""The directory whose directories are the clusters', on the output branch and on theirs."""


def branch_of(output: str, cluster: str) -> str:
    """Name the branch of a cluster after the output branch.

    They lie beside it, not below: git keeps no ``placements/worker-2`` where there is a ``placements``.
    """
    return f"{output}-by-cluster/{cluster}"


def alone(cluster: ClusterName, directory: TreeId | None) -> TreeId:
    """Return the id of a whole tree that holds a cluster's directory in its place and nothing else.

    As git names it: SHA-1 over the kind, the length and the entries. None is for a cluster that has no directory.
    """
    if directory is None:
        return _tree_id(b"")
    inner = _tree_id(b"40000 %s\0%b" % (cluster.encode(), bytes.fromhex(directory)))
    return _tree_id(b"40000 %s\0%b" % (ROOT.encode(), bytes.fromhex(inner)))


def _tree_id(entries: bytes) -> TreeId:
    return TreeId(hashlib.sha1(b"tree %d\0%b" % (len(entries), entries), usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Where the branch of a cluster stands, which tree that commit has, and when it was committed."""

    commit: CommitId
    tree: TreeId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommit:
    """One commit of a cluster's branch: the cluster's directory as it then was, None where there was none."""

    message: str
    author: Identity
    at: datetime
    directory: TreeId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What a cluster's branch lacks: commits, oldest first, on top of where it stands (None: it is not there)."""

    cluster: ClusterName
    base: Branch | None
    snapshots: tuple[BranchCommit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A cluster's branch from the commit it stood at, None for one that is new, to the one it is pushed to."""

    cluster: ClusterName
    old: CommitId | None
    new: CommitId
