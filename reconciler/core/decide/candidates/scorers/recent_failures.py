"""Recent failures: clusters where nothing has failed of late first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.decide.candidates.scorers.scorer import Points, Subject
from reconciler.core.observe.track_record import FAILURES_KEPT
from reconciler.model.candidate import Candidate
from reconciler.model.score import BEST
from reconciler.model.units import format_duration
from reconciler.text.wording import count


class RecentFailures:
    """Scores a cluster by the failures of all workloads there in the last hour: none, 100; one, 50; two, 33."""

    follows_plan = False
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by what has failed on them."""
        inputs = subject.inputs
        failures = [
            inputs.track_record.failures_since(candidate.cluster, inputs.now - FAILURES_KEPT)
            for candidate in candidates
        ]
        within = f"in {format_duration(FAILURES_KEPT)}"
        return [Points(BEST / (1 + number), f"{count(number, 'failure')} {within}") for number in failures]

    def key(self, subject: Subject) -> Hashable:
        """Score all workloads alike."""
        del subject
        return None
