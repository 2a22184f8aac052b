"""A group of pods goes to one cluster, whole, and takes there what all of its pods need."""

from __future__ import annotations

from reconciler.core.explain.gprs import gpr_views
from reconciler.core.explain.request import explain_request
from reconciler.model.action import Action
from reconciler.model.plan import Plan, Reason
from reconciler.model.workload import Json
from tests.builders.inputs import GPU, free, inputs, plan, shape
from tests.builders.requests import BOOKINFO, holds, manifests, placed, record, request, wants
from tests.builders.workload_kinds import SAMPLES, lws


def decided(made: Json, *nodes: int, **fields: object) -> Plan:
    """Ask for one object on a cluster whose nodes have so many free GPUs each."""
    asked = request("worker-2", spec=manifests(made))
    return plan(free("worker-2", *nodes, **fields), wanted=wants(asked), there=holds(record(asked)))


def refused(of: Plan) -> str:
    (held,) = of.suppressed
    (refusal,) = held.refusals
    assert refusal.reason is Reason.NO_CAPACITY
    return refusal.message


def test_a_set_of_groups_is_placed_where_all_of_its_pods_have_room():
    (place,) = decided(lws(2, 4), *[8] * 8).changes
    assert place.action is Action.PLACE
    assert (place.placement.replicas, place.placement.shape.requests.amounts[GPU] // 10**9) == (8, 8)


def test_a_set_of_which_one_pod_has_no_room_is_placed_nowhere():
    made = decided(lws(2, 4), *[8] * 7)
    assert made.changes == ()
    assert refused(made) == "needs 8 GPUs for each of 8 pods, has room for 7"


def test_a_leader_and_its_workers_need_room_beside_each_other():
    made = lws(1, 3, leader=2, worker=8)
    assert refused(decided(made, 8, 8)) == "has no room for 1 pod with 2 GPUs beside the rest of it"
    (place,) = decided(made, 8, 8, 2).changes
    assert place.action is Action.PLACE


def test_what_is_on_its_way_keeps_the_room_of_workers_as_well_as_that_of_leaders():
    asked, next_ = request("worker-2", spec=manifests(lws(1, 3, leader=2, worker=8))), request("worker-2", name="next")
    there = placed(shape=shape(2), replicas=1)
    wanted, ledger = wants(asked, next_), holds(record(asked), record(next_), placed=[there])
    coming = plan(free("worker-2", 8, 8, 3), wanted=wanted, there=ledger)
    assert [held.workload.name for held in coming.suppressed] == ["next"]
    (place,) = plan(free("worker-2", 0, 0, 3, bound={there.name: 3}), wanted=wanted, there=ledger).changes
    assert place.action is Action.PLACE


def test_a_gpr_counts_the_gpus_of_all_pods():
    for made, gpus, nodes in (
        (lws(2, 4), 8, 8),
        (lws(1, 3, leader=2, worker=8), 8, 3),
        (SAMPLES["DynamoGraphDeployment v1beta1"][0], 8, 4),
        (SAMPLES["RayCluster"][0], 4, 6),
    ):
        asked = request("worker-2", spec=manifests(made))
        seen = inputs(free("worker-2", 0), wanted=wants(asked), there=holds(record(asked)))
        seen = seen.with_requests(holds(record(asked)).requests)
        (one,) = gpr_views(seen, plan(free("worker-2", 0), wanted=wants(asked), there=holds(record(asked))))
        assert (one.gpus, one.nodes) == (gpus, nodes)


def test_explain_says_what_runs_only_together():
    asked = request("worker-2", spec=manifests(lws(2, 4, leader=1), SAMPLES["Job of Volcano"][0]))
    open_ = record(asked)
    seen = inputs(free("worker-2", 1), wanted=wants(asked), there=holds(open_)).with_requests({BOOKINFO: open_})
    told = explain_request(open_, seen, plan(free("worker-2", 1), wanted=wants(asked), there=holds(open_)))
    (groups,) = (line for line in told.conclusion if line.startswith("LeaderWorkerSet model"))
    assert groups == (
        "LeaderWorkerSet model is 2 groups of 4 pods, 25 GPUs each; a group runs once all of its pods are there."
    )
    (job,) = (line for line in told.conclusion if line.startswith("Job model"))
    assert job.startswith("Job model is 1 job of 5 pods, ")
    assert job.endswith("; a job runs once 3 of its pods are there.")
