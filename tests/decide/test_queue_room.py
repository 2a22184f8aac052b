"""Passes place no more in a cluster than the quotas of its own Kueue queues admit, beside what is on its way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import TemplateName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.group_bursts import grouped
from tests.builders.inputs import NOW, VLLM, desired, free, gpus, inputs, ledger, ordering, placement, plan, short
from tests.builders.kueue_queues import GPU, cluster_queue, flavor, local_queue
from tests.builders.workload_kinds import lws, template, workload
from tests.capacity.test_queue_quota import queues

MINUTE = timedelta(minutes=1)
GPUS_8 = gpus(8)
QUEUED = {"kueue.x-k8s.io/queue-name": "user-queue"}
SERVING = workload("apps/v1", "Deployment", {"replicas": "{{ replicas }}", "template": template(1)}, labels=QUEUED)
JOB = workload(
    "batch/v1",
    "Job",
    {"parallelism": "{{ replicas }}", "completions": "{{ replicas }}", "template": template(1)},
    labels=QUEUED,
)
OTHER = WorkloadId(VLLM.workspace, TemplateName("other"))


def fleet(*objects: Json) -> Desired:
    """Make a fleet of a workload of each object, all in one queue."""
    workloads = (VLLM, OTHER)[: len(objects)]
    made = desired(ordering("worker-2", "worker-3"), workloads=workloads)
    own = {
        each: replace(
            made.templates[each],
            spec=grouped({**manifest, "metadata": {**manifest["metadata"], "name": str(each.name)}}).spec,
            runs_once=manifest["kind"] == "Job",
        )
        for each, manifest in zip(workloads, objects, strict=True)
    }
    return replace(made, templates=own)


def queue(gpus: int, used: int = 0, **spec: Json) -> tuple[Json, ...]:
    quota: Mapping[str, Mapping[str, object]] = {"any": {GPU: gpus}}
    team = cluster_queue("team", quota, used={"any": {GPU: used}}, **spec)
    return local_queue("user-queue", "team", "demo"), team, flavor("any")


def away(*objects: Json, **fields: object) -> ClusterObservation:
    """Observe worker-2, which has room for nine replicas on its nodes, with these queues."""
    return replace(free("worker-2", 9, **fields), queues=queues(*objects))


def placed(made: Plan) -> dict[str, int]:
    return {
        change.after.cluster: change.after.replicas - (change.before.replicas if change.before else 0)
        for change in made.changes
        if change.action in (Action.PLACE, Action.RESIZE) and change.after is not None
    }


@pytest.mark.parametrize(
    ("gpus", "used", "first", "second"),
    [(9, 0, 6, 0), (4, 0, 4, 2), (6, 3, 3, 3), (6, 6, 0, 6)],
)
def test_replicas_go_where_the_queue_has_quota_and_the_rest_elsewhere(
    gpus: int, used: int, first: int, second: int
) -> None:
    made = plan(short(6, running=0), away(*queue(gpus, used)), free("worker-3", 9), wanted=fleet(SERVING))
    went = {"worker-2": first, "worker-3": second}
    assert placed(made) == {name: replicas for name, replicas in went.items() if replicas}


def test_a_refusal_names_the_queue_and_what_is_left() -> None:
    made = inputs(short(6, running=0), away(*queue(6, 6)), free("worker-3", 0), wanted=fleet(SERVING))
    decided = decide(made)
    (held,) = decided.suppressed
    said = "ClusterQueue team: 0 of 6 nvidia.com/gpu left in flavor any, 1 needed"
    assert held.reason is Reason.NOTHING_FITS
    assert held.refusals[0].message == said
    assert held.refusals[0].remedy == "free or raise the quota of ClusterQueue team there"
    assert said in str(explain(VLLM, made, decided))


def test_what_a_queue_has_no_more_quota_for_is_told_where_the_rest_goes() -> None:
    made = plan(short(6, running=0), away(*queue(4)), free("worker-3", 9), wanted=fleet(SERVING))
    assert placed(made) == {"worker-2": 4, "worker-3": 2}
    (refused,) = made.changes[1].refused
    left = "ClusterQueue team: 0 of 4 nvidia.com/gpu left in flavor any, 1 needed"
    assert refused.message == f"took 4 replicas and has no room for more; {left}"


def test_workloads_of_one_queue_share_its_quota_in_one_pass() -> None:
    home, other = short(5, running=0), short(5, running=0, workload=OTHER)
    both = replace(home, workloads=(*home.workloads, *other.workloads))
    made = plan(both, away(*queue(7)), free("worker-3", 0), wanted=fleet(SERVING, SERVING))
    assert sum(placed(made).values()) <= 7
    assert sum(change.after.replicas for change in made.changes if change.after is not None) == 7


def flying(bound: int, reserved: int, replicas: int = 4) -> tuple[Placement, Mapping[str, object]]:
    """Make a placement of another workload on its way to worker-2, some of whose pods have a node and quota."""
    there = placement("worker-2", replicas, workload=OTHER, created=NOW - MINUTE, lasting=timedelta(hours=2))
    return there, {"bound": {there.name: bound}, "reserved": {there.name: reserved}}


@pytest.mark.parametrize(
    ("bound", "reserved", "used", "more"),
    [
        # Nothing of it is admitted yet: it takes four of eight.
        (0, 0, 0, 4),
        # All of it is admitted, and counted by the queue, whether or not it has its nodes.
        (0, 4, 4, 4),
        (2, 4, 4, 4),
        (4, 4, 4, 4),
        # A part of it is.
        (1, 2, 2, 4),
    ],
)
def test_what_is_on_its_way_is_counted_once(bound: int, reserved: int, used: int, more: int) -> None:
    there, fields = flying(bound, reserved)
    home, other = short(6, running=0), short(4, running=0, workload=OTHER)
    both = replace(home, workloads=(*home.workloads, *other.workloads))
    # Nodes are enough for all of them.
    seen = replace(free("worker-2", 30, **fields), queues=queues(*queue(8, used)))
    made = plan(both, seen, free("worker-3", 0), wanted=fleet(SERVING, SERVING), there=ledger(there))
    assert placed(made) == {"worker-2": more}


def test_a_job_goes_whole_to_a_cluster_whose_queue_has_quota_for_all_of_it() -> None:
    home = short(6, running=0, held=True)
    assert placed(plan(home, away(*queue(5)), free("worker-3", 9), wanted=fleet(JOB))) == {"worker-3": 6}
    assert placed(plan(home, away(*queue(6)), free("worker-3", 9), wanted=fleet(JOB))) == {"worker-2": 6}


@pytest.mark.parametrize(("quota", "cluster"), [(63, "worker-3"), (64, "worker-2")])
def test_a_set_goes_whole_where_the_queue_has_quota_for_all_of_its_groups(quota: int, cluster: str) -> None:
    manifest = lws("{{ replicas }}", 4)
    manifest["metadata"]["labels"] = QUEUED
    nodes = (8,) * 9
    seen = replace(free("worker-2", *nodes), queues=queues(*queue(quota)))
    wanted = fleet(manifest)
    home = short(8, running=0, replica=replace(short(1).workloads[0].shape, requests=GPUS_8))
    made = plan(home, seen, free("worker-3", *nodes), wanted=wanted)
    assert placed(made) == {cluster: 2}
    if cluster == "worker-3":
        (change,) = made.changes
        (refusal,) = change.refused
        assert "ClusterQueue team: 63 of 63 nvidia.com/gpu left in flavor any, 64 needed" in refusal.message


def test_a_queue_that_is_known_to_be_missing_is_no_room_and_one_that_is_unknown_is() -> None:
    home, other = short(6, running=0), free("worker-3", 0)
    missing = plan(home, away(cluster_queue("team", {"any": {GPU: 9}}), flavor("any")), other, wanted=fleet(SERVING))
    assert missing.changes == ()
    assert missing.suppressed[0].refusals[0].message == "has no LocalQueue user-queue in namespace demo"
    assert placed(plan(home, free("worker-2", 9), other, wanted=fleet(SERVING))) == {"worker-2": 6}
