"""Groups that want a topology domain for themselves fit where so many are free, each with room for a whole one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.exclusive import SUBGROUPS, subgroup_of
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Place, Plan, Reason
from reconciler.model.workload import Json
from tests.kinds.bursting import fleet, lacks
from tests.kinds.samples import lws, template, workload
from tests.kinds.test_groups import refused
from tests.requests.asking import deployment, holds, manifests, placed, record, request, wants
from tests.situations import NOW, free, gpus, plan, shape

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
JOBS = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def racks(*each: tuple[int, ...], name: str = "worker-2", within: int = 0, **fields: object) -> ClusterObservation:
    """Observe a cluster of racks whose nodes have so many free GPUs; each so many nodes of a rack are a block."""
    made = tuple(
        Node(
            name=f"{rack}-{number}",
            free=gpus(count),
            labels={"rack": f"r{rack}"} | ({"block": f"b{rack}-{number // within}"} if within else {}),
        )
        for rack, counts in enumerate(each)
        for number, count in enumerate(counts)
    )
    pool = Pool(name="gpu", nodes=made)
    return ClusterObservation(cluster=ClusterName(name), observed_at=NOW, pools=(pool,), **fields)  # type: ignore[arg-type] -- keyword pass-through


def marked(made: Json, **annotations: str) -> Json:
    names = {"group": EXCLUSIVE, "subgroup": SUBGROUPS, "jobs": JOBS}
    written = {names[key]: value for key, value in annotations.items()}
    return {**made, "metadata": {**made["metadata"], "annotations": written}}


def named(made: Json, name: str) -> Json:
    return {**made, "metadata": {**made["metadata"], "name": name}}


def decided(seen: ClusterObservation, *made: Json) -> Plan:
    asked = request("worker-2", spec=manifests(*made))
    return plan(seen, wanted=wants(asked), there=holds(record(asked)))


def fits(seen: ClusterObservation, *made: Json) -> bool:
    return any(isinstance(change, Place) for change in decided(seen, *made).changes)


EIGHT = (8, 8, 8, 8)


@pytest.mark.parametrize(
    ("seen", "fit"),
    [
        (racks(EIGHT, EIGHT), True),
        (racks(EIGHT, (8, 8, 8), EIGHT), True),
        (racks((*EIGHT, *EIGHT)), False),  # one rack holds both groups, and each wants its own
        (racks((8, 8, 8), (8, 8, 8), (8, 8)), False),  # room for eight pods, and no rack for four of them
        (free("worker-2", *[8] * 8), False),
    ],
)
def test_each_group_needs_a_domain_that_holds_all_of_it(seen: ClusterObservation, fit: bool) -> None:
    assert fits(seen, marked(lws(2, 4), group="rack")) is fit


def test_where_domains_are_too_few_or_too_small_it_says_how_many_there_are() -> None:
    made = decided(racks(EIGHT, (8, 8, 8), (8, 8)), marked(lws(2, 4), group="rack"))
    assert refused(made) == "needs 2 domains of rack, one for each group: 1 of 3 there can hold one"
    made = decided(free("worker-2", *[8] * 8), marked(lws(2, 4), group="rack"))
    assert refused(made) == "no node has a label rack, by which each group wants a domain of its own"


def test_domains_of_what_stands_already_are_taken_to_be_those_that_would_do() -> None:
    one, other = (
        request("worker-2", name=name, spec=manifests(marked(named(lws(1, 4), name), group="rack"))) for name in "ab"
    )
    there = replace(placed(replicas=4, shape=shape(8)), workload=one.workload)
    ledger = holds(record(one, began_at=NOW), record(other), placed=[there])
    seen = racks(EIGHT, (0, 0, 0, 0), bound={there.name: 4})
    made = plan(seen, wanted=wants(one, other), there=ledger)
    told = "needs 1 domain of rack, one for each group: 1 of 2 there can hold one, and others of ours have 1"
    assert refused(made) == told
    more = racks(EIGHT, EIGHT, (0, 0, 0, 0), bound={there.name: 4})
    assert len(plan(more, wanted=wants(one, other), there=ledger).changes) == 1


def test_what_wants_no_domain_finds_room_beside_those_that_do() -> None:
    made = marked(lws(1, 2), group="rack")
    assert fits(racks((8, 8), (8,)), made, deployment(1, 8))
    assert not fits(racks((8, 8)), made, deployment(1, 8))


def test_subgroups_have_domains_of_their_own_with_the_leader_in_the_first() -> None:
    made = lws(1, 5, leader=0)
    made["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = {"subGroupSize": 2}
    made["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = template(1)
    made = marked(made, subgroup="rack")
    assert fits(racks((8, 8, 1), (8, 8)), made)
    assert not fits(racks((8, 8), (8, 8), (1,)), made)


def test_a_leader_that_is_excluded_may_be_anywhere() -> None:
    made = lws(1, 5, leader=1)
    policy = {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}
    made["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = policy
    assert fits(racks((8, 8), (8, 8), (1,)), marked(made, subgroup="rack"))


def test_subgroups_are_within_the_domain_of_their_group() -> None:
    made = lws(1, 4)
    made["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = {"subGroupSize": 2}
    made = marked(made, group="rack", subgroup="block")
    assert fits(racks(EIGHT, within=2), made)
    assert not fits(racks((8, 8), (8, 8), within=2), made)
    assert not fits(racks(EIGHT, within=4), made)


def jobs(**template_annotations: str) -> Json:
    job = {"parallelism": 2, "template": template(8)}
    few = {"parallelism": 1, "template": template(4)}
    replicated = [
        {"name": "driver", "template": {"spec": few}},
        {
            "name": "workers",
            "replicas": 2,
            "template": {"metadata": {"annotations": template_annotations}, "spec": job},
        },
    ]
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": replicated})


def test_each_job_of_a_set_has_a_domain_and_a_small_one_may_have_a_small_domain() -> None:
    made = marked(jobs(), jobs="rack")
    assert fits(racks((4,), (8, 8), (8, 8)), made)
    assert not fits(racks((8, 8, 4), (8, 8)), made)
    told = refused(decided(racks((8, 8, 4), (8, 8)), made))
    assert told == "needs 3 domains of rack, one for each job: 2 of 2 there can hold one"


def test_one_replicated_job_may_want_domains_and_the_others_none() -> None:
    made = jobs(**{JOBS: "rack"})
    assert fits(racks((8, 8, 4), (8, 8)), made)
    assert not fits(racks((8, 8, 8, 8, 4)), made)


def test_a_burst_counts_domains_by_the_groups_that_it_lends() -> None:
    wanted = fleet(marked(lws("{{ replicas }}", 4), group="rack"))
    (place,) = plan(lacks(8), racks(EIGHT, EIGHT), wanted=wanted).changes
    assert isinstance(place, Place)
    made = plan(lacks(8), racks((*EIGHT, *EIGHT)), wanted=wanted)
    (held,) = made.suppressed
    assert held.refusals[0].reason is Reason.NO_CAPACITY


def test_a_rack_that_people_ask_for_besides_is_the_only_one() -> None:
    made = marked(lws(1, 4), group="rack")
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["nodeSelector"] = {"rack": "r1"}
    assert fits(racks((8,), EIGHT), made)
    assert not fits(racks(EIGHT, (8,)), made)


@pytest.mark.parametrize(
    ("size", "subgroup", "worker", "index"), [(4, 2, 0, 0), (4, 2, 3, 1), (5, 2, 0, 0), (5, 2, 4, 1)]
)
def test_pods_are_in_subgroups_by_their_place(size: int, subgroup: int, worker: int, index: int) -> None:
    assert subgroup_of(size, subgroup, worker) == index


def test_a_domain_is_not_lost_on_a_node_that_takes_no_pods() -> None:
    seen = racks(EIGHT, EIGHT)
    (pool,) = seen.pools
    assert not fits(replace(seen, pools=(replace(pool, nodes=pool.nodes[:-1]),)), marked(lws(2, 4), group="rack"))


@pytest.mark.parametrize(
    "made",
    [
        marked(lws(2_000_000_000, 2), group="rack"),
        marked(lws(1, 2_000_000_000), subgroup="rack"),
        marked(lws(1, 2_000_000_000), group="rack", subgroup="rack"),
    ],
    ids=["groups", "pods in subgroups", "both"],
)
def test_numbers_that_nobody_could_list_are_told_and_cost_nothing(made: Json) -> None:
    made["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = {"subGroupSize": 2}
    assert not fits(racks(EIGHT), made)


def test_as_many_groups_as_a_large_cluster_has_nodes_find_a_domain_each() -> None:
    seen = racks(*[(8,)] * 2000)
    assert fits(seen, marked(lws(2000, 1), group="rack"))
    assert not fits(seen, marked(lws(2001, 1), group="rack"))
