"""Pods that their nodes reject are told while their owner lacks them, and lack room where their node does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import CONTROLLERS, Resource
from reconciler.core.observe.kubernetes.words.kubelet import rejection_wait
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ClusterObservation, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import WorkloadRef
from tests.builders.kube_objects import GPU, Raw, pod, workload
from tests.builders.workload_kinds import SAMPLES
from tests.observe.test_placement_refusals import LABELS, NAME, Target

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
FEW = f"Allocate failed due to requested number of devices unavailable for {GPU}. Requested: 1, Available: 0, which is"
LACK = f"pods rejected by their node: insufficient {GPU}"
LABELS_CHANGED = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"


def rejected(name: str, message: str = FEW, *, at: str = "10:01:00", **fields: object) -> Raw:
    """Make a pod that its node has rejected."""
    raw = pod(name, "gpu-1", phase="Failed", **fields)
    raw["status"] = {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": f"Pod was rejected: {message}",
        "startTime": f"2026-11-20T{at}Z",
    }
    return raw


def bound(name: str, *, taken: bool, **fields: object) -> Raw:
    """Make a pod that the scheduler has bound, and its kubelet has taken or not."""
    raw = pod(name, "gpu-1", phase="Pending", ready=False, **fields)
    raw["status"] |= {"startTime": "2026-11-20T10:02:00Z"} if taken else {}
    return raw


class Home:
    """A cluster with a Deployment of two pods, one of which runs."""

    def __init__(self) -> None:
        self.state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind="Deployment")}))
        resources = {each.kind: each for each in CONTROLLERS}
        self.state.apply(resources["Deployment"], workload("vllm", 2))
        self.state.apply(resources["ReplicaSet"], workload("vllm-1", 2, owner=("Deployment", "vllm")))
        self.put(pod("a", "gpu-1"))

    def put(self, raw: Raw) -> ChangeEffect:
        return self.state.apply(Resource.PODS, raw)

    def seen(self, at: datetime = AT) -> WorkloadObservation:
        (found,) = self.state.observation(ClusterName("worker-1"), at).workloads
        return found

    @property
    def missing(self) -> list[tuple[int, str, datetime]]:
        return [(each.replicas, each.cause, each.since) for each in self.seen().waiting]


FIRST = datetime(2026, 11, 20, 10, 1, tzinfo=UTC)


def test_a_pod_in_the_place_of_rejected_ones_is_missing_until_its_kubelet_takes_it() -> None:
    home = Home()
    assert home.missing == []
    assert home.put(rejected("b")) is ChangeEffect.DEMAND
    assert home.missing == [(1, LACK, FIRST)]  # its successor does not exist yet
    home.put(rejected("c", at="10:01:30"))
    home.put(bound("d", taken=False))
    assert (home.missing, home.seen().running) == ([(1, LACK, FIRST)], 1)
    home.put(bound("d", taken=True))
    assert (home.missing, home.seen().running) == ([], 2)


def test_rejections_are_known_beyond_their_pods_and_for_ten_minutes() -> None:
    home = Home()
    home.put(rejected("b"))
    home.state.remove(Resource.PODS, "demo/b")
    home.put(bound("c", taken=False))
    assert home.missing == [(1, LACK, FIRST)]
    assert home.seen(FIRST + timedelta(minutes=11)).waiting == ()


def test_a_pod_that_was_rejected_long_ago_says_nothing_of_others() -> None:
    home = Home()
    home.put(rejected("b", at="08:00:00"))
    assert (home.missing, home.seen().blocked) == ([], ())
    home.put(rejected("c", at="10:03:00"))
    assert home.missing == [(1, LACK, datetime(2026, 11, 20, 10, 3, tzinfo=UTC))]


def test_a_rejection_for_anything_else_than_room_is_told_and_no_demand() -> None:
    home = Home()
    home.put(rejected("b", LABELS_CHANGED))
    (told,) = home.seen().blocked
    assert (home.missing, told.replicas, told.reason) == ([], 1, WaitReason.ERROR)
    assert told.cause == "pods rejected by their node: labels of the node have changed"


def test_a_failed_pod_that_no_kubelet_has_rejected_is_no_rejection() -> None:
    assert rejection_wait("Evicted", "The node was low on resource: memory.") is None
    wait = rejection_wait("FutureReason", "Pod was rejected: something new")
    assert wait is not None
    assert (wait.reason, wait.cause) == (
        WaitReason.ERROR,
        "pods rejected by their node: FutureReason: something new",
    )


def of_placement(raw: Raw) -> ClusterObservation:
    target = Target(SAMPLES["Deployment"][0])
    target.pods(1)
    target.state.apply(Resource.PODS, raw)
    target.state.apply(Resource.PODS, bound("c", taken=False, labels=LABELS))
    return target.seen


def test_a_placement_whose_pods_are_rejected_for_room_has_no_node_for_them() -> None:
    seen = of_placement(rejected("b", labels=LABELS))
    assert seen.bound == {NAME: 1}
    pending = seen.pending_pods[NAME]
    assert (pending.replicas, pending.uncreated, pending.since) == (2, 1, FIRST)
    assert seen.refused[NAME] == LACK.removeprefix("pods ")
    assert seen.waiting_reasons[NAME].endswith(f"2 of 3 pods {seen.refused[NAME]}")


def test_a_placement_whose_pods_are_rejected_for_anything_else_is_told_so_and_stays() -> None:
    seen = of_placement(rejected("b", LABELS_CHANGED, labels=LABELS))
    assert NAME not in seen.pending_pods
    assert "labels of the node have changed; see the labels of the node" in seen.waiting_reasons[NAME]


def test_rejections_of_pods_whose_object_alone_has_the_label_are_told() -> None:
    raw, pods = SAMPLES["TrainJob"]
    target, number = Target(raw), sum(pods.values())
    marks = {"jobset.sigs.k8s.io/jobset-name": "model"}
    target.state.apply(Resource.PODS, rejected("b", labels=marks))
    assert target.seen.refused == {NAME: LACK.removeprefix("pods ")}
    assert target.seen.pending_pods[NAME].uncreated == number
    assert not target.state.apply(Resource.PODS, rejected("c", labels={"app": "other"}))


def test_an_observation_is_outdated_once_rejections_are_old() -> None:
    home = Home()
    home.put(rejected("b"))
    late = FIRST + timedelta(minutes=11)
    assert (home.state.is_outdated(AT), home.state.is_outdated(late)) == (False, True)
    home.seen(late)
    assert not home.state.is_outdated(late)


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_a_placement_without_recent_rejections_is_as_it_is(phase: str) -> None:
    seen = of_placement(pod("b", "gpu-1", labels=LABELS, phase=phase))
    assert (seen.refused, seen.pending_pods) == ({}, {})
