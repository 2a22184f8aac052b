"""Groups that want a topology domain for themselves fit where so many are free, each with room for a whole one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.capacity.exclusive_topology import SUBGROUPS, subgroup_of
from reconciler.model.action import Action
from reconciler.model.capacity import ClosedNode, ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import PodOnNode
from reconciler.model.plan import Plan, Reason
from reconciler.model.workload import Json
from tests.builders.group_bursts import fleet, lacks
from tests.builders.inputs import NOW, free, gpus, plan, shape
from tests.builders.requests import deployment, holds, manifests, placed, record, request, wants
from tests.builders.workload_kinds import lws, template, workload
from tests.capacity.test_gangs import refused

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
JOBS = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def racks(*each: tuple[int, ...], name: str = "worker-2", within: int = 0, **fields: object) -> ClusterObservation:
    """Observe a cluster of racks whose nodes have so many free GPUs; each so many nodes of a rack are a block."""
    made = tuple(
        Node(
            name=f"{rack}-{number}",
            free=gpus(count),
            pods=(),
            labels={"rack": f"r{rack}"} | ({"block": f"b{rack}-{number // within}"} if within else {}),
        )
        for rack, counts in enumerate(each)
        for number, count in enumerate(counts)
    )
    pool = Pool(name="gpu", nodes=made)
    return ClusterObservation(cluster=ClusterName(name), observed_at=NOW, pools=(pool,), **fields)


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
    return any(change.action is Action.PLACE for change in decided(seen, *made).changes)


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
    assert fits(racks((8, 8), (8, 8), (8, 8)), made)
    assert not fits(racks((8, 8), (8, 8)), made)
    # Where the driver goes first no job with a domain of its own can follow, and it cannot follow them.
    assert not fits(racks((8, 8, 4), (8, 8)), made)
    assert not fits(racks((8, 8), (8, 8), (4,)), made)


def test_a_burst_counts_domains_by_the_groups_that_it_lends() -> None:
    wanted = fleet(marked(lws("{{ replicas }}", 4), group="rack"))
    (place,) = plan(lacks(8), racks(EIGHT, EIGHT), wanted=wanted).changes
    assert place.action is Action.PLACE
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


@pytest.mark.exhaustive(one_in=None)
def test_as_many_groups_as_a_large_cluster_has_nodes_find_a_domain_each() -> None:
    number = 1200  # more than Python lets calls nest
    seen = racks(*[(8,)] * number)
    assert fits(seen, marked(lws(number, 1), group="rack"))
    assert not fits(seen, marked(lws(number + 1, 1), group="rack"))


# Who is there already

GROUP_KEY, JOB_KEY = "leaderworkerset.sigs.k8s.io/group-key", "jobset.sigs.k8s.io/job-key"


def pod(*, namespace: str = "demo", **labels: str) -> PodOnNode:
    """A pod that has a node; `group` and `job` are the keys by which groups and jobs are told apart."""
    names = {"group": GROUP_KEY, "job": JOB_KEY, "placement": "overspill.dev/placement"}
    return PodOnNode(namespace=namespace, labels=tuple(sorted((names.get(key, key), labels[key]) for key in labels)))


def housing(seen: ClusterObservation, *there: tuple[str, PodOnNode]) -> ClusterObservation:
    """Put pods on nodes, by name."""
    (pool,) = seen.pools
    nodes = tuple(replace(node, pods=tuple(pod for name, pod in there if name == node.name)) for node in pool.nodes)
    return replace(seen, pools=(replace(pool, nodes=nodes),))


SET, JOBSET = marked(lws(1, 4), group="rack"), marked(jobs(), jobs="rack")


@pytest.mark.parametrize(
    ("there", "fit"),
    [
        (pod(group="a1b2"), False),  # whether or not its own group wants a domain
        (pod(group="a1b2", namespace="other"), True),
        (pod(job="a1b2"), True),
        (pod(app="web"), True),
        (pod(group="a1b2")._replace(leaving=True), False),
    ],
)
def test_a_domain_with_a_pod_of_another_group_is_taken(there: PodOnNode, fit: bool) -> None:
    assert fits(housing(racks(EIGHT), ("0-3", there)), SET) is fit


def test_jobs_are_kept_apart_from_jobs_of_any_namespace() -> None:
    seen = racks((8, 8), (8, 8), (8, 8))
    assert fits(seen, JOBSET)
    assert not fits(housing(seen, ("1-0", pod(job="a1b2", namespace="other"))), JOBSET)


def test_a_pod_on_a_cordoned_node_takes_its_domain_too() -> None:
    closed = ClosedNode(name="old", allocatable=gpus(8), ready=True, labels={"rack": "r0"}, pods=(pod(group="a1b2"),))
    assert not fits(replace(racks(EIGHT), closed=(closed,)), SET)
    assert fits(replace(racks(EIGHT), closed=(replace(closed, labels={}),)), SET)


def test_where_domains_are_taken_it_says_by_whom() -> None:
    made = decided(housing(racks(EIGHT, (8,)), ("0-0", pod(group="a1b2"))), SET)
    told = "needs 1 domain of rack, one for each group: 0 of 2 there can hold one, and other groups have pods in 1"
    assert refused(made) == told


def test_a_domain_of_which_nobody_says_which_pods_are_there_is_none() -> None:
    seen = racks(EIGHT)
    (pool,) = seen.pools
    unknown = replace(seen, pools=(replace(pool, nodes=(*pool.nodes[:3], replace(pool.nodes[3], pods=None))),))
    told = "needs 1 domain of rack, one for each group: 0 of 1 there can hold one, and the pods in 1 are unknown"
    assert refused(decided(unknown, SET)) == told


def test_subgroups_mind_pods_of_other_subgroups() -> None:
    made = lws(1, 4)
    made["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = {"subGroupSize": 2}
    made = marked(made, subgroup="rack")
    seen = racks((8, 8), (8, 8))
    assert fits(housing(seen, ("0-0", pod(group="a1b2"))), made)
    other = pod(**{"group": "a1b2", "leaderworkerset.sigs.k8s.io/subgroup-key": "c3d4"})
    assert not fits(housing(seen, ("0-0", other)), made)


def stands(made: Json, *seen_in: str, seen: ClusterObservation) -> Plan:
    """Decide on a set beside another of ours, whose pods are seen on these nodes."""
    one, other = request("worker-2", name="a", spec=manifests(made)), request("worker-2", name="b", spec=manifests(SET))
    there = replace(placed(replicas=4, shape=shape(8)), workload=one.workload)
    ledger = holds(record(one, began_at=NOW), record(other), placed=[there])
    pods = [(node, pod(group="own", placement=there.name)) for node in seen_in]
    return plan(housing(replace(seen, bound={there.name: 4}), *pods), wanted=wants(one, other), there=ledger)


def test_of_our_own_groups_those_that_are_seen_have_their_domain_and_no_other() -> None:
    own = marked(named(lws(1, 4), "a"), group="rack")
    there = ("1-0", "1-1", "1-2", "1-3")
    seen = racks(EIGHT, (0, 0, 0, 0))
    assert len(stands(own, *there, seen=seen).changes) == 1
    assert stands(own, seen=seen).changes == ()


def test_sets_of_our_own_that_want_no_domain_may_be_in_as_many_as_they_have_pods_on_their_way() -> None:
    own = named(lws(1, 4), "a")
    assert len(stands(own, "4-0", "4-0", "4-0", "4-0", seen=racks(EIGHT, (), (), (), (0,))).changes) == 1
    assert stands(own, "4-0", "4-0", "4-0", seen=racks(EIGHT, (), (), (), (0,))).changes == ()
    assert len(stands(own, seen=racks(*[EIGHT] * 5)).changes) == 1
    assert stands(own, seen=racks(*[EIGHT] * 4)).changes == ()


def test_two_sets_of_one_request_have_no_domain_together() -> None:
    both = named(SET, "a"), named(SET, "b")
    assert fits(racks((*EIGHT, *EIGHT), EIGHT), *both)
    assert not fits(racks((*EIGHT, *EIGHT), (8,)), *both)
