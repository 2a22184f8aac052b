"""Kueue's Workloads tell why pods of a placement do not start, and what begins at home without a pod of its own.

The Workloads are as Kueue 0.14 writes them: conditions and messages of `pkg/workload/workload.go`, of
`pkg/scheduler/preemption/preemption.go` and of `pkg/controller/admissionchecks/multikueue/workload.go`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.placement_pods import PlacementProgress
from reconciler.core.observe.kubernetes.resources import Resource, needed_resources
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ClusterObservation, PendingPods, WorkloadObservation
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.units import ONE
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.kube_objects import GPU, NO_QUOTA, SINCE, pod, queued, workload

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
NAME = ClusterName("worker-1")
OURS = PlacementName("train-7f3a90c1")
LABELS = {"overspill.dev/placement": OURS}
LACK = f"insufficient unused quota for {GPU} in flavor h100, 4 more needed"
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 6a1ecf2f-8b5b-4b5b-9c3c-2f0f6d2a1a11, JobUID:"
    " 0b0f1d1c-55f5-4bb8-9c07-3c7a4d1be1de) due to prioritization in the ClusterQueue"
)
SAID = "Preempted to accommodate a workload due to prioritization in the ClusterQueue"
TRAIN = WorkloadRef(namespace="demo", name="train", kind="Job")


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Json:
    return {
        "type": kind, "status": status, "reason": reason or kind, "message": message, "lastTransitionTime": SINCE,
    }  # fmt: skip # a row of the table in the Workload


QUEUES_AGAIN = condition("QuotaReserved", "False", "Pending", NO_QUOTA)
RESERVED = condition("QuotaReserved", message="Quota reserved in ClusterQueue gpus")
NO_LONGER = condition("QuotaReserved", "False", "Pending", PREEMPTED)
ADMITTED = condition("Admitted", message="The workload is admitted")
EVICTED = condition("Evicted", reason="Preempted", message=PREEMPTED)
BY_PRIORITY = condition("Preempted", reason="InClusterQueue", message=PREEMPTED)


def labelled(made: Json, labels: dict[str, str] | None = None) -> Json:
    """Give the pods of a Workload labels, as Kueue copies them from the template of its object."""
    for entry in made["spec"]["podSets"]:
        entry["template"]["metadata"] = {"labels": LABELS if labels is None else labels}
    return made


def ours(*conditions: Json, count: int = 4, **fields: Any) -> Json:
    """Make the Workload of a placement's Job."""
    status = {"conditions": list(conditions), **fields.pop("status", {})}
    return labelled(queued("job-train-1a2b3", count, status=status, **fields))


def seen(*workloads: Json, pods: tuple[Json, ...] = ()) -> ClusterObservation:
    state = ClusterState()
    for raw in pods:
        state.apply(Resource.PODS, raw)
    for raw in workloads:
        state.apply(Resource.QUEUED, raw)
    return state.observation(NAME, AT)


PROVISIONING = {"name": "nodes", "state": "Pending", "message": "Waiting for 2 nodes", "lastTransitionTime": SINCE}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (ours(), "kueue queue-a has not admitted it"),
        (ours(QUEUES_AGAIN), f"kueue queue-a has not admitted it: {LACK}"),
        (
            ours(condition("QuotaReserved", "False", "Inadmissible", "LocalQueue queue-a is stopped")),
            "kueue queue-a has not admitted it: LocalQueue queue-a is stopped",
        ),
        (ours(NO_LONGER, EVICTED, BY_PRIORITY), f"kueue queue-a evicted it (Preempted): {SAID}"),
        (ours(RESERVED, ADMITTED, EVICTED, BY_PRIORITY), f"kueue queue-a evicted it (Preempted): {SAID}"),
        (
            ours(QUEUES_AGAIN, condition("Evicted", reason="PodsReadyTimeout", message="Exceeded the timeout")),
            f"kueue queue-a evicted it (PodsReadyTimeout): Exceeded the timeout; {LACK}",
        ),
        (
            ours(
                condition("QuotaReserved", "False", "Pending", "The workload is deactivated"),
                condition("Evicted", reason="Deactivated", message="The workload is deactivated"),
                active=False,
            ),
            "kueue queue-a evicted it (Deactivated): The workload is deactivated",
        ),
        (
            ours(RESERVED, status={"admissionChecks": [PROVISIONING]}),
            "kueue queue-a has reserved quota for it: admission check nodes is Pending: Waiting for 2 nodes",
        ),
    ],
)  # fmt: skip # a row a case
def test_words_of_kueue_say_why_the_pods_of_a_placement_do_not_start(made: Json, said: str) -> None:
    observation = seen(made)
    assert observation.unadmitted == {OURS: said}
    assert observation.waiting_reasons == {OURS: said}


