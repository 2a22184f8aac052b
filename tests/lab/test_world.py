"""Pods, owners, outages and engines of the simulated world."""

from __future__ import annotations

from dataclasses import replace

from reconciler.lab.scenario import AddedNodes, ClusterScenario, DemandScenario, Outage, Scenario, Series
from reconciler.lab.world import PlacedReplicas, SimulatedWorld
from reconciler.model.ids import ClusterName

THERE = ClusterName("worker-2")
CLUSTER = ClusterScenario(name=THERE, nodes=1, gpus=4, start_up=60)
VLLM = DemandScenario(name="vllm", wanted=Series.of([(0, 3)]), home=1)


def world(cluster: ClusterScenario = CLUSTER, *demands: DemandScenario) -> SimulatedWorld:
    return SimulatedWorld(
        Scenario(name="test", about="", length=3600, demands=demands or (VLLM,), clusters=(cluster,), engine_delay=20)
    )


def place(simulated: SimulatedWorld, replicas: int, now: int, workload: str = "vllm") -> None:
    simulated.commit({THERE: {f"{workload}-1": PlacedReplicas(workload, replicas)}}, now)


def states(simulated: SimulatedWorld, now: int, since: int = 0) -> tuple[int, int, int]:
    """Play every event after `since` up to a second, and count the pods that serve, that start, and without a node."""
    event = simulated.next_event(since)
    while event is not None and event < now:
        simulated.advance(event)
        event = simulated.next_event(event)
    simulated.advance(now)
    counts = simulated.clusters[THERE].count(now)
    return counts.ready.total(), counts.starting.total(), counts.pending.total()


def test_commit_is_applied_after_the_engines_delay_and_serves_after_its_start_up() -> None:
    simulated = world()
    place(simulated, 2, 0)
    assert states(simulated, 19) == (0, 0, 0)
    assert simulated.on_the_way() == {"vllm": 2}
    assert simulated.next_event(19) == 20
    assert states(simulated, 20) == (0, 2, 0)
    assert simulated.next_event(20) == 80
    assert states(simulated, 80, since=20) == (2, 0, 0)


def test_pods_without_room_wait_for_a_node() -> None:
    simulated = world()
    place(simulated, 6, 0)
    assert states(simulated, 20) == (0, 4, 2)
    place(simulated, 4, 20)
    assert states(simulated, 40, since=20) == (0, 4, 0)


def test_owners_evict_the_newest_pods_and_give_their_room_back() -> None:
    simulated = world(replace(CLUSTER, owners=Series.of([(100, 3), (200, 0)])))
    place(simulated, 2, 0)
    assert states(simulated, 99) == (2, 0, 0)
    assert simulated.next_event(99) == 100
    assert states(simulated, 100, since=99) == (1, 0, 1)
    assert states(simulated, 200, since=100) == (1, 1, 0)
    assert simulated.clusters[THERE].starts == 3


def test_outage_takes_the_pods_and_hides_the_cluster_where_it_is_unseen() -> None:
    simulated = world(replace(CLUSTER, outages=(Outage(begin=100, end=200, seen=False),)))
    place(simulated, 2, 0)
    assert states(simulated, 99) == (2, 0, 0)
    assert states(simulated, 100, since=99) == (0, 0, 2)
    assert simulated.clusters[THERE].unseen
    place(simulated, 0, 110)
    assert states(simulated, 130, since=100) == (0, 0, 2), "no engine applies anything there"
    assert states(simulated, 200, since=130) == (0, 0, 0)


def test_autoscaler_adds_nodes_for_waiting_pods_and_takes_empty_ones_away() -> None:
    added = AddedNodes(most=1, delay=300, idle=100)
    simulated = world(replace(CLUSTER, nodes=0, added=added))
    place(simulated, 2, 0)
    assert states(simulated, 20) == (0, 0, 2)
    assert simulated.next_event(20) == 320
    assert states(simulated, 320, since=20) == (0, 2, 0)
    place(simulated, 0, 400)
    assert states(simulated, 420, since=320) == (0, 0, 0)
    assert simulated.next_event(420) == 520
    simulated.advance(520)
    assert simulated.clusters[THERE].nodes == []


def test_workload_runs_only_on_its_model() -> None:
    picky = replace(VLLM, model="H200")
    simulated = world(CLUSTER, picky)
    assert simulated.clusters[THERE].room("vllm", 0) == 0
    place(simulated, 1, 0)
    assert states(simulated, 20) == (0, 0, 1)


def test_newest_of_the_waiting_replicas_go_first() -> None:
    demand = replace(VLLM, wanted=Series.of([(0, 3), (10, 6), (20, 4)]))
    simulated = world(CLUSTER, demand)
    simulated.advance(10)
    assert simulated.primary.waiting["vllm"] == [(0, 2), (10, 3)]
    simulated.advance(20)
    assert simulated.primary.waiting["vllm"] == [(0, 2), (10, 1)]
