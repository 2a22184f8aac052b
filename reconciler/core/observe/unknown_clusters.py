"""Warnings of clusters that are observed and not described, or described and not observed: often misspelt names."""

from __future__ import annotations

from dataclasses import replace

from reconciler.errors import Problem, Severity
from reconciler.model.capacity import ObservationPlace, Observed
from reconciler.model.policy import Desired
from reconciler.text.spelling import nearest


def with_unknown_clusters(observed: Observed, desired: Desired) -> Observed:
    """Add a warning for each observed cluster that no file describes, and for each cluster that cannot be watched.

    Of the former there is none while a file cannot be read: that file may describe the cluster.
    """
    unknown = () if desired.incomplete else sorted(observed.clusters.keys() - desired.clusters.keys())
    unwatched = sorted(observed.nameless.keys() - observed.clusters.keys())
    if not unknown and not unwatched:
        return observed
    problems = [
        Problem(
            path=place.path,
            line=place.line,
            field="cluster",
            message="no file describes a Cluster of this name, so it counts for nothing",
            hint=nearest(name, desired.clusters.keys() - observed.clusters.keys())
            or f"add a Cluster named {name}, or remove the observation",
            severity=Severity.WARNING,
        )
        for name in unknown
        for place in (observed.places.get(name, ObservationPlace(f"observation of {name}", 0)),)
    ]
    problems += (
        Problem(
            path=f"cluster {name}",
            message="is not watched: the kubeconfig has no context of its name, and nothing else here tells of it",
            hint=f"{observed.nameless[name]}; set its spec.connection.context, or name another kubeconfig",
            severity=Severity.WARNING,
        )
        for name in unwatched
    )
    return replace(observed, problems=(*observed.problems, *problems))
