"""What is asked for beyond the pods: the autoscaling controller judges how much, and kinds come and go for real."""

from __future__ import annotations

import gc
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeObservations, WatchTiming
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import Connection
from reconciler.model.signal import ReplicaRequest
from tests.builders.inputs import cluster as described
from tests.builders.inputs import desired
from tests.e2e.control_plane import Cluster, Json
from tests.e2e.kubeconfigs import kubeconfig
from tests.e2e.test_watching_e2e import GPU
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

HPAS = "/apis/autoscaling/v2/namespaces/demo/horizontalpodautoscalers"
EXTERNAL = "external.metrics.k8s.io/v1beta1"
PRIMARY = "worker-1"
DEPTH = "40"
TOTAL = {"type": "AverageValue", "averageValue": "10"}
RATIO = {"type": "Value", "value": "20"}


class Metrics(LoopbackHandler):
    """Answers for each external metric that it is the same."""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].removeprefix(f"/apis/{EXTERNAL}").rpartition("/")[2]
        answer: Json = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": EXTERNAL, "resources": []}
        if name:
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            value = {"metricName": name, "metricLabels": {}, "timestamp": now, "value": DEPTH}
            answer = {"kind": "ExternalMetricValueList", "apiVersion": EXTERNAL, "metadata": {}, "items": [value]}
        self.reply_json(200, answer)


