"""Whose pods are whose: by who owns them, and by the labels that the controllers of workload kinds give them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.ownership import labelled_owners, marks_by_label
from reconciler.core.observe.kubernetes.resources import CONTROLLERS, Resource
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import Group, Mark, WorkloadKind
from reconciler.model.units import ONE
from reconciler.model.workload import WorkloadRef
from tests.builders.kube_objects import GPU, NO_GPU, OVER_QUOTA, SINCE, autoscaler, pod, workload
from tests.observe.test_cluster_state import AT, NAME, state

_OPERATOR = "training.kubeflow.org/operator-name"
_JOB = "training.kubeflow.org/job-name"
LABELS: dict[str, dict[str, str]] = {
    "LeaderWorkerSet": {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "0"},
    "DisaggregatedSet": {"disaggregatedset.x-k8s.io/name": "llm", "disaggregatedset.x-k8s.io/slice": "0"},
    "JobSet": {"jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/replicatedjob-name": "workers"},
    "PodCliqueSet": {"app.kubernetes.io/part-of": "llm", "app.kubernetes.io/managed-by": "grove-operator"},
    "Job": {"volcano.sh/job-name": "llm", "volcano.sh/job-namespace": "demo", "volcano.sh/task-spec": "worker"},
    "TFJob": {_JOB: "llm", _OPERATOR: "tfjob-controller"},
    "PyTorchJob": {_JOB: "llm", _OPERATOR: "pytorchjob-controller"},
    "PaddleJob": {_JOB: "llm", _OPERATOR: "paddlejob-controller"},
    "XGBoostJob": {_JOB: "llm", _OPERATOR: "xgboostjob-controller"},
    "JAXJob": {_JOB: "llm", _OPERATOR: "jaxjob-controller"},
    "MPIJob": {_JOB: "llm", _OPERATOR: "mpi-operator"},
    "TrainJob": {"jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/replicatedjob-name": "node"},
    "RayCluster": {"ray.io/cluster": "llm", "ray.io/node-type": "worker"},
    "RayJob": {"ray.io/cluster": "llm-7xk2q", "ray.io/node-type": "worker"},
    "RayService": {"ray.io/cluster": "llm-b9wzt", "ray.io/node-type": "head"},
    "InferenceService": {"serving.kserve.io/inferenceservice": "llm", "component": "predictor"},
    "LLMInferenceService": {"app.kubernetes.io/name": "llm", "app.kubernetes.io/part-of": "llminferenceservice"},
    "AppWrapper": {"workload.codeflare.dev/appwrapper": "llm"},
    "DynamoGraphDeployment": {"nvidia.com/dynamo-graph-deployment-name": "llm"},
}
"""The labels that pods of an object called ``llm`` have in a cluster, of each kind that has any."""


def ref(kind: str, name: str = "llm") -> WorkloadRef:
    return WorkloadRef(namespace="demo", name=name, kind=kind)


def set_of(name: str, replicas: int, owner: tuple[str, str], labels: dict[str, str]) -> dict[str, Any]:
    """Make a StatefulSet or the like whose pods have labels."""
    made = workload(name, replicas, owner=owner)
    made["spec"]["template"]["metadata"] = {"labels": labels}
    return made


def one(made: ClusterState) -> WorkloadObservation:
    (found,) = made.observation(ClusterName(NAME), AT).workloads
    return found


def missing(seen: WorkloadObservation) -> int:
    return sum(wait.replicas for wait in seen.waiting)


def test_there_is_a_sample_of_each_kind_that_marks_its_pods() -> None:
    assert {kind.kind for kind in BUILT_IN.values() if kind.marks} == {*LABELS}


@pytest.mark.parametrize("kind", LABELS)
def test_pods_that_something_unseen_owns_are_known_by_their_labels(kind: str) -> None:
    labels, owner = LABELS[kind], ("SomethingBetween", "x")
    pods = [pod("a", on="gpu-1", owner=owner, labels=labels), pod("b", waits=NO_GPU, owner=owner, labels=labels)]
    found = one(state(ref(kind), pods=pods))
    assert (found.ref.kind, found.wanted, found.running, missing(found)) == (kind, 2, 1, 1)
    assert found.shape is not None


@pytest.mark.parametrize("kind", LABELS)
def test_pods_of_another_object_are_not_its_own(kind: str) -> None:
    pods = [pod("a", owner=None, labels={key: f"x-{value}" for key, value in LABELS[kind].items()})]
    assert state(ref(kind), pods=pods).observation(ClusterName(NAME), AT).workloads == ()


def test_kinds_that_share_a_label_are_told_apart_by_who_made_the_pods() -> None:
    pods = [pod("a", waits=NO_GPU, owner=None, labels=LABELS["PyTorchJob"])]
    assert state(ref("TFJob"), pods=pods).observation(ClusterName(NAME), AT).workloads == ()
    assert one(state(ref(""), pods=pods)).ref.kind == "PyTorchJob"


def test_a_ray_job_whose_name_another_one_begins_with_is_not_that_one() -> None:
    pods = [pod("a", owner=None, labels={"ray.io/cluster": "llm-large-7xk2q"})]
    assert state(ref("RayJob"), pods=pods).observation(ClusterName(NAME), AT).workloads == ()
    assert one(state(ref("RayJob", "llm-large"), pods=pods)).wanted == 1


def test_a_pod_that_its_owner_marks_as_its_own_counts_once() -> None:
    pods = [pod("a", owner=("RayCluster", "llm"), labels=LABELS["RayCluster"])]
    made = state(ref("RayCluster"), pods=pods)
    assert one(made).wanted == 1
    made.remove(Resource.PODS, "demo/a")
    assert made.observation(ClusterName(NAME), AT).workloads == ()


def leaders_and_workers(*refs: WorkloadRef) -> ClusterState:
    """Make a LeaderWorkerSet of one group of three, of which the second worker has no quota."""
    labels = LABELS["LeaderWorkerSet"]
    workers = set_of("llm-0", 2, ("Pod", "llm-0"), labels)
    workers["status"] = {
        "conditions": [
            {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": SINCE, "message": OVER_QUOTA},
        ]
    }
    return state(
        *refs,
        statefulsets=[set_of("llm", 1, ("LeaderWorkerSet", "llm"), labels), workers],
        pods=[
            pod("llm-0", on="gpu-1", owner=("StatefulSet", "llm"), labels=labels),
            pod("llm-0-1", waits=NO_GPU, owner=("StatefulSet", "llm-0"), labels=labels),
        ],
    )


def test_workers_that_a_pod_owns_are_part_of_the_set_and_so_are_those_never_made() -> None:
    found = one(leaders_and_workers(ref("LeaderWorkerSet")))
    assert (found.wanted, found.running, missing(found)) == (3, 1, 2)


def test_a_set_goes_before_the_object_of_the_same_name_that_makes_its_leaders() -> None:
    assert one(leaders_and_workers(ref(""))).ref.kind == "LeaderWorkerSet"
    assert one(leaders_and_workers(ref("StatefulSet"))).wanted == 1


def test_a_deployment_that_something_of_its_name_owns_is_still_meant_by_the_name() -> None:
    made = state(ref(""), deployments=[workload("llm", 3, owner=("ModelServer", "llm"))])
    assert [seen.ref.kind for seen in made.observation(ClusterName(NAME), AT).workloads] == [
        "Deployment",
        "ModelServer",
    ]


def test_a_deployment_between_and_its_replica_set_miss_their_pods_once() -> None:
    labels = LABELS["InferenceService"]
    between = ("Revision", "llm-predictor-00001")
    made = state(
        ref("InferenceService"),
        deployments=[set_of("llm-predictor", 3, between, labels)],
        replicasets=[set_of("llm-predictor-1", 3, ("Deployment", "llm-predictor"), labels)],
        pods=[pod("a", on="gpu-1", owner=("ReplicaSet", "llm-predictor-1"), labels=labels)],
    )
    assert (one(made).wanted, one(made).running) == (3, 1)


GAMES = WorkloadKind(
    group="game.example.com", kind="GameServerSet", marks=(Mark(label="game.example.com/set"),), checked="games"
)


def test_a_declared_kind_is_known_by_its_label_once_everything_has_been_listed_anew() -> None:
    arena = pod("a", waits=NO_GPU, owner=("Room", "arena-0"), labels={"game.example.com/set": "arena"})
    followed = frozenset({ref("GameServerSet", "arena")})
    made = state(*followed, pods=[arena])
    assert made.observation(ClusterName(NAME), AT).workloads == ()
    marks = marks_by_label({GAMES.name: GAMES})
    assert made.follow(followed, marks) == {Resource.PODS, *CONTROLLERS}
    made.apply(Resource.PODS, arena)
    assert missing(one(made)) == 1
    assert made.follow(followed, marks) == frozenset()


def grouped(name: str, group: str, *, on: str = "", size: str = "", gpus: int = 1) -> dict[str, Any]:
    """Make a pod of a group of the set, on a node or with no room on any."""
    labels = LABELS["LeaderWorkerSet"] | {"leaderworkerset.sigs.k8s.io/group-index": group}
    made = pod(name, on=on, waits="" if on else NO_GPU, owner=None, labels=labels, gpus=gpus)
    made["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/size": size} if size else {}
    return made


def test_pods_that_wait_are_told_apart_by_the_group_that_they_are_of() -> None:
    pods = [
        grouped("llm-0", "0", on="gpu-1"),
        grouped("llm-0-1", "0"),
        grouped("llm-0-2", "0"),
        grouped("llm-1", "1"),
    ]
    found = one(state(ref("LeaderWorkerSet"), pods=pods))
    assert [(wait.group, wait.replicas) for wait in found.waiting] == [("0", 2), ("1", 1)]


def test_pods_that_were_never_made_are_of_the_group_that_their_template_names() -> None:
    found = one(leaders_and_workers(ref("LeaderWorkerSet")))
    assert {wait.group for wait in found.waiting} == {"0"}


def group_counts(found: WorkloadObservation) -> tuple[int, int, list[tuple[int, int]]]:
    """Say how many groups were told apart, of how many pods, and of one the pods by their GPUs."""
    assert found.group is not None
    each = [(shape.requests.amounts[GPU] // ONE, number) for shape, number in found.group.pods]
    return found.group.number, found.group.size, each


def test_a_group_is_what_the_one_of_which_there_is_most_is_of() -> None:
    pods = [
        grouped("llm-0", "0", size="3"),
        grouped("llm-1", "1", on="gpu-1", size="3"),
        grouped("llm-1-1", "1", on="gpu-1", gpus=8),
        grouped("llm-1-2", "1", on="gpu-1", gpus=8),
    ]
    assert group_counts(one(state(ref("LeaderWorkerSet"), pods=pods))) == (2, 3, [(1, 1), (8, 2)])


def test_workers_that_were_never_made_are_part_of_their_group() -> None:
    assert group_counts(one(leaders_and_workers(ref("LeaderWorkerSet")))) == (1, 0, [(1, 3)])


def test_pods_that_nothing_tells_apart_are_all_one_group() -> None:
    labels = LABELS["RayCluster"]
    pods = [pod("head", on="gpu-1", owner=None, labels=labels), pod("w", waits=NO_GPU, owner=None, labels=labels)]
    assert group_counts(one(state(ref("RayCluster"), pods=pods))) == (0, 0, [(1, 2)])


def test_pods_of_a_kind_without_groups_are_in_none() -> None:
    pods = [pod("a", on="gpu-1", owner=None, labels=LABELS["InferenceService"])]
    assert one(state(ref("InferenceService"), pods=pods)).group is None


def test_a_declared_kind_may_have_a_label_that_tells_its_groups_apart() -> None:
    rooms = replace(GAMES, together=Group(called="room", label="game.example.com/room"))
    labels = {"game.example.com/set": "arena", "game.example.com/room": "7"}
    made = ClusterState({ref("GameServerSet", "arena")}, marks_by_label({rooms.name: rooms}))
    made.apply(Resource.PODS, pod("a", waits=NO_GPU, owner=("Room", "arena-7"), labels=labels))
    assert [wait.group for wait in one(made).waiting] == ["7"]


def test_whose_a_pod_is_does_not_depend_on_the_order_of_its_labels() -> None:
    names = [f"game.example.com/{name}" for name in ("arena", "board", "card", "dice", "elf", "fort", "goal", "hero")]
    kinds = [WorkloadKind(group=name, kind=name[17:].title(), marks=(Mark(label=name),)) for name in names]
    marks = marks_by_label({kind.name: kind for kind in kinds})
    labels = dict.fromkeys(names, "llm")
    told = labelled_owners({"labels": labels}, "demo", marks)
    assert [owner.kind for owner in told] == [kind.kind for kind in kinds]
    assert labelled_owners({"labels": dict(reversed(labels.items()))}, "demo", marks) == told


def test_a_group_whose_pods_keep_away_from_one_another_by_a_rule_about_all_of_them_fits_nowhere_and_says_so() -> None:
    rule = {"labelSelector": {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}}
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{**rule, "topologyKey": "kubernetes.io/hostname"}]
        }
    }
    leader, worker = grouped("llm-0", "0", gpus=1), grouped("llm-0-1", "0", gpus=8)
    worker["spec"]["affinity"] = apart
    found = one(state(ref("LeaderWorkerSet"), pods=[leader, worker])).group
    assert found is not None
    assert [shape.obstacle for shape, _ in found.pods] == [
        "",
        "wants one pod in each kubernetes.io/hostname among pods of several kinds, which cannot be counted together",
    ]


def test_workers_that_differ_in_nothing_but_their_index_are_alike() -> None:
    rule = {"labelSelector": {"matchLabels": LABELS["LeaderWorkerSet"]}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    pods = [grouped(f"llm-0-{index}", "0") for index in range(3)]
    for index, made in enumerate(pods):
        made["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] = str(index)
        made["spec"]["affinity"] = apart
    assert group_counts(one(state(ref("LeaderWorkerSet"), pods=pods))) == (1, 0, [(1, 3)])


def test_what_is_only_named_like_one_of_kubernetes_own_is_another_object() -> None:
    made = state(ref("StatefulSet"), statefulsets=[workload("llm", 2)])
    made.apply(Resource.PODS, pod("a", on="gpu-1", owner=("StatefulSet", "llm"), version="apps/v1"))
    made.apply(Resource.PODS, pod("b", on="gpu-1", owner=("StatefulSet", "llm"), version="apps.kruise.io/v1beta1"))
    scaled = autoscaler("llm", kind="StatefulSet")
    scaled["spec"]["scaleTargetRef"]["apiVersion"] = "apps.kruise.io/v1beta1"
    made.apply(Resource.AUTOSCALERS, scaled)
    (custom,) = made.customs
    made.apply(custom, workload("llm", 1))
    seen = made.observation(ClusterName(NAME), AT).workloads
    assert [(one.ref.group, one.wanted, one.running, len(one.asks)) for one in seen] == [
        ("", 2, 1, 0),
        ("apps.kruise.io", 1, 1, 1),
    ]
