"""A branch of a cluster that the remote does not let us move."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.ids import ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRefusal:
    """The last refusal of a push to the branch of a cluster."""

    cluster: ClusterName
    branch: str
    """The short name of the branch."""
    error: str
    """The words of the host, with the remedy."""
