"""Kueue's own admission judges our count of what its queues have left: equal, or lower, and never higher."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_spec
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import QUEUES, Resource
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.units import ONE, Quantity, Resources
from tests.builders.requests import manifests
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster, missing
from tests.e2e.platform.controllers import KUEUE
from tests.e2e.platform.queues import VERSION, condition

MIXES = 40
SEED = 20261130
LONE_KUEUE = replace(KUEUE, settings={"integrations": {"frameworks": ["batch/job", "pod"]}})
"""Kueue without the kinds of controllers that do not run here."""
GPU = "example.com/gpu"
MOST = 24
"""More pods than any quota of a mix admits."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    reasons = [missing(), LONE_KUEUE.missing()]
    if any(reasons):
        pytest.skip("; ".join(filter(None, reasons)))
    home = tmp_path_factory.mktemp("queues")
    started = Cluster("queues", home / "cluster")
    try:
        running = LONE_KUEUE.start(started, home / "kueue")
        yield started
        running.stop()
    finally:
        started.stop()


class Mix:
    """A ClusterQueue with one to three flavors, others in its cohort, and what is reserved of all of them."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster, self._chance, self._name = cluster, random.Random(SEED + number), f"mix-{number}"
        self._flavors = [f"{self._name}-{place}" for place in range(self._chance.choice((1, 2, 2, 3)))]
        self._made = 0

    def make(self) -> None:
        """Make the queues, and fill them in part."""
        chance, cluster = self._chance, self._cluster
        cluster.ensure_namespace(self._name)
        for flavor in self._flavors:
            self._create("resourceflavors", flavor, "ResourceFlavor", {"nodeLabels": {"pool": flavor}})
        cohort = self._name if chance.random() < 0.7 else ""
        if cohort and chance.random() < 0.4:
            self._create("cohorts", cohort, "Cohort", {"resourceGroups": self._groups(limits=False)})
        queues = ["team", *(["rest"] if cohort else [])]
        for queue in queues:
            fungibility = {
                "whenCanBorrow": chance.choice(("Borrow", "Borrow", "TryNextFlavor")),
                "whenCanPreempt": chance.choice(("TryNextFlavor", "TryNextFlavor", "Preempt")),
            }
            spec = {"namespaceSelector": {}, "resourceGroups": self._groups(limits=bool(cohort))}
            spec |= {"cohort": cohort} if cohort else {}
            spec |= {"flavorFungibility": fungibility}
            spec |= {"preemption": {"withinClusterQueue": "LowerPriority"}} if chance.random() < 0.3 else {}
            self._create("clusterqueues", f"{self._name}-{queue}", "ClusterQueue", spec)
            local = {"clusterQueue": f"{self._name}-{queue}"}
            self._create(f"namespaces/{self._name}/localqueues", queue, "LocalQueue", local)
        cluster.until(lambda: all(map(self._is_active, queues)), "Kueue does not take work")
        for _ in range(chance.choice((0, 1, 2, 3))):
            queue, gpus = chance.choice(queues), chance.choice((1, 2, 3))
            self._settled(self._job(queue, gpus, chance.choice((1, 2))))
        self._until_counted()

    def count(self, shape: ReplicaShape) -> int:
        """Count the pods that Kueue admits by our reading, on nodes that hold any number."""
        return ClusterCapacity(self._observed()).count(shape, MOST)

    def admits_together(self, gpus: int, pods: int, selector: Mapping[str, str]) -> bool:
        """Return whether Kueue admits a Job of `pods` pods; it is gone afterwards."""
        name = self._job("team", gpus, pods, selector)
        try:
            return self._settled(name)
        finally:
            path = f"/apis/batch/v1/namespaces/{self._name}/jobs/{name}"
            self._cluster.call("DELETE", f"{path}?propagationPolicy=Background")
            self._cluster.until(lambda: name not in self._workloads(), "the Job stays")
            self._until_counted()

    def admitted_pods(self, gpus: int, selector: Mapping[str, str]) -> int:
        """Count how many of many single pods Kueue admits."""
        for number in range(MOST):
            metadata = {"name": f"pod-{number}", "labels": {"kueue.x-k8s.io/queue-name": "team"}}
            self._cluster.create(
                f"/api/v1/namespaces/{self._name}/pods", {"metadata": metadata, "spec": pod(gpus, selector)}
            )
        found: list[Json] = []

        def are_settled() -> bool:
            found[:] = [each for name, each in self._workloads().items() if name.startswith("pod-")]
            return len(found) == MOST and all(condition(each, "QuotaReserved")["status"] for each in found)

        self._cluster.until(are_settled, "Kueue has not decided on every pod")
        return sum(condition(each, "QuotaReserved")["status"] == "True" for each in found)

    def selector(self) -> Mapping[str, str]:
        """Choose the flavor that pods ask for; none for any."""
        return {"pool": self._chance.choice(self._flavors)} if self._chance.random() < 0.2 else {}

    def gpus(self) -> int:
        """Choose the GPUs of a pod."""
        return self._chance.choice((1, 1, 2, 3))

    def job(self, gpus: int, pods: int, selector: Mapping[str, str]) -> Json:
        """Write a Job for the queue."""
        metadata = {
            "name": f"job-{self._made}",
            "namespace": self._name,
            "labels": {"kueue.x-k8s.io/queue-name": "team"},
        }
        spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": {"spec": pod(gpus, selector)}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def _groups(self, *, limits: bool) -> list[Json]:
        chance = self._chance

        def quota(resource: str) -> Json:
            made: Json = {"name": resource, "nominalQuota": str(chance.choice((0, 2, 3, 4, 6)))}
            made |= {"borrowingLimit": str(chance.choice((0, 1, 3)))} if limits and chance.random() < 0.3 else {}
            made |= {"lendingLimit": str(chance.choice((0, 1, 2)))} if limits and chance.random() < 0.3 else {}
            if "lendingLimit" in made:
                made["lendingLimit"] = str(min(int(made["lendingLimit"]), int(made["nominalQuota"])))
            return made

        flavors = [{"name": name, "resources": [quota(GPU), quota("cpu")]} for name in self._flavors]
        return [{"coveredResources": [GPU, "cpu"], "flavors": flavors}]

    def _create(self, path: str, name: str, kind: str, spec: Json) -> None:
        body = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self._cluster.create(f"/apis/{VERSION}/{path}", body)

    def _job(self, queue: str, gpus: int, pods: int, selector: Mapping[str, str] | None = None) -> str:
        self._made += 1
        made = self.job(gpus, pods, selector or {})
        made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
        self._cluster.create(f"/apis/batch/v1/namespaces/{self._name}/jobs", made)
        return str(made["metadata"]["name"])

    def _workloads(self) -> dict[str, Json]:
        found = self._cluster.items(f"/apis/{VERSION}/namespaces/{self._name}/workloads")
        return {owners[0]["name"]: each for each in found if (owners := each["metadata"].get("ownerReferences"))}

    def _settled(self, name: str) -> bool:
        """Wait until Kueue has decided on a Job, and return whether it has given it quota."""
        said: Json = {}

        def is_decided() -> bool:
            said.update(condition(self._workloads().get(name, {}), "QuotaReserved"))
            return bool(said["status"])

        self._cluster.until(is_decided, f"Kueue has not decided on {name}")
        return bool(said["status"] == "True")

    def _is_active(self, queue: str) -> bool:
        path = f"/apis/{VERSION}/clusterqueues/{self._name}-{queue}"
        return condition(self._cluster.call("GET", path), "Active")["status"] == "True"

    def _until_counted(self) -> None:
        """Wait until the statuses of the queues have what is reserved."""

        def are_counted() -> bool:
            reserved = Counter[str]()
            for each in self._workloads().values():
                if condition(each, "QuotaReserved")["status"] == "True":
                    reserved[each["status"]["admission"]["clusterQueue"]] += 1
            found = self._cluster.items(f"/apis/{VERSION}/clusterqueues")
            own = [each for each in found if each["metadata"]["name"].startswith(f"{self._name}-")]
            return all(
                each.get("status", {}).get("reservingWorkloads", 0) == reserved[each["metadata"]["name"]]
                for each in own
            )

        self._cluster.until(are_counted, "the queues do not count what is reserved")

    def _observed(self) -> ClusterObservation:
        state = ClusterState()
        for resource in {*QUEUES, Resource.NAMESPACES}:
            path = resource.paths()[0] if resource is Resource.NAMESPACES else f"/apis/{VERSION}/{resource.plural}"
            for raw in self._cluster.items(path):
                state.apply(resource, raw)
        free = Resources(amounts={name: Quantity(10_000 * ONE) for name in (GPU, "cpu")})
        pools = tuple(
            Pool(name=name, labels={"pool": name}, nodes=(Node(name=name, free=free, pods=()),))
            for name in self._flavors
        )
        return replace(state.observation(ClusterName("queues"), datetime.now(UTC)), pools=pools)


def pod(gpus: int, selector: Mapping[str, str]) -> Json:
    """Write a pod that asks for GPUs, and a CPU for each."""
    resources = {"requests": {"cpu": str(gpus), GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    container = {"name": "main", "image": "registry.invalid/trainer:1", "resources": resources}
    return {"containers": [container], "restartPolicy": "Never", "nodeSelector": dict(selector)}


def shape_of(manifest: Json) -> ReplicaShape:
    """Read the pods of an object as decisions do."""
    (part,) = pods_of_spec(manifests(manifest)).parts
    return part.shape


def test_kueue_admits_what_is_counted_and_seldom_more(cluster: Cluster) -> None:
    told = Counter[str]()
    for number in range(MIXES):
        mix = Mix(cluster, number)
        mix.make()
        gpus, selector = mix.gpus(), mix.selector()
        counted = mix.count(shape_of(mix.job(gpus, 1, selector)))
        if counted:
            assert mix.admits_together(gpus, counted, selector), f"mix {number}: {counted} together are too many"
        told["together, equal"] += not mix.admits_together(gpus, counted + 1, selector)
        metadata = {"name": "one", "namespace": f"mix-{number}", "labels": {"kueue.x-k8s.io/queue-name": "team"}}
        single = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod(gpus, selector)}
        counted = mix.count(shape_of(single))
        admitted = mix.admitted_pods(gpus, selector)
        assert counted <= admitted, f"mix {number}: {counted} one by one are counted, {admitted} are admitted"
        told["one by one, equal"] += counted == admitted
    sys.stdout.write(f"{dict(told)} of {MIXES}\n")
    assert told["together, equal"] >= MIXES * 3 // 4
    assert told["one by one, equal"] >= MIXES * 3 // 4
