"""Scorers: in which order the clusters that a workload may use are tried.

Called by `CandidateFinder.order` and by what gives replicas back, which goes the other way. A scorer is a module of its
own with a class of the shape of `Scorer`, and a line in `SCORERS`. It reads the pass's input and nothing else, refuses
no cluster (filters do that) and counts no capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.core.decide.candidates.scorers.policy_order import PolicyOrder
from reconciler.core.decide.candidates.scorers.scorer import Scorer
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.candidate import Candidate
from reconciler.model.ids import WorkloadId

SCORERS: tuple[Scorer, ...] = (PolicyOrder(),)
"""What clusters are ordered by; where one scorer has them equal, the next one decides."""

__all__ = ["SCORERS", "Scorer", "ranked"]


def ranked(inputs: PassInput, workload: WorkloadId, scorers: Sequence[Scorer] = SCORERS) -> tuple[Candidate, ...]:
    """Return the clusters that a workload may use, the highest score first, each with its rank in that order.

    Where the scores leave the policy's order as it is, this is the tuple that the order has, and no copy.
    """
    candidates = inputs.reach.order(workload)
    ordered = sorted(candidates, key=lambda candidate: tuple(-scorer.score(candidate, inputs) for scorer in scorers))
    if all(candidate.rank == rank for rank, candidate in enumerate(ordered, start=1)):
        return candidates
    return tuple(replace(candidate, rank=rank) for rank, candidate in enumerate(ordered, start=1))
