"""What autoscalers and queues of a cluster ask for is asked once, since the right moment, and in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.signal import ReplicaRequest
from reconciler.model.units import format_quantity
from reconciler.model.workload import WorkloadRef
from tests.builders.kube_objects import (
    GPU,
    NO_GPU,
    NO_VALUE,
    OVER_QUOTA,
    autoscaler,
    other_metric,
    pod,
    queued,
    resource_metric,
    workload,
)

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
TENTH = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
VLLM = WorkloadRef(namespace="demo", name="vllm", kind="Deployment")
TRAIN = WorkloadRef(namespace="demo", name="train")
SUSPENDED = {**workload("train"), "spec": {**workload("train")["spec"], "suspend": True, "parallelism": 4}}


def scaled(raw: dict, running: int = 6, waiting: int = 0, loading: int = 0) -> WorkloadObservation:
    """Observe a Deployment of six with an autoscaler: some have a node, of which some are ready."""
    made = ClusterState(frozenset({VLLM}))
    made.apply(Resource.DEPLOYMENTS, workload("vllm", 6))
    made.apply(Resource.REPLICA_SETS, workload("vllm-1", 6, owner=("Deployment", "vllm")))
    for index in range(running):
        made.apply(Resource.PODS, pod(f"runs-{index}", on="gpu-1"))
    for index in range(loading):
        made.apply(Resource.PODS, pod(f"loads-{index}", on="gpu-1", ready=False))
    for index in range(waiting):
        made.apply(Resource.PODS, pod(f"waits-{index}", waits=NO_GPU))
    made.apply(Resource.AUTOSCALERS, raw)
    (seen,) = made.observation(ClusterName("worker-1"), AT).workloads
    return seen


def waiting(*raws: dict, ref: WorkloadRef = TRAIN, pods: tuple[dict, ...] = ()) -> tuple[WorkloadObservation, ...]:
    """Observe what waits for quota."""
    made = ClusterState(frozenset({ref}))
    for raw in raws:
        made.apply(Resource.QUEUED if "podSets" in raw["spec"] else Resource.JOBS, raw)
    for raw in pods:
        made.apply(Resource.PODS, raw)
    return made.observation(ClusterName("worker-1"), AT).workloads


# autoscalers


def test_autoscaler_at_its_maximum_asks_for_what_its_metric_wants_beyond_it() -> None:
    assert scaled(autoscaler("vllm", 6, resource_metric(averageUtilization=170))).asks == (
        ReplicaRequest(
            signal="hpa demo/vllm",
            replicas=7,  # 170 / 80 of 6 are 12.75
            since=TENTH,
            cause="stands at its maximum of 6, cpu at 170% of 80%",
            beyond=True,
        ),
    )


@pytest.mark.parametrize(
    ("metric", "replicas", "cause"),
    [
        (resource_metric(averageUtilization=1000), 69, "cpu at 1000% of 80%"),
        (resource_metric("memory", {"averageValue": "1Gi"}, averageValue="1536Mi"), 3, "memory at 1536Mi of 1Gi"),
        (other_metric("Pods", {"averageValue": "10"}, averageValue="12500m"), 2, "queue_depth at 12500m of 10"),
        (other_metric("Object", {"value": "100"}, value="250"), 9, "queue_depth at 250 of 100"),
        (other_metric("Object", {"averageValue": "10"}, averageValue="20"), 6, "queue_depth at 20 of 10"),
        (other_metric("External", {"value": "100"}, value="150"), 3, "queue_depth at 150 of 100"),
        (other_metric("External", {"averageValue": "30"}, averageValue="42500m"), 3, "queue_depth at 42500m of 30"),
    ],
)
def test_each_kind_of_metric_is_counted_by_its_own_rule(metric, replicas, cause) -> None:
    (ask,) = scaled(autoscaler("vllm", 6, metric)).asks
    assert (ask.replicas, ask.cause) == (replicas, f"stands at its maximum of 6, {cause}")


def test_metric_of_one_container_names_it() -> None:
    asked = {"name": "cpu", "container": "server", "target": {"type": "Utilization", "averageUtilization": 50}}
    measured = {"name": "cpu", "container": "server", "current": {"averageUtilization": 75, "averageValue": "750m"}}
    kind = "ContainerResource"
    metric = ({"type": kind, "containerResource": asked}, {"type": kind, "containerResource": measured})
    (ask,) = scaled(autoscaler("vllm", 6, metric)).asks
    assert (ask.replicas, ask.cause) == (3, "stands at its maximum of 6, cpu of server at 75% of 50%")


@pytest.mark.parametrize("rest", [{"waiting": 3}, {"loading": 3}, {"waiting": 1, "loading": 2}])
def test_average_over_pods_says_nothing_of_those_that_are_not_ready(rest) -> None:
    raw = autoscaler("vllm", 6, resource_metric(averageUtilization=190))
    (ask,) = scaled(raw, running=3, **rest).asks
    assert ask.replicas == 2  # 190 / 80 of 3 are 7.125, and 6 it has already
    (total,) = scaled(
        autoscaler("vllm", 6, other_metric("External", {"averageValue": "10"}, averageValue="20")), 3
    ).asks
    assert total.replicas == 6  # a length of 120, however many there are to share it


def test_largest_metric_wins() -> None:
    small, large = resource_metric(averageUtilization=120), other_metric("External", {"value": "10"}, value="40")
    for metrics in ((small, large), (large, small)):
        (ask,) = scaled(autoscaler("vllm", 6, *metrics)).asks
        assert (ask.replicas, ask.cause) == (18, "stands at its maximum of 6, queue_depth at 40 of 10")
    mixed = (
        resource_metric(averageUtilization=160),
        other_metric("External", {"averageValue": "10"}, averageValue="15"),
    )
    assert scaled(autoscaler("vllm", 6, *mixed), running=6).asks[0].replicas == 6
    assert scaled(autoscaler("vllm", 6, *mixed), running=3).asks[0].replicas == 3


@pytest.mark.parametrize(
    "metrics",
    [
        (),
        ((resource_metric(averageUtilization=170)[0], NO_VALUE),),
        ((resource_metric(averageUtilization=170)[0], resource_metric("memory", averageUtilization=170)[1]),),
        (other_metric("External", {"value": "10"}, value="-40"),),
        (resource_metric(averageUtilization=60),),
    ],
)
def test_where_nothing_can_be_worked_out_it_is_one_replica(metrics) -> None:
    (ask,) = scaled(autoscaler("vllm", 6, *metrics)).asks
    assert (ask.replicas, ask.cause) == (1, "stands at its maximum of 6")


def test_metric_without_a_value_is_passed_over() -> None:
    metrics = ((other_metric("External", {"value": "1"})[0], NO_VALUE), resource_metric(averageUtilization=160))
    assert scaled(autoscaler("vllm", 6, *metrics)).asks[0].replicas == 6


@pytest.mark.parametrize(
    ("behavior", "percent", "replicas"),
    [
        (None, 88, 1),
        (None, 89, 12),
        ({"scaleUp": {"tolerance": "50m"}}, 88, 10),
        ({"scaleUp": {"tolerance": "0"}}, 81, 2),
        ({"scaleUp": {"tolerance": "0.5"}}, 120, 1),
        ({"scaleDown": {"tolerance": "0.5"}}, 120, 50),
    ],
)
def test_metric_within_the_tolerance_asks_for_nothing(behavior, percent, replicas) -> None:
    raw = autoscaler("vllm", 100, resource_metric(averageUtilization=percent), behavior=behavior)
    assert scaled(raw, running=100).asks[0].replicas == replicas


@pytest.mark.parametrize(
    "raw",
    [
        autoscaler(conditions={"ScalingLimited": ("False", "DesiredWithinRange")}),
        autoscaler(conditions={"ScalingLimited": ("True", "TooFewReplicas")}),
        autoscaler(conditions={"ScalingLimited": ("True", "ScaleUpLimit")}),
        autoscaler(conditions={"ScalingActive": ("False", "FailedGetResourceMetric")}),
        autoscaler(conditions={"ScalingActive": ("False", "ScalingDisabled")}),
        autoscaler(conditions={"AbleToScale": ("False", "FailedGetScale")}),
        # It may not scale up, as with KEDA's ``paused-scale-out``, and has the reason of its maximum all the same.
        autoscaler(behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
        autoscaler("vllm", 8, desiredReplicas=6),
        autoscaler("other"),
        autoscaler(namespace="prod"),
        autoscaler(kind="StatefulSet"),
        {**autoscaler(), "status": {}},
        {key: value for key, value in autoscaler().items() if key != "status"},
    ],
)
def test_any_other_autoscaler_asks_for_nothing(raw) -> None:
    assert scaled(raw).asks == ()


def test_autoscaler_on_its_way_to_the_maximum_asks_only_for_what_is_beyond() -> None:
    raw = autoscaler("vllm", 6, resource_metric(averageUtilization=160), currentReplicas=4)
    assert scaled(raw, running=4).asks[0].replicas == 2


def test_limit_is_no_older_than_the_last_scaling() -> None:
    """A limit that turns from the minimum into the maximum has no transition of its own."""
    assert scaled(autoscaler(lastScaleTime="2026-11-20T10:03:00Z")).asks[0].since == TENTH.replace(minute=3)
    assert scaled(autoscaler(lastScaleTime=None)).asks[0].since == TENTH


def test_autoscaler_of_a_kind_that_is_not_watched_is_known_by_what_it_scales() -> None:
    made = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm")}))
    raw = autoscaler("vllm", 6, resource_metric(averageUtilization=160), kind="SeldonDeployment")
    made.apply(Resource.AUTOSCALERS, raw)
    (seen,) = made.observation(ClusterName("worker-1"), AT).workloads
    assert (seen.ref.kind, seen.wanted, seen.asks[0].replicas) == ("SeldonDeployment", 0, 6)


def test_pod_that_becomes_ready_matters_to_autoscalers_of_its_namespace_only() -> None:
    made = ClusterState(frozenset({VLLM}))
    for namespace, effect in (("demo", ChangeEffect.DEMAND), ("batch", ChangeEffect.NOTHING)):
        made.apply(Resource.PODS, pod("a", on="gpu-1", namespace=namespace, ready=False))
        assert made.apply(Resource.PODS, pod("a", on="gpu-1", namespace=namespace)) is effect


# queues


def test_suspended_job_that_waits_for_quota_asks_for_its_pods() -> None:
    (seen,) = waiting(SUSPENDED, queued())
    assert (seen.ref.kind, seen.wanted, seen.running) == ("Job", 0, 0)
    assert seen.asks == (
        ReplicaRequest(
            signal="kueue queue-a",
            replicas=4,
            since=TENTH,
            cause=f"insufficient unused quota for {GPU} in flavor h100, 4 more needed",
            beyond=True,
        ),
    )


def test_object_of_any_other_kind_is_known_by_what_waits_of_it() -> None:
    (seen,) = waiting(queued("sparkapplication-train-1a2b3", 1, 3, owner=("SparkApplication", "train")))
    assert (seen.ref.kind, seen.wanted, seen.asks[0].replicas) == ("SparkApplication", 0, 4)
    assert seen.shape is not None
    assert format_quantity(seen.shape.requests.amounts[GPU]) == "2"  # that of the most pods


def test_pods_that_need_no_quota_any_more_are_not_asked_for() -> None:
    done = {"reclaimablePods": [{"name": "set-0", "count": 3}]}
    raw = queued()
    raw["status"] |= done
    assert waiting(SUSPENDED, raw)[0].asks[0].replicas == 1
    raw["status"]["reclaimablePods"][0]["count"] = 4
    assert waiting(SUSPENDED, raw)[0].asks == ()


@pytest.mark.parametrize(
    "raw",
    [
        queued(reserved="True", reason="QuotaReserved"),
        queued(active=False),
        queued(reason="Inadmissible", message="LocalQueue queue-a doesn't exist"),
        queued(reason="Misconfigured"),
        queued(reason="OnHold"),
        queued(status={"conditions": []}),
        queued(status={"conditions": [*queued()["status"]["conditions"], {"type": "Finished", "status": "True"}]}),
        queued(owner=("Job", "other")),
        queued(owner=None),
        queued(owner=("Pod", "train")),
        queued(namespace="prod"),
    ],
)
def test_any_other_workload_of_kueue_asks_for_nothing(raw) -> None:
    (seen,) = waiting(SUSPENDED, raw)
    assert (seen.ref.kind, seen.asks) == ("Job", ())


@pytest.mark.parametrize("reason", ["Pending", "WaitingForQuota", "ExceedsMaxQuota", "WaitingForPreemptedWorkloads"])
def test_each_lack_of_quota_counts(reason) -> None:
    assert waiting(SUSPENDED, queued(reason=reason))[0].asks[0].replicas == 4


def test_pods_behind_a_gate_are_counted_once() -> None:
    """Kueue holds back the pods of some kinds, and not the object."""
    gate = {"waits": "gated", "reason": "SchedulingGated", "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    pods = tuple(pod(f"train-{index}", owner=("LeaderWorkerSet", "train"), **gate) for index in range(4))
    (seen,) = waiting(queued(owner=("LeaderWorkerSet", "train")), pods=pods)
    assert (seen.wanted, [one.replicas for one in seen.waiting], seen.asks) == (4, [4], ())


def test_long_words_of_kueue_are_shortened_to_one_line() -> None:
    (seen,) = waiting(SUSPENDED, queued(message="Preempted\nto accommodate " + "x" * 200))
    assert seen.asks[0].cause.startswith("Preempted to accommodate x")
    assert len(seen.asks[0].cause) == 80
    assert waiting(SUSPENDED, queued(message=""))[0].asks[0].cause == "waits for quota"


# how they come and go


def test_signal_that_says_the_same_again_changes_nothing() -> None:
    made = ClusterState(frozenset({VLLM, TRAIN}))
    for resource, raw in ((Resource.AUTOSCALERS, autoscaler()), (Resource.QUEUED, queued())):
        assert made.apply(resource, raw) is ChangeEffect.DEMAND
        assert (
            made.apply(resource, {**raw, "metadata": {**raw["metadata"], "resourceVersion": "2"}})
            is ChangeEffect.NOTHING
        )
    calm = autoscaler(conditions={"ScalingLimited": ("False", "DesiredWithinRange")})
    assert made.apply(Resource.AUTOSCALERS, calm) is ChangeEffect.DEMAND
    assert made.apply(Resource.AUTOSCALERS, autoscaler(namespace="prod")) is ChangeEffect.NOTHING
    assert made.retain(Resource.QUEUED, set()) is ChangeEffect.DEMAND
    assert made.remove(Resource.QUEUED, "demo/job-train-1a2b3") is ChangeEffect.NOTHING
    assert made.observation(ClusterName("worker-1"), AT).workloads == ()


def test_signals_of_a_namespace_that_is_followed_no_longer_are_forgotten() -> None:
    made = ClusterState(frozenset({VLLM}))
    made.apply(Resource.AUTOSCALERS, autoscaler())
    made.follow(frozenset({WorkloadRef(namespace="prod", name="vllm")}))
    assert made.follow(frozenset({VLLM}))
    assert made.observation(ClusterName("worker-1"), AT).workloads == ()


# what owns pods through others


def test_replicas_that_a_rollout_may_not_make_wait_too() -> None:
    told = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": "2026-11-20T10:00:00Z"}
    made = ClusterState(frozenset({TRAIN}))
    replica_set = workload("train-1", 5, owner=("Rollout", "train"))
    replica_set["status"]["conditions"] = [{**told, "message": OVER_QUOTA}]
    made.apply(Resource.REPLICA_SETS, replica_set)
    made.apply(Resource.PODS, pod("a", on="gpu-1", owner=("ReplicaSet", "train-1")))
    made.apply(Resource.PODS, pod("b", waits=NO_GPU, owner=("ReplicaSet", "train-1")))
    (seen,) = made.observation(ClusterName("worker-1"), AT).workloads
    assert (seen.ref.kind, seen.wanted, seen.running) == ("Rollout", 5, 1)
    assert [(one.replicas, one.cause) for one in seen.waiting] == [
        (1, f"insufficient {GPU}"),
        (3, "pods refused: quota exceeded"),
    ]