@contextmanager
def external_metrics(cluster: Cluster) -> Iterator[None]:
    """Serve external metrics as a part of the cluster's API, as KEDA does."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cluster.access.authority, cluster.access.authority.with_suffix(".key"))
    with LoopbackServer(Metrics, tls=tls) as server:
        service = {"metadata": {"name": "metrics"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        cluster.create("/api/v1/namespaces/default/services", service)
        group, _, version = EXTERNAL.partition("/")
        behind = {"name": "metrics", "namespace": "default", "port": server.server_port}
        spec = {"group": group, "version": version, "service": behind, "insecureSkipTLSVerify": True}
        name = f"{version}.{group}"
        api = {"metadata": {"name": name}, "spec": {**spec, "groupPriorityMinimum": 100, "versionPriority": 100}}
        cluster.create("/apis/apiregistration.k8s.io/v1/apiservices", api)
        yield
        cluster.call("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")


@contextmanager
def seeing(path: Path, cluster: Cluster, *names: str) -> Iterator[Callable[[], dict[str, tuple[ReplicaRequest, ...]]]]:
    """Watch a cluster with our rights, and give the way to ask what is asked for of workloads of these names."""
    pace = WatchTiming(absent=0.5, longest_backoff=1)
    view = KubeObservations(kubeconfig(path, cluster), clock=SystemClock(), patience=timedelta(seconds=20), pace=pace)
    workloads = [WorkloadId(workspace=WorkspaceName("llm"), name=TemplateName(name)) for name in names]
    try:
        view.follow(
            desired(clusters=(described(PRIMARY, connection=Connection(context=cluster.name)),), workloads=workloads)
        )

        def asks() -> dict[str, tuple[ReplicaRequest, ...]]:
            seen = view.observe()
            assert not seen.problems
            return {one.ref.name: one.asks for one in seen.clusters[ClusterName(PRIMARY)].workloads}

        yield asks
    finally:
        view.close()
        with (
            warnings.catch_warnings()
        ):  # the view's loop does not wait for a server to take its leave of each connection
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def deployment(name: str, replicas: int) -> Json:
    container = {"name": "main", "image": "registry.invalid/vllm:1", "resources": {"limits": {GPU: "1"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def autoscaler(name: str, maximum: int, target: Json) -> Json:
    metric = {"type": "External", "external": {"metric": {"name": "queue-depth"}, "target": target}}
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": scaled, "minReplicas": 1, "maxReplicas": maximum, "metrics": [metric]}
    return {"metadata": {"name": name}, "spec": spec}


def test_ask_is_what_the_autoscaler_takes_once_it_may(tmp_path: Path, start_cluster: Callable[[str], Cluster]) -> None:
    cluster = start_cluster("signals")
    cluster.add_node("gpu-of-signals", allocatable={"cpu": "64", "memory": "512Gi", GPU: "16"})
    cluster.ensure_namespace("demo")
    kinds = {"shared": TOTAL, "whole": RATIO}
    with external_metrics(cluster), seeing(tmp_path, cluster, *kinds) as asks:
        for name, target in kinds.items():
            cluster.create("/apis/apps/v1/namespaces/demo/deployments", deployment(name, 2))
            cluster.create(HPAS, autoscaler(name, 2, target))
        cluster.until(lambda: sum(1 for ask in asks().values() if ask and ask[0].replicas > 1) == len(kinds), "no asks")
        for name, asked in asks().items():
            (ask,) = asked
            assert (ask.signal, ask.replicas, ask.beyond) == (f"hpa demo/{name}", 2, True)
            assert ask.cause.startswith("stands at its maximum of 2, queue-depth at ")
            assert timedelta(seconds=-2) < datetime.now(UTC) - ask.since < timedelta(minutes=2)
            found = cluster.call("GET", f"{HPAS}/{name}")
            found["spec"]["maxReplicas"] = 10
            cluster.call("PUT", f"{HPAS}/{name}", found)
        for name in kinds:
            wanted = f"{HPAS}/{name}"
            cluster.until(
                lambda at=wanted: cluster.call("GET", at)["status"]["desiredReplicas"] == 4, "does not take it"
            )
        cluster.until(lambda: not any(asks().values()), "what is taken is asked for still")


def test_kueue_is_seen_from_when_it_is_installed(tmp_path: Path, start_cluster: Callable[[str], Cluster]) -> None:
    """The kind is Kueue's as far as it is read; the older version alone is served."""
    cluster = start_cluster("signals")
    cluster.ensure_namespace("demo")
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": loose, "status": loose}}},
    }
    kind = {"group": "kueue.x-k8s.io", "scope": "Namespaced", "versions": [version]}
    names = {"plural": "workloads", "singular": "workload", "kind": "Workload"}
    with seeing(tmp_path, cluster, "train") as asks:
        pods = {"containers": [{"name": "main", "image": "registry.invalid/train:1"}], "restartPolicy": "Never"}
        spec = {"suspend": True, "parallelism": 3, "completions": 3, "template": {"spec": pods}}
        job = cluster.create("/apis/batch/v1/namespaces/demo/jobs", {"metadata": {"name": "train"}, "spec": spec})
        cluster.until(lambda: asks() == {"train": ()}, "the job is not seen")
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        cluster.create(crds, {"metadata": {"name": "workloads.kueue.x-k8s.io"}, "spec": {**kind, "names": names}})
        workloads = "/apis/kueue.x-k8s.io/v1beta1/namespaces/demo/workloads"
        cluster.until(lambda: cluster.served("kueue.x-k8s.io/v1beta1"), "the kind is not served")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": job["metadata"]["uid"]}
        made = {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": "job-train", "ownerReferences": [{**owner, "controller": True}]},
            "spec": {"queueName": "queue-a", "podSets": [{"name": "main", "count": 3, "template": {"spec": pods}}]},
        }
        found = cluster.create(workloads, made)
        reserved = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no quota"}
        found["status"] = {"conditions": [{**reserved, "lastTransitionTime": "2026-11-20T10:00:00Z"}]}
        cluster.call("PUT", f"{workloads}/job-train/status", found)
        cluster.until(lambda: [ask.replicas for ask in asks()["train"]] == [3], "the workload is not seen")
        assert asks()["train"][0].signal == "kueue queue-a"
        cluster.call("DELETE", f"{crds}/workloads.kueue.x-k8s.io")
        cluster.until(lambda: asks() == {"train": ()}, "what is gone is asked for still")
