"""A policy's topology: groups go where one domain holds each of them, or first to where one does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.workload import explain
from reconciler.model.action import Action
from reconciler.model.approval import ApprovalRule
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, GroupTopology, TopologyMode
from reconciler.model.score import ScorerName, ScorerWeight
from reconciler.model.units import ONE, Quantity, Resources, total
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.fleet_files import FLEET, load
from tests.builders.gangs import torch
from tests.builders.group_bursts import SET, burst, fleet, grouped, lacks
from tests.builders.inputs import (
    NOW,
    VLLM,
    desired,
    free,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    seconds,
    shape,
    short,
)
from tests.builders.workload_kinds import SAMPLES, lws, template, workload
from tests.capacity.test_exclusive_topology import EXCLUSIVE, named, racks
from tests.capacity.test_shared_topology import KAI, POD_SET, SLICE, SLICE_SIZE
from tests.decide.test_approval import awaited, proposed

WHOLE, DIVIDED = (8, 8, 8, 8), ((8, 8), (8, 8))
PREFERRED = GroupTopology(key="rack", mode=TopologyMode.PREFERRED)
SCORER = ScorerWeight(name=ScorerName.TOPOLOGY)


def required(key: str = "rack", *clusters: str, **fields: object) -> BurstPolicy:
    return ordering(*(clusters or ("worker-2", "worker-3")), topology=GroupTopology(key=key), **fields)


def preferred(*more: ScorerWeight) -> BurstPolicy:
    return ordering("worker-2", "worker-3", topology=PREFERRED, scoring=(*more, SCORER))


def places(decided: Plan) -> list[tuple[ClusterName, int]]:
    return [
        (change.placement.cluster, change.placement.replicas)
        for change in decided.changes
        if change.action is Action.PLACE
    ]


def refusals(decided: Plan) -> list[str]:
    return [refusal.message for held in decided.suppressed for refusal in held.refusals]


def job(**annotations: str) -> Json:
    made = template(8)
    made["metadata"]["annotations"] = annotations
    counts = {"parallelism": "{{ replicas }}", "completions": 4, "completionMode": "Indexed"}
    return workload("batch/v1", "Job", {**counts, "template": made})


def once(made: Json, policy: BurstPolicy) -> Desired:
    wanted = desired(policy)
    return replace(wanted, templates={VLLM: replace(grouped(made), runs_once=True)})


def waiting() -> ClusterObservation:
    return short(4, running=0, held=True, replica=shape(8))


def test_a_group_goes_where_one_domain_holds_it_whole() -> None:
    decided = plan(lacks(4), racks(*DIVIDED), racks(WHOLE, name="worker-3"), wanted=fleet(SET, policy=required()))
    (place,) = decided.changes
    assert place.action is Action.PLACE
    assert place.placement.cluster == "worker-3"
    assert [refusal.message for refusal in place.refused] == [
        "wants its 4 pods in one domain of rack: the largest of 2 domains, r0, holds 2 of 4"
    ]
    assert place.choice is not None
    assert place.choice.because == "one domain of rack for its 4 pods"


def test_each_group_has_a_domain_and_several_may_share_it() -> None:
    for seen, number in ((racks(WHOLE, WHOLE), 1), (racks(WHOLE * 2), 1), (racks((8,) * 6, (8, 8)), 0)):
        decided = plan(lacks(8), seen, wanted=fleet(SET, policy=required("rack", "worker-2")))
        assert len(places(decided)) == number
    assert refusals(decided)[0] == (
        "wants the 4 pods of each of 2 groups in one domain of rack: the largest of 2 domains, r0, holds 2 of 4"
        " beside 1 other group"
    )


@pytest.mark.parametrize(("each", "fits"), [([(8,) * 8, (8,) * 7], 3), ([(16, 16), (32,)], 2), ([(8,) * 6], 1)])
def test_the_groups_that_fit_are_counted_by_domain(each: list[tuple[int, ...]], fits: int) -> None:
    (place,) = plan(lacks(4), racks(*each), wanted=fleet(SET, policy=required("rack", "worker-2"))).changes
    assert place.action is Action.PLACE
    assert place.choice is not None
    assert place.choice.fits == fits


def test_a_label_that_no_node_has_is_refused_with_a_way_out() -> None:
    decided = plan(lacks(4), free("worker-2", *WHOLE), wanted=fleet(SET, policy=required("rail", "worker-2")))
    (held,) = decided.suppressed
    assert refusals(decided) == ["wants its 4 pods in one domain of rail, and no node there has that label"]
    assert "label its nodes with rail, or ask for another label" in held.message


def test_bursts_of_policies_that_differ_in_topology_alone_get_answers_of_their_own() -> None:
    wanted = fleet(SET, policy=required("rack", "worker-2"))
    assert places(plan(lacks(4), racks(*DIVIDED), wanted=wanted)) == []
    plain = replace(wanted, policies={VLLM: ordering("worker-2")})
    assert places(plan(lacks(4), racks(*DIVIDED), wanted=plain)) == [("worker-2", 1)]
    assert places(plan(lacks(4), racks(*DIVIDED), wanted=wanted)) == []


def test_more_groups_of_a_set_find_domains_beside_those_that_run() -> None:
    there = burst(groups=1, size=4)
    wanted = fleet(SET, policy=required("rack", "worker-2"))
    for seen, size in ((racks(*DIVIDED, bound={there.name: 4}), 1), (racks(WHOLE, bound={there.name: 4}), 2)):
        decided = plan(lacks(8), seen, wanted=wanted, there=ledger(there))
        after = [getattr(change, "after", None) for change in decided.changes]
        assert (after[0].replicas if after else 1) == size


def ray_cluster() -> Json:
    """Make a RayCluster whose head and workers KAI keeps in one rack; a head takes a CPU, a worker 4 GPUs."""
    made = SAMPLES["RayCluster"][0]
    (workers,) = made["spec"]["workerGroupSpecs"]
    workers = {**workers, "numOfHosts": 1, "replicas": "{{ replicas }}", "minReplicas": 0, "maxReplicas": 9}
    return {
        **made,
        "metadata": {**made["metadata"], "annotations": {KAI: "rack"}},
        "spec": {**made["spec"], "workerGroupSpecs": [workers]},
    }


def with_cpus(seen: ClusterObservation) -> ClusterObservation:
    (pool,) = seen.pools
    cpus = Resources(amounts={"cpu": Quantity(64 * ONE)})
    nodes = tuple(replace(node, free=total([node.free, cpus])) for node in pool.nodes)
    return replace(seen, pools=(replace(pool, nodes=nodes),))


def test_a_cluster_of_workers_is_one_group_and_does_not_grow_into_a_domain_that_nobody_knows() -> None:
    wanted = fleet(ray_cluster(), policy=ordering("worker-2"))
    (place,) = plan(lacks(2, running=0), with_cpus(racks((8, 8))), wanted=wanted).changes
    assert place.action is Action.PLACE
    assert place.placement.shape.obstacle == ""
    divided = plan(lacks(2, running=0), with_cpus(racks((3, 3), (3, 4))), wanted=wanted)
    assert refusals(divided) == []  # one worker and the head
    there = burst(groups=1, size=1, each=4)
    grown = with_cpus(racks((8, 8, 8), bound={there.name: 2}))
    (told,) = refusals(plan(lacks(4, running=1), grown, wanted=wanted, there=ledger(there)))
    assert told == "its other pods run in a topology domain that these would have to join, and nobody knows which"


def test_bursts_of_one_pass_whose_policies_differ_in_topology_alone_get_answers_of_their_own() -> None:
    free_, bound = (WorkloadId(VLLM.workspace, TemplateName(name)) for name in ("free", "bound"))
    policies = {bound: required("rack", "worker-2"), free_: ordering("worker-2")}
    made = once(job(), ordering("worker-2"))
    templates = {
        workload: replace(
            made.templates[VLLM], name=workload.name, ref=WorkloadRef(namespace="demo", name=workload.name)
        )
        for workload in policies
    }
    wanted = replace(made, templates=templates, policies=policies)
    home, other = (short(4, running=0, held=True, replica=shape(8), workload=workload) for workload in (free_, bound))
    home = replace(home, workloads=(*home.workloads, *other.workloads))
    decided = plan(home, racks(*DIVIDED, *DIVIDED), wanted=wanted)
    assert [change.placement.workload for change in decided.changes if change.action is Action.PLACE] == [free_]
    (held,) = decided.suppressed
    assert held.workload == bound
    assert "in one domain of rack" in held.refusals[0].message


def test_the_domain_of_a_policy_is_around_those_that_groups_ask_for() -> None:
    made = lws("{{ replicas }}", 5, leader=8)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"] = {POD_SET: "block"}
    wanted = fleet(made, policy=required("rack", "worker-2"))

    def fit(*each: tuple[int, ...], within: int) -> bool:
        return bool(places(plan(lacks(5), racks(*each, within=within), wanted=wanted)))

    assert fit((8,) * 8, within=4)
    assert not fit((8,) * 8, within=2)  # a block holds two of four workers
    assert not fit((8,) * 4, (8,) * 4, within=4)  # a rack holds four of five pods


@pytest.mark.parametrize(("key", "fit"), [("rack", True), ("block", False)])
def test_a_domain_for_itself_is_shared_by_its_pods(key: str, fit: bool) -> None:
    made = lws("{{ replicas }}", 4)
    made["metadata"]["annotations"] = {EXCLUSIVE: "rack"}
    decided = plan(lacks(4), racks(WHOLE, within=4), wanted=fleet(made, policy=required(key, "worker-2")))
    assert bool(places(decided)) is fit
    assert fit or "both together cannot be counted" in refusals(decided)[0]


def test_pods_that_are_scheduled_one_by_one_are_groups_of_one() -> None:
    wanted = desired(required("rack", "worker-2"))
    assert places(plan(short(3), free("worker-2", 1, 1, 1), wanted=wanted)) == [("worker-2", 3)]


@pytest.mark.parametrize(
    ("made", "policy"),
    [
        (job(), required()),
        (job(**{POD_SET: "rack"}), ordering("worker-2", "worker-3")),
        (job(**{SLICE: "rack", SLICE_SIZE: "4"}), ordering("worker-2", "worker-3")),
    ],
    ids=["by the policy", "by Kueue's annotation", "as a slice"],
)
def test_a_job_that_goes_whole_shares_a_domain(made: Json, policy: BurstPolicy) -> None:
    decided = plan(waiting(), racks(*DIVIDED), racks(WHOLE, name="worker-3"), wanted=once(made, policy))
    assert places(decided) == [("worker-3", 4)]
    (place,) = decided.changes
    assert place.action is Action.PLACE
    assert place.choice is not None
    assert place.choice.because == "one domain of rack for its 4 pods"
    decided = plan(waiting(), racks(*DIVIDED), wanted=once(made, policy))
    assert places(decided) == []
    assert refusals(decided)[0] == "wants its 4 pods in one domain of rack: the largest of 2 domains, r0, holds 2 of 4"


SECOND = WorkloadId(VLLM.workspace, TemplateName("second"))


def two_jobs(policy: BurstPolicy) -> Desired:
    """Make a fleet with two Jobs of one workspace, each of which goes whole."""
    first, second = grouped(job()), grouped(named(job(), "second"))
    ref = WorkloadRef(namespace="demo", name="second")
    templates = {
        VLLM: replace(first, runs_once=True),
        SECOND: replace(second, name=SECOND.name, ref=ref, runs_once=True),
    }
    return replace(desired(policy, workloads=templates), templates=templates)


def both_waiting() -> ClusterObservation:
    one, two = waiting(), short(4, running=0, held=True, replica=shape(8), workload=SECOND)
    return replace(one, workloads=(*one.workloads, *two.workloads))


@pytest.mark.parametrize(("racked", "number"), [([(8, 8), (8,) * 6], 1), ([(8, 8), (8,) * 8], 2)])
def test_two_jobs_of_one_pass_do_not_share_the_room_of_a_domain(racked: list[tuple[int, ...]], number: int) -> None:
    decided = plan(both_waiting(), racks(*racked), wanted=two_jobs(required("rack", "worker-2")))
    assert len(places(decided)) == number


@pytest.mark.parametrize(("racked", "number"), [([(8, 8), (8,) * 6], 0), ([(8, 8), (8,) * 8], 1)])
def test_a_job_on_its_way_keeps_the_room_of_one_domain(racked: list[tuple[int, ...]], number: int) -> None:
    coming = placement(replicas=4, shape=shape(8), created=NOW - seconds(5))
    decided = plan(both_waiting(), racks(*racked), wanted=two_jobs(required("rack", "worker-2")), there=ledger(coming))
    assert len(places(decided)) == number


def test_a_copy_of_a_job_shares_a_domain() -> None:
    wanted = once(job(), required("rack", "worker-2"))
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], copy=4)})
    assert places(plan(waiting(), racks(*DIVIDED), wanted=wanted)) == []
    assert places(plan(waiting(), racks(WHOLE), wanted=wanted)) == [("worker-2", 4)]


def test_a_job_that_a_policy_takes_from_its_cluster_moves_to_one_domain() -> None:
    stands = placement(replicas=4, shape=shape(8), created=NOW - seconds(5))
    wanted = once(job(), required("rack", "worker-3"))

    def moved(seen: ClusterObservation) -> bool:
        decided = plan(waiting(), racks(WHOLE), seen, wanted=wanted, there=ledger(stands))
        return any(change.action is Action.MOVE for change in decided.changes)

    assert moved(racks(WHOLE, name="worker-3"))
    assert not moved(racks(*DIVIDED, name="worker-3"))


@pytest.mark.parametrize(
    "annotations",
    [{SLICE: "rack", SLICE_SIZE: "3"}, {"kai.scheduler/segment-topology-required-placement": "rack"}],
    ids=["slices that do not divide it", "segments"],
)
def test_a_job_whose_topology_cannot_be_counted_goes_nowhere(annotations: dict[str, str]) -> None:
    decided = plan(waiting(), racks(WHOLE), wanted=once(job(**annotations), ordering("worker-2")))
    assert places(decided) == []
    (told,) = refusals(decided)
    assert told.endswith(f"in topology domains ({next(iter(annotations))}), which cannot be counted here")


def test_a_job_that_asks_for_no_domain_goes_anywhere() -> None:
    assert places(plan(waiting(), racks(*DIVIDED), wanted=once(job(), ordering("worker-2")))) == [("worker-2", 4)]


def test_a_training_job_shares_one_domain_with_its_master() -> None:
    wanted = fleet(torch(3), policy=required("rack", "worker-2"), reads_replicas=False)
    assert places(plan(lacks(4, running=0), racks(WHOLE), wanted=wanted)) == [("worker-2", 1)]
    assert places(plan(lacks(4, running=0), racks((8, 8, 8), (8,)), wanted=wanted)) == []


def test_a_preferred_topology_comes_first_where_it_holds_and_refuses_nothing() -> None:
    wanted = fleet(SET, policy=preferred())
    seen = [lacks(4), racks(*DIVIDED), racks(WHOLE, name="worker-3")]
    (place,) = plan(*seen, wanted=wanted).changes
    assert place.action is Action.PLACE
    assert place.placement.cluster == "worker-3"
    assert place.choice is not None
    assert [(score.value, score.detail) for score in place.choice.scores] == [
        (100.0, "4 of 4 pods in one domain of rack, r0")
    ]
    assert places(plan(lacks(4), racks(*DIVIDED), wanted=wanted)) == [("worker-2", 1)]
    assert places(plan(lacks(4), free("worker-2", *WHOLE), wanted=wanted)) == [("worker-2", 1)]


def test_a_preferred_topology_is_weighed_once_and_as_the_policy_says() -> None:
    def scoring(spec: str) -> list[tuple[str, int]]:
        return [(scorer.name, scorer.weight) for scorer in load_policy(spec).scoring]

    assert scoring("  topology: {key: rack, mode: Preferred}") == [("Topology", 1)]
    both = "  topology: {key: rack, mode: Preferred}\n  scoring:\n  - {name: Topology, weight: 3}\n  - {name: Price}"
    assert scoring(both) == [("Topology", 3), ("Price", 1)]
    assert scoring("  topology: {key: rack}") == []
    assert load_policy("  topology: {key: rack}").required_domain == "rack"
    assert load_policy("  topology: {key: rack, mode: Preferred}").required_domain == ""


def load_policy(spec: str) -> BurstPolicy:
    text = f"apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata:\n  name: gpu\nspec:\n{spec}\n"
    made = load({**FLEET, "policies/gpu.yaml": text})
    assert made.problems == ()
    (policy,) = made.policies.values()
    return policy


def test_of_two_that_divide_a_group_the_one_with_the_larger_part_comes_first() -> None:
    seen = [lacks(4), racks(*DIVIDED), racks((8, 8, 8), (8,), name="worker-3")]
    assert places(plan(*seen, wanted=fleet(SET, policy=preferred()))) == [("worker-3", 1)]


def test_clusters_that_hold_a_group_alike_keep_the_order_of_the_policy() -> None:
    seen = [lacks(4), racks(WHOLE), racks(WHOLE, name="worker-3")]
    assert places(plan(*seen, wanted=fleet(SET, policy=preferred()))) == [("worker-2", 1)]


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (short(2), desired(preferred())),
        (lacks(4), fleet(workload("example.com/v1", "Unknown", {}), SET, policy=preferred())),
        (waiting(), once(job(), preferred())),
        (lacks(4), fleet({**SET, "spec": {}}, policy=preferred())),
    ],
    ids=["no group", "beside an unknown kind", "a Job", "not counted"],
)
def test_a_preferred_topology_of_what_cannot_be_counted_raises_nothing(
    seen: ClusterObservation, wanted: Desired
) -> None:
    decided = plan(seen, free("worker-2", *WHOLE), racks(WHOLE, name="worker-3"), wanted=wanted)
    assert all(held.reason is not Reason.BUG for held in decided.suppressed)
    assert decided.bugs == ()


def test_explain_names_the_domain_and_why_a_cluster_is_refused() -> None:
    there: PassInput = inputs(
        lacks(4), racks(*DIVIDED), racks(WHOLE, name="worker-3"), wanted=fleet(SET, policy=required())
    )
    told = explain(VLLM, there, plan(lacks(4), racks(*DIVIDED), wanted=fleet(SET, policy=required())))
    by_cluster = {one.cluster: one for one in told.assessments}
    assert by_cluster[ClusterName("worker-3")].start == "one domain of rack for its 4 pods"
    refusal = by_cluster[ClusterName("worker-2")].refusal
    assert refusal is not None
    assert "the largest of 2 domains, r0, holds 2 of 4" in refusal.message


def test_an_approved_job_goes_only_where_one_domain_still_holds_it() -> None:
    wanted = once(job(), replace(required(), approval=ApprovalRule()))
    there = awaited(proposed(plan(waiting(), racks(WHOLE), wanted=wanted)), approved=True)
    assert places(plan(waiting(), racks(WHOLE), wanted=wanted, there=there)) == [("worker-2", 4)]
    divided = plan(waiting(), racks(*DIVIDED), wanted=wanted, there=there)
    assert places(divided) == []


def test_explain_says_of_a_job_that_goes_whole_what_its_domains_hold() -> None:
    wanted, seen = once(job(), required()), (waiting(), racks(*DIVIDED), racks(WHOLE, name="worker-3"))
    told = explain(VLLM, inputs(*seen, wanted=wanted), plan(waiting(), racks(*DIVIDED), wanted=wanted))
    by_cluster = {one.cluster: one for one in told.assessments}
    assert by_cluster[ClusterName("worker-3")].start == "one domain of rack for its 4 pods"
    refusal = by_cluster[ClusterName("worker-2")].refusal
    assert refusal is not None
    assert refusal.message == "wants its 4 pods in one domain of rack: the largest of 2 domains, r0, holds 2 of 4"
