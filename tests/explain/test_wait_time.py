"""How long GPUs take: no time where they are free, else until something ends, a node comes, or others are served."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.wait_time import GpuDemand, WaitEstimate, estimate_waits, write_wait
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import ScalableNodes
from reconciler.model.gpr import GprTerms, GpuAsk, WorkspaceLimits
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Availability, Cluster, Desired
from reconciler.model.workload import DeploySpec, HelmConfig, ManifestResource, Step, StepType
from tests.builders.gprs import LLM, record, request, reservation
from tests.builders.gpu_nodes import H100, cluster_of, h100, nodes
from tests.builders.inputs import NOW, cluster, desired, gpus, inputs, ledger, ordering, placement, shape, short

ASK = GpuAsk(gpus=4)


def wait(
    seen: PassInput, ask: GpuAsk = ASK, *, priority: int = 101, cluster: str = "worker-2", **fields: object
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


def test_who_waits_for_no_gpus_is_not_ahead_and_who_may_want_some_is() -> None:
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
    assert [one.name for one in answer.ahead] == ["chart", "train"]


@pytest.mark.parametrize(
    ("seen", "wanted", "reason"),
    [
        ((), fleet(), "worker-2 has not been observed"),
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
    answer = wait(there.enrolling(there.ledger.requests))
    assert answer.wait == timedelta(hours=1)
    assert answer.reasons == ("when reservation llm/kept at 2026-11-20T11:05:00Z ends",)
