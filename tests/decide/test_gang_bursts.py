"""What runs in groups bursts as a whole: all of it on one cluster, more of it where it is, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.commits.templates import render_templates
from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import Explanation, explain
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, MissingReplicas, Node, Pool
from reconciler.model.gpr import GprTerms, GpuLimits, WorkspaceLimits
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Ledger
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, GroupTopology
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.group_bursts import SET, burst, fleet, group, lacks, roomy
from tests.builders.inputs import (
    GPU,
    NOW,
    VLLM,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    plan,
    seconds,
    shape,
    short,
    template,
)
from tests.builders.requests import deployment, holds, manifests, record, request
from tests.builders.requests import placed as asked_for
from tests.builders.workload_kinds import SAMPLES, lws, workload
from tests.builders.workload_kinds import template as pods

SERVER = WorkloadId(VLLM.workspace, TemplateName("server"))


def refusal_message(of: Plan) -> str:
    (held,) = of.suppressed
    return held.message


def placed(of: Plan) -> tuple[str, int]:
    (change,) = of.changes
    assert change.action is Action.PLACE
    return change.placement.cluster, change.placement.replicas


@pytest.mark.parametrize(("pods", "groups"), [(4, 1), (8, 2), (5, 2), (1, 1)])
def test_a_group_that_lacks_a_pod_is_missing_as_a_whole(pods: int, groups: int) -> None:
    assert placed(plan(lacks(pods), free("worker-2", *[8] * 8), wanted=fleet(SET))) == ("worker-2", groups)


def waits_in(*groups: str, wanted: int) -> ClusterObservation:
    """Observe the full primary, where a pod of each of these groups finds no node."""
    seen = lacks(len(groups), running=wanted - len(groups))
    (one,) = seen.workloads
    waiting = tuple(MissingReplicas(replicas=1, since=NOW - seconds(45), group=group) for group in groups)
    return replace(seen, workloads=(replace(one, waiting=waiting),))


@pytest.mark.parametrize(
    ("groups", "burst"), [(("0", "1"), 2), (("0", "0"), 1), (("0", "1", "2", "2"), 3), (("", ""), 1), (("0", ""), 1)]
)
def test_groups_that_each_lack_a_pod_are_missing_each_as_a_whole(groups: tuple[str, ...], burst: int) -> None:
    made = plan(waits_in(*groups, wanted=12), free("worker-2", *[8] * 12), wanted=fleet(SET))
    assert placed(made) == ("worker-2", burst)


def test_groups_of_which_nothing_but_the_leaders_is_there_yet_are_as_many_as_leaders() -> None:
    made = plan(waits_in("0", "1", "2", wanted=3), free("worker-2", *[8] * 12), wanted=fleet(SET))
    assert placed(made) == ("worker-2", 3)


def test_a_replica_that_is_two_groups_is_missing_where_either_lacks_a_pod() -> None:
    wanted = fleet(lws("{{ replicas * 2 }}", 4))
    made = plan(waits_in("0", "1", "2", wanted=16), free("worker-2", *[8] * 16), wanted=wanted)
    assert placed(made) == ("worker-2", 2)


def test_an_expression_counts_groups_and_the_placement_says_how_many_pods_one_has() -> None:
    made, wanted = plan(lacks(8), free("worker-2", *[8] * 8), wanted=fleet(SET)), fleet(SET)
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert (change.placement.replicas, change.placement.shape) == (2, group())
    (rendered,) = render_templates(made, wanted).values()
    assert rendered.spec is not None
    assert rendered.spec.manifests[0].manifest["spec"]["replicas"] == 2


def test_two_groups_go_past_a_cluster_that_holds_only_one() -> None:
    made = plan(lacks(8), free("worker-2", *[8] * 7), free("worker-3", *[8] * 8), wanted=fleet(SET))
    assert placed(made) == ("worker-3", 2)
    (change,) = made.changes
    assert change.action is Action.PLACE
    (refused,) = change.refused
    assert refused.message == "needs 8 GPUs for each of 8 pods, has room for 7"


def test_two_groups_that_fit_on_two_clusters_alone_wait_and_say_why() -> None:
    made = plan(lacks(8), free("worker-2", *[8] * 4), free("worker-3", *[8] * 4), wanted=fleet(SET))
    assert made.changes == ()
    assert refusal_message(made) == (
        "it fits on no cluster as a whole, with 2 replicas; worker-2: needs 8 GPUs for each of 8 pods, has room for"
        " 4 (free or add nodes there)"
    )


def test_a_set_that_only_a_taint_keeps_off_is_told_the_taint_and_its_toleration() -> None:
    spot = Taint(key="capacity", value="spot")
    tainted = Pool(name="spot", nodes=roomy("worker-2", 8, 8).pools[0].nodes, taints=(spot,))
    seen = free("worker-2", *[8] * 6)
    made = plan(lacks(8), replace(seen, pools=(*seen.pools, tainted)), wanted=fleet(SET, policy=ordering("worker-2")))
    (held,) = made.suppressed
    (refused,) = held.refusals
    assert refused.message == "needs 8 GPUs for each of 8 pods, has room for 6"
    assert refused.remedy == (
        "tolerate capacity=spot:NoSchedule in its pods ({key: capacity, operator: Equal, value: spot, effect:"
        " NoSchedule}), or free or add nodes without that taint"
    )


def test_a_taint_of_nodes_that_would_not_do_anyway_is_not_blamed() -> None:
    tainted = Pool(name="spot", nodes=roomy("worker-2", 7, 7).pools[0].nodes, taints=(Taint(key="capacity"),))
    seen = free("worker-2", *[8] * 6)
    made = plan(lacks(8), replace(seen, pools=(*seen.pools, tainted)), wanted=fleet(SET, policy=ordering("worker-2")))
    assert [one.remedy for held in made.suppressed for one in held.refusals] == ["free or add nodes there"]


def test_leader_and_workers_of_a_burst_need_room_beside_each_other() -> None:
    wanted = fleet(lws("{{ replicas }}", 3, leader=2, worker=8))
    made = plan(lacks(3), free("worker-2", 8, 8), free("worker-3", 8, 8, 2), wanted=wanted)
    assert placed(made) == ("worker-3", 1)


def test_nothing_is_lent_of_a_set_before_all_that_is_missing_has_waited_long_enough() -> None:
    seen = lacks(4)
    (one,) = seen.workloads
    late = replace(one, wanted=16, waiting=(*one.waiting, MissingReplicas(replicas=4, since=NOW - seconds(5))))
    made = plan(replace(seen, workloads=(late,)), free("worker-2", *[8] * 8), wanted=fleet(SET))
    assert made.changes == ()
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.SCALE_UP_WINDOW, 2)
    assert made.wake_at == NOW + seconds(25)


def test_more_groups_come_to_the_cluster_that_has_the_others_as_a_resize() -> None:
    there = burst()
    made = plan(lacks(8), free("worker-2", *[8] * 4, bound={there.name: 4}), wanted=fleet(SET), there=ledger(there))
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert (change.after.path, change.after.replicas) == (there.path, 2)


def test_more_groups_never_make_a_second_copy_elsewhere() -> None:
    there = burst()
    full, empty = free("worker-2", 8, 8, bound={there.name: 4}), free("worker-3", *[8] * 20)
    made = plan(lacks(8), full, empty, wanted=fleet(SET), there=ledger(there))
    assert made.changes == ()
    assert refusal_message(made) == (
        "1 replica more can go only where the rest is, on worker-2; worker-2: needs 8 GPUs for each of 4 pods, has"
        " room for 2 (free or add nodes there)"
    )


def test_a_set_stays_where_it_is_though_a_better_cluster_has_room_now() -> None:
    there = burst("worker-3")
    seen = [free("worker-2", *[8] * 20), free("worker-3", bound={there.name: 4}, ready={there.name: 4})]
    assert plan(lacks(4), *seen, wanted=fleet(SET), there=ledger(there)).changes == ()


def test_a_group_that_is_no_longer_missing_is_taken_off_and_the_others_stay_in_their_directory() -> None:
    there = burst(groups=2)
    seen = lacks(4, running=12, deficit_since=NOW - seconds(600))
    made = plan(seen, free("worker-2", bound={there.name: 8}), wanted=fleet(SET), there=ledger(there))
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert (change.after.path, change.after.replicas) == (there.path, 1)


def ray(workers: Json) -> Json:
    made, _ = SAMPLES["RayCluster"]
    (first, *_) = made["spec"]["workerGroupSpecs"]
    return {**made, "spec": {**made["spec"], "workerGroupSpecs": [{**first, "replicas": workers, "numOfHosts": 1}]}}


@pytest.mark.parametrize("pods", [1, 4])
def test_what_reads_no_replicas_goes_out_as_one_copy_whichever_of_its_pods_is_missing(pods: int) -> None:
    wanted = fleet(ray(3), reads_replicas=False)
    made = plan(lacks(pods, running=0), roomy("worker-2", 8, 8), wanted=wanted)
    assert placed(made) == ("worker-2", 1)
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert change.placement.shape.group_size == 3  # the workers, which have GPUs


def test_one_copy_that_has_no_room_for_its_last_worker_goes_nowhere() -> None:
    wanted = fleet(ray(3), reads_replicas=False)
    assert plan(lacks(4, running=0), roomy("worker-2", 8, 3), wanted=wanted).changes == ()


def test_workers_that_an_expression_counts_are_replicas_and_the_head_comes_along() -> None:
    wanted = fleet(ray("{{ replicas }}"))
    made = plan(lacks(4, running=0), roomy("worker-2", 8, 8), wanted=wanted)
    assert placed(made) == ("worker-2", 3)


def test_a_gang_job_goes_out_with_all_of_its_tasks() -> None:
    job = SAMPLES["Job of Volcano"][0]
    wanted = fleet(job, reads_replicas=False)
    assert plan(lacks(1, running=0), roomy("worker-2", 2), wanted=wanted).changes == ()
    assert placed(plan(lacks(1, running=0), roomy("worker-2", 8), wanted=wanted)) == ("worker-2", 1)


def test_what_nobody_can_count_is_not_lent() -> None:
    train = workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": {}})
    made = plan(lacks(1), free("worker-2", 8), wanted=fleet(train, reads_replicas=False))
    (held,) = made.suppressed
    assert held.reason is Reason.NO_SHAPE
    assert held.message.startswith("cannot compute fit: the needs of manifest part-0 are unknown")


def test_a_policy_may_allow_fewer_groups_than_are_missing() -> None:
    wanted = fleet(SET, policy=ordering("worker-2", max_replicas=1))
    assert placed(plan(lacks(8), free("worker-2", *[8] * 8), wanted=wanted)) == ("worker-2", 1)


def test_a_cluster_that_may_have_fewer_groups_than_are_missing_gets_none() -> None:
    wanted = fleet(SET, policy=ordering(("worker-2", 1), "worker-3"))
    made = plan(lacks(8), free("worker-2", *[8] * 8), free("worker-3", *[8] * 8), wanted=wanted)
    assert placed(made) == ("worker-3", 2)


def test_the_limit_of_a_gpr_counts_all_pods_of_all_groups() -> None:
    limits = WorkspaceLimits(workspace=WorkspaceName("llm"), limits=GpuLimits(gpus=40))
    wanted = replace(fleet(SET), limits={WorkspaceName("llm"): limits})
    made = plan(lacks(8), free("worker-2", *[8] * 8), wanted=wanted)
    assert made.changes == ()
    assert made.suppressed[0].refusals[0].reason is Reason.GPR_LIMIT


def test_the_limit_of_a_gpr_comes_before_the_room_so_that_nobody_is_evicted_for_more() -> None:
    limits = WorkspaceLimits(workspace=WorkspaceName("llm"), limits=GpuLimits(gpus=40))
    wanted = replace(fleet(SET), limits={WorkspaceName("llm"): limits})
    made = plan(lacks(8), free("worker-2", *[0] * 8), wanted=wanted)
    assert made.suppressed[0].refusals[0].reason is Reason.GPR_LIMIT


def test_room_for_pods_that_are_on_their_way_is_kept_for_whole_groups() -> None:
    there = replace(burst(), changed_at=NOW - seconds(20))
    made = plan(lacks(8), free("worker-2", *[8] * 7), wanted=fleet(SET), there=ledger(there))
    assert made.changes == ()


def test_the_end_of_the_demand_ends_the_whole_copy() -> None:
    there = burst(size=3, each=4)
    wanted = fleet(ray(3), reads_replicas=False)
    seen = lacks(0, running=4, deficit_since=NOW - seconds(600))
    made = plan(seen, free("worker-2", 0, bound={there.name: 3}), wanted=wanted, there=ledger(there))
    (change,) = made.changes
    assert change.action is Action.REVERT


def test_gpus_are_those_of_the_pods() -> None:
    (change,) = plan(lacks(4), free("worker-2", *[8] * 8), wanted=fleet(SET)).changes
    assert change.action is Action.PLACE
    assert change.choice.free.amounts[GPU] // 10**9 == 64
    assert change.placement.cluster == ClusterName("worker-2")


def explained(*seen: ClusterObservation, there: Ledger | None = None, wanted: Desired | None = None) -> Explanation:
    made = inputs(*seen, wanted=wanted or fleet(SET), there=there)
    return explain(VLLM, made, decide(made))


def test_explain_tells_of_each_cluster_whether_all_of_it_fits() -> None:
    told = explained(lacks(8), free("worker-2", *[8] * 7), free("worker-3", *[8] * 20))
    assert [(one.cluster, one.fits) for one in told.assessments] == [("worker-2", 0), ("worker-3", 2)]


def test_explain_says_where_the_rest_of_it_is() -> None:
    there = burst()
    near = free("worker-2", 8, bound={there.name: 4})
    told = explained(lacks(8), near, free("worker-3", *[8] * 20), there=ledger(there))
    assert [(one.cluster, one.refusal.message if one.refusal else "") for one in told.assessments] == [
        ("worker-2", "needs 8 GPUs for each of 4 pods, has room for 1"),
        ("worker-3", "it goes whole, and the rest of it is on worker-2"),
    ]


def test_the_choice_counts_the_groups_that_it_places() -> None:
    wanted = fleet(lws("{{ replicas }}", 4, leader=2))
    seen = lacks(8), roomy("worker-2", 8, 8, 8, 8, 8, 8, 4)
    (change,) = plan(*seen, wanted=wanted).changes
    assert change.action is Action.PLACE
    assert (change.placement.replicas, change.choice.fits) == (2, 2)
    assert [one.fits for one in explained(*seen, wanted=wanted).assessments][:1] == [2]


def test_explain_says_where_all_of_it_is() -> None:
    there = burst()
    near = free("worker-2", 8, bound={there.name: 4})
    told = explained(lacks(4), near, free("worker-3", *[8] * 20), there=ledger(there))
    assert [one.refusal.message for one in told.assessments if one.refusal and one.cluster == "worker-3"] == [
        "it goes whole, and all of it is on worker-2"
    ]


def test_explain_names_who_takes_the_room_of_a_cluster_first() -> None:
    other = WorkloadId(VLLM.workspace, TemplateName("other"))
    wanted = fleet(SET, policy=ordering("worker-2"))
    wanted = replace(
        wanted,
        templates={**wanted.templates, other: template(other)},
        policies={**wanted.policies, other: replace(wanted.policies[VLLM], name="first", priority=200)},
    )
    primary = lacks(4)
    waits = short(5, workload=other, replica=shape(8)).workloads
    seen = replace(primary, workloads=(*primary.workloads, *waits)), free("worker-2", *[8] * 8)
    told = explained(*seen, wanted=wanted)
    one, *_ = told.assessments
    assert one.refusal is not None
    said = "needs 8 GPUs for each of 4 pods, has room for 3"
    assert (one.fits, one.refusal.message) == (0, f"{said}, after what {other} takes in this pass")
    assert said in told.conclusion[1]


def test_a_burst_that_goes_whole_evicts_only_for_all_of_it() -> None:
    low = request("worker-2", name="low", spec=manifests(deployment(4, 8)), terms=GprTerms(priority=1, evictable=True))
    weak = replace(asked_for(replicas=4, shape=shape(8)), workload=low.workload)
    held = holds(record(low, began_at=NOW - seconds(60)), placed=[weak])
    wanted = fleet(SET, policy=ordering("worker-2", priority=200))
    wanted = replace(wanted, requests={low.workload: low})

    def made(*nodes: int) -> list[str]:
        there = Pool(
            name="gpu", nodes=tuple(Node(name=f"n{i}", free=gpus(n), allocatable=gpus(8)) for i, n in enumerate(nodes))
        )
        seen = replace(free("worker-2", bound={weak.name: 4}), pools=(there,))
        limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, evicts=True)}
        outcome = plan(lacks(8), seen, wanted=replace(wanted, limits=limits), there=held)
        return [change.action for change in outcome.changes]

    assert made(0, 0, 0, 0, 8, 8, 8) == []
    assert made(0, 0, 0, 0, 8, 8, 8, 8)[0] == "Revert"
    assert "Place" in made(0, 0, 0, 0, 8, 8, 8, 8)


def test_a_job_evicts_for_all_of_it_and_never_for_a_topology_domain() -> None:
    low = request("worker-2", name="low", spec=manifests(deployment(4, 8)), terms=GprTerms(priority=1, evictable=True))
    weak = replace(asked_for(replicas=4, shape=shape(8)), workload=low.workload)
    held = holds(record(low, began_at=NOW - seconds(60)), placed=[weak])
    limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, evicts=True)}

    def made(replicas: int, *nodes: int, domain: bool = False) -> list[str]:
        policy = ordering("worker-2", priority=200, topology=GroupTopology(key="rack") if domain else None)
        wanted = desired(policy, limits=limits)
        templates = {VLLM: replace(wanted.templates[VLLM], runs_once=True)}
        wanted = replace(wanted, templates=templates, requests={low.workload: low})
        there = tuple(Node(name=f"n{i}", free=gpus(n), allocatable=gpus(8)) for i, n in enumerate(nodes))
        pool = Pool(name="gpu", nodes=there, labels={"rack": "r0"})
        seen = replace(free("worker-2", bound={weak.name: 4}), pools=(pool,))
        primary = short(replicas, running=0, held=True, replica=shape(8))
        return [change.action for change in plan(primary, seen, wanted=wanted, there=held).changes]

    assert made(8, 0, 0, 0, 0, 8, 8, 8) == []
    assert made(8, 0, 0, 0, 0, 8, 8, 8, 8)[0] == "Revert"
    assert made(8, 0, 0, 0, 0, 8, 8, 8, 8, domain=True) == []


def test_a_head_with_gpus_counts_for_none_of_its_workers() -> None:
    made = ray("{{ replicas }}")
    made["spec"] = {**made["spec"], "headGroupSpec": {"rayStartParams": {}, "template": pods(4)}}
    (change,) = plan(lacks(4, running=0), roomy("worker-2", 8, 8), wanted=fleet(made)).changes
    assert change.action is Action.PLACE
    assert (change.placement.replicas, change.placement.shape.group_size) == (3, 1)


def test_an_expression_may_bound_its_groups() -> None:
    made = plan(lacks(40), free("worker-2", *[8] * 20), wanted=fleet(lws("{{ [replicas, 3] | min }}", 4)))
    assert placed(made) == ("worker-2", 3)


def test_what_is_seen_of_another_object_of_the_template_counts_by_that_one() -> None:
    front = deployment("{{ replicas * 2 }}", 1)
    wanted = fleet(front, SET)
    wanted = replace(
        wanted,
        templates={
            VLLM: replace(wanted.templates[VLLM], ref=WorkloadRef(namespace="demo", name="server", kind="Deployment"))
        },
    )
    made = plan(lacks(4, workload=SERVER), free("worker-2", *[8] * 9), wanted=wanted)
    assert placed(made) == ("worker-2", 2)


# Maximums in groups


@pytest.mark.parametrize(
    "policy",
    [ordering("worker-2", max_replicas=1), ordering(("worker-2", 1)), ordering(("worker-2", 1), ("worker-3", 1))],
    ids=["of the policy", "of the cluster", "of each cluster"],
)
def test_a_maximum_bounds_groups_whoever_has_it(policy: BurstPolicy) -> None:
    seen = lacks(8), free("worker-2", *[8] * 8), free("worker-3", *[8] * 8)
    made = plan(*seen, wanted=fleet(SET, policy=policy))
    assert placed(made) == ("worker-2", 1)
    assert sum(held.replicas for held in made.suppressed) == 1


def test_a_cluster_that_takes_all_groups_goes_before_one_that_may_have_some() -> None:
    seen = lacks(8), free("worker-2", *[8] * 8), free("worker-3", *[8] * 8)
    assert placed(plan(*seen, wanted=fleet(SET, policy=ordering(("worker-2", 1), "worker-3")))) == ("worker-3", 2)
