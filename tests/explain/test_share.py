"""Explain says what part of its need a workload has where room is short."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.model.ids import TemplateName, WorkloadId
from tests.builders.inputs import VLLM, desired, free, inputs, ledger, ordering, placement, short

OTHER = WorkloadId(VLLM.workspace, TemplateName("zephyr"))


def conclusion(free_gpus: int, *, weight: int = 1) -> str:
    home = replace(short(4), workloads=short(4).workloads + short(4, workload=OTHER).workloads)
    there = ledger(placement("worker-2", 3), placement("worker-2", 1, workload=OTHER))
    seen = free("worker-2", free_gpus, bound={one.name: one.replicas for one in there.placements.values()})
    policies = {VLLM: ordering("worker-2", weight=weight), OTHER: ordering("worker-2")}
    situation = inputs(home, seen, wanted=desired(workloads=(VLLM, OTHER), policies=policies), there=there)
    return " ".join(explain(VLLM, situation, decide(situation)).conclusion)


def test_share_is_told_where_others_wait_for_room() -> None:
    assert (
        "Room is short: it has 75% of what it needs, and all that wait with its priority have 50% together"
        in conclusion(0)
    )
    assert "it has 38% of what it needs by weight 2" in conclusion(0, weight=2)


def test_share_is_what_a_workload_has_after_the_pass() -> None:
    """The replica that has room goes to the other one, so that both together have five of eight."""
    assert "it has 75% of what it needs, and all that wait with its priority have 62% together" in conclusion(1)


def test_share_is_not_told_where_there_is_room_for_all() -> None:
    assert "Room is short" not in conclusion(8)
