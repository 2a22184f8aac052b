"""What an object asks for at home is what it states, for every kind: pods of a rollout beside its own are no demand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import CONTROLLERS, CustomResource, Resource
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, scale_paths
from reconciler.core.workloads.paths import at
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.units import ONE
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.kube_objects import GPU, NO_GPU, autoscaler, node, other_metric, pod, queued, workload
from tests.builders.run_statuses import ENDED, ENDING
from tests.builders.workload_kinds import SAMPLES

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
NOT_KEPT = {"Pod", "ReplicationController", "CronJob", "RayJob on a cluster that is there"}
"""Kinds that are known by their pods alone: no object of them is watched, or none of its pods is its own."""
KINDS = sorted(name for name, (raw, _) in SAMPLES.items() if name not in NOT_KEPT and BUILT_IN[group_kind(raw)].counted)
DOUBLE = other_metric("Pods", {"averageValue": "40"}, averageValue="80")
"""A metric at twice its target."""


class Home:
    """A cluster, and the objects that it has by now."""

    def __init__(self, raw: Json, *, nodes: Iterable[Json] = ()) -> None:
        kind = BUILT_IN[group_kind(raw)]
        name, namespace = raw["metadata"]["name"], raw["metadata"]["namespace"]
        self.ref = WorkloadRef(namespace=namespace, name=name, kind=kind.kind, group=kind.group)
        self.state = ClusterState(frozenset({self.ref}))
        self.put(raw)
        for each in nodes:
            self.state.apply(Resource.NODES, each)

    def put(self, *raws: Json) -> None:
        """Apply objects, each to the resource of its kind."""
        for raw in raws:
            self.state.apply(self.resource(group_kind(raw)), raw)

    def pods(self, *raws: Json) -> None:
        """Apply pods."""
        for raw in raws:
            self.state.apply(Resource.PODS, raw)

    def resource(self, name: str) -> Resource | CustomResource:
        """Return the resource of a kind."""
        own = {f"{each.group}/{each.kind}": each for each in (*CONTROLLERS, Resource.AUTOSCALERS, Resource.QUEUED)}
        return own.get(name) or next(each for each in self.state.customs if each.name == name)

    @property
    def seen(self) -> WorkloadObservation:
        """The workload as it is observed."""
        (found,) = self.state.observation(ClusterName("worker-1"), AT).workloads
        return found

    @property
    def counts(self) -> tuple[int, int, int]:
        """The wanted, running and waiting pods."""
        return self.seen.wanted, self.seen.running, sum(wait.replicas for wait in self.seen.waiting)


def made(
    name: str, *, version: str = "apps/v1", kind: str, owner: tuple[str, str, str] | None = None, **fields: Json
) -> Json:
    """Make an object between a workload and its pods; `owner` is the version, kind and name of what makes it."""
    labels = fields.pop("labels", {})
    metadata: Json = {"name": name, "namespace": "demo", "labels": labels, "uid": f"uid-{name}"}
    if owner is not None:
        by = {"apiVersion": owner[0], "kind": owner[1], "name": owner[2], "controller": True}
        metadata["ownerReferences"] = [by]
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "model:1"}]}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": pods, **fields}}


def scaling(name: str, kind: str, version: str, maximum: int = 6) -> Json:
    """Make an autoscaler at its maximum, whose metric is twice its target."""
    raw = autoscaler(name, maximum, DOUBLE, kind=kind)
    raw["spec"]["scaleTargetRef"]["apiVersion"] = version
    return raw


def queueing(kind: str, version: str) -> Json:
    """Make a Workload of an object that lacks quota."""
    raw = queued(owner=(kind, "model"))
    raw["metadata"]["ownerReferences"][0]["apiVersion"] = version
    return raw


def belonging(kind: WorkloadKind, raw: Json, name: str, on: str = "", **more: Json) -> Json:
    """Make a pod of an object, which its owner names or its labels."""
    labels: dict[str, str] = {}
    for mark in kind.marks[:1]:
        labels |= {mark.label: f"model{mark.infix}-bcdfg" if mark.made_up else "model", **dict(mark.beside)}
    owner = None if labels else (kind.kind, "model")
    waits = "" if on else NO_GPU
    return pod(name, on, owner=owner, version=raw["apiVersion"], labels=labels, waits=waits, **more)


@pytest.mark.parametrize("name", KINDS)
def test_surplus_pods_of_a_rollout_are_no_demand(name: str) -> None:
    raw, pods = SAMPLES[name]
    kind, number = BUILT_IN[group_kind(raw)], sum(pods.values())
    home = Home(raw)
    home.pods(*(belonging(kind, raw, f"old-{index}", "gpu-1") for index in range(number)))
    home.pods(*(belonging(kind, raw, f"new-{index}") for index in range(number)))
    assert home.counts == (number, number, 0)


@pytest.mark.parametrize("name", KINDS)
def test_wanted_pods_that_find_no_node_are_missing_beside_a_rollout(name: str) -> None:
    raw, pods = SAMPLES[name]
    kind, number = BUILT_IN[group_kind(raw)], sum(pods.values())
    home = Home(raw)
    home.pods(*(belonging(kind, raw, f"old-{index}", "gpu-1") for index in range(number - 1)))
    home.pods(*(belonging(kind, raw, f"new-{index}") for index in range(number)))
    assert home.counts == (number, number - 1, 1)


@pytest.mark.parametrize("name", KINDS)
def test_an_object_that_is_being_deleted_asks_for_nothing(name: str) -> None:
    raw, _ = SAMPLES[name]
    kind = BUILT_IN[group_kind(raw)]
    home = Home({**raw, "metadata": {**raw["metadata"], "deletionTimestamp": "2026-11-20T10:00:00Z"}})
    home.pods(belonging(kind, raw, "a"))
    home.state.apply(Resource.AUTOSCALERS, scaling("model", kind.kind, raw["apiVersion"]))
    home.state.apply(Resource.QUEUED, queueing(kind.kind, raw["apiVersion"]))
    assert (home.seen.wanted, home.seen.waiting, home.seen.asks) == (0, (), ())


@pytest.mark.parametrize("name", KINDS)
def test_autoscaler_and_queue_of_an_object_that_is_gone_ask_for_nothing(name: str) -> None:
    raw, _ = SAMPLES[name]
    kind = BUILT_IN[group_kind(raw)]
    home = Home(raw)
    home.state.apply(Resource.AUTOSCALERS, scaling("model", kind.kind, raw["apiVersion"]))
    home.state.apply(Resource.QUEUED, queueing(kind.kind, raw["apiVersion"]))
    assert home.seen.asks
    home.state.retain(home.resource(kind.name), {"demo/model"})
    assert home.seen.asks
    home.state.remove(home.resource(kind.name), "demo/model")
    assert not any(one.asks for one in home.state.observation(ClusterName("worker-1"), AT).workloads)


@pytest.mark.parametrize("name", KINDS)
def test_pods_of_an_object_that_is_gone_are_no_demand(name: str) -> None:
    raw, _ = SAMPLES[name]
    kind = BUILT_IN[group_kind(raw)]
    home = Home(raw)
    home.pods(belonging(kind, raw, "a"), belonging(kind, raw, "b", "gpu-1"))
    resource = home.resource(kind.name)
    assert home.counts[2]
    home.state.remove(resource, "demo/model")
    assert home.counts[2]  # nobody has listed the kind so far
    home.state.retain(resource, set(), served=False)
    assert home.counts[2]  # it may be served in a version that is not known here
    home.state.retain(resource, set())
    assert home.counts[2] == 0


def test_pods_of_an_object_that_cannot_be_read_are_demand() -> None:
    home = Home(workload_of("Deployment"))
    broken = {**workload_of("Deployment"), "spec": {"replicas": 2, "template": "none"}}
    home.state.remove(Resource.DEPLOYMENTS, "demo/model")
    with pytest.raises(AttributeError):
        home.put(broken)
    home.state.retain(Resource.DEPLOYMENTS, {"demo/model"})
    home.pods(pod("a", owner=("Deployment", "model"), version="apps/v1", waits=NO_GPU))
    assert home.counts[2] == 1


def test_what_an_object_that_is_gone_has_made_is_no_demand() -> None:
    """A ReplicaSet outlives its Deployment for as long as the garbage collector takes."""
    replica_set = made("model", kind="ReplicaSet", owner=("apps/v1", "Deployment", "llm"), replicas=2)
    home = Home(replica_set)
    home.pods(pod("a", owner=("ReplicaSet", "model"), version="apps/v1", waits=NO_GPU))
    assert home.counts[2] == 1
    home.state.retain(Resource.DEPLOYMENTS, set())
    assert home.counts[2] == 0


def test_queue_of_an_object_that_came_back_under_its_name_asks_for_nothing() -> None:
    raw = {**SAMPLES["Job"][0], "metadata": {"name": "model", "namespace": "demo", "uid": "second"}}
    home = Home(raw)
    for uid, asks in (("first", 0), ("second", 1)):
        stuck = queueing("Job", "batch/v1")
        stuck["metadata"]["ownerReferences"][0]["uid"] = uid
        home.put({**stuck, "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"})
        assert len(home.seen.asks) == asks


def test_autoscaler_and_workload_that_are_being_deleted_ask_for_nothing() -> None:
    home = Home(workload_of("Job"))
    for raw in (scaling("model", "Job", "batch/v1"), queueing("Job", "batch/v1")):
        raw["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"
        home.state.apply(Resource.QUEUED if "podSets" in raw["spec"] else Resource.AUTOSCALERS, raw)
    assert home.seen.asks == ()


def workload_of(name: str) -> Json:
    raw, _ = SAMPLES[name]
    return raw


# what an autoscaler has changed below


DEPLOYED = ("serving.kserve.io/v1beta1", "InferenceService", "model")
PREDICTOR = {"serving.kserve.io/inferenceservice": "model", "component": "predictor"}


def predictor(name: str, replicas: int, **labels: str) -> tuple[Json, Json]:
    """Make a Deployment of a predictor, and its ReplicaSet."""
    own = {**PREDICTOR, **labels}
    deployment = made(name, kind="Deployment", owner=DEPLOYED, replicas=replicas, labels=own)
    replica_set = made(
        f"{name}-1", kind="ReplicaSet", owner=("apps/v1", "Deployment", name), replicas=replicas, labels=own
    )
    return deployment, replica_set


def of_predictor(name: str, index: int, on: str = "") -> Json:
    owner = ("ReplicaSet", f"{name}-1")
    return pod(f"{name}-{index}", on, owner=owner, version="apps/v1", labels=PREDICTOR, waits="" if on else NO_GPU)


def test_service_wants_what_its_autoscaler_has_made_of_its_deployment() -> None:
    home = Home(workload_of("InferenceService"))
    home.put(*predictor("predictor", 4))
    home.pods(*(of_predictor("predictor", index, "gpu-1") for index in range(2)))
    home.pods(*(of_predictor("predictor", index) for index in range(2, 6)))
    assert home.counts == (4, 2, 2)


def test_revision_beside_the_one_that_serves_is_no_demand() -> None:
    """Knative makes a Deployment for each revision; a new one waits for the GPUs of the old one."""
    home = Home(workload_of("InferenceService"))
    for name in ("model-predictor-1", "model-predictor-2"):
        home.put(*predictor(name, 2, **{"serving.knative.dev/configuration": "model-predictor"}))
    home.pods(*(of_predictor("model-predictor-1", index, "gpu-1") for index in range(2)))
    home.pods(*(of_predictor("model-predictor-2", index) for index in range(2)))
    assert home.counts == (2, 2, 0)


def test_surge_of_one_part_hides_no_lack_of_another() -> None:
    home = Home(workload_of("InferenceService"))
    home.put(*predictor("predictor", 2), *predictor("transformer", 1))
    home.pods(*(of_predictor("predictor", index, "gpu-1") for index in range(3)))
    home.pods(of_predictor("transformer", 0))
    assert home.counts == (3, 2, 1)


# revisions


def role_of(revision: str, replicas: int, before: int = 0) -> Json:
    """Make the LeaderWorkerSet of a revision of one role, in groups of two pods."""
    labels = {"disaggregatedset.x-k8s.io/name": "model", "app": "model-0-decode"}
    owner = ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", "model")
    raw = made(
        f"model-0-{revision}-decode",
        version="leaderworkerset.x-k8s.io/v1",
        kind="LeaderWorkerSet",
        owner=owner,
        labels=labels,
    )
    if before:
        raw["metadata"]["annotations"] = {"disaggregatedset.x-k8s.io/initial-replicas": str(before)}
    workers = {"size": 2, "workerTemplate": raw["spec"]["template"]}
    return {**raw, "spec": {"replicas": replicas, "leaderWorkerTemplate": workers}}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (4, 0, 8),
        (3, 1, 8),
        (1, 3, 8),
        (0, 4, 8),
        # One group more at a time.
        (4, 1, 8),
        (3, 2, 8),
        # Its template has fewer replicas now, or more.
        (1, 1, 4),
        (2, 6, 12),
    ],
)
def test_role_that_one_revision_takes_over_from_another_wants_what_it_had(old: int, new: int, wanted: int) -> None:
    """The controller scales the old revision of four groups down while it scales the new one up."""
    home = Home(workload_of("DisaggregatedSet"))
    home.put(role_of("old", old, before=4), role_of("new", new))
    assert home.seen.wanted == wanted


SCALED_BELOW = [
    (name, change)
    for name in KINDS
    if (kind := BUILT_IN[group_kind(SAMPLES[name][0])]).scaled_below
    for change in (
        *({"spec": {path[-1]: True}} for path in kind.suspended),
        *({"metadata": {"annotations": {kind.stopped: word}}} for word in ("true", "True") if kind.stopped),
        *({"status": status} for results in ENDED.get(kind.name, ()) for status, _ in results),
        *({"status": status} for status in ENDING.get(kind.name, ())),
    )
]
"""Kinds of which objects below them say how many pods they want, each suspended, ended and being ended."""


@pytest.mark.parametrize(("name", "change"), SCALED_BELOW)
def test_what_is_left_of_an_object_that_has_ended_or_is_suspended_asks_for_nothing(name: str, change: Json) -> None:
    raw = workload_of(name)
    kind, owner = BUILT_IN[group_kind(raw)], (raw["apiVersion"], raw["kind"], "model")
    below = next((BUILT_IN[each] for each in kind.made), BUILT_IN["apps/StatefulSet"])
    version = f"{below.group}/{below.versions[0]}"
    labels = belonging(kind, raw, "any")["metadata"]["labels"]
    parts = {part: {**raw.get(part, {}), **change.get(part, {})} for part in ("metadata", "spec", "status")}
    home = Home({**raw, **parts})
    home.put(made("model-bcdfg", version=version, kind=below.kind, owner=owner, replicas=2, labels=labels))
    home.pods(pod("p", owner=(below.kind, "model-bcdfg"), version=version, labels=labels, waits=NO_GPU))
    assert home.counts == (0, 0, 0)


LEFT = {"deletionTimestamp": "2026-11-20T10:00:00Z"}
LEFT_DEPLOYMENT = {"metadata": {"name": "model", "namespace": "demo", **LEFT}}
BETWEEN = [
    ("Deployment", "apps/v1", "ReplicaSet"),
    ("Rollout", "apps/v1", "ReplicaSet"),
    ("UnitedDeployment", "apps.kruise.io/v1alpha1", "CloneSet"),
    ("UnitedDeployment", "apps/v1", "StatefulSet"),
    ("InferenceService", "apps/v1", "Deployment"),
    ("LLMInferenceService", "apps/v1", "Deployment"),
    ("LLMInferenceService", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("DisaggregatedSet", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("DynamoGraphDeployment v1alpha1", "apps/v1", "Deployment"),
    ("PodCliqueSet", "grove.io/v1alpha1", "PodClique"),
    ("RayService", "ray.io/v1", "RayCluster"),
    ("RayJob", "ray.io/v1", "RayCluster"),
    ("JobSet", "batch/v1", "Job"),
    ("TrainJob", "batch/v1", "Job"),
]
"""Kinds with the version and kind of what stands between them and their pods."""


@pytest.mark.parametrize(("sample", "version", "kind"), BETWEEN)
@pytest.mark.parametrize("gone", [False, True])
def test_pods_of_what_is_being_deleted_make_up_no_wanted_ones(
    sample: str, version: str, kind: str, *, gone: bool
) -> None:
    """Another object has taken its place, whose pods wait; until it is collected as garbage, the old one's run."""
    raw = workload_of(sample)
    home = Home(raw)
    owner = (raw["apiVersion"], raw["kind"], "model")
    labels = belonging(BUILT_IN[group_kind(raw)], raw, "any")["metadata"]["labels"]
    old, new = (made(name, version=version, kind=kind, owner=owner, labels=labels) for name in ("old", "new"))
    home.put(old, new)
    for index in range(2):
        home.pods(pod(f"old-{index}", "gpu-1", owner=(kind, "old"), version=version, labels=labels))
        home.pods(pod(f"new-{index}", owner=(kind, "new"), version=version, labels=labels, waits=NO_GPU))
    assert home.seen.running > 0
    if gone:
        home.state.retain(home.resource(f"{version.rpartition('/')[0]}/{kind}"), {"demo/new"})
    else:
        home.put({**old, "metadata": old["metadata"] | LEFT})
    assert home.seen.running == 0


