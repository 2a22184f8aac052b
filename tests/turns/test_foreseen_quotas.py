"""Quotas that are worked out beforehand are those that turns in order would have led to."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.turns import queue
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Plan
from reconciler.model.policy import Distribution, StrategyName
from tests.builders.examples import examples
from tests.builders.inputs import (
    GPU,
    NOW,
    cluster,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    placement,
    seconds,
    shape,
    short,
    tenants,
)

WORKERS = ("worker-2", "worker-3", "worker-4")
WORKLOADS = tenants(6)


@st.composite
def situations(draw: st.DrawFn) -> PassInput:
    """Draw bursts of one shape with policies of all strategies; now and then something that spoils the sums."""
    policies = [
        ordering(
            *draw(st.permutations(WORKERS)),
            name=f"policy-{number}",
            distribution=Distribution(
                strategy=draw(st.sampled_from(list(StrategyName))),
                max_clusters=draw(st.sampled_from([None] * 8 + [2])),
            ),
            weight=draw(st.sampled_from([1, 1, 3])),
            priority=draw(st.sampled_from([0, 0, 0, 10])),
            max_replicas=draw(st.sampled_from([None, None, 3])),
        )
        for number in range(3)
    ]
    wanted = desired(
        clusters=tuple(cluster(name) for name in ("worker-1", *WORKERS)),
        workloads=WORKLOADS,
        policies={workload: draw(st.sampled_from(policies)) for workload in WORKLOADS},
    )
    if draw(st.booleans()):
        shares = {
            name: replace(workspace, weight=draw(st.sampled_from([1, 2])), quota=gpus(draw(st.integers(0, 6))))
            for name, workspace in wanted.workspaces.items()
        }
        wanted = replace(wanted, workspaces=shares)
    odd = draw(st.sampled_from([1] * 10 + [2]))
    home = replace(
        short(0),
        workloads=tuple(
            short(
                draw(st.integers(0, 7)),
                workload=workload,
                since=NOW - seconds(draw(st.sampled_from([10, 45, 60, 90]))),
                replica=shape(odd if workload == WORKLOADS[0] else 1),
            ).workloads[0]
            for workload in WORKLOADS
        ),
    )
    there = [
        placement(draw(st.sampled_from(WORKERS)), draw(st.integers(1, 3)), workload=workload)
        for workload in WORKLOADS
        if not draw(st.integers(0, 3))
    ]
    nodes = st.lists(st.sampled_from([0, 1, 4, 8]), min_size=1, max_size=3)
    seen = [free(name, *draw(nodes), bound={one.name: one.replicas for one in there}) for name in WORKERS]
    return inputs(home, *seen, wanted=wanted, there=ledger(*there))


def in_order(situation: PassInput) -> Plan:
    """Take all turns before anything is divided."""
    with patch.object(queue, "_foreseen_quotas", lambda *_: {}):
        return decide(situation)


@given(situations())
@examples(2)
def test_foreseen_quotas_change_no_plan(situation: PassInput) -> None:
    with patch.object(queue, "_FEW", 0):
        foreseen = decide(situation)
    assert foreseen == in_order(situation)


def test_bursts_that_are_alike_are_placed_in_one_round() -> None:
    names = tuple(WorkloadId(WorkspaceName("llm"), TemplateName(f"vllm-{number:02d}")) for number in range(20))
    home = replace(short(0), workloads=tuple(short(3, workload=name).workloads[0] for name in names))
    situation = inputs(home, free("worker-2", 8, 8), free("worker-3", 8), wanted=desired(workloads=names))
    rounds = []
    take = queue.serve

    def counting(*asked: object) -> None:
        rounds.append(asked)
        take(*asked)

    with patch.object(queue, "serve", counting):
        plan = decide(situation)
    assert len(rounds) == 1
    assert sum(change.placement.replicas for change in plan.changes) == 24
    assert {ClusterName("worker-2"), ClusterName("worker-3")} == {change.placement.cluster for change in plan.changes}
    assert plan == in_order(situation)
    assert {gpu for change in plan.changes for gpu in change.placement.shape.requests.amounts} == {GPU}
