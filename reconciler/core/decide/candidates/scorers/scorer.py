"""The interface of scorers."""

from __future__ import annotations

from typing import Protocol

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.candidate import Candidate


class Scorer(Protocol):
    """Says how well a cluster suits a workload. Workloads with the same clusters in the same order get equal scores."""

    def score(self, candidate: Candidate, inputs: PassInput) -> float:
        """Score one candidate: the highest is tried first. Its rank is the place that the policy gives it."""