def test_rays_autoscaler_states_its_workers_in_the_cluster_that_a_service_makes() -> None:
    raw = workload_of("RayService")
    home = Home(raw)
    owner = (raw["apiVersion"], "RayService", "model")
    spec = raw["spec"]["rayClusterConfig"]
    for name, workers in (("model-bcdfg", 4), ("model-hjklm", 2)):  # the second is that of an upgrade
        groups = [{**spec["workerGroupSpecs"][0], "replicas": workers, "maxReplicas": 8, "numOfHosts": 1}]
        ray = made(name, version=raw["apiVersion"], kind="RayCluster", owner=owner)
        home.put({**ray, "spec": {**spec, "workerGroupSpecs": groups}})
    labels = {"ray.io/cluster": "model-bcdfg"}
    for index in range(6):
        on, ray_owner = ("gpu-1" if index < 3 else ""), ("RayCluster", "model-bcdfg")
        home.pods(
            pod(f"w{index}", on, owner=ray_owner, version=raw["apiVersion"], labels=labels, waits="" if on else NO_GPU)
        )
    assert home.counts == (5, 3, 2)


def test_submitter_of_a_ray_job_is_no_revision_of_its_cluster() -> None:
    """KubeRay starts the Job that submits once the cluster runs; then Ray's autoscaler asks for a worker more."""
    raw = workload_of("RayJob")
    home = Home(raw)
    owner, spec = (raw["apiVersion"], "RayJob", "model"), raw["spec"]["rayClusterSpec"]
    ray = made("model-bcdfg", version=raw["apiVersion"], kind="RayCluster", owner=owner)
    home.put({**ray, "spec": {**spec, "workerGroupSpecs": [{**spec["workerGroupSpecs"][0], "replicas": 4}]}})
    home.put(made("model", version="batch/v1", kind="Job", owner=owner, parallelism=1, completions=1))
    home.pods(pod("submitter", "gpu-1", owner=("Job", "model"), version="batch/v1"))
    labels, of_ray = {"ray.io/cluster": "model-bcdfg"}, ("RayCluster", "model-bcdfg")
    for index in range(5):
        on = "gpu-1" if index < 4 else ""
        waits = "" if on else NO_GPU
        home.pods(pod(f"w{index}", on, owner=of_ray, version=raw["apiVersion"], labels=labels, waits=waits))
    assert home.counts == (6, 5, 1)


