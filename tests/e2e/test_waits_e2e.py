"""Messages that kube-scheduler, kube-apiserver and kube-controller-manager write of pods that wait are known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.observe.kubernetes.pods import read_pod
from reconciler.core.observe.kubernetes.unscheduled import written_at
from reconciler.core.observe.kubernetes.words.refusals import refusal_wait
from reconciler.core.observe.kubernetes.words.scheduler import scheduling_wait
from reconciler.model.wait_reason import WaitReason
from reconciler.text.timestamps import read_moment
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.scheduling import ready

GPU, NAMESPACE = "nvidia.com/gpu", "waits"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"


def pod_spec(*, gpus: int = 1, **spec: object) -> Json:
    resources = {"requests": {"cpu": "1", GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    return {"containers": [{"name": "server", "image": "registry.invalid/server:1", "resources": resources}], **spec}


def mounting(claim: str) -> Json:
    return pod_spec(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start a cluster of a node with GPUs and two without, and claims of volumes that nobody makes."""
    made = start_cluster("waits")
    made.ensure_namespace(NAMESPACE)
    for name, gpus in (("gpu-1", 8), ("cpu-1", 0), ("cpu-2", 0)):
        allocatable = {"cpu": "32", "memory": "64Gi", **({GPU: str(gpus)} if gpus else {})}
        made.add_node(name, allocatable=allocatable)
        made.until(lambda name=name: ready(made.call("GET", f"/api/v1/nodes/{name}")), f"node {name} is not ready")
    for mode in ("WaitForFirstConsumer", "Immediate"):
        storage = {"metadata": {"name": mode.lower()}, "provisioner": "kubernetes.io/no-provisioner"}
        made.create("/apis/storage.k8s.io/v1/storageclasses", {**storage, "volumeBindingMode": mode})
        size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": mode.lower()}, "spec": {**size, "storageClassName": mode.lower()}}
        made.create(CLAIMS, claim)
    return made


def condition(pod: Json) -> Json:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), {})


def waiting(cluster: Cluster, name: str, spec: Json) -> Json:
    """Make a pod, and return it once it waits."""
    cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})
    cluster.until(lambda: bool(condition(cluster.call("GET", f"{PODS}/{name}"))), f"pod {name} does not wait")
    return cluster.call("GET", f"{PODS}/{name}")


@pytest.mark.parametrize(
    ("name", "spec", "reason"),
    [
        ("gpus", pod_spec(gpus=9), WaitReason.CAPACITY),
        ("selector", pod_spec(nodeSelector={"no": "such"}), WaitReason.CAPACITY),
        ("no-volume", mounting("waitforfirstconsumer"), WaitReason.VOLUME),
        ("not-bound", mounting("immediate"), WaitReason.VOLUME),
        ("no-claim", mounting("none"), WaitReason.VOLUME),
    ],
)
def test_the_words_of_the_scheduler_are_known(cluster: Cluster, name: str, spec: Json, reason: WaitReason) -> None:
    pod = waiting(cluster, name, spec)
    told = condition(pod)
    assert told["reason"] == "Unschedulable"
    wait = scheduling_wait(told["message"])
    assert wait.reason is reason, told["message"]
    record = read_pod(pod)
    assert record is not None
    assert (record.held is not None) is reason.lacks_room


def test_a_gated_pod_names_its_gate(cluster: Cluster) -> None:
    record = read_pod(waiting(cluster, "gated", pod_spec(schedulingGates=[{"name": "example.com/data"}])))
    assert record is not None
    assert record.blocked is not None
    assert (record.blocked.reason, record.blocked.cause) == (
        WaitReason.GATE,
        "held by scheduling gate example.com/data",
    )


