"""Who gets the room: by priority of the GPR, then by age, bursts and requests in one queue."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.model.action import Action
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.plan import Reason
from tests.builders.gprs import TRAIN, binding, gpr_template, record, request
from tests.builders.gpu_nodes import cluster_of, nodes
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, shape, short
from tests.builders.inputs import gpus as whole
from tests.builders.plans import begun


@pytest.mark.parametrize(("burst", "first"), [(250, VLLM), (150, TRAIN)])
def test_a_burst_has_the_priority_of_its_gpr_template(burst: int, first: object) -> None:
    wanted = desired(
        ordering("worker-2"),
        gpr_templates={"h100": gpr_template(priority=burst)},
        bindings=binding({"worker-2": "h100"}),
    )
    known = record(request(ask=GpuAsk(gpus=4), terms=GprTerms(priority=200)))
    there = ledger(requests={TRAIN: known})
    made = decide(inputs(short(1, replica=shape(4)), free("worker-2", 4), wanted=wanted, there=there))
    places = [placement.workload for placement in begun(made)]
    assert places == [first]


def test_of_equal_priority_the_older_goes_first() -> None:
    asks = [
        record(request(name, ask=GpuAsk(gpus=4)), received=NOW - timedelta(seconds=age))
        for name, age in (("young", 5), ("old", 60))
    ]
    there = ledger(requests={one.workload: one for one in asks})
    made = decide(inputs(free("worker-2", 4), there=there))
    assert [placement.workload.name for placement in begun(made)] == ["old"]


def test_a_request_for_two_nodes_waits_for_two_different_nodes() -> None:
    there = ledger(requests={TRAIN: record(request(ask=GpuAsk(gpus=4, nodes=2)))})
    waiting = decide(inputs(cluster_of(nodes(8, 2)), there=there))
    (held,) = [one for one in waiting.suppressed if one.workload == TRAIN]
    assert held.reason is Reason.NOTHING_FITS
    assert "needs 4 GPUs free on each of 2 nodes, 1 of 2 has that" in held.message
    placed = decide(inputs(cluster_of(nodes(4, 4)), there=there))
    assert [change.action for change in placed.changes] == [Action.PLACE]


def test_a_waiting_request_goes_to_a_cluster_that_is_added_to_its_workspace() -> None:
    asked = request(clusters=(), placements=1, ask=GpuAsk(gpus=4))
    there = ledger(requests={TRAIN: record(asked)})
    before = desired(workloads=(), policies={})
    workspace = replace(desired().workspaces["llm"], clusters=("worker-1", "worker-3"))
    before = replace(before, workspaces={"llm": workspace})
    seen = (free("worker-2", 4), free("worker-3", 2), free("worker-1", 0))
    assert not decide(inputs(*seen, wanted=before, there=there)).changes
    grown = replace(workspace, clusters=(*workspace.clusters, "worker-2"))
    after = replace(before, workspaces={"llm": grown})
    (change,) = decide(inputs(*seen, wanted=after, there=there)).changes
    assert change.action is Action.PLACE
    assert change.placement.cluster == "worker-2"


@pytest.mark.parametrize(("free_there", "placing"), [((8, 7), True), ((7, 7), False)])
def test_a_request_for_a_dedicated_node_waits_for_an_empty_one(free_there: tuple[int, ...], placing: bool) -> None:
    asked = request(ask=GpuAsk(gpus=2), terms=GprTerms(dedicated=True))
    made = decide(inputs(cluster_of(nodes(*free_there)), there=ledger(requests={TRAIN: record(asked)})))
    places = [change for change in made.changes if change.action is Action.PLACE]
    assert bool(places) is placing
    assert all(one.placement.shape.requests == whole(8) for one in places)


def test_a_request_for_a_model_that_is_not_there_says_what_is() -> None:
    asked = request(ask=GpuAsk(gpus=2, shape="NVIDIA-B200"))
    made = decide(inputs(cluster_of(nodes(8)), there=ledger(requests={TRAIN: record(asked)})))
    (held,) = [one for one in made.suppressed if one.workload == TRAIN]
    assert "no node has any NVIDIA-B200; there is NVIDIA-H100-80GB-HBM3" in held.message
