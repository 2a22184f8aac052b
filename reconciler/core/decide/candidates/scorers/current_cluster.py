"""Current cluster: more replicas go where the workload runs already, and its images and weights are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.decide.candidates.scorers.scorer import Points, Subject
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName
from reconciler.model.score import BEST


class CurrentCluster:
    """Scores the clusters that have replicas of the workload 100, and the others 0."""

    follows_plan = True
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by the placements that the workload has."""
        clusters = self._clusters(subject)
        return [
            Points(BEST, "runs there") if candidate.cluster in clusters else Points(0.0) for candidate in candidates
        ]

    def key(self, subject: Subject) -> Hashable:
        """Score workloads alike that run on the same clusters."""
        return self._clusters(subject)

    @staticmethod
    def _clusters(subject: Subject) -> frozenset[ClusterName]:
        return frozenset(subject.working_plan.group(subject.workload).clusters)
