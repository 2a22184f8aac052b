"""What runs to completion gives its GPUs back when it is complete, and does not run again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.explain.request_state import state_of_request
from reconciler.core.ledger.request_record import read_request, request_path, write_request
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.single_run import completions, may_succeed
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, SucceededPods
from reconciler.model.demand import Sample
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import Origin, Phase, Placement, RestraintKind
from reconciler.model.plan import Reason
from reconciler.model.request import Provisioning
from reconciler.model.workload import Json
from tests.builders.gprs import TRAIN, record, request
from tests.builders.group_bursts import fleet
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, placement, short
from tests.builders.requests import deployment, manifests
from tests.builders.workload_kinds import SAMPLES, template, workload

MINUTE = timedelta(minutes=1)
BEGAN = NOW - timedelta(hours=1)
WATCHED = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=0),)}


def job(completions: Json = 6, parallelism: Json = 2) -> Json:
    spec = {"parallelism": parallelism, "completions": completions, "template": template(1)}
    return workload("batch/v1", "Job", {name: value for name, value in spec.items() if value is not None})


def at(place: Placement, pods: int | None, *, ago: timedelta = MINUTE, **fields: object) -> ClusterObservation:
    return free(place.cluster, 8, succeeded={place.name: SucceededPods(pods=pods, at=NOW - ago)}, **fields)


def asked(place: str = "worker-2") -> Placement:
    return placement(place, 2, workload=TRAIN, created=BEGAN, lasting=timedelta(days=7), origin=Origin.REQUEST)


def burst() -> Placement:
    return placement("worker-2", 6, created=BEGAN, lasting=timedelta(days=7))


def test_a_complete_request_is_closed_as_succeeded_and_never_begins_again() -> None:
    place, known = asked(), record(request(spec=manifests(job())), began_at=BEGAN)
    revert, close = decide(inputs(at(place, 6), there=ledger(place, requests={TRAIN: known}))).changes
    assert revert.action is Action.REVERT
    assert (revert.why, revert.phase) == (EndReason.SUCCEEDED, Phase.SUCCEEDED)
    assert revert.restraint is None
    assert revert.detail == "the last of its 6 pods was complete at 2026-11-20T10:04:00Z"
    assert close.action is Action.CLOSE
    assert close.record.ended is not None
    assert close.record.ended.status is Provisioning.COMPLETED
    later = inputs(free("worker-2", 8), there=ledger(requests={TRAIN: close.record}))
    assert decide(later).changes == ()
    path = request_path(TRAIN)
    written = read_request(write_request(close.record), path)
    assert state_of_request(written, later).phase is Phase.SUCCEEDED


@pytest.mark.parametrize(
    ("manifest", "pods", "ago"),
    [
        (job(), 5, MINUTE),
        (job(), None, timedelta(hours=2)),
        (deployment(), None, MINUTE),
        (deployment(), 2, MINUTE),
        (job("{{ 2 * replicas }}"), 6, MINUTE),
        (SAMPLES["RayJob"][0], 6, MINUTE),
    ],
    ids=["a pod less", "an earlier run", "what serves", "pods of what serves", "unknown number", "pods that stay"],
)
def test_all_else_stays(manifest: Json, pods: int | None, ago: timedelta) -> None:
    place, known = asked(), record(request(spec=manifests(manifest)), began_at=BEGAN)
    made = decide(inputs(at(place, pods, ago=ago), there=ledger(place, requests={TRAIN: known})))
    assert [change for change in made.changes if change.action is Action.REVERT] == []


def test_an_observation_tells_the_end_of_kinds_whose_pods_do_not() -> None:
    place, known = asked(), record(request(spec=manifests(SAMPLES["RayJob"][0])), began_at=BEGAN)
    revert, _ = decide(inputs(at(place, None), there=ledger(place, requests={TRAIN: known}))).changes
    assert revert.action is Action.REVERT
    assert revert.detail == "its run was complete at 2026-11-20T10:04:00Z"


def test_a_request_goes_on_where_it_is_not_complete() -> None:
    done, runs = asked(), asked("worker-3")
    known = record(request(clusters=("worker-2", "worker-3"), spec=manifests(job())), began_at=BEGAN)
    busy = free("worker-3", 8, bound={runs.name: 2})
    revert, amend = decide(inputs(at(done, 6), busy, there=ledger(done, runs, requests={TRAIN: known}))).changes
    assert revert.action is Action.REVERT
    assert amend.action is Action.AMEND
    later = ledger(runs, requests={TRAIN: amend.record})
    assert decide(inputs(free("worker-2", 8), busy, there=later)).changes == ()


def test_a_complete_burst_is_held_on_all_clusters_until_its_demand_has_gone() -> None:
    place, wanted = burst(), fleet(job("{{ replicas }}", "{{ replicas }}"))
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    made = decide(inputs(short(6, running=0), at(place, 6), wanted=wanted, there=ledger(place)))
    (revert,) = made.changes
    assert revert.action is Action.REVERT
    assert revert.phase is Phase.SUCCEEDED
    assert revert.restraint is not None
    assert (revert.restraint.kind, revert.restraint.cluster) == (RestraintKind.HOLD, None)
    assert made.suppressed[0].reason is Reason.HELD
    held = ledger(restraints={VLLM: (revert.restraint,)})
    again = decide(inputs(short(6, running=0), free("worker-3", 8), wanted=wanted, there=held))
    assert [change for change in again.changes if change.action is Action.PLACE] == []
    gone = inputs(short(0, running=6), free("worker-3", 8), wanted=wanted, there=held, history=WATCHED)
    (release,) = decide(gone).changes
    assert release.action is Action.RELEASE


@pytest.mark.parametrize("name", ["Job", "Job of Volcano", "JobSet", "PyTorchJob", "MPIJob", "TrainJob", "RayJob"])
def test_what_runs_once_may_succeed(name: str) -> None:
    assert may_succeed(manifests(SAMPLES[name][0]), None, NO_KINDS)


@pytest.mark.parametrize("name", ["Deployment", "StatefulSet", "LeaderWorkerSet", "RayCluster", "RayService"])
def test_what_serves_never_succeeds_also_beside_a_job(name: str) -> None:
    assert not may_succeed(manifests(job(), SAMPLES[name][0]), None, NO_KINDS)
    assert completions(manifests(job(), SAMPLES[name][0]), 2, NO_KINDS) is None


@pytest.mark.parametrize(
    ("manifest", "needed"),
    [(job(6), 6), (job("{{ replicas }}"), 2), (job(None, None), 1), (job(None, 1), 1), (job(None, 3), None)],
)
def test_completions_of_a_job(manifest: Json, needed: int | None) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    assert completions(manifests(manifest, config), 2, NO_KINDS) == needed


def test_a_job_that_may_succeed_with_fewer_pods_has_no_completions_to_wait_for() -> None:
    manifest = job(6)
    manifest["spec"]["successPolicy"] = {"rules": [{"succeededCount": 1}]}
    assert completions(manifests(manifest), 2, NO_KINDS) is None


def job_set(*jobs: tuple[Json, Json], **policy: Json) -> Json:
    """Make a JobSet of replicated jobs, by the replicas and the completions of each."""
    replicated = [
        {"name": f"job-{index}", "replicas": replicas, "template": {"spec": job(completions)["spec"]}}
        for index, (replicas, completions) in enumerate(jobs)
    ]
    spec = {"replicatedJobs": replicated, **({"successPolicy": policy} if policy else {})}
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", spec)


@pytest.mark.parametrize(
    ("manifest", "needed"),
    [
        (job_set((1, 4), (1, 1)), 5),
        (job_set((3, 4), (None, 2)), 14),
        (job_set((0, 4), (1, 1)), 1),
        (job_set((2, 4), operator="All", targetReplicatedJobs=[]), 8),
        (job_set((2, 4), operator="Any"), None),
        (job_set((2, 4), (1, 1), operator="All", targetReplicatedJobs=["job-0"]), None),
        (job_set((2, 4), (1, None)), None),
        (job_set(("{{ replicas }}", 4)), None),
    ],
)
def test_completions_of_a_job_set(manifest: Json, needed: int | None) -> None:
    assert completions(manifests(manifest), 1, NO_KINDS) == needed


def test_a_job_set_is_complete_when_all_pods_of_its_jobs_have_succeeded() -> None:
    place, known = asked(), record(request(spec=manifests(job_set((1, 4), (1, 1)))), began_at=BEGAN)
    almost = decide(inputs(at(place, 4), there=ledger(place, requests={TRAIN: known})))
    assert [change for change in almost.changes if change.action is Action.REVERT] == []
    revert, _ = decide(inputs(at(place, 5), there=ledger(place, requests={TRAIN: known}))).changes
    assert revert.action is Action.REVERT
    assert revert.phase is Phase.SUCCEEDED


def complete(place: Placement, objects: int, pods: int = 0) -> ClusterObservation:
    """Observe objects of a placement whose status says that they are complete."""
    said = SucceededPods(pods=pods, at=NOW - MINUTE, objects=objects)
    return free(place.cluster, 8, succeeded={place.name: said})


def train_job(name: str = "web") -> Json:
    made = SAMPLES["TrainJob"][0]
    return {**made, "metadata": {**made["metadata"], "name": name}}


@pytest.mark.parametrize(
    ("objects", "complete_ones", "pods", "ends"),
    [
        ((train_job(),), 1, 0, True),
        ((train_job(),), 0, 4, False),
        ((train_job(), train_job("other")), 1, 8, False),
        ((train_job(), train_job("other")), 2, 0, True),
        ((train_job(), job()), 1, 6, False),
    ],
    ids=["it says so", "pods alone, which an initializer has too", "one of two", "both", "beside a Job"],
)
def test_a_train_job_is_complete_when_its_status_says_so(
    objects: tuple[Json, ...], complete_ones: int, pods: int, ends: bool
) -> None:
    place, known = asked(), record(request(spec=manifests(*objects)), began_at=BEGAN)
    made = decide(inputs(complete(place, complete_ones, pods), there=ledger(place, requests={TRAIN: known})))
    reverts = [change for change in made.changes if change.action is Action.REVERT]
    assert [revert.detail for revert in reverts] == ["its run was complete at 2026-11-20T10:04:00Z"] * ends