@pytest.mark.parametrize("name", ["model-bcdfg", "model-raycluster-bcdfg"])
def test_pods_of_a_ray_cluster_that_is_not_seen_are_known_by_its_name(name: str) -> None:
    """KubeRay before 1.4 has the kind in the name."""
    home = Home(workload_of("RayService"))
    home.pods(
        pod("head", owner=("RayCluster", name), version="ray.io/v1", labels={"ray.io/cluster": name}, waits=NO_GPU)
    )
    assert home.counts[2] == 1


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
    ],
)
def test_pods_of_a_united_deployment_are_known_by_the_subsets_that_it_makes(version: str, kind: str) -> None:
    raw = workload_of("UnitedDeployment")
    raw = {**raw, "spec": {**raw["spec"], "replicas": 4}}
    home = Home(raw)
    home.put(
        made("model-a", version=version, kind=kind, owner=(raw["apiVersion"], "UnitedDeployment", "model"), replicas=4)
    )
    owner = (kind, "model-a")
    home.pods(*(pod(f"r{index}", "gpu-1", owner=owner, version=version) for index in range(2)))
    home.pods(*(pod(f"w{index}", owner=owner, version=version, waits=NO_GPU) for index in range(3)))
    assert home.counts == (4, 2, 2)


def test_worker_group_that_is_suspended_by_itself_asks_for_no_pods() -> None:
    raw = workload_of("RayCluster")
    groups = raw["spec"]["workerGroupSpecs"]
    before = Home(raw)
    before.pods(belonging(BUILT_IN[group_kind(raw)], raw, "a", "gpu-1"))
    paused = Home(
        {**raw, "spec": {**raw["spec"], "workerGroupSpecs": [{**group, "suspend": True} for group in groups]}}
    )
    paused.pods(belonging(BUILT_IN[group_kind(raw)], raw, "a", "gpu-1"))
    assert before.seen.wanted > paused.seen.wanted == 1  # the head


