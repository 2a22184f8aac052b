"""A branch of a cluster that the remote does not let us move."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.errors import Problem
from reconciler.model.ids import ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRefusal:
    """The last refusal of a push to the branch of a cluster."""

    cluster: ClusterName
    branch: str
    """The short name of the branch."""
    error: str
    """The words of the host, with the remedy."""

    @property
    def problem(self) -> Problem:
        """The refusal for whatever shows the result of a pass: the log, `once`, the page."""
        return Problem(
            path=f"branch {self.branch}",
            message=f"the remote refuses it, so that an engine that follows it does not see changes on cluster"
            f" {self.cluster}; other branches are pushed: {self.error}",
            hint="it is pushed again every few minutes",
        )