@pytest.mark.parametrize(
    "made",
    [
        ours(RESERVED, ADMITTED),
        # Kueue keeps the words of an eviction that is over.
        ours(RESERVED, ADMITTED, condition("Evicted", "False", "QuotaReserved", f"Previously: {PREEMPTED}")),
        ours(RESERVED, ADMITTED, condition("Finished", reason="Succeeded", message="Job finished successfully")),
        ours(QUEUES_AGAIN, condition("Finished", reason="OutOfSync", message="The prebuilt workload is out of sync")),
        labelled(queued(), {}),
        {**ours(QUEUES_AGAIN), "metadata": {**ours()["metadata"], "deletionTimestamp": SINCE}},
    ],
    ids=["admitted", "admitted again", "finished", "finished without quota", "of somebody else", "deleted"],
)
def test_a_workload_that_runs_is_over_or_is_no_placements_holds_nothing(made: Json) -> None:
    observation = seen(made)
    assert (observation.unadmitted, observation.waiting_reasons, observation.pending_pods) == ({}, {}, {})


def test_pods_that_kueue_keeps_from_being_made_have_no_node_since_they_lost_their_quota() -> None:
    pending = seen(ours(NO_LONGER, EVICTED)).pending_pods[OURS]
    assert (pending.replicas, pending.helping, pending.since) == (4, False, datetime.fromisoformat(SINCE))
    assert pending.shape is not None
    assert pending.shape.requests.amounts[GPU] == ONE


def test_what_kueue_held_back_is_not_told_once_its_workloads_are_not_seen_any_more() -> None:
    made = ClusterState()
    made.apply(Resource.QUEUED, ours(NO_LONGER, EVICTED))
    unseen = made.observation(NAME, AT, frozenset({Resource.QUEUED}))
    assert (unseen.unadmitted, unseen.waiting_reasons, unseen.pending_pods) == ({}, {}, {})
    assert made.observation(NAME, AT).unadmitted != {}


def test_a_launcher_that_waits_for_long_makes_no_unmade_pod_wait_as_long() -> None:
    before = PendingPods(replicas=1, shape=None, since=datetime.fromisoformat(SINCE) - timedelta(hours=1), helping=True)
    progress = PlacementProgress(pending_pods={OURS: before})
    made = ClusterState()
    made.apply(Resource.QUEUED, ours(NO_LONGER, EVICTED))
    pending = made._queue.progress(progress).pending_pods[OURS]
    assert (pending.replicas, pending.since) == (4, datetime.fromisoformat(SINCE))


def test_pods_with_quota_wait_for_checks_and_not_for_room() -> None:
    assert seen(ours(RESERVED, status={"admissionChecks": [PROVISIONING]})).pending_pods[OURS].since is None


def test_pods_that_are_being_ended_are_not_counted_twice() -> None:
    runs = pod("a", "gpu-1", owner=("Job", "train"), labels=LABELS)
    observation = seen(ours(RESERVED, ADMITTED, EVICTED, count=1), pods=(runs,))
    assert (observation.bound, observation.pending_pods) == ({OURS: 1}, {})


def test_reclaimable_pods_have_ended_and_wait_for_nothing() -> None:
    made = ours(QUEUES_AGAIN, status={"reclaimablePods": [{"name": "set-0", "count": 3}]})
    assert seen(made).pending_pods[OURS].replicas == 1


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (ours(QUEUES_AGAIN), {}),
        (ours(NO_LONGER, EVICTED), {OURS: f"kueue queue-a evicted it (Preempted): {SAID}"}),
        (ours(RESERVED, ADMITTED, EVICTED), {OURS: f"kueue queue-a evicted it (Preempted): {SAID}"}),
        (ours(RESERVED, ADMITTED, condition("Evicted", "False", "QuotaReserved", "Previously: evicted")), {}),
    ],
    ids=["waits for the first time", "evicted", "on its way out", "admitted again"],
)
def test_what_a_queue_has_ended_is_told_apart_from_what_waits_for_it(made: Json, told: dict[str, str]) -> None:
    assert seen(made).evicted == told


