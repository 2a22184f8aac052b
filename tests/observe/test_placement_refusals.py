"""Pods of placements that their cluster refuses are told with the words of home, and lack room where a quota does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.custom_workloads import HELD_BACK
from reconciler.core.observe.kubernetes.resources import Resource, needed_resources, placed_resources
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.kube_objects import CREATED, OVER_QUOTA, SINCE, Raw, node, pod
from tests.builders.workload_kinds import SAMPLES
from tests.observe.test_quota_refusals import quota

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
NAME = PlacementName("model-7f3a90c1")
LABELS = {PLACEMENT_LABEL: NAME}
NOT_KEPT = {"Pod", "ReplicationController", "CronJob", "RayJob on a cluster that is there"}
KINDS = sorted(name for name, (raw, _) in SAMPLES.items() if name not in NOT_KEPT and BUILT_IN[group_kind(raw)].counted)
EXCEEDED = "refused: quota exceeded"
FULL = quota(name="pods")
FORBIDDEN = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": a != b'
POLICY = (
    "refused: Pod Security restricted:latest forbids a != b; change the pod template, or the Pod Security labels of"
)
EVENTLESS = {("Deployment", "apps"), ("ReplicaSet", "apps"), ("Pod", "")}


class Target:
    """A cluster that no workload is followed on, with an object of a placement."""

    def __init__(self, raw: Json, **metadata: Any) -> None:
        kind = BUILT_IN[group_kind(raw)]
        self.ref = WorkloadRef(namespace="", name="", kind=kind.kind, group=kind.group)
        self.state = ClusterState(placed=frozenset({self.ref}))
        (self.resource,) = placed_resources({self.ref})
        self.raw = {**raw, "metadata": {**raw["metadata"], "labels": LABELS, "creationTimestamp": CREATED, **metadata}}
        self.state.apply(Resource.NODES, node("gpu-1"))
        self.state.apply(self.resource, self.raw)

    def pods(self, number: int, *, ready: bool = True, first: int = 0) -> None:
        """Apply pods of the placement that have a node."""
        for index in range(first, first + number):
            self.state.apply(Resource.PODS, pod(f"model-{index}", "gpu-1", labels=LABELS, ready=ready))

    @property
    def seen(self) -> ClusterObservation:
        """The cluster as it is observed."""
        return self.state.observation(ClusterName("worker-2"), AT)

    @property
    def counts(self) -> tuple[str, int, int]:
        """The words on the placement, its pods without a node, and those of them that do not exist."""
        seen, words = self.seen, self.seen.waiting_reasons.get(NAME, "")
        pending = seen.pending_pods.get(NAME)
        assert (seen.refused.get(NAME) or "") in words
        return words, pending.replicas if pending else 0, pending.uncreated if pending else 0


def deployment(message: str, replicas: int = 4) -> Json:
    """Make a Deployment with the condition of its ReplicaSet."""
    raw, _ = SAMPLES["Deployment"]
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
        "lastTransitionTime": SINCE,
    }
    return {**raw, "spec": {**raw["spec"], "replicas": replicas}, "status": {"conditions": [failure]}}


def event(target: Target, message: str) -> Raw:
    return {
        "metadata": {"name": "model.1", "namespace": "demo"},
        "reason": "FailedCreate",
        "message": f"Error creating: {message}",
        "firstTimestamp": SINCE,
        "involvedObject": {
            "kind": target.resource.kind,
            "apiVersion": f"{target.resource.group}/v1",
            "namespace": "demo",
            "name": "model",
        },
    }


@pytest.mark.parametrize("name", KINDS)
def test_pods_that_a_full_quota_refuses_lack_room_whatever_the_kind(name: str) -> None:
    raw, pods = SAMPLES[name]
    target, number = Target(raw), sum(pods.values())
    assert target.counts == ("", 0, 0)
    target.state.apply(Resource.QUOTAS, FULL)
    if (target.ref.kind, target.ref.group) in EVENTLESS:
        assert target.counts == ("", 0, 0)  # their condition says it
        return
    assert target.counts == (f"{number} of {number} pods {EXCEEDED}", number, number)
    target.pods(number)
    assert target.counts == ("", 0, 0)
    target.state.apply(target.resource, {**target.raw, "metadata": {**target.raw["metadata"], "labels": {}}})
    assert target.seen.refused == {}


def test_a_condition_tells_of_a_deployment() -> None:
    target = Target(deployment(OVER_QUOTA))
    target.pods(1)
    assert target.counts == (f"3 of 4 pods {EXCEEDED}", 3, 3)
    pending = target.seen.pending_pods[NAME]
    assert pending.since == datetime.fromisoformat(SINCE)
    assert pending.shape is not None
    target.pods(3, first=1)
    assert target.counts == ("", 0, 0)


def test_a_refusal_that_is_no_quota_s_is_told_and_lacks_no_room() -> None:
    target = Target(deployment(FORBIDDEN))
    words, *pending = target.counts
    assert words.startswith(f"4 of 4 pods {POLICY}")
    assert pending == [0, 0]


def test_a_job_that_volcano_does_not_enqueue_lacks_room() -> None:
    raw, pods = SAMPLES["Job of Volcano"]
    target = Target({**raw, "status": {"state": {"phase": "Pending", "lastTransitionTime": SINCE}}})
    number = sum(pods.values())
    assert target.counts == (f"{number} of {number} pods refused: {HELD_BACK}", number, number)


@pytest.mark.parametrize("name", ["StatefulSet", "Job"])
def test_an_event_tells_where_there_is_no_condition(name: str) -> None:
    target = Target(SAMPLES[name][0])
    target.state.apply(Resource.EVENTS, event(target, FORBIDDEN))
    words, *pending = target.counts
    assert f"pods {POLICY}" in words
    assert pending == [0, 0]
    target.state.retain(Resource.EVENTS, set())
    assert target.counts == ("", 0, 0)


def test_events_outlive_a_change_of_what_is_followed() -> None:
    target = Target(SAMPLES["StatefulSet"][0])
    target.state.apply(Resource.EVENTS, event(target, FORBIDDEN))
    other = WorkloadRef(namespace="other", name="vllm", kind="Deployment", group="apps")
    listed = target.state.follow(frozenset({other}), placed=frozenset({target.ref}))
    assert NAME in target.seen.refused
    assert Resource.EVENTS in listed
    assert Resource.EVENTS in target.state.follow(frozenset({other}))


def test_events_on_kinds_that_nobody_places_change_nothing() -> None:
    target, other = Target(SAMPLES["StatefulSet"][0]), Target(SAMPLES["Job"][0])
    assert not target.state.apply(Resource.EVENTS, event(other, FORBIDDEN))
    assert target.state.apply(Resource.EVENTS, event(target, FORBIDDEN))
    assert Resource.EVENTS in target.state.follow(frozenset(), placed=frozenset({target.ref, other.ref}))
    assert target.state.apply(Resource.EVENTS, event(other, FORBIDDEN))


def test_what_makes_pods_one_by_one_has_not_tried_those_behind_one_that_is_not_ready() -> None:
    target = Target(SAMPLES["StatefulSet"][0])
    target.state.apply(Resource.QUOTAS, FULL)
    target.pods(1, ready=False)
    assert target.counts == ("", 0, 0)
    target.pods(1)
    assert target.counts[0] == f"2 of 3 pods {EXCEEDED}"


def test_pods_wait_since_their_object_was_made_where_the_quota_was_full_before() -> None:
    made = "2026-11-20T10:03:00Z"
    target = Target(SAMPLES["StatefulSet"][0], creationTimestamp=made)
    target.state.apply(Resource.QUOTAS, FULL)
    assert target.seen.pending_pods[NAME].since == datetime.fromisoformat(made)


@pytest.mark.parametrize(("name", "made"), [("InferenceService", "Deployment"), ("RayJob", "RayCluster")])
def test_pods_of_an_object_and_of_what_it_makes_are_counted_once(name: str, made: str) -> None:
    raw, pods = SAMPLES[name]
    target, number = Target(raw), sum(pods.values())
    part = Target(SAMPLES[made][0])
    target.state.follow(frozenset(), placed=frozenset({target.ref, part.ref}))
    owner = {"apiVersion": raw["apiVersion"], "kind": target.ref.kind, "name": "model", "controller": True}
    made_raw = {**part.raw, "metadata": {**part.raw["metadata"], "name": "made", "ownerReferences": [owner]}}
    target.state.apply(part.resource, made_raw)
    target.state.apply(Resource.QUOTAS, FULL)
    assert target.counts == (f"{number} of {number} pods {EXCEEDED}", number, number)
    target.pods(number)
    assert target.counts == ("", 0, 0)


def test_pods_of_a_run_that_have_ended_are_not_refused() -> None:
    raw, pods = SAMPLES["PyTorchJob"]
    target, number = Target(raw), sum(pods.values())
    target.state.apply(Resource.QUOTAS, FULL)
    version = raw["apiVersion"]
    for index in range(number):
        target.state.apply(
            Resource.PODS,
            pod(
                f"m-{index}", "gpu-1", labels=LABELS, owner=("PyTorchJob", "model"), version=version, phase="Succeeded"
            ),
        )
    assert target.counts == ("", 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"deletionTimestamp": SINCE}},
        {"metadata": {"labels": {**LABELS, "overspill.dev/step": "1"}}},
        {"metadata": {"annotations": {"helm.sh/hook": "post-install"}}},
        {"spec": {"suspend": True}},
    ],
)
def test_objects_that_make_no_replica_now_are_refused_nothing(change: Json) -> None:
    target = Target(SAMPLES["Job"][0])
    target.state.apply(Resource.QUOTAS, FULL)
    assert target.seen.refused
    raw = target.raw
    target.state.apply(target.resource, {**raw, **{part: {**raw[part], **more} for part, more in change.items()}})
    assert target.seen.refused == {}


def test_the_progress_is_the_same_object_until_something_changes() -> None:
    target = Target(SAMPLES["Job"][0])
    target.state.apply(Resource.QUOTAS, FULL)
    assert target.seen.refused is target.seen.refused
    assert target.seen.waiting_reasons is target.seen.waiting_reasons


def test_events_are_watched_only_where_a_kind_without_a_condition_is_placed() -> None:
    refs = {name: WorkloadRef(namespace="", name="", kind=name, group="apps") for name in ("Deployment", "StatefulSet")}
    assert Resource.EVENTS not in needed_resources((), placed={refs["Deployment"]})
    assert Resource.EVENTS in needed_resources((), placed=set(refs.values()))
