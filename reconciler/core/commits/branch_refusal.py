"""Words on the branch of a cluster that the remote does not let us move."""

from __future__ import annotations

from reconciler.errors import Problem
from reconciler.model.branch_refusal import BranchRefusal


def refusal_problem(refusal: BranchRefusal) -> Problem:
    """Return the refusal as a problem, for whatever shows the result of a pass: the log, `once`, the page."""
    return Problem(
        path=f"branch {refusal.branch}",
        message=f"the remote refuses it, so that an engine that follows it does not see changes on cluster"
        f" {refusal.cluster}; other branches are pushed: {refusal.error}",
        hint="it is pushed again every few minutes",
    )