@pytest.mark.parametrize(
    ("made", "pods"),
    [
        (ours(QUEUES_AGAIN), {}),
        (ours(RESERVED), {OURS: 4}),
        (ours(RESERVED, ADMITTED), {OURS: 4}),
        (ours(RESERVED, ADMITTED, status={"reclaimablePods": [{"name": "set-0", "count": 3}]}), {OURS: 1}),
        (ours(RESERVED, ADMITTED, condition("Finished", reason="Succeeded")), {}),
        (labelled(queued(), {}), {}),
    ],
    ids=["waits", "has quota", "is admitted", "has pods that are done", "is over", "is somebody else's"],
)
def test_pods_with_quota_are_counted_since_their_queue_counts_them(made: Json, pods: dict[str, int]) -> None:
    assert seen(made).reserved == pods


def test_evictions_come_first_among_the_workloads_of_a_placement() -> None:
    others = [{**ours(QUEUES_AGAIN), "metadata": {**ours()["metadata"], "name": name}} for name in ("b", "c")]
    observation = seen(*others, ours(NO_LONGER, EVICTED))
    assert observation.unadmitted == {OURS: f"kueue queue-a evicted it (Preempted): {SAID}"}
    assert observation.pending_pods[OURS].replicas == 12


GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


def gated(name: str, group: str = "", labels: dict[str, str] | None = None, **fields: Any) -> Json:
    told = {"waits": "gated", "reason": "SchedulingGated", **GATE, **fields}
    joined = {"kueue.x-k8s.io/pod-group-name": group} if group else {}
    return pod(name, labels={**(LABELS if labels is None else labels), **joined}, **told)


@pytest.mark.parametrize(
    ("pods", "made"),
    [
        ((gated("a", "set-0"), gated("b", "set-0")), queued("set-0", 2, owner=None)),
        ((gated("a"), gated("b")), queued("pod-a-1a2b3", 1, owner=("Pod", "a"))),
    ],
    ids=["of a group", "of a pod"],
)
def test_gated_pods_of_a_placement_are_known_by_their_workload(pods: tuple[Json, ...], made: Json) -> None:
    observation = seen(made, pods=pods)
    assert observation.unadmitted == {OURS: f"kueue queue-a has not admitted it: {LACK}"}
    gates = "2 of 2 pods Unschedulable: held by scheduling gate kueue.x-k8s.io/admission"
    assert observation.waiting_reasons == {OURS: f"{gates}; kueue queue-a has not admitted it: {LACK}"}
    assert observation.pending_pods[OURS].replicas == 2, "they exist, and are counted once"


def test_an_object_that_leaves_its_pods_unlabelled_is_known_by_its_workload() -> None:
    kind = WorkloadRef(namespace="", name="", kind="TrainJob", group="trainer.kubeflow.org")
    state = ClusterState(placed=frozenset({kind}))
    owner = ("TrainJob", "train")
    state.apply(Resource.QUEUED, queued("trainjob-train-1a2b3", 4, owner=owner))
    assert state.observation(NAME, AT).unadmitted == {}
    (trainer,) = state.customs
    state.apply(trainer, {"metadata": {"name": "train", "namespace": "demo", "labels": LABELS}, "spec": {}})
    observation = state.observation(NAME, AT)
    assert observation.unadmitted == {OURS: f"kueue queue-a has not admitted it: {LACK}"}
    assert observation.pending_pods[OURS].replicas == 4
    state.remove(trainer, "demo/train")
    assert state.observation(NAME, AT).unadmitted == {}
    state.follow(frozenset(), placed=frozenset())
    assert Resource.QUEUED in state.follow(frozenset(), placed=frozenset({kind}))


def test_gated_pods_whose_workload_is_of_others_say_what_they_said() -> None:
    observation = seen(queued("set-1", 2, owner=None), pods=(gated("a", "set-0"),))
    assert observation.unadmitted == {}


def test_sums_stay_the_same_objects_until_a_workload_of_a_placement_changes() -> None:
    state = ClusterState()
    state.apply(Resource.QUEUED, ours(QUEUES_AGAIN))
    before = state.observation(NAME, AT)
    assert state.apply(Resource.QUEUED, labelled(queued("of-others"), {})) is ChangeEffect.NOTHING
    assert state.observation(NAME, AT).unadmitted is before.unadmitted
    assert state.apply(Resource.QUEUED, ours(RESERVED, ADMITTED)) is ChangeEffect.DEMAND
    after = state.observation(NAME, AT)
    assert (after.unadmitted, after.pending_pods) == ({}, {})
    state.apply(Resource.QUEUED, ours(QUEUES_AGAIN))
    state.retain(Resource.QUEUED, set())
    assert state.observation(NAME, AT).unadmitted == {}, "a list without it"


