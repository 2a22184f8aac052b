"""What must run once goes elsewhere whole, and only where none of its pods runs at home, nor can begin to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.single_run import runs_once
from reconciler.model.action import Action
from reconciler.model.capacity import BlockedReplicas, ClusterObservation
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Desired
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import DeploySpec, Json, WorkloadRef
from tests.builders.fleet_files import FLEET, load
from tests.builders.gangs import torch
from tests.builders.group_bursts import fleet, grouped, lacks
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, ordering, placement, plan, short
from tests.builders.requests import manifests
from tests.builders.workload_kinds import SAMPLES, template, workload
from tests.capacity.test_chart_gangs import TEMPLATE

INDEXED = workload(
    "batch/v1",
    "Job",
    {"parallelism": "{{ replicas }}", "completions": 6, "completionMode": "Indexed", "template": template(1)},
)
QUEUE = workload("batch/v1", "Job", {"parallelism": "{{ replicas }}", "template": template(1)})


def made_of(manifest: Json) -> Desired:
    policy, clusters = ordering("worker-2", "worker-3"), (cluster("worker-1"), cluster("worker-2"), cluster("worker-3"))
    made = desired(policy, clusters=clusters)
    single = runs_once(manifests(manifest), None, NO_KINDS)
    return replace(made, templates={VLLM: replace(grouped(manifest), runs_once=single)})


def placed(decided: Plan) -> list[tuple[str, int]]:
    return [
        (change.placement.cluster, change.placement.replicas)
        for change in decided.changes
        if change.action is Action.PLACE
    ]


@pytest.mark.parametrize(
    "name", ["Job", "Job of Volcano", "JobSet", "PyTorchJob", "TFJob", "MPIJob", "TrainJob", "RayJob"]
)
def test_jobs_run_once(name: str) -> None:
    assert runs_once(manifests(SAMPLES[name][0]), None, NO_KINDS)


@pytest.mark.parametrize("name", ["Deployment", "StatefulSet", "LeaderWorkerSet", "RayCluster", "RayService"])
def test_what_serves_may_have_copies(name: str) -> None:
    assert not runs_once(manifests(SAMPLES[name][0]), None, NO_KINDS)


def test_a_job_that_takes_work_off_a_queue_may_have_copies() -> None:
    assert not runs_once(manifests(QUEUE), None, NO_KINDS)


def test_the_kind_of_the_object_decides_for_a_chart() -> None:
    spec = DeploySpec(helm=(object(),))
    for kind, single in (("PyTorchJob", True), ("Job", True), ("Deployment", False)):
        ref = WorkloadRef(namespace="demo", name="train", kind=kind)
        assert runs_once(spec, ref, NO_KINDS) is single


@pytest.mark.parametrize("running", [1, 3])
def test_a_training_job_that_has_begun_at_home_has_no_second_copy(running: int) -> None:
    job = torch(3)
    wanted = fleet(job, policy=ordering("worker-2"), reads_replicas=False)
    single = {VLLM: replace(wanted.templates[VLLM], runs_once=True)}
    decided = plan(
        lacks(4 - running, running=running), free("worker-2", *[8] * 8), wanted=replace(wanted, templates=single)
    )
    assert placed(decided) == []
    (held,) = decided.suppressed
    assert held.reason is Reason.RUNS_ONCE
    assert "of it run" in held.message
    assert "on worker-1, and a copy elsewhere would do the same work again (let Kueue queue it" in held.message


def test_an_indexed_job_goes_whole_to_a_cluster_that_holds_all_of_it() -> None:
    decided = plan(short(6, running=0, held=True), free("worker-2", 4), free("worker-3", 8), wanted=made_of(INDEXED))
    assert placed(decided) == [("worker-3", 6)]
    decided = plan(short(6, running=0, held=True), free("worker-2", 4), free("worker-3", 5), wanted=made_of(INDEXED))
    assert placed(decided) == []
    assert "which go together: they run once" in decided.suppressed[0].refusals[0].message


def unseen_pods(observation: ClusterObservation, pods: int) -> ClusterObservation:
    """Return a primary whose workload wants more pods, of which nobody says anything."""
    (seen,) = observation.workloads
    return replace(observation, workloads=(replace(seen, wanted=seen.wanted + pods),))


VOLUME = BlockedReplicas(replicas=1, since=NOW - timedelta(minutes=5), reason=WaitReason.VOLUME, cause="")


@pytest.mark.parametrize(
    ("manifest", "seen", "why"),
    [
        (INDEXED, unseen_pods(short(4, running=0, held=True), 2), "4 of 6 replicas are missing on worker-1"),
        (INDEXED, short(5, running=0, held=True, blocked=(VOLUME,)), "1 pod of it waits on worker-1"),
        (torch(3), lacks(4, running=0, held=True, blocked=(VOLUME,)), "for something else than room (Volume)"),
    ],
    ids=["unknown", "blocked", "blocked in a gang"],
)
def test_what_runs_once_waits_until_all_of_its_pods_lack_room(
    manifest: Json, seen: ClusterObservation, why: str
) -> None:
    decided = plan(seen, free("worker-2", *[8] * 8), free("worker-3"), wanted=made_of(manifest))
    assert placed(decided) == []
    (kept,) = decided.suppressed
    assert kept.reason is Reason.RUNS_ONCE
    assert why in kept.message
    assert "what runs once goes elsewhere whole" in kept.message


def test_an_indexed_job_of_which_pods_run_at_home_does_not_begin_again() -> None:
    decided = plan(short(4, running=2), free("worker-2", 8), wanted=made_of(INDEXED))
    assert (placed(decided), decided.suppressed[0].reason) == ([], Reason.RUNS_ONCE)


def test_an_indexed_job_that_has_begun_elsewhere_gets_no_second_part() -> None:
    there = ledger(placement("worker-2", 4))
    seen = short(6, running=0, held=True)
    decided = plan(seen, free("worker-3", 8), free("worker-2", 8), wanted=made_of(INDEXED), there=there)
    assert decided.changes == ()
    assert decided.suppressed[0].reason is Reason.RUNS_ONCE


def test_a_job_that_takes_work_off_a_queue_spreads_as_before() -> None:
    decided = plan(short(6, running=2), free("worker-2", 4), free("worker-3", 8), wanted=made_of(QUEUE))
    assert placed(decided) == [("worker-2", 4), ("worker-3", 2)]


@pytest.mark.parametrize("manifest", [INDEXED, torch(3)], ids=["Job", "PyTorchJob"])
def test_what_runs_once_stays_while_its_pods_only_wait_at_home(manifest: Json) -> None:
    wanted = replace(made_of(manifest), policies={VLLM: ordering("worker-2")})
    loose = plan(lacks(4, running=0), free("worker-2", *[8] * 8), wanted=wanted)
    (kept,) = loose.suppressed
    assert (placed(loose), kept.reason) == ([], Reason.RUNS_ONCE)
    assert "nothing holds it on worker-1, where it may start while a copy runs elsewhere" in kept.message
    assert 'annotate its template: overspill.dev/runs-once: "false"' in kept.message
    assert placed(plan(lacks(4, running=0, held=True), free("worker-2", *[8] * 8), wanted=wanted)) != []


def test_a_job_of_which_a_pod_runs_at_home_has_no_copy_though_it_is_held() -> None:
    decided = plan(short(4, running=2, held=True), free("worker-2", 8), wanted=made_of(INDEXED))
    assert (placed(decided), decided.suppressed[0].reason) == ([], Reason.RUNS_ONCE)


@pytest.mark.parametrize(("missing", "running"), [(0, 6), (4, 2)], ids=["all of it", "a part of it"])
def test_a_copy_elsewhere_ends_at_once_where_the_one_at_home_has_begun(missing: int, running: int) -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(seconds=30)))
    decided = plan(short(missing, running=running), free("worker-2", 2), wanted=made_of(INDEXED), there=there)
    (revert,) = decided.changes
    assert revert.action is Action.REVERT
    assert revert.why is EndReason.DEMAND_GONE
    assert revert.detail == f"{running} pods of it run on worker-1, and the copy elsewhere would do the same work again"


BY_MULTIKUEUE = "kueue queue-a has dispatched it to worker-9 by MultiKueue"


def test_a_copy_elsewhere_ends_at_once_where_kueue_has_begun_the_one_at_home_without_a_pod_there() -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(seconds=30)))
    begun = short(0, running=0, started=BY_MULTIKUEUE)
    (revert,) = plan(begun, free("worker-2", 2), wanted=made_of(INDEXED), there=there).changes
    assert revert.action is Action.REVERT
    assert revert.why is EndReason.DEMAND_GONE
    assert revert.detail == f"on worker-1 {BY_MULTIKUEUE}, and the copy elsewhere would do the same work again"


RESERVED = "kueue queue-a has reserved quota for it"


def test_a_copy_elsewhere_goes_on_while_the_one_at_home_has_quota_and_may_yet_be_refused() -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(minutes=5)))
    claimed = short(6, running=0, held=True, claimed=RESERVED)
    assert plan(claimed, free("worker-2", 2), wanted=made_of(INDEXED), there=there).changes == ()


def test_what_may_soon_begin_at_home_gets_no_copy() -> None:
    decided = plan(short(6, running=0, held=True, claimed=RESERVED), free("worker-3", 8), wanted=made_of(INDEXED))
    (held,) = decided.suppressed
    assert (placed(decided), held.reason) == ([], Reason.RUNS_ONCE)
    assert held.message == f"on worker-1 {RESERVED}, and a copy elsewhere would do the same work again"


def test_a_copy_elsewhere_stays_where_kueue_is_not_heard_any_more() -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(seconds=30)))
    begun = short(0, running=0, started=BY_MULTIKUEUE)
    inputs_now = inputs(begun, free("worker-2", 2), wanted=made_of(INDEXED), there=there)
    demands = {key: each._replace(stale=("kueue is not heard",)) for key, each in inputs_now.demands.items()}
    assert decide(replace(inputs_now, demands=demands)).changes == ()


def test_what_kueue_has_begun_at_home_without_a_pod_there_gets_no_copy() -> None:
    decided = plan(short(6, running=0, started=BY_MULTIKUEUE), free("worker-3", 8), wanted=made_of(INDEXED))
    (held,) = decided.suppressed
    assert (placed(decided), held.reason) == ([], Reason.RUNS_ONCE)
    assert held.message == f"on worker-1 {BY_MULTIKUEUE}, and a copy elsewhere would do the same work again"


def test_a_workload_that_kueue_has_begun_is_explained_so_though_nothing_is_missing() -> None:
    begun = short(0, running=0, started=BY_MULTIKUEUE)
    (demand,) = inputs(begun, free("worker-3", 8), wanted=made_of(INDEXED)).demands.values()
    assert isinstance(demand, Demand)
    assert (demand.note, demand.missing) == (f"on worker-1 {BY_MULTIKUEUE}", 0)


def test_what_may_run_twice_is_no_matter_of_what_kueue_has_begun() -> None:
    seen = short(6, running=0, started=BY_MULTIKUEUE)
    assert placed(plan(seen, free("worker-2", 4), free("worker-3", 8), wanted=made_of(QUEUE))) == [
        ("worker-2", 4),
        ("worker-3", 2),
    ]


def test_a_copy_elsewhere_of_what_may_run_twice_waits_for_its_window() -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(seconds=30)))
    decided = plan(short(0, running=6), free("worker-2", 2), wanted=made_of(QUEUE), there=there)
    assert decided.changes == ()
    assert decided.suppressed[0].reason is Reason.SCALE_DOWN_WINDOW


def template_file(kind: str, annotation: str = "") -> str:
    made = TEMPLATE.format(workload=f"{kind}/llm-demo/vllm", size="4")
    return made.replace('overspill.dev/group-size: "4"', annotation or "{}").replace("    {}\n", "")


@pytest.mark.parametrize(
    ("kind", "annotation", "single"),
    [
        ("PyTorchJob.kubeflow.org", "", True),
        ("PyTorchJob.kubeflow.org", 'overspill.dev/runs-once: "false"', False),
        ("Deployment", "", False),
        ("Deployment", 'overspill.dev/runs-once: "true"', True),
    ],
)
def test_an_annotation_of_the_template_goes_before_its_kinds(kind: str, annotation: str, single: bool) -> None:
    read = load({**FLEET, "templates/vllm.yaml": template_file(kind, annotation)})
    assert read.templates[VLLM].runs_once is single


def test_another_value_of_the_annotation_is_refused_with_the_way_out() -> None:
    read = load({**FLEET, "templates/vllm.yaml": template_file("Job", "overspill.dev/runs-once: no one")})
    (problem,) = [problem for problem in read.problems if "runs-once" in str(problem)]
    assert "'no one' is neither 'true' nor 'false' (try 'false')" in str(problem)
