"""Scorers put the clusters of a workload in order, and rank them."""

from __future__ import annotations

from reconciler.core.decide.candidates.scorers import SCORERS, ranked
from reconciler.core.decide.candidates.scorers.policy_order import PolicyOrder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.candidate import Candidate
from tests.builders.inputs import VLLM, free, inputs, short


class Last:
    """Scores one cluster lowest, and all others alike."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def score(self, candidate: Candidate, inputs: PassInput) -> float:
        return -float(candidate.cluster == self._cluster)


def situation() -> PassInput:
    return inputs(short(1), free("worker-2", 8), free("worker-3", 8))


def test_clusters_are_tried_in_the_order_of_the_policy() -> None:
    now = situation()
    assert ranked(now, VLLM) is now.reach.order(VLLM)
    assert [type(scorer) for scorer in SCORERS] == [PolicyOrder]


def test_highest_score_is_ranked_first_and_the_policy_decides_between_equals() -> None:
    now = situation()
    first, *others = now.reach.order(VLLM)
    order = ranked(now, VLLM, (Last(first.cluster), PolicyOrder()))
    assert [candidate.cluster for candidate in order] == [*(other.cluster for other in others), first.cluster]
    assert [candidate.rank for candidate in order] == [*range(1, len(others) + 2)]
