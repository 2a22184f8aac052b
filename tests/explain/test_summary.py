"""One sentence tells how a workload stands: what it misses, what runs where until when, and what waits."""

from __future__ import annotations

import re

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.model.plan import Reason
from reconciler.model.policy import Distribution
from tests.builders.cluster_shares import spread_over
from tests.builders.inputs import VLLM, cluster, desired, free, inputs, ledger, ordering, placement, short


def summary(missing: int, free_gpus: int, *, placed: int = 2, bound: int = 2, headroom: int = 0) -> str:
    there = ledger(placement("worker-2", placed)) if placed else ledger()
    names = [each.name for each in there.placements.values()]
    seen = free("worker-2", free_gpus, bound=dict.fromkeys(names, bound))
    policy = ordering("worker-2", headroom=headroom)
    situation = inputs(short(missing), seen, wanted=desired(policies={VLLM: policy}), there=there)
    return explain(VLLM, situation, decide(situation)).summary


def test_what_runs_and_what_waits_is_told_with_the_reason() -> None:
    assert summary(3, 0) == (
        "llm/vllm has missed 3 replicas on worker-1 for 45s; 2 run on worker-2 until 10:14 UTC;"
        " 1 waits (worker-2: needs 1 GPU on one node; its only eligible node has none free)."
    )


def test_a_bound_that_what_stands_does_not_meet_is_no_reason_to_wait() -> None:
    labelled = cluster("worker-1"), cluster("worker-2", labels={"region": "eu"})
    policy = ordering("worker-2", distribution=Distribution(spread_constraints=spread_over("region", min_groups=2)))
    situation = inputs(
        short(6), free("worker-2", 8), wanted=desired(policy, clusters=labelled), there=ledger(placement("worker-2", 2))
    )
    made = decide(situation)
    assert [held.reason for held in made.suppressed] == [Reason.BOUND_UNMET, Reason.SPREAD_LIMIT]
    (waits,) = re.findall(r"; 4 wait \((.*)\)\.$", explain(VLLM, situation, made).summary)
    assert waits == made.suppressed[1].message


def test_replicas_that_the_next_pass_places_do_not_wait() -> None:
    assert summary(3, 8).endswith("; 1 goes to worker-2 in the next pass.")
    assert summary(2, 8, placed=0) == (
        "llm/vllm has missed 2 replicas on worker-1 for 45s; 2 go to worker-2 in the next pass."
    )


def test_replicas_without_a_node_are_told_apart() -> None:
    assert "; 1 runs on worker-2 until 10:14 UTC; 1 placed there has no node yet." in summary(2, 0, bound=1)
    assert "; 2 placed on worker-2 until 10:14 UTC have no node yet." in summary(2, 0, bound=0)


def test_spare_replicas_are_told() -> None:
    assert summary(1, 0, headroom=1).endswith("; 1 of those elsewhere is spare, kept by headroom.")
    assert "spare" not in summary(2, 8, headroom=1)


def test_a_workload_that_misses_nothing_says_so() -> None:
    assert summary(0, 0, placed=0) == "llm/vllm misses nothing on worker-1, which runs 5 of 5."