def test_a_condition_keeps_its_time_and_its_fields_say_when_it_was_written(cluster: Cluster) -> None:
    """A pod that waited for a claim finds no GPU once the claim is there: PodScheduled stays as old as it was."""
    name = "later"
    before = waiting(cluster, name, {**mounting("later"), "nodeSelector": {"kubernetes.io/hostname": "cpu-1"}})
    first = read_pod(before)
    assert first is not None
    assert first.blocked is not None
    began = read_moment(condition(before)["lastTransitionTime"])
    cluster.until(lambda: datetime.now(UTC) - began > timedelta(seconds=2), "no time has passed")
    claim = cluster.call("GET", f"{CLAIMS}/waitforfirstconsumer")["spec"]
    cluster.create(CLAIMS, {"metadata": {"name": "later"}, "spec": claim})

    def lacks() -> bool:
        return "Insufficient" in condition(cluster.call("GET", f"{PODS}/{name}")).get("message", "")

    cluster.until(lacks, "the pod still waits for its claim")
    after = cluster.call("GET", f"{PODS}/{name}")
    assert read_moment(condition(after)["lastTransitionTime"]) == began
    written = written_at(after["metadata"], "PodScheduled")
    assert written is not None
    assert written > began
    second = read_pod(after)
    assert second is not None
    held = second.waiting_on(first).held
    assert held is not None
    assert held.since == written


def refused(cluster: Cluster, name: str, spec: Json, namespace: str = NAMESPACE) -> str:
    """Make a Deployment, and return why its pods are refused."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    body = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    cluster.create(path, {"metadata": {"name": name}, "spec": body})

    def words() -> list[str]:
        status = cluster.call("GET", f"{path}/{name}").get("status") or {}
        failures = [each for each in status.get("conditions") or () if each["type"] == "ReplicaFailure"]
        return [each["message"] for each in failures]

    cluster.until(lambda: bool(words()), f"the pods of {name} are not refused")
    return words()[0]


def test_the_refusals_of_the_api_server_are_known(cluster: Cluster) -> None:
    cluster.ensure_namespace("strict")
    cluster.ensure_namespace("quota")
    cluster.ensure_namespace("limits")
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    cluster.call("PATCH", "/api/v1/namespaces/strict", label)
    hard = {f"requests.{GPU}": "0"}
    quotas = "/api/v1/namespaces/quota/resourcequotas"
    cluster.create(quotas, {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    cluster.until(lambda: "used" in cluster.call("GET", f"{quotas}/gpus")["status"], "the quota is not counted")
    bounds = {"limits": [{"type": "Container", "max": {GPU: "1"}}]}
    cluster.create("/api/v1/namespaces/limits/limitranges", {"metadata": {"name": "gpus"}, "spec": bounds})
    cases = {
        "security": (pod_spec(), "strict", WaitReason.POLICY, "Pod Security restricted:latest forbids"),
        "quota": (pod_spec(), "quota", WaitReason.QUOTA, "quota exceeded"),
        "limit": (pod_spec(gpus=2), "limits", WaitReason.POLICY, "a LimitRange forbids them"),
        "account": (pod_spec(serviceAccountName="none"), NAMESPACE, WaitReason.MISSING_OBJECT, "service account"),
        "priority": (pod_spec(priorityClassName="none"), NAMESPACE, WaitReason.MISSING_OBJECT, "PriorityClass none"),
        "runtime": (pod_spec(runtimeClassName="none"), NAMESPACE, WaitReason.MISSING_OBJECT, "RuntimeClass none"),
    }
    for name, (spec, namespace, reason, words) in cases.items():
        message = refused(cluster, name, spec, namespace)
        wait = refusal_wait(message)
        assert (wait.reason, words in wait.cause) == (reason, True), message


def test_a_webhook_that_does_not_answer_is_known(cluster: Cluster) -> None:
    cluster.ensure_namespace("hooked")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "pods.example.com",
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    cluster.create(path, {"metadata": {"name": "away"}, "webhooks": [hook]})
    message = refused(cluster, "hooked", pod_spec(), "hooked")
    wait = refusal_wait(message)
    assert wait.reason is WaitReason.WEBHOOK, message
    assert wait.cause == "pods refused: webhook pods.example.com does not answer"