# gangs


def in_group(group: int, index: int, on: str = "", **more: Json) -> Json:
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "model",
        "leaderworkerset.sigs.k8s.io/group-index": str(group),
        "leaderworkerset.sigs.k8s.io/worker-index": str(index),
    }
    return pod(f"model-{group}-{index}", on, owner=None, labels=labels, waits="" if on else NO_GPU, **more)


def sets_of_two(size: int = 2) -> Home:
    raw = workload_of("LeaderWorkerSet")
    spec = {**raw["spec"], "replicas": 2, "leaderWorkerTemplate": {**raw["spec"]["leaderWorkerTemplate"], "size": size}}
    return Home({**raw, "spec": spec})


def test_surge_group_is_no_demand_though_a_pod_of_another_is_lost() -> None:
    home = sets_of_two()
    home.pods(in_group(0, 0, "gpu-1"), in_group(0, 1, "gpu-1"), in_group(1, 0, "gpu-1"), in_group(1, 1), in_group(2, 0))
    assert [(wait.group, wait.replicas) for wait in home.seen.waiting] == [("1", 1)]
    assert home.counts == (4, 3, 1)


def test_of_more_groups_than_are_wanted_those_that_run_are_the_gang() -> None:
    home = sets_of_two()
    home.pods(*(in_group(group, index, "gpu-1") for group in (1, 2) for index in (0, 1)), in_group(0, 0))
    assert home.counts == (4, 4, 0)
    assert home.seen.group is not None
    assert home.seen.group.number == 2


