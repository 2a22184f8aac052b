"""Time to ready: clusters where pods serve soon before those where they load for most of the burst."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import timedelta

from reconciler.core.capacity.scalable_nodes import addable_nodes
from reconciler.core.decide.candidates.scorers.scorer import ALIKE, Points, Subject
from reconciler.core.ledger import lifecycle
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Renewal
from reconciler.model.score import BEST
from reconciler.model.units import format_duration

RENEWED = timedelta(minutes=10)
"""A burst that is renewed while it is needed is reckoned to last this long at least."""


class TimeToReady:
    """Scores a cluster by the share of a burst's duration in which its pods are ready.

    The time is measured, else declared. A cluster with neither counts as ready at once, so that it is tried and
    measured. One whose pods take as long as the burst lasts scores 0.
    """

    follows_plan = False
    weighs_delay = True

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by their own times."""
        lasts = burst_duration(subject)
        return [self._points(subject, candidate.cluster, lasts) for candidate in candidates]

    def key(self, subject: Subject) -> Hashable:
        """Score workloads alike that have never started where others have, and whose bursts last equally long."""
        own = subject.workload in subject.inputs.track_record.started
        growth = subject.capacity is not None and subject.capacity.is_grown
        return burst_duration(subject), subject.workload if own else None, growth

    def _points(self, subject: Subject, cluster: ClusterName, lasts: timedelta) -> Points:
        took, detail = time_to_ready(subject, cluster)
        added = _node_delay(subject, cluster)
        if took is None and added is None:
            return ALIKE
        took = (took or timedelta()) + (added or timedelta())
        words = ", ".join([*([detail] if detail else []), *(["with a new node"] if added else [])])
        return Points(BEST * max(0.0, 1 - took / lasts), f"{format_duration(took)} {words}")


def time_to_ready(subject: Subject, cluster: ClusterName) -> tuple[timedelta | None, str]:
    """Return the time of a cluster, and whether it is measured or declared; None where nobody knows it."""
    measured = subject.inputs.track_record.of(cluster).time_to_ready(subject.workload)
    if measured is not None:
        return measured, "measured"
    described = subject.inputs.desired.clusters.get(cluster)
    declared = None if described is None else described.time_to_ready
    return declared, "" if declared is None else "declared"


def _node_delay(subject: Subject, cluster: ClusterName) -> timedelta | None:
    """Return the time in which an autoscaler adds a node, while such nodes are asked for."""
    if subject.capacity is None or not subject.capacity.is_grown:
        return None
    described = subject.inputs.desired.clusters.get(cluster)
    seen = subject.inputs.observed.clusters.get(cluster)
    if described is None or seen is None:
        return None
    return min((nodes.delay for nodes, _ in addable_nodes(described, seen)), default=None)


def burst_duration(subject: Subject) -> timedelta:
    """Return how long a burst of the workload is reckoned to last: its own time, or longer where it is renewed."""
    desired, workload = subject.inputs.desired, subject.workload
    policy = desired.policies[workload]
    template = desired.templates[workload]
    lasts = lifecycle.placement_duration(template, policy, desired.limits.get(workload.workspace))
    return lasts if lifecycle.renewal(template, policy) is Renewal.NEVER else max(lasts, RENEWED)