def test_a_placements_workload_outlives_a_change_of_what_is_followed() -> None:
    state = ClusterState(frozenset({TRAIN}))
    elsewhere = ours(QUEUES_AGAIN, namespace="other")
    state.apply(Resource.QUEUED, elsewhere)
    state.follow(frozenset())
    assert state.observation(NAME, AT).unadmitted.keys() == {OURS}


def test_workloads_are_watched_in_clusters_that_are_no_primary() -> None:
    assert Resource.QUEUED in needed_resources(())
    assert Resource.AUTOSCALERS not in needed_resources(())


DISPATCHED = {
    "admissionChecks": [
        {
            "name": "multikueue", "state": "Ready", "message": 'The workload got reservation on "worker-9"',
            "lastTransitionTime": SINCE,
        }
    ],
    "clusterName": "worker-9",
}  # fmt: skip # an object, line by line
NOMINATED = {
    "admissionChecks": [{"name": "multikueue", "state": "Pending", "message": "", "lastTransitionTime": SINCE}],
    "nominatedClusterNames": ["worker-8", "worker-9"],
}


def at_home(made: Json, *others: Json, manager: str = "", suspend: bool = True) -> WorkloadObservation:
    """Observe a Job of two pods at home that Kueue manages."""
    state = ClusterState(frozenset({TRAIN}))
    job = workload("train")
    spec = {**job["spec"], "suspend": suspend, "parallelism": 2, **({"managedBy": manager} if manager else {})}
    state.apply(Resource.JOBS, {**job, "spec": spec})
    for raw in (made, *others):
        state.apply(Resource.QUEUED, raw)
    (observed,) = state.observation(NAME, AT).workloads
    return observed


READY = {**PROVISIONING, "state": "Ready", "message": ""}


@pytest.mark.parametrize(
    ("conditions", "status", "said"),
    [
        ([RESERVED], DISPATCHED, "kueue queue-a has dispatched it to worker-9 by MultiKueue"),
        ([RESERVED], {"admissionChecks": [READY]}, "kueue queue-a has reserved quota for it"),
        ([RESERVED, ADMITTED], {"admissionChecks": [READY]}, "kueue queue-a has reserved quota for it"),
    ],
    ids=["dispatched", "all checks are ready", "admitted"],
)
@pytest.mark.parametrize("suspend", [True, False])
def test_a_job_with_quota_and_no_check_in_its_way_begins_at_home_though_no_pod_of_it_runs_there(
    conditions: list[Json], status: Json, said: str, *, suspend: bool
) -> None:
    made = queued("job-train-1a2b3", 2, status={"conditions": conditions, **status})
    observed = at_home(made, manager="kueue.x-k8s.io/multikueue", suspend=suspend)
    assert (observed.started, observed.claimed, observed.held, observed.running) == (said, "", False, 0)
    assert (observed.asks, observed.waiting) == ((), ())


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
@pytest.mark.parametrize("others", [[], [READY]])
def test_a_job_with_quota_is_still_missing_while_a_check_may_refuse_it(state: str, others: list[Json]) -> None:
    checks = [*others, {**PROVISIONING, "state": state}]
    observed = at_home(queued("job-train-1a2b3", 2, status={"conditions": [RESERVED], "admissionChecks": checks}))
    assert (observed.started, observed.held) == ("", True)
    assert observed.claimed == "kueue queue-a has reserved quota for it"
    (ask,) = observed.asks
    assert (ask.replicas, ask.cause) == (2, "has quota, and waits for admission check nodes")


def test_a_job_that_multikueue_has_nominated_clusters_for_is_about_to_begin() -> None:
    observed = at_home(queued("job-train-1a2b3", 2, status={"conditions": [RESERVED], **NOMINATED}))
    assert observed.claimed == (
        "kueue queue-a has reserved quota for it and nominated worker-8, worker-9 by MultiKueue"
    )
    assert observed.started == ""