@pytest.mark.parametrize(("leaders", "replicas"), [(2, 2), (1, 1)])
def test_autoscaler_of_groups_measures_their_leaders(leaders: int, replicas: int) -> None:
    """Two groups of four at the maximum of two, and a metric at twice its target: two groups more."""
    home = sets_of_two(4)
    home.pods(
        *(in_group(group, index, "gpu-1", ready=index > 0 or group < leaders) for group in (0, 1) for index in range(4))
    )
    scaled = scaling("model", "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", 2)
    home.state.apply(Resource.AUTOSCALERS, scaled)
    assert [ask.replicas for ask in home.seen.asks] == [replicas]


SCALED = [
    name for name in KINDS if group_kind(SAMPLES[name][0]) in BUILT_IN and scale_paths(SAMPLES[name][0], NO_KINDS)
]


@pytest.mark.parametrize("name", SCALED)
def test_autoscaler_counts_in_the_replicas_of_its_target(name: str) -> None:
    """All pods are ready, as those beside the scaled ones: a master, or the workers of a group."""
    raw, pods = SAMPLES[name]
    kind = BUILT_IN[group_kind(raw)]
    replicas = at(raw, scale_paths(raw, NO_KINDS)[0])
    home = Home(raw)
    home.pods(*(belonging(kind, raw, f"p{index}", "gpu-1") for index in range(sum(pods.values()))))
    home.state.apply(Resource.AUTOSCALERS, scaling("model", kind.kind, raw["apiVersion"], replicas))
    assert [ask.replicas for ask in home.seen.asks] == [replicas]


# autoscalers of other objects


def test_autoscaler_of_a_predictor_is_one_of_its_service() -> None:
    home = Home(workload_of("InferenceService"))
    home.put(*predictor("predictor", 4))
    home.pods(*(of_predictor("predictor", index, "gpu-1") for index in range(4)))
    home.state.apply(Resource.AUTOSCALERS, scaling("predictor", "Deployment", "apps/v1", 4))
    assert [ask.replicas for ask in home.seen.asks] == [4]


