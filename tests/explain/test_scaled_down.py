"""Replicas that an autoscaler beside the workload has scaled down are no replicas that are still to start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.workload import Explanation, explain
from reconciler.core.observe.rollouts import ClusterRollouts, Rollouts, RolloutSigns
from reconciler.model.workload import Json, ManifestResource
from tests.builders.inputs import VLLM, desired, free, inputs, ledger, placement, short, template

DIGEST = "sha256-a"


def scaled_object(target: str = "vllm") -> Json:
    bounds = {"minReplicaCount": 0, "maxReplicaCount": "{{ replicas }}"}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "vllm", "namespace": "demo"},
        "spec": {"scaleTargetRef": {"name": target}, **bounds, "triggers": []},
    }


def explained(*beside: Json, bound: int = 0, arrived: bool = True) -> Explanation:
    """Explain two replicas on worker-2, of which some run; the engine calls them healthy once they have arrived."""
    placed = placement("worker-2", 2, digest=DIGEST)
    own = template()
    objects = tuple(ManifestResource(name=f"beside-{number}", manifest=each) for number, each in enumerate(beside))
    lent = replace(own, spec=replace(own.spec, manifests=(*own.spec.manifests, *objects)))
    situation = inputs(
        short(2),
        free("worker-2", 0, bound={placed.name: bound}),
        wanted=replace(desired(), templates={VLLM: lent}),
        there=ledger(placed),
    )
    if arrived:
        situation = with_arrival(situation, placed.path)
    return explain(VLLM, situation, decide(situation))


def with_arrival(situation: PassInput, path: str) -> PassInput:
    signs = RolloutSigns.of(situation.ledger, situation.observed, situation.desired.fleet, situation.now)
    [placed] = situation.ledger.placements.values()
    known = Rollouts.of({placed.cluster: ClusterRollouts(arrived={path: DIGEST}, ailing={})}, signs)
    return replace(situation, rollouts=known)


def test_replicas_that_keda_has_scaled_down_are_told_as_such() -> None:
    told = explained(scaled_object())
    assert "; 2 placed on worker-2 until 10:14 UTC are scaled down by its ScaledObject." in told.summary
    assert told.conclusion[0].endswith("0 run elsewhere, 2 scaled down on worker-2 by its ScaledObject.")
    told = explained(scaled_object(), bound=1)
    assert "; 1 runs on worker-2 until 10:14 UTC; 1 placed there is scaled down by its ScaledObject." in told.summary


@pytest.mark.parametrize(
    ("beside", "arrived"),
    [((), True), ((scaled_object("router"),), True), ((scaled_object(),), False)],
    ids=["no autoscaler", "another's autoscaler", "not yet arrived"],
)
def test_replicas_that_are_still_to_start_are_told_as_such(beside: tuple[Json, ...], arrived: bool) -> None:
    told = explained(*beside, arrived=arrived)
    assert "; 2 placed on worker-2 until 10:14 UTC have no node yet." in told.summary
    assert told.conclusion[0].endswith("0 run elsewhere, 2 not started on worker-2 yet.")
