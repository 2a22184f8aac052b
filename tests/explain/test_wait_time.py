"""How long GPUs take: no time where they are free, else until something ends, a node comes, or others are served."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from reconciler import bulkhead
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.gprs import gpr_views
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.wait_time import (
    GpuDemand,
    WaitEstimate,
    describe_start,
    estimate_starts,
    estimate_waits,
    write_wait,
)
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import ScalableNodes
from reconciler.model.gpr import GprTerms, GpuAsk, GpuLimits, WorkspaceLimits
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.ledger import Drift
from reconciler.model.placement import Origin, Placement, Restraint, RestraintKind
from reconciler.model.policy import Availability, Cluster, Desired
from reconciler.model.units import format_duration
from reconciler.model.workload import DeploySpec, HelmConfig, ManifestResource, Step, StepType
from tests.builders.gprs import LLM, record, request, reservation
from tests.builders.gpu_nodes import H100, cluster_of, h100, nodes
from tests.builders.inputs import NOW, VLLM, cluster, desired, gpus, inputs, ledger, ordering, placement, shape, short
from tests.builders.node_pools import declared
from tests.builders.node_pools import pool as node_pool

ASK = GpuAsk(gpus=4)


def wait(
    seen: PassInput, ask: GpuAsk = ASK, *, priority: int | None = None, cluster: str = "worker-2", **fields: object
) -> WaitEstimate:
    asking = GpuDemand(workspace=LLM, ask=ask, priority=priority, clusters=(ClusterName(cluster),), **fields)
    (answer,) = estimate_waits(asking, seen, decide(seen))
    return answer


def fleet(*, worker_2: Cluster | None = None, priority: int = 0) -> Desired:
    clusters = (cluster("worker-1"), worker_2 or cluster("worker-2"), cluster("worker-3"))
    return desired(ordering("worker-2", priority=priority), clusters=clusters)


def scaling(most: int = 4, minutes: int = 6) -> Cluster:
    nodes = ScalableNodes(labels=h100(), taints=(), allocatable=gpus(8), most=most, delay=timedelta(minutes=minutes))
    return cluster("worker-2", autoscaling=(nodes,))


def busy(*lasting: int, free: int = 0) -> PassInput:
    """Let placements of 4 GPUs each, that end after so many minutes, be all that runs on a node."""
    there = [
        placement(
            replicas=1,
            shape=shape(4),
            lasting=timedelta(minutes=minutes + 1),
            name="worker-2",
            created=NOW - timedelta(minutes=1, seconds=index),
        )
        for index, minutes in enumerate(lasting)
    ]
    seen = cluster_of(nodes(free, of=4 * len(lasting) + free), bound={one.name: 1 for one in there})
    return inputs(short(len(lasting), replica=shape(4)), seen, there=ledger(*there))


def test_what_is_free_needs_no_wait() -> None:
    answer = wait(inputs(cluster_of(nodes(8))))
    assert (answer.wait, answer.at) == (timedelta(), NOW)
    assert answer.reasons == ("there is room for 1 node with 4 GPUs",)


def test_free_gpus_on_several_nodes_are_no_room_for_one() -> None:
    answer = wait(inputs(cluster_of(nodes(2, 2))))
    assert answer.wait is None
    assert "needs 4 GPUs on one node, largest has 2 GPUs free" in answer.reasons[0]


def test_room_comes_with_the_first_end_that_makes_enough() -> None:
    seen = busy(30, 10, 20)
    assert wait(seen).wait == timedelta(minutes=10) - timedelta(seconds=1)
    eight = wait(seen, GpuAsk(gpus=8))
    assert eight.wait == timedelta(minutes=20) - timedelta(seconds=2)
    assert len(eight.reasons) == 1
    assert eight.reasons[0].count(" at 2026-11-20T10:") == 2


def test_what_no_end_brings_is_unknown() -> None:
    answer = wait(busy(10, 20), GpuAsk(gpus=16))
    assert answer.wait is None
    assert answer.reasons[0].endswith("even when all that is known to end has ended")


def test_nodes_that_an_autoscaler_may_add_come_after_their_delay() -> None:
    seen = cluster_of(nodes(0, 0))
    answer = wait(inputs(seen, wanted=fleet(worker_2=scaling())))
    assert answer.wait == timedelta(minutes=6)
    assert answer.reasons == ("its autoscaler can add 2 nodes within 6m",)
    three = GpuAsk(gpus=8, nodes=3)
    assert wait(inputs(seen, wanted=fleet(worker_2=scaling())), three).wait is None


def test_an_autoscaler_at_its_maximum_adds_nothing() -> None:
    assert wait(inputs(cluster_of(nodes(0, 0)), wanted=fleet(worker_2=scaling(most=2)))).wait is None


def test_nodes_of_a_node_pool_come_within_its_limits() -> None:
    wanted = fleet(worker_2=cluster("worker-2", autoscaling=(declared(delay=6, each=gpus(8)),)))
    seen = replace(cluster_of(nodes(0)), node_pools={"gpu": node_pool(gpus(16), gpus(8))})
    assert wait(inputs(seen, wanted=wanted)).reasons == ("NodePool gpu can add 1 node within 6m",)
    full = wait(inputs(replace(seen, node_pools={"gpu": node_pool(gpus(16), gpus(16))}), wanted=wanted))
    assert full.wait is None
    assert full.reasons[0].endswith("; NodePool gpu: limit nvidia.com/gpu 16 of 16 used")


def test_gpus_of_a_cluster_that_has_none_yet_come_with_its_autoscaler() -> None:
    answer = wait(inputs(cluster_of(), wanted=fleet(worker_2=scaling())), GpuAsk(gpus=8, shape=H100))
    assert answer.wait == timedelta(minutes=6)


@pytest.mark.parametrize(("priority", "waited"), [(300, 10), (101, 20), (100, 20)])
def test_who_is_ahead_takes_the_room_that_comes_first(priority: int, waited: int) -> None:
    """A workload of priority 101 waits for one replica of 4 GPUs more than there is room for."""
    there = [
        placement(
            replicas=1, shape=shape(4), lasting=timedelta(minutes=minutes + 1), created=NOW - timedelta(minutes=1)
        )
        for minutes in (10,)
    ]
    later = placement(replicas=1, shape=shape(4), created=NOW - timedelta(minutes=2), lasting=timedelta(minutes=22))
    seen = cluster_of(nodes(0, of=8), bound={one.name: 1 for one in (*there, later)})
    now = inputs(short(3, replica=shape(4)), seen, wanted=fleet(priority=101), there=ledger(*there, later))
    answer = wait(now, priority=priority)
    assert answer.wait == timedelta(minutes=waited)
    assert [str(one) for one in answer.ahead] == (["llm/vllm"] if waited == 20 else [])
    assert ("after llm/vllm" in answer.reasons) is (waited == 20)


def test_who_waits_for_no_gpus_or_until_its_needs_are_known_is_not_ahead() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "demo"}}
    settings = DeploySpec(
        manifests=(ManifestResource(name="settings", manifest=config),),
        steps=(Step(name="settings", type=StepType.MANIFEST),),
    )
    cuda = HelmConfig(name="cuda", chart="vaidio/cuda", release_name="cuda", release_namespace="demo")
    chart = DeploySpec(helm=(cuda,), steps=(Step(name="cuda", type=StepType.HELM),))
    asked = (request("settings", spec=settings), request("chart", spec=chart), request("train", ask=GpuAsk(gpus=8)))
    waiting = {one.workload: record(one, received=NOW - timedelta(minutes=1)) for one in asked}
    answer = wait(inputs(there=ledger(requests=waiting)))
    assert [one.name for one in answer.ahead] == ["train"]


@pytest.mark.parametrize(
    ("seen", "wanted", "reason"),
    [
        ((), fleet(), "it has not been observed"),
        ((cluster_of(nodes(8), healthy=False, message="etcd is slow"),), fleet(), "etcd is slow"),
        (
            (cluster_of(nodes(8)),),
            fleet(worker_2=cluster("worker-2", availability=Availability.CORDONED)),
            "it is Cordoned",
        ),
        (
            (cluster_of(nodes(8)),),
            desired(clusters=(cluster("worker-1"),)),
            "not a cluster of workspace llm",
        ),
        ((cluster_of(nodes(8, labels={})),), fleet(), "no node has any Tesla-T4; there is nvidia.com/gpu"),
    ],
    ids=["unseen", "unhealthy", "cordoned", "unknown", "no such GPU"],
)
def test_a_cluster_that_gives_nothing_says_why(
    seen: tuple[ClusterObservation, ...], wanted: Desired, reason: str
) -> None:
    asked = GpuAsk(gpus=1, shape="Tesla-T4") if reason.startswith("no node") else ASK
    answer = wait(inputs(*seen, wanted=wanted), asked)
    assert (answer.wait, answer.at, answer.reasons) == (None, None, (reason,))


def test_the_shortest_wait_comes_first_over_all_clusters_of_the_workspace() -> None:
    seen = busy(10)
    seen = replace(
        seen,
        observed=replace(
            seen.observed, clusters={**seen.observed.clusters, "worker-3": cluster_of(nodes(8), name="worker-3")}
        ),
    )
    answers = estimate_waits(GpuDemand(workspace=LLM, ask=ASK, priority=101), seen, decide(seen))
    assert [one.cluster for one in answers] == ["worker-3", "worker-2", "worker-1"]
    assert [one.wait for one in answers] == [timedelta(), timedelta(minutes=10), None]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0h0m0s"), (160, "0h2m40s"), (3600, "1h0m0s"), (90_061, "25h1m1s"), (-5, "0h0m0s")]
)
def test_a_wait_is_spelt_as_egs_does(seconds: int, text: str) -> None:
    assert write_wait(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("elsewhere", ["worker-2", "worker-3"])
def test_who_has_as_many_gprs_as_it_may_waits_until_one_of_them_ends(elsewhere: str) -> None:
    mine = placement(elsewhere, 1, shape=shape(4), lasting=timedelta(hours=2), created=NOW - timedelta(hours=1))
    bound = {mine.name: 1}
    observed = (cluster_of(nodes(8), bound=bound), cluster_of(nodes(8), name="worker-3", bound=bound))
    for most, expected in ((1, timedelta(hours=1)), (2, timedelta())):
        wanted = desired(limits={LLM: WorkspaceLimits(workspace=LLM, most=most)})
        there = inputs(short(1, replica=shape(4)), *observed, wanted=wanted, there=ledger(mine))
        answer = wait(there)
        assert answer.wait == expected
        assert answer.reasons[0] == (
            f"when {mine.name} at 2026-11-20T11:05:00Z ends" if expected else "there is room for 1 node with 4 GPUs"
        )


def test_the_end_of_a_reservation_of_its_own_lets_a_workspace_have_another_gpr() -> None:
    kept = replace(reservation("kept", cluster="worker-3"), terms=GprTerms(exit_duration=timedelta(hours=2)))
    held = record(kept, began_at=NOW - timedelta(hours=1), cluster=ClusterName("worker-3"))
    wanted = desired(policies={}, limits={LLM: WorkspaceLimits(workspace=LLM, most=1)})
    seen = (cluster_of(nodes(8)), cluster_of(nodes(8), name="worker-3"))
    there = inputs(*seen, wanted=wanted, there=ledger(requests={held.workload: held}))
    answer = wait(there.with_requests(there.ledger.requests))
    assert answer.wait == timedelta(hours=1)
    assert answer.reasons == ("when reservation llm/kept at 2026-11-20T11:05:00Z ends",)


def queued(*names: str, gpus: int, lasting: timedelta = timedelta(minutes=10), **fields: object) -> dict:
    """Let requests wait for a node with so many GPUs each, in the order of their names."""
    terms = GprTerms(exit_duration=lasting)
    asked = [request(name, ask=GpuAsk(gpus=gpus), terms=terms, **fields) for name in names]
    return {
        one.workload: record(one, received=NOW - timedelta(minutes=len(names) - index))
        for index, one in enumerate(asked)
    }


def running(name: str, minutes: int, gpus: int, **fields: object) -> tuple[Placement, dict]:
    """Let a request run on worker-2 for so many minutes more."""
    asked = request(name, ask=GpuAsk(gpus=gpus), terms=GprTerms(exit_duration=timedelta(minutes=minutes + 8)))
    began = NOW - timedelta(minutes=8)
    known = record(asked, received=began, began_at=began)
    there = placement(
        replicas=1, workload=known.workload, shape=shape(gpus), created=began,
        lasting=timedelta(minutes=minutes + 8), origin=Origin.REQUEST, **fields,
    )  # fmt: skip # a placement on one line
    return there, {known.workload: known}


def test_what_waits_ahead_gives_its_gpus_back_at_the_end_of_its_own_time() -> None:
    """At first x holds 8 GPUs, for 2m more; y waits for them, for 10m."""
    x, requests = running("x", 2, 8)
    seen = cluster_of(nodes(0), bound={x.name: 1})
    there = ledger(x, requests={**requests, **queued("y", gpus=8)})
    answer = wait(inputs(seen, wanted=desired(policies={}), there=there), GpuAsk(gpus=8))
    assert answer.wait == timedelta(minutes=12)
    assert [one.name for one in answer.ahead] == ["y"]
    assert answer.reasons == (
        f"when {x.name} at 2026-11-20T10:07:00Z and llm/y at 2026-11-20T10:17:00Z end",
        "after llm/y",
    )


def test_who_waits_for_a_gpr_is_ahead_on_every_cluster_of_the_workspace() -> None:
    """At most one GPR: a has it for 10m, b and c wait for 10m each."""
    a, requests = running("a", 10, 1)
    seen = cluster_of(nodes(7, 8), bound={a.name: 1}), cluster_of(nodes(8), name="worker-3")
    wanted = desired(policies={}, limits={LLM: WorkspaceLimits(workspace=LLM, most=1)})
    there = ledger(a, requests={**requests, **queued("b", "c", gpus=1)})
    for name in ("worker-2", "worker-3"):
        answer = wait(inputs(*seen, wanted=wanted, there=there), GpuAsk(gpus=1), cluster=name)
        assert answer.wait == timedelta(minutes=30)
        assert [one.name for one in answer.ahead] == ["b", "c"]


def test_what_waits_behind_starts_first_where_it_fits() -> None:
    """A pass keeps no room for what waits, so that a smaller request of lower priority goes before a larger one."""
    x, first = running("x", 2, 4)
    y, second = running("y", 6, 4)
    seen = cluster_of(nodes(0), bound={x.name: 1, y.name: 1})
    small = queued("small", gpus=4)
    there = ledger(x, y, requests={**first, **second, **small})
    answer = wait(inputs(seen, wanted=desired(policies={}), there=there), GpuAsk(gpus=8), priority=200)
    assert answer.wait == timedelta(minutes=12)
    assert answer.ahead == ()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_simulation_agrees_with_the_passes_that_follow(count: int) -> None:
    """The wait for what comes last is the time of those before it, each on the only node."""
    x, requests = running("x", 2, 8)
    names = [f"r{index}" for index in range(count)]
    there = ledger(x, requests={**requests, **queued(*names, gpus=8)})
    seen = inputs(cluster_of(nodes(0), bound={x.name: 1}), wanted=desired(policies={}), there=there)
    assert wait(seen, GpuAsk(gpus=8)).wait == timedelta(minutes=2 + 10 * count)
    last = next(workload for workload in there.requests if workload.name == names[-1])
    begins = timedelta(minutes=2 + 10 * (count - 1))
    assert estimate_starts((last,), seen, decide(seen))[last].at == NOW + begins
    (view,) = [one for one in gpr_views(seen.with_requests(there.requests), decide(seen)) if one.workload == last]
    assert view.starts_at == NOW + begins
    told = explain_request(there.requests[last], seen.with_requests(there.requests), decide(seen)).conclusion
    starts = f"By what is known it gets room on worker-2 in {format_duration(begins)}"
    assert any(line.startswith(starts) for line in told)


@pytest.mark.parametrize(
    ("ask", "priority", "reason"),
    [
        (GpuAsk(gpus=8), None, "8 GPUs are more than the 4 that one GPR may have in workspace llm (try 4)"),
        (GpuAsk(gpus=1), 200, "200 is not within 1 to 100, the priorities of workspace llm"),
        (GpuAsk(gpus=4), None, "there is room for 1 node with 4 GPUs"),
    ],
    ids=["GPUs", "priority", "within"],
)
def test_limits_of_the_workspace_bind_a_demand_that_is_asked_about(
    ask: GpuAsk, priority: int | None, reason: str
) -> None:
    limits = WorkspaceLimits(workspace=LLM, limits=GpuLimits(gpus=4))
    answer = wait(inputs(cluster_of(nodes(8)), wanted=desired(limits={LLM: limits})), ask, priority=priority)
    assert answer.reasons[0].startswith(reason)
    assert (answer.wait is None) is not reason.startswith("there is room")


def test_a_workload_that_cools_down_takes_its_place_in_the_queue_when_it_has() -> None:
    until = NOW + timedelta(minutes=3)
    rest = Restraint(
        kind=RestraintKind.COOL_DOWN, cluster=None, since=NOW, until=until, reason="ended", placement=PlacementName("a")
    )
    x, requests = running("x", 4, 8)
    there = ledger(x, requests=requests, restraints={VLLM: (rest,)})
    seen = short(1, replica=shape(8)), cluster_of(nodes(0), bound={x.name: 1})
    answer = wait(inputs(*seen, wanted=fleet(priority=200), there=there), GpuAsk(gpus=8))
    assert answer.wait == timedelta(minutes=14)
    assert [str(one) for one in answer.ahead] == ["llm/vllm"]


def test_a_burst_that_a_person_has_just_deleted_is_held_and_not_ahead() -> None:
    deleted = placement(replicas=1, shape=shape(8))
    there = ledger(drifted=(Drift(placement=deleted, removed=True, files={}),))
    seen = inputs(short(1, replica=shape(8)), cluster_of(nodes(8)), wanted=fleet(priority=200), there=there)
    answer = wait(seen, GpuAsk(gpus=8))
    assert (answer.wait, answer.ahead) == (timedelta(), ())


def test_a_long_queue_ends_the_simulation_and_says_so() -> None:
    x, requests = running("x", 2, 8)
    there = ledger(x, requests={**requests, **queued(*(f"r{index}" for index in range(10)), gpus=8)})
    seen = inputs(cluster_of(nodes(0), bound={x.name: 1}), wanted=desired(policies={}), there=there)
    asking = GpuDemand(workspace=LLM, ask=ASK, clusters=(ClusterName("worker-2"),))
    (answer,) = estimate_waits(asking, seen, decide(seen), most=50)
    assert answer.wait is None
    assert answer.reasons[0] == "more waits ahead than can be played through (50 turns)"
    assert len(answer.ahead) == 10


@pytest.mark.parametrize("turn", range(3), ids=["admitted", "looked at", "told"])
def test_a_cluster_that_cannot_be_estimated_leaves_the_others_as_they_are(
    turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = [cluster_of(nodes(8), name=name) for name in ("worker-2", "worker-3")]
    seen, asking, turns = inputs(*clusters), GpuDemand(workspace=LLM, ask=ASK), count()
    plan = decide(seen)
    untouched = {answer.cluster: answer for answer in estimate_waits(asking, seen, plan)}

    def injected(seam: object, item: object, call: Callable[[], object]) -> object:
        if item == "cluster worker-2" and next(turns) >= turn:
            raise ZeroDivisionError("injected")
        return call()

    monkeypatch.setattr(bulkhead, "_run", injected)
    bugs: list[Bug] = []
    answers = {answer.cluster: answer for answer in estimate_waits(asking, seen, plan, bugs.append)}
    assert answers["worker-3"] == untouched["worker-3"]
    assert answers["worker-2"].wait is None
    assert answers["worker-2"].reasons == (bugs[0].summary,)


def test_the_end_of_its_own_replicas_brings_a_workload_no_more_room() -> None:
    """Four of six are placed and end together, as do those of another: only the end of these lets the rest start."""
    own = placement(replicas=4, name="worker-2", lasting=timedelta(minutes=30))
    seen = cluster_of(nodes(0), bound={own.name: 4})
    alone = inputs(short(6), seen, there=ledger(own), wanted=fleet())
    assert estimate_starts((VLLM,), alone, decide(alone)) == {}
    assert [*describe_start(VLLM, alone, decide(alone))] == [
        "Nothing that is known to end brings it more room than it has."
    ]
    x, requests = running("x", 2, 4)
    seen = cluster_of(nodes(0), bound={own.name: 4, x.name: 1})
    beside = inputs(short(6), seen, there=ledger(own, x, requests=requests), wanted=fleet())
    assert estimate_starts((VLLM,), beside, decide(beside))[VLLM].at == x.expires_at
