"""Observations of clusters that nobody describes: most likely a name that is written differently here and there."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.spelling import nearest
from reconciler.errors import Problem, Severity
from reconciler.model.capacity import Observed
from reconciler.model.policy import Desired


def with_strangers_told(observed: Observed, desired: Desired) -> Observed:
    """Add a warning for each observed cluster that no file describes.

    Says nothing while a file cannot be read: it may be the one that describes it.
    """
    strangers = sorted(observed.clusters.keys() - desired.clusters.keys())
    if not strangers or desired.incomplete:
        return observed
    problems = tuple(
        Problem(
            path=f"observation of {name}",
            field="cluster",
            message="no file describes a Cluster of this name, so it counts for nothing",
            hint=nearest(name, desired.clusters),
            severity=Severity.WARNING,
        )
        for name in strangers
    )
    return replace(observed, problems=observed.problems + problems)
