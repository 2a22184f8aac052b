"""The order in which people wrote the clusters of a policy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.decide.candidates.scorers.scorer import Points, Subject
from reconciler.model.candidate import Candidate
from reconciler.model.score import BEST


class PolicyOrder:
    """Scores the first cluster of a policy highest, the last one 0, and the others evenly between them."""

    follows_plan = False
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by their place alone."""
        del subject
        last = max(1, len(candidates) - 1)
        return [Points(BEST * (last - place) / last) for place, _ in enumerate(candidates)]

    def key(self, subject: Subject) -> Hashable:
        """Score all workloads alike."""
        del subject
        return None
