"""The order in which people wrote the clusters of a policy or of a request."""

from __future__ import annotations

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.candidate import Candidate


class PolicyOrder:
    """Scores the first cluster of a policy highest, the last one lowest."""

    def score(self, candidate: Candidate, inputs: PassInput) -> float:
        """Score a candidate by its place alone; nothing that is observed changes that."""
        del inputs
        return -candidate.rank