def test_autoscaler_of_a_part_without_gpus_asks_for_no_replicas_of_its_service() -> None:
    home = Home(workload_of("InferenceService"))
    deployment, replica_set = predictor("predictor", 4)
    for each in (deployment, replica_set):
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        each["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    home.put(deployment, replica_set, *predictor("transformer", 4))
    home.state.apply(Resource.AUTOSCALERS, scaling("transformer", "Deployment", "apps/v1", 4))
    assert home.seen.asks == ()


def test_autoscaler_of_what_has_made_an_object_is_one_of_the_object() -> None:
    """A template names the Deployment of what somebody scales by its own kind."""
    deployment = made("model", kind="Deployment", owner=("example.com/v1", "ModelServer", "llm"), replicas=2)
    home = Home(deployment)
    home.pods(*(pod(f"p{index}", "gpu-1", owner=("Deployment", "model"), version="apps/v1") for index in range(2)))
    home.state.apply(Resource.AUTOSCALERS, scaling("llm", "ModelServer", "example.com/v1", 2))
    assert [ask.replicas for ask in home.seen.asks] == [2]


def test_autoscaler_of_what_stands_between_an_object_and_its_deployments_is_heard() -> None:
    """Dynamo's graph makes a component of its own kind, which makes a Deployment that is labelled with the graph."""
    raw = workload_of("DynamoGraphDeployment v1alpha1")
    home = Home(raw)
    labels = {"nvidia.com/dynamo-graph-deployment-name": "model"}
    component = (raw["apiVersion"], "DynamoComponentDeployment", "model-decode")
    home.put(made("model-decode", kind="Deployment", owner=component, replicas=2, labels=labels))
    scaled = scaling("model-decode", "DynamoComponentDeployment", raw["apiVersion"], 2)
    home.state.apply(Resource.AUTOSCALERS, scaled)
    assert len(home.seen.asks) == 1


CLIQUE = {"app.kubernetes.io/part-of": "model", "app.kubernetes.io/managed-by": "grove-operator"}
GRAPH = {"nvidia.com/dynamo-graph-deployment-name": "model", "nvidia.com/dynamo-component": "Decode"}
SERVICE = {"app.kubernetes.io/name": "model", "app.kubernetes.io/part-of": "llminferenceservice"}


@pytest.mark.parametrize(
    ("sample", "kind", "labels", "current", "replicas"),
    [
        # Each replica of the set has four pods of the clique; those of the second are another PodClique's.
        ("PodCliqueSet", "PodClique", CLIQUE | {"grove.io/podcliqueset-replica-index": "0"}, 4, 1),
        ("DynamoGraphDeployment v1alpha1", "DynamoComponentDeployment", GRAPH, 4, 1),
        # Each replica of the component has two nodes.
        ("DynamoGraphDeployment v1beta1", "DynamoGraphDeploymentScalingAdapter", GRAPH, 2, 1),
        ("LLMInferenceService", "StatefulSet", SERVICE, 4, 1),
        # It is no gang, and its replicas are those of its predictor.
        ("InferenceService", "StatefulSet", PREDICTOR, 4, 4),
    ],
)
def test_autoscaler_of_a_part_asks_for_as_many_of_the_whole(
    sample: str, kind: str, labels: dict[str, str], current: int, replicas: int
) -> None:
    """The four pods of the part stand at its maximum, and the metric is twice its target."""
    raw = workload_of(sample)
    home = Home(raw)
    part = made(
        "model-decode",
        version="apps/v1",
        kind="StatefulSet",
        owner=(raw["apiVersion"], raw["kind"], "model"),
        replicas=current,
        labels=labels,
    )
    if kind == "StatefulSet":
        home.put(part)
    owner = (kind, "model-decode")
    home.pods(*(pod(f"d{index}", "gpu-1", owner=owner, version=raw["apiVersion"], labels=labels) for index in range(4)))
    version = "apps/v1" if kind == "StatefulSet" else raw["apiVersion"]
    home.state.apply(Resource.AUTOSCALERS, scaling("model-decode", kind, version, current))
    assert [ask.replicas for ask in home.seen.asks] == [replicas]


def grove(kind: str, name: str, owner: tuple[str, str], replicas: int, **metadata: Json) -> Json:
    """Make an object of Grove below a PodCliqueSet; `owner` is the kind and name of what makes it."""
    raw = made(name, version="grove.io/v1alpha1", kind=kind, owner=("grove.io/v1alpha1", *owner), labels=CLIQUE)
    clique = {"podSpec": raw["spec"]["template"]["spec"]} if kind == "PodClique" else {"cliqueNames": ["decode"]}
    return {**raw, "metadata": {**raw["metadata"], **metadata}, "spec": {**clique, "replicas": replicas}}


def of_clique(clique: str, index: int, on: str = "") -> Json:
    labels = CLIQUE | {"grove.io/podcliqueset-replica-index": "0"}
    version, waits = "grove.io/v1alpha1", "" if on else NO_GPU
    return pod(f"{clique}-{index}", on, owner=("PodClique", clique), version=version, labels=labels, waits=waits)


def scaled_set() -> Home:
    """A PodCliqueSet of one replica, whose clique has been scaled to 3 pods, and its scaling group to 2 replicas of 2.

    In its template, one replica has 1 and 2.
    """
    home = Home(workload_of("PodCliqueSet"))
    home.put(grove("PodClique", "model-0-router", ("PodCliqueSet", "model"), 3))
    home.put(grove("PodCliqueScalingGroup", "model-0-llm", ("PodCliqueSet", "model"), 2))
    for index in range(2):
        home.put(grove("PodClique", f"model-0-llm-{index}-decode", ("PodCliqueScalingGroup", "model-0-llm"), 2))
    return home


def test_set_wants_what_autoscalers_have_made_of_its_cliques_and_scaling_groups() -> None:
    home = scaled_set()
    home.pods(*(of_clique("model-0-router", index, "gpu-1") for index in range(3)))
    home.pods(*(of_clique("model-0-llm-0-decode", index, "gpu-1") for index in range(2)))
    home.pods(*(of_clique("model-0-llm-1-decode", index) for index in range(2)))
    assert home.counts == (7, 5, 2)


def test_autoscaler_of_a_scaling_group_asks_for_replicas_of_its_set() -> None:
    home = scaled_set()
    for index in range(2):
        home.pods(*(of_clique(f"model-0-llm-{index}-decode", number, "gpu-1") for number in range(2)))
    home.put(
        scaling("model-0-llm", "PodCliqueScalingGroup", "grove.io/v1alpha1", maximum=2)
        | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    )
    assert [ask.replicas for ask in home.seen.asks] == [1]


def test_what_an_object_made_that_is_being_deleted_asks_for_nothing() -> None:
    raw = workload_of("InferenceService")
    gone = {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": "2026-11-20T10:00:00Z"}}
    deployment, replica_set = predictor("predictor", 4)
    home = Home(deployment)
    home.state.follow(frozenset({home.ref, WorkloadRef(namespace="demo", name="model", kind="InferenceService")}))
    home.put(replica_set, gone)
    home.pods(of_predictor("predictor", 0))
    home.state.apply(Resource.AUTOSCALERS, scaling("predictor", "Deployment", "apps/v1", 4))
    for found in home.state.observation(ClusterName("worker-1"), AT).workloads:
        assert (found.wanted, found.waiting, found.asks) == (0, (), ())


def test_autoscaler_of_a_role_counts_its_groups_and_asks_for_slices() -> None:
    """Two groups of two are a role of one slice, by an object that a role with external scaling has."""
    home = Home(workload_of("DisaggregatedSet"))
    for group in range(2):
        for index in range(2):
            raw = in_group(group, index, "gpu-1")
            labels = {"name": "model", "role": "decode", "slice": "0"}
            raw["metadata"]["labels"] |= {f"disaggregatedset.x-k8s.io/{key}": value for key, value in labels.items()}
            home.pods(raw)
    scaled = scaling("model-decode", "DisaggregatedSetRoleScaler", "disaggregatedset.x-k8s.io/v1", 2)
    home.state.apply(Resource.AUTOSCALERS, scaled)
    assert [ask.replicas for ask in home.seen.asks] == [1]


# Flagger


def with_primary(target: int, primary: int = 4) -> Home:
    """A Deployment that Flagger has copied: it scales the target, whose pods are a canary's, and the copy serves."""
    home = Home(made("model", kind="Deployment", replicas=target))
    canary = ("flagger.app/v1beta1", "Canary", "model")
    home.put(made("model-1", kind="ReplicaSet", owner=("apps/v1", "Deployment", "model"), replicas=target))
    home.put(made("model-primary", kind="Deployment", owner=canary, replicas=primary))
    copy = ("apps/v1", "Deployment", "model-primary")
    home.put(made("model-primary-1", kind="ReplicaSet", owner=copy, replicas=primary))
    home.pods(*(of_set("model-1", index) for index in range(target)))
    return home


def of_set(name: str, index: int, on: str = "") -> Json:
    owner = ("ReplicaSet", name)
    return pod(f"{name}-{index}", on, owner=owner, version="apps/v1", waits="" if on else NO_GPU)


@pytest.mark.parametrize("target", [0, 1, 4])
@pytest.mark.parametrize("running", [2, 4])
def test_target_of_flagger_wants_what_its_primary_wants(target: int, running: int) -> None:
    home = with_primary(target)
    home.pods(*(of_set("model-primary-1", index, "gpu-1" if index < running else "") for index in range(4)))
    assert home.counts == (4, running, 4 - running)
    assert home.seen.ref.name == "model"


def test_autoscaler_of_flaggers_primary_is_one_of_its_target_and_that_of_the_canary_is_none() -> None:
    home = with_primary(2)
    home.pods(*(of_set("model-primary-1", index, "gpu-1") for index in range(4)))
    home.state.apply(Resource.AUTOSCALERS, scaling("model", "Deployment", "apps/v1", 2))
    assert home.seen.asks == ()
    home.state.apply(Resource.AUTOSCALERS, scaling("model-primary", "Deployment", "apps/v1", 4))
    assert [ask.replicas for ask in home.seen.asks] == [4]


def test_target_of_flagger_that_is_being_deleted_asks_for_nothing() -> None:
    home = with_primary(2)
    home.put(made("model", kind="Deployment", replicas=2) | LEFT_DEPLOYMENT)
    home.pods(*(of_set("model-primary-1", index) for index in range(4)))
    assert home.counts == (0, 0, 0)


def test_target_of_flagger_serves_again_once_its_copy_is_being_deleted() -> None:
    """The copy goes with its Canary, which may scale the target up before (`revertOnDeletion`)."""
    home = with_primary(4)
    canary = ("flagger.app/v1beta1", "Canary", "model")
    copy = made("model-primary", kind="Deployment", owner=canary, replicas=4)
    home.put({**copy, "metadata": copy["metadata"] | LEFT})
    home.pods(*(of_set("model-primary-1", index, "gpu-1") for index in range(4)))
    assert home.counts == (4, 0, 4)


def test_object_beside_another_of_a_canary_is_no_copy_without_flagger() -> None:
    home = Home(made("model", kind="Deployment", replicas=2))
    home.put(made("model-primary", kind="Deployment", owner=DEPLOYED, replicas=4))
    assert home.seen.wanted == 2


# pods that have room to come


def successors(
    *, grace: int = 30, deleted: str = "2026-11-20T10:04:40Z", ready: bool = True, **conditions: str
) -> Home:
    """A Deployment of two by Recreate: two old pods drain, two new ones wait since 10:04."""
    home = Home(
        workload("model", 2) | {"apiVersion": "apps/v1", "kind": "Deployment"}, nodes=[node("gpu-1", ready=ready)]
    )
    for index in range(2):
        old = pod(f"old-{index}", "gpu-1", owner=("Deployment", "model"), version="apps/v1")
        old["metadata"] |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace}
        old["status"]["conditions"] += [{"type": kind, "status": status} for kind, status in conditions.items()]
        new = pod(
            f"new-{index}", owner=("Deployment", "model"), version="apps/v1", waits=NO_GPU, since="2026-11-20T10:04:00Z"
        )
        home.pods(old, new)
    return home


def waits_since(home: Home) -> list[datetime]:
    return [wait.since for wait in home.seen.waiting for _ in range(wait.replicas)]


@pytest.mark.parametrize(("grace", "lasts"), [(30, timedelta(minutes=1)), (600, timedelta(minutes=10))])
def test_pods_wait_for_room_from_when_those_before_them_should_have_left(grace: int, lasts: timedelta) -> None:
    left = datetime(2026, 11, 20, 10, 4, 40, tzinfo=UTC) + lasts
    assert waits_since(successors(grace=grace)) == [left, left]


@pytest.mark.parametrize("lost", [{"ready": False}, {"DisruptionTarget": "True"}])
def test_pods_that_end_with_their_node_or_for_others_leave_no_room(lost: Json) -> None:
    assert waits_since(successors(**lost)) == [datetime(2026, 11, 20, 10, 4, tzinfo=UTC)] * 2


def test_pod_that_is_nominated_for_a_node_is_placed_and_takes_its_room() -> None:
    home = Home(workload("model", 2) | {"apiVersion": "apps/v1", "kind": "Deployment"}, nodes=[node("gpu-1", 4)])
    coming = pod("a", owner=("Deployment", "model"), version="apps/v1", waits=NO_GPU, gpus=3)
    coming["status"]["nominatedNodeName"] = "gpu-1"
    home.pods(coming, pod("b", owner=("Deployment", "model"), version="apps/v1", waits=NO_GPU))
    assert home.counts == (2, 1, 1)
    (pool,) = home.state.observation(ClusterName("worker-1"), AT).pools
    assert pool.nodes[0].free.amounts[GPU] == ONE


def test_failed_indexes_of_a_job_are_wanted_no_more() -> None:
    raw = workload_of("Job")
    spec = {**raw["spec"], "parallelism": 10, "completions": 10, "completionMode": "Indexed", "suspend": False}
    home = Home({**raw, "spec": spec, "status": {"succeeded": 3, "failedIndexes": "0,2-5"}})
    assert home.seen.wanted == 2


def test_job_without_completions_makes_no_more_pods_once_one_has_succeeded() -> None:
    spec = {**workload_of("Job")["spec"], "parallelism": 4, "suspend": False}
    spec.pop("completions", None)
    home = Home({**workload_of("Job"), "spec": spec, "status": {"active": 4}})
    assert home.seen.wanted == 4
    home.put({**workload_of("Job"), "spec": spec, "status": {"succeeded": 1, "active": 2}})
    assert home.seen.wanted == 2
    home.put({**workload_of("Job"), "spec": spec, "status": {"succeeded": 1}})
    assert home.seen.wanted == 0


def test_objects_whose_owners_lead_back_to_them_stand_alone() -> None:
    release, version, kind = "is", "serving.kserve.io/v1beta1", "InferenceService"
    spec: Json = {"predictor": {"model": {"modelFormat": {"name": "any"}}}}

    def service(name: str, owner: str) -> Json:
        return made(name, version=version, kind=kind, owner=(version, kind, owner), spec=spec)

    home = Home(service(release, f"{release}-2"))
    home.put(service(f"{release}-2", f"{release}-3"), service(f"{release}-3", release))
    waits = pod("a", waits=NO_GPU)
    waits["metadata"]["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": release, "controller": True}]
    home.pods(waits)
    assert home.counts == (1, 0, 1)
