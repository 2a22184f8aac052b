"""Pods that wait for something else than room are told as what they are, with the way out, and burst nothing."""

from __future__ import annotations

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.model.capacity import BlockedReplicas
from reconciler.model.wait_reason import WaitReason
from reconciler.text.to_json import json_value
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ordering, seconds, short

VOLUME = BlockedReplicas(
    replicas=2,
    since=NOW - seconds(45),
    reason=WaitReason.VOLUME,
    cause="waits for a volume: pod has unbound immediate PersistentVolumeClaims",
    way_out="look at its PersistentVolumeClaims",
)


def test_pods_that_wait_for_a_volume_burst_nothing_and_are_told_with_the_way_out() -> None:
    situation = inputs(
        short(0, blocked=(VOLUME,)), free("worker-2", 8), wanted=desired(policies={VLLM: ordering("worker-2")})
    )
    made = decide(situation)
    assert made.changes == ()
    told = explain(VLLM, situation, made)
    assert told.conclusion[0] == (
        "No replica lacks room: worker-1 runs 5 of 7, 0 run elsewhere, and 2 wait for something else."
    )
    assert told.conclusion[1] == (
        "2 pods on worker-1 have waited since 2026-11-20T10:04:15Z, and no burst would help (Volume): waits for a"
        " volume: pod has unbound immediate PersistentVolumeClaims; look at its PersistentVolumeClaims."
    )
    assert "2 pods there wait without lacking room (waits for a volume: pod has" in told.summary
    (entry,) = json_value(told)["demand"]["blocked"]
    assert (entry["replicas"], entry["reason"], entry["wayOut"]) == (2, "Volume", "look at its PersistentVolumeClaims")
