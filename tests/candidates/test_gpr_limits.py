"""A workspace has no more GPRs at a time than its policy allows; what waits for that says what would change it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.capacity.gpu_models import INSTANCE_TYPE
from reconciler.core.decide.candidates.gpr_limits import gpr_needs
from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.steer import plan_extension
from reconciler.core.explain.gprs import gpr_views
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import explain
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.gpr import GprState, GprTemplate, GprTerms, GpuAsk, GpuLimits, WorkspaceLimits
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Origin
from reconciler.model.plan import Plan, Reason, Suppressed
from reconciler.model.policy import Availability
from tests.builders.gprs import LLM, TRAIN, binding, gpr_template, record, request, reservation
from tests.builders.gpu_nodes import cluster_of, h100, nodes
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, ordering, placement, shape, short
from tests.builders.plans import begun
from tests.builders.requests import deployment, manifests

MODEL = "nvidia.com/gpu.product"


def most(number: int) -> dict[str, object]:
    return {"limits": {LLM: WorkspaceLimits(workspace=LLM, most=number)}}


def each(everywhere: GpuLimits = GpuLimits(), **by_cluster: GpuLimits) -> dict[str, object]:
    """Limit one GPR, everywhere or on a cluster: ``worker_2`` is worker-2."""
    named = {ClusterName(name.replace("_", "-")): limits for name, limits in by_cluster.items()}
    return {"limits": {LLM: WorkspaceLimits(workspace=LLM, limits=everywhere, by_cluster=named)}}


def placed(plan: Plan) -> list[tuple[str, int]]:
    return [(str(placement.cluster), placement.replicas) for placement in begun(plan)]


def places(plan: Plan) -> list[str]:
    return [str(placement.workload.name) for placement in begun(plan)]


def held(plan: Plan) -> list[Suppressed]:
    return [one for one in plan.suppressed if one.reason is Reason.GPR_LIMIT]


def test_requests_beyond_the_limit_wait_and_say_what_would_change_it() -> None:
    asks = [
        record(request(name, ask=GpuAsk(gpus=1)), received=NOW - timedelta(seconds=age))
        for name, age in (("first", 30), ("second", 20), ("third", 10))
    ]
    there = ledger(requests={one.workload: one for one in asks})
    seen = inputs(free("worker-2", 8), wanted=desired(**most(2)), there=there)
    made = decide(seen)
    assert places(made) == ["first", "second"]
    (one,) = held(made)
    assert one.message == (
        "workspace llm has 2 of at most 2 GPRs (raise spec.maxGPRs of its WorkspacePolicy, or wait until one ends)"
    )
    states = {one.name: one.state for one in gpr_views(seen, made) if one.name == "third"}
    assert states == {"third": GprState.QUEUED}


def test_a_burst_may_grow_where_it_is_and_begins_nowhere_else() -> None:
    there = placement("worker-2", 2)
    seen = (short(9), free("worker-2", 3, bound={there.name: 2}), free("worker-3", 8))
    made = decide(inputs(*seen, wanted=desired(**most(1)), there=ledger(there)))
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert change.after.replicas == 5
    (one,) = held(made)
    assert one.replicas == 4


def test_clusters_that_one_burst_is_about_to_begin_on_count() -> None:
    made = decide(inputs(short(9), free("worker-2", 3), free("worker-3", 8), wanted=desired(**most(1))))
    assert places(made) == ["vllm"]
    assert held(made)


def test_what_moves_begins_nothing() -> None:
    away = cluster("worker-2", availability=Availability.DRAINING)
    wanted = desired(clusters=(cluster("worker-1"), away, cluster("worker-3")), **most(1))
    made = decide(inputs(short(3), free("worker-3", 8), wanted=wanted, there=ledger(placement())))
    assert [change.action for change in made.changes] == [Action.MOVE]


def test_a_cluster_without_room_for_all_that_moves_takes_none_of_what_its_workspace_may_have() -> None:
    away = cluster("worker-2", availability=Availability.DRAINING)
    clusters = (cluster("worker-1"), away, cluster("worker-3"), cluster("worker-4"))
    wanted = desired(ordering("worker-2", "worker-3", "worker-4"), clusters=clusters, **most(1))
    seen = (short(3), free("worker-3", 2), free("worker-4", 8))
    made = decide(inputs(*seen, wanted=wanted, there=ledger(placement("worker-2", 3))))
    (change,) = made.changes
    assert change.action is Action.MOVE
    assert change.after.cluster == "worker-4"
    assert [(one.cluster, one.message) for one in change.refused if one.reason is Reason.NO_CAPACITY] == [
        ("worker-3", "has room for 2 of 3 replicas, which move together")
    ]


def test_an_end_makes_room_in_the_same_pass() -> None:
    over = placement(workload=TRAIN, created=NOW - timedelta(minutes=20), origin=Origin.REQUEST)
    known = record(request(ask=GpuAsk(gpus=1)), began_at=NOW - timedelta(days=8))
    there = ledger(over, requests={TRAIN: known})
    wanted = desired(ordering("worker-2"), **most(1))
    made = decide(inputs(short(3), free("worker-2", 8), wanted=wanted, there=there))
    assert places(made) == ["vllm"]
    assert not held(made)


def test_a_workspace_without_a_policy_is_bound_by_nothing() -> None:
    other = replace(desired(), limits={})
    made = decide(inputs(short(9), free("worker-2", 3), free("worker-3", 8), wanted=other))
    assert len(places(made)) == 2


@pytest.mark.parametrize(
    ("limits", "where"),
    [
        (each(GpuLimits(gpus=2)), [("worker-2", 2), ("worker-3", 2)]),
        (each(GpuLimits(gpus=4), worker_2=GpuLimits(gpus=3)), [("worker-2", 3), ("worker-3", 2)]),
        (each(worker_2=GpuLimits(gpus=1)), [("worker-2", 1), ("worker-3", 4)]),
    ],
    ids=["everywhere", "the lower of both", "on one cluster"],
)
def test_a_burst_takes_no_more_gpus_of_a_cluster_than_one_gpr_may_have(
    limits: dict[str, object], where: list[tuple[str, int]]
) -> None:
    made = decide(inputs(short(5), free("worker-2", 8), free("worker-3", 8), wanted=desired(**limits)))
    assert placed(made) == where


def test_a_burst_that_has_all_that_one_gpr_may_have_waits_and_says_what_would_change_it() -> None:
    there = placement("worker-2", 4)
    wanted = desired(ordering("worker-2"), **each(GpuLimits(gpus=4)))
    seen = inputs(short(6), free("worker-2", 8, bound={there.name: 4}), wanted=wanted, there=ledger(there))
    made = decide(seen)
    assert made.changes == ()
    (one,) = held(made)
    assert one.message == (
        "5 GPUs (1 on each of 5 nodes) are more than the 4 that one GPR may have in workspace llm"
        " (raise maxGPUPerGpr in spec.globalGPUConstraints of its WorkspacePolicy)"
    )
    (assessed,) = [one for one in explain(VLLM, seen, made).assessments if one.cluster == "worker-2"]
    assert assessed.refusal is not None
    assert assessed.refusal.reason is Reason.GPR_LIMIT


def test_a_replica_that_is_more_than_one_gpr_may_have_goes_nowhere() -> None:
    wanted = desired(ordering("worker-2"), **each(worker_2=GpuLimits(gpus=4)))
    made = decide(inputs(short(1, replica=shape(8)), free("worker-2", 8), wanted=wanted))
    (one,) = held(made)
    assert one.message.startswith("8 GPUs are more than the 4 that one GPR may have on worker-2 in workspace llm")
    assert "raise maxGPUPerGpr in spec.clusterGPUConstraints of its WorkspacePolicy" in one.message


@pytest.mark.parametrize(("model", "places"), [("NVIDIA-H100-80GB-HBM3", 1), ("NVIDIA-L40S", 0)])
def test_a_burst_asks_for_models_that_its_workspace_may_have(model: str, places: int) -> None:
    replica = shape(node_selector={MODEL: model})
    seen = free("worker-2", 8)
    labelled = replace(seen, pools=tuple(replace(pool, labels={MODEL: model}) for pool in seen.pools))
    wanted = desired(ordering("worker-2"), **each(GpuLimits(shapes=("H100",))))
    made = decide(inputs(short(1, replica=replica), labelled, wanted=wanted))
    assert len(placed(made)) == places
    assert [one.message.partition(" (")[0] for one in held(made)] == [
        "NVIDIA-L40S is not among the GPUs that a GPR may have in workspace llm"
    ] * (1 - places)


def test_a_burst_asks_for_the_memory_of_its_gpr_template() -> None:
    large = replace(gpr_template(), ask=GpuAsk(gpus=1, memory=141))
    wanted = desired(
        ordering("worker-2"),
        gpr_templates={"h100": large},
        bindings=binding({"worker-2": "h100"}),
        **each(GpuLimits(memory=80)),
    )
    (one,) = held(decide(inputs(short(1), free("worker-2", 8), wanted=wanted)))
    assert one.message.startswith("141 GB are more than the 80 GB that a GPU may have in workspace llm")


def test_a_request_that_names_no_cluster_goes_where_one_gpr_may_have_so_much() -> None:
    asked = record(request(clusters=(), placements=1, ask=GpuAsk(gpus=4)))
    wanted = replace(desired(policies={}, **each(worker_2=GpuLimits(gpus=2))), templates={})
    there = ledger(requests={TRAIN: asked})
    seen = (free("worker-1", 0), free("worker-2", 8))
    assert placed(decide(inputs(*seen, free("worker-3", 8), wanted=wanted, there=there))) == [("worker-3", 1)]
    full = inputs(*seen, free("worker-3", 0), wanted=wanted, there=there)
    made = decide(full)
    assert [one.reason for one in made.suppressed] == [Reason.NOTHING_FITS]
    told = explain_request(asked, full.with_requests({TRAIN: asked}), made)
    refusals = {one.cluster: one.refusal.message for one in told.assessments if one.refusal is not None}
    assert refusals["worker-2"] == "4 GPUs are more than the 2 that one GPR may have on worker-2 in workspace llm"


def test_pods_of_a_request_that_says_nothing_of_gpus_are_counted() -> None:
    asked = record(request(spec=manifests(deployment(replicas=2, gpus=2))))
    wanted = replace(desired(policies={}, **each(GpuLimits(gpus=3))), templates={})
    (one,) = held(decide(inputs(free("worker-2", 4, 4), wanted=wanted, there=ledger(requests={TRAIN: asked}))))
    assert one.message.startswith("4 GPUs (2 on each of 2 nodes) are more than the 3")


def test_a_reservation_is_not_kept_where_one_gpr_may_not_have_so_much() -> None:
    asked = replace(reservation(gpus=4), clusters=())
    wanted = replace(desired(policies={}, **each(worker_2=GpuLimits(gpus=2))), templates={})
    there = ledger(requests={asked.workload: record(asked)})
    made = decide(inputs(free("worker-2", 8), free("worker-3", 0), wanted=wanted, there=there))
    assert made.changes == ()
    (one,) = [one for one in made.suppressed if one.workload == asked.workload]
    assert "4 GPUs are more than the 2 that one GPR may have on worker-2" in str(one.refusals)


def test_a_burst_lasts_no_longer_than_its_workspace_allows() -> None:
    limits = {LLM: WorkspaceLimits(workspace=LLM, longest=timedelta(minutes=4))}
    made = decide(inputs(short(1), free("worker-2", 8), wanted=desired(limits=limits)))
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert change.placement.expires_at == NOW + timedelta(minutes=4)
    there = ledger(change.placement)
    with pytest.raises(InvalidInput, match=r"workspace llm allows 4m.*raise maxExitDurationPerGPR"):
        plan_extension(
            inputs(wanted=desired(limits=limits), there=there),
            change.placement,
            NOW + timedelta(minutes=5),
            by="Ann",
            reason="",
        )


@pytest.mark.parametrize(
    ("asked", "labels", "refused"),
    [
        (GpuAsk(gpus=1, shape="NVIDIA-H100"), h100(), False),
        (GpuAsk(gpus=1, shape="NVIDIA-L4"), h100(), True),
        (GpuAsk(gpus=1, memory=90), h100(), True),
        (GpuAsk(gpus=1, instance_type="a3-highgpu-8g"), h100(**{INSTANCE_TYPE: "g2-standard-4"}), True),
        (GpuAsk(gpus=1, instance_type="a3-highgpu-8g"), h100(), False),
        (GpuAsk(gpus=1, shape="NVIDIA-L4"), {}, False),
        (GpuAsk(gpus=4), h100(), False),
    ],
    ids=["same", "other model", "too small", "other machine", "machine unknown", "model unknown", "more GPUs"],
)
def test_a_burst_goes_where_the_gpus_may_be_those_of_its_gpr_template(
    asked: GpuAsk, labels: dict[str, str], refused: bool
) -> None:
    one = GprTemplate(name="fast", cluster=ClusterName("worker-2"), ask=asked, terms=GprTerms())
    wanted = desired(ordering("worker-2"), gpr_templates={"fast": one}, bindings=binding({"worker-2": "fast"}))
    seen = inputs(short(1), cluster_of(nodes(8, labels=labels)), wanted=wanted)
    made = decide(seen)
    assert [change.action for change in made.changes] == ([] if refused else [Action.PLACE])
    refusals = [refusal for held in made.suppressed for refusal in held.refusals]
    assert [refusal.reason for refusal in refusals] == ([Reason.LABELS] if refused else [])
    if refused:
        assert refusals[0].message.startswith("GPRTemplate fast: no node has any ")
        shown = gpr_needs(seen, VLLM, ClusterName("worker-2"), shape(), 1)
        assert (shown.shape, shown.memory, shown.instance_type) == ("", 0, "")