def test_a_job_that_multikueue_manages_is_its_to_place_also_without_quota() -> None:
    waiting = queued("job-train-1a2b3", 2)
    observed = at_home(waiting, manager="kueue.x-k8s.io/multikueue")
    assert (observed.started, observed.claimed) == ("", "MultiKueue sends it to a cluster of its own choice")
    assert [ask.replicas for ask in observed.asks] == [2]
    assert at_home(waiting, manager="kubernetes.io/job-controller").claimed == ""


WORKERS = {"name": "workers", "template": {"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}}


@pytest.mark.parametrize(
    ("kind", "group", "spec"),
    [
        ("JobSet", "jobset.x-k8s.io", {"replicatedJobs": [WORKERS]}),
        ("TrainJob", "trainer.kubeflow.org", {"runtimeRef": {"name": "torch-distributed"}}),
    ],
    ids=["a set", "a job whose pods are its runtime's"],
)
@pytest.mark.parametrize("labels", [{}, {"kueue.x-k8s.io/queue-name": "queue-a"}])
def test_an_object_that_multikueue_manages_is_its_to_place_also_without_quota(
    kind: str, group: str, spec: Json, labels: Json
) -> None:
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="train", kind=kind, group=group)}))
    (custom,) = state.customs
    made = {**workload("train"), "spec": {"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue", **spec}}
    state.apply(custom, {**made, "metadata": {**made["metadata"], "labels": labels}})
    state.apply(Resource.QUEUED, queued("owned-by-train", 4, owner=(kind, "train")))
    (observed,) = state.observation(NAME, AT).workloads
    assert observed.claimed == "MultiKueue sends it to a cluster of its own choice"


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([QUEUES_AGAIN], NOMINATED),
        ([RESERVED, EVICTED], DISPATCHED),
        ([RESERVED, ADMITTED], {}),
        ([RESERVED, condition("Finished", reason="Succeeded")], DISPATCHED),
    ],
    ids=["no quota", "evicted", "no checks: its pods tell", "finished"],
)
def test_a_job_without_quota_or_checks_does_not_begin_without_pods(conditions: list[Json], status: Json) -> None:
    made = queued("job-train-1a2b3", 2, status={"conditions": conditions, **status})
    assert at_home(made).started == ""


def test_a_set_that_multikueue_runs_is_observed_though_nothing_of_it_is_at_home() -> None:
    ref = WorkloadRef(namespace="demo", name="train", kind="JobSet", group="jobset.x-k8s.io")
    state = ClusterState(frozenset({ref}))
    made = queued("jobset-train", 4, owner=("JobSet", "train"), status={"conditions": [RESERVED], **DISPATCHED})
    state.apply(Resource.QUEUED, made)
    (observed,) = state.observation(NAME, AT).workloads
    assert observed.started == "kueue queue-a has dispatched it to worker-9 by MultiKueue"
    state.follow(frozenset({ref}))
    assert state.observation(NAME, AT).workloads[0].started


def test_gated_pods_that_multikueue_runs_elsewhere_are_not_missing() -> None:
    """MultiKueue leaves the pods of a group gated at home while their copies run on a worker."""
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="train", kind="StatefulSet", group="apps")}))
    sets = {**workload("train", 2), "kind": "StatefulSet"}
    state.apply(Resource.STATEFUL_SETS, sets)
    for name in ("train-0", "train-1"):
        state.apply(Resource.PODS, gated(name, "statefulset-train", {}, owner=("StatefulSet", "train")))
    waits = queued("statefulset-train", 2, owner=None)
    state.apply(Resource.QUEUED, waits)
    (observed,) = state.observation(NAME, AT).workloads
    assert sum(missing.replicas for missing in observed.waiting) == 2
    runs = queued("statefulset-train", 2, owner=None, status={"conditions": [RESERVED, ADMITTED], **DISPATCHED})
    state.apply(Resource.QUEUED, runs)
    (observed,) = state.observation(NAME, AT + timedelta(seconds=1)).workloads
    assert observed.waiting == ()
    assert observed.started == "kueue queue-a has dispatched it to worker-9 by MultiKueue"


def test_a_job_that_is_preempted_at_home_asks_for_its_pods_in_words_that_stay_the_same() -> None:
    """Kueue writes who came into the message, and another one may come at each attempt."""
    made = queued("job-train-1a2b3", 2, status={"conditions": [NO_LONGER, EVICTED, BY_PRIORITY]})
    observed = at_home(made)
    (ask,) = observed.asks
    assert (ask.signal, ask.replicas, ask.cause, observed.held) == ("kueue queue-a", 2, SAID, True)
