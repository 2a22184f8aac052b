"""A supposition changes the observation alone, as a cluster would report it, and what does not exist is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.capacity.pod_requirements import largest_shape
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps.lost_cluster import lost_since
from reconciler.core.observe.demand import measure
from reconciler.core.observe.supposition import Supposed, parse_supposition, suppose
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, DeviceKind, DeviceStock, Node, Observed, Pool
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Desired
from tests.builders.gangs import JOB
from tests.builders.group_bursts import SET, lacks
from tests.builders.group_bursts import fleet as gang_fleet
from tests.builders.inputs import NOW, VLLM, desired, free, gpus, inputs, ledger, placement, short

FLEET = desired()


def supposed(*texts: str, seen: tuple[ClusterObservation, ...] = (), fleet: Desired = FLEET) -> Supposed:
    seen = seen or (short(0), free("worker-2", 4))
    observed = Observed(clusters={each.cluster: each for each in seen})
    return suppose(observed, fleet, [parse_supposition(text) for text in texts], NOW)


def demand(outcome: Supposed, fleet: Desired = FLEET) -> Demand:
    measured = measure(fleet, outcome.observed, {}, NOW)[VLLM]
    assert isinstance(measured, Demand)
    return measured


def refused(*texts: str, **fields) -> str:
    with pytest.raises(InvalidInput) as caught:
        supposed(*texts, **fields)
    return str(caught.value)


def test_replicas_are_missing_beside_those_that_are_and_as_long() -> None:
    outcome = supposed("llm/vllm+3", seen=(short(2), free("worker-2", 8)))
    measured = demand(outcome)
    assert (measured.missing, measured.running) == (5, 5)
    window = FLEET.policies[VLLM].scale_up_window
    assert all(wait.since <= NOW - window for wait in measured.waiting)
    assert outcome.questions == ("What if 3 more replicas of llm/vllm had been missing on worker-1 for 45s?",)
    alone = supposed("llm/vllm+3", seen=(short(0), free("worker-2", 8)))
    assert alone.questions == ("What if 3 more replicas of llm/vllm had been missing on worker-1 for 30s?",)
    assert demand(supposed("llm/vllm+3", "llm/vllm+2")).missing == 5


def test_workload_is_named_without_its_workspace_where_only_one_has_it() -> None:
    assert supposed("vllm+3").questions == supposed("llm/vllm+3").questions
    assert refused("vlm+3") == "what if vlm+3: there is no workload vlm (try 'vllm')"
    other = VLLM._replace(workspace=WorkspaceName("other"))
    both = replace(FLEET, templates={**FLEET.templates, other: FLEET.templates[VLLM]})
    assert refused("vllm+3", fleet=both) == (
        "what if vllm+3: 2 workspaces have a workload vllm (there are llm/vllm+3, other/vllm+3)"
    )


def test_replicas_that_are_starting_are_none_of_those_that_are_missing() -> None:
    seen = short(0)
    (starting,) = seen.workloads
    seen = replace(seen, workloads=(replace(starting, wanted=7, running=5),))
    assert demand(supposed("llm/vllm+3", seen=(seen,))).missing == 3


def test_replicas_are_missing_of_an_object_that_is_not_there_yet() -> None:
    outcome = supposed("llm/vllm+3", seen=(replace(short(0), workloads=()), free("worker-2", 4)))
    assert (demand(outcome).missing, demand(outcome).running) == (3, 0)
    assert demand(outcome).shape == largest_shape(FLEET.templates[VLLM].spec, FLEET.kinds)


def test_replicas_of_a_gang_are_missing_as_groups_and_not_as_pods() -> None:
    fleet = gang_fleet(SET)
    assert demand(supposed("llm/vllm+2", seen=(lacks(0),), fleet=fleet), fleet).missing == 2
    assert demand(supposed("llm/vllm+2", seen=(lacks(1),), fleet=fleet), fleet).missing == 3
    whole = gang_fleet(JOB, reads_replicas=False)
    assert demand(supposed("llm/vllm+1", seen=(lacks(0, running=0),), fleet=whole), whole).missing == 1


def test_a_plan_places_replicas_that_are_supposed_to_be_missing() -> None:
    base = inputs(short(0), free("worker-2", 4))
    outcome = suppose(base.observed, base.desired, [parse_supposition("llm/vllm+3")], base.now)
    assert [change.action for change in decide(base).changes] == []
    (place,) = decide(after(base, outcome)).changes
    assert place.action is Action.PLACE
    assert (place.placement.cluster, place.placement.replicas) == ("worker-2", 3)


def after(base: PassInput, outcome: Supposed) -> PassInput:
    lost = lost_since(outcome.lost, base.desired, outcome.observed, base.now)
    demands = measure(base.desired, outcome.observed, base.history, base.now)
    return replace(base, observed=outcome.observed, demands=demands, lost=lost)


def test_bursts_leave_a_cluster_that_is_supposed_to_be_down() -> None:
    there = placement(replicas=2)
    base = inputs(short(2), free("worker-2", 4), free("worker-3", 4), there=ledger(there))
    outcome = suppose(base.observed, base.desired, [parse_supposition(f"cluster/{there.cluster}=down")], base.now)
    assert outcome.questions == (f"What if {there.cluster} had been out of reach for 15m?",)
    (move,) = (change for change in decide(after(base, outcome)).changes if change.action is Action.MOVE)
    assert (move.before.cluster, move.after.cluster) == ("worker-2", "worker-3")
    assert "worker-2 was last observed" in move.detail


def test_a_cluster_that_was_never_seen_may_be_down() -> None:
    outcome = supposed("cluster/worker-3=down")
    assert outcome.lost == {ClusterName("worker-3"): NOW - timedelta(minutes=15)}
    assert ClusterName("worker-3") not in outcome.observed.clusters


def pool_of(name: str, *nodes: Node) -> ClusterObservation:
    return ClusterObservation(
        cluster=ClusterName("worker-2"),
        observed_at=NOW,
        pools=(Pool(name="gpu", nodes=nodes), Pool(name=name, nodes=nodes)),
    )


MODEL = Node(
    name="a",
    free=gpus(1),
    allocatable=gpus(8),
    labels={"kubernetes.io/hostname": "a", "zone": "b"},
    devices=(
        DeviceStock(kind=DeviceKind(driver="gpu.nvidia.com"), free=1, total=8),
        DeviceStock(kind=DeviceKind(driver="net"), free=1, total=8, shared="fabric"),
    ),
    pods=(),
)


@pytest.mark.parametrize("path", ["cluster/worker-2/gpu", "cluster/worker-2/a", "cluster/worker-2"])
def test_nodes_are_added_to_a_pool_by_its_name_or_that_of_a_node(path: str) -> None:
    seen = ClusterObservation(
        cluster=ClusterName("worker-2"), observed_at=NOW, pools=(Pool(name="gpu", nodes=(MODEL,)),)
    )
    outcome = supposed(f"{path}+2", f"{path}+1", seen=(seen,))
    (pool,) = outcome.observed.clusters[ClusterName("worker-2")].pools
    assert len({node.name for node in pool.nodes}) == 4
    added = pool.nodes[-1]
    assert (added.free, added.pods) == (gpus(8), ())
    assert added.labels == {"kubernetes.io/hostname": added.name, "zone": "b"}
    assert [stock.free for stock in added.devices] == [8, 1]
    assert outcome.questions[0] == "What if worker-2 had 2 more nodes like a, and empty?"


def test_the_observation_itself_stays_as_it_is() -> None:
    seen = (short(0), free("worker-2", 4))
    before = Observed(clusters={each.cluster: each for each in seen})
    suppose(before, FLEET, [parse_supposition(text) for text in ("llm/vllm+3", "cluster/worker-2+1")], NOW)
    assert before == Observed(clusters={each.cluster: each for each in (short(0), free("worker-2", 4))})


def test_a_name_that_does_not_exist_is_refused_with_the_nearest() -> None:
    assert refused("llm/vlm+3") == "what if llm/vlm+3: there is no workload llm/vlm (try 'llm/vllm')"
    assert refused("cluster/worker2=down") == (
        "what if cluster/worker2=down: there is no Cluster worker2 (try 'worker-2')"
    )
    assert "(try 'worker-2')" in refused("cluster/worker2+1")
    assert "for nodes of a cluster, try 'cluster/worker-2/gpu+4'" in refused("worker-2/gpu+4")
    two = pool_of("cpu", MODEL)
    assert "worker-2 has no pool or node gpus (try 'gpu')" in refused("cluster/worker-2/gpus+4", seen=(two,))
    assert refused("cluster/worker-2+4", seen=(two,)).endswith(
        "worker-2 has 2 pools; name one (there are cluster/worker-2/cpu+4, cluster/worker-2/gpu+4)"
    )
    assert "no open node of worker-2" in refused("cluster/worker-2+4", seen=(replace(two, pools=()),))
    assert "worker-3 has not been observed" in refused("cluster/worker-3+1")
    assert "worker-1 has not been observed" in refused("llm/vllm+1", seen=(free("worker-2", 4),))
    assert "no BurstPolicy governs llm/vllm" in refused("llm/vllm+1", fleet=replace(FLEET, policies={}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+3",
        "llm/vllm",
        "llm/vllm+0",
        "llm/vllm-3",
        "llm/vllm+x",
        "worker-2=down",
        "cluster/worker-2=up",
        "cluster/worker-2/gpu=down",
        "cluster/+3",
        "llm/+3",
        "a/b/c+1",
        "cluster+4",
    ],
)
def test_other_forms_are_refused_with_those_that_are_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no supposition \(try \[WORKSPACE/\]TEMPLATE\+3, cluster/NAME=down"):
        parse_supposition(text)
