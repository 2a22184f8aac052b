"""Objects of kinds that Kubernetes itself does not have say how many pods they want, where they can be watched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.adapters.kube import stream
from reconciler.core.kubernetes.marks import marks_of
from reconciler.core.kubernetes.resources import Custom, Resource, customs, needed
from reconciler.core.kubernetes.state import ClusterState
from reconciler.core.workloadkinds import BUILT_IN, NONE, Kinds
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.units import ONE
from reconciler.model.workload import WorkloadRef
from reconciler.model.workloadkind import WorkloadKind
from tests.fleet.samples import FLEET, load
from tests.kinds.gangs import torch
from tests.kinds.samples import SAMPLES, lws
from tests.kinds.test_declared_kinds import SERVERS
from tests.kinds.test_declared_kinds import SET as DECLARED
from tests.kube.objects import GPU, NO_GPU, pod
from tests.kube.test_cluster_state import AT, NAME
from tests.kube.watched import Fleet, seen, until
from tests.situations import VLLM

SET = WorkloadRef(namespace="demo", name="model", kind="LeaderWorkerSet")
LISTED = "/leaderworkersets"
GAMES = load({**FLEET, "kinds.yaml": DECLARED}).kinds


def leader(group: str = "0", index: int = 0, *, on: str = "", gpus: int = 1) -> dict[str, Any]:
    labels = {"leaderworkerset.sigs.k8s.io/name": "model", "leaderworkerset.sigs.k8s.io/group-index": group}
    return pod(f"model-{group}-{index}", on, owner=None, waits="" if on else NO_GPU, labels=labels, gpus=gpus)


def watched(
    manifest: dict[str, Any], *pods: dict[str, Any], ref: WorkloadRef = SET, kinds: Kinds = NONE
) -> tuple[WorkloadObservation, ...]:
    """Tell a cluster's state of an object and of pods, and return what it reports."""
    made = ClusterState({ref}, marks_of(kinds), kinds)
    (custom,) = customs({ref}, kinds)
    made.apply(custom, manifest)
    for raw in pods:
        made.apply(Resource.PODS, raw)
    return made.observation(ClusterName(NAME), AT).workloads


def group(found: WorkloadObservation) -> tuple[int, list[tuple[int, int]]]:
    """Say how many groups there are, and the pods of one by their GPUs."""
    assert found.group is not None
    each = [(shape.requests.amounts.get(GPU, 0) // ONE, number) for shape, number in found.group.pods]
    return found.group.number, sorted(each)


def test_an_object_wants_as_many_pods_as_it_says_though_not_all_are_made() -> None:
    (found,) = watched(lws(2, 4), leader())
    assert (found.wanted, found.running, sum(wait.replicas for wait in found.waiting)) == (8, 0, 1)


def test_pods_beyond_what_the_object_says_count_as_well() -> None:
    (found,) = watched(lws(1, 1), leader("0", on="gpu-1"), leader("1", on="gpu-1"))
    assert (found.wanted, found.running) == (2, 2)


def test_a_group_of_which_only_the_leader_is_there_is_what_the_object_says() -> None:
    (found,) = watched(lws(2, 4, leader=1, startupPolicy="LeaderReady"), leader())
    assert group(found) == (2, [(1, 1), (8, 3)])


def test_a_group_that_is_all_there_is_what_its_pods_are() -> None:
    pods = [leader(index=0, gpus=1), leader(index=1, gpus=4)]
    (found,) = watched(lws(1, 2), *pods)
    assert group(found) == (1, [(1, 1), (4, 1)])


def test_of_groups_that_want_domains_of_their_own_the_pods_tell() -> None:
    made = lws(2, 4)
    made["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
    (found,) = watched(made, leader())
    assert (found.wanted, group(found)) == (8, (1, [(1, 1)]))


def test_an_object_of_one_group_is_all_of_its_pods_at_once() -> None:
    ref = WorkloadRef(namespace="demo", name="model", kind="JobSet")
    first = pod("a", owner=None, waits=NO_GPU, labels={"jobset.sigs.k8s.io/jobset-name": "model"})
    (found,) = watched(SAMPLES["JobSet"][0], first, ref=ref)
    assert (found.wanted, group(found)) == (9, (0, [(0, 1), (8, 8)]))


@pytest.mark.parametrize("there", [3, 5])
def test_only_the_object_says_how_many_pods_of_a_group_are_enough(there: int) -> None:
    ref = WorkloadRef(namespace="demo", name="model", kind="PyTorchJob")
    labels = {"training.kubeflow.org/job-name": "model", "training.kubeflow.org/operator-name": "pytorchjob-controller"}
    pods = [pod(f"model-{index}", "gpu-1", owner=("PyTorchJob", "model"), labels=labels) for index in range(there)]
    (found,) = watched(torch(4, elastic=2), *pods, ref=ref)
    assert found.group is not None
    assert (found.group.least, sum(number for _, number in found.group.pods)) == (3, 5)


def test_an_object_without_pods_is_not_reported() -> None:
    assert watched(lws(2, 4)) == ()


def test_an_object_of_which_nobody_can_count_the_pods_is_known_by_its_pods() -> None:
    broken = lws(2, 4)
    broken["spec"]["leaderWorkerTemplate"] = {"size": 4}
    (found,) = watched(broken, leader())
    assert (found.wanted, group(found)) == (1, (1, [(1, 1)]))


def test_an_object_that_is_gone_says_nothing_any_more() -> None:
    made = ClusterState({SET})
    (custom,) = customs({SET})
    made.apply(custom, lws(2, 4))
    made.apply(Resource.PODS, leader())
    made.remove(custom, "demo/model")
    (found,) = made.observation(ClusterName(NAME), AT).workloads
    assert found.wanted == 1


def test_an_object_of_a_kind_that_is_followed_no_longer_is_passed_over() -> None:
    made = ClusterState({SET})
    (custom,) = customs({SET})
    made.apply(custom, lws(2, 4))
    made.follow({WorkloadRef(namespace="demo", name="model", kind="Deployment")})
    made.apply(custom, lws(3, 4))
    made.retain(custom, set())
    made.follow({SET})
    made.apply(Resource.PODS, leader())
    assert [one.wanted for one in made.observation(ClusterName(NAME), AT).workloads] == [1]


def test_objects_are_read_anew_once_their_kind_is_declared_otherwise() -> None:
    ref = WorkloadRef(namespace="demo", name="model", kind="GameServerSet")
    made = ClusterState({ref}, marks_of(GAMES), GAMES)
    (custom,) = customs({ref}, GAMES)
    made.apply(custom, SERVERS)
    made.apply(Resource.PODS, pod("a", owner=("GameServerSet", "model"), waits=NO_GPU))
    assert [one.wanted for one in made.observation(ClusterName(NAME), AT).workloads] == [9]
    other = {name: replace(kind, templates=kind.templates[:0]) for name, kind in GAMES.items()}
    assert custom in made.follow({ref}, marks_of(other), other)


def test_a_kind_is_watched_only_where_it_is_named_and_its_versions_are_known() -> None:
    assert {one.full_name for one in customs({SET})} == {"leaderworkersets.leaderworkerset.x-k8s.io"}
    assert customs({WorkloadRef(namespace="demo", name="model")}) == frozenset()
    assert customs({WorkloadRef(namespace="demo", name="model", kind="Job")}) == frozenset()
    unknown = WorkloadKind(group="game.example.com", kind="GameServerSet")
    named = WorkloadRef(namespace="demo", name="arena", kind="GameServerSet")
    assert customs({named}, {unknown.name: unknown}) == frozenset()
    assert {*customs({named}, GAMES)} <= needed({named}, GAMES)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("GameServerSet", "gameserversets"),
        ("InferenceGateway", "inferencegateways"),
        ("Policy", "policies"),
        ("Bus", "buses"),
        ("Batch", "batches"),
    ],
)
def test_a_kind_is_listed_by_the_plural_that_it_is_given_by_rule(kind: str, plural: str) -> None:
    declared = WorkloadKind(group="game.example.com", kind=kind, versions=("v1",))
    (found,) = customs({WorkloadRef(namespace="demo", name="x", kind=kind)}, {declared.name: declared})
    assert found.paths("demo") == (f"/apis/game.example.com/v1/namespaces/demo/{plural}",)


def test_the_newest_version_is_asked_for_first() -> None:
    (found,) = customs({WorkloadRef(namespace="demo", name="x", kind="CloneSet")})
    assert found.paths() == ("/apis/apps.kruise.io/v1beta1/clonesets", "/apis/apps.kruise.io/v1alpha1/clonesets")


def following(clusters: Fleet) -> None:
    """Have the fleet's template lend replicas of the set."""
    template = clusters.desired.templates[VLLM]
    clusters.desired = replace(clusters.desired, templates={VLLM: replace(template, ref=SET)})
    clusters.one.put("pods", leader())
    clusters.one.put("leaderworkersets", lws(2, 4))


def test_the_objects_of_a_primary_are_watched(clusters: Fleet) -> None:
    following(clusters)
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [8]
    clusters.one.put("leaderworkersets", lws(3, 4))
    until(lambda: [one.wanted for one in seen(view).workloads] == [12])
    assert not clusters.two.count(LISTED, watch=False)


def test_a_cluster_that_does_not_serve_them_is_no_problem(clusters: Fleet) -> None:
    following(clusters)
    clusters.one.refuses[LISTED] = 404
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [1]
    assert view.observe().problems == ()


def test_a_cluster_that_refuses_them_is_told_once_with_a_way_out_and_keeps_nothing_else_up(clusters: Fleet) -> None:
    following(clusters)
    clusters.one.refuses[LISTED] = 403
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [1]
    (problem,) = view.observe().problems
    assert problem.message.startswith("leaderworkersets.leaderworkerset.x-k8s.io are not looked at: ")
    assert problem.message.endswith("(apply bootstrap/rbac.yaml there)")


def test_of_a_kind_that_is_declared_no_file_has_the_rights(clusters: Fleet) -> None:
    following(clusters)
    template, ref = clusters.desired.templates[VLLM], replace(SET, kind="GameServerSet")
    clusters.desired = replace(clusters.desired, templates={VLLM: replace(template, ref=ref)}, kinds=GAMES)
    clusters.one.refuses["/gameserversets"] = 403
    view = clusters.following()
    seen(view)
    (problem,) = view.observe().problems
    assert problem.message.endswith("(let overspill-reader list and watch gameserversets there)")


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN.values() if "." in kind.group and kind.kind != "Job"])
def test_rights_on_what_is_built_in_come_with_the_layout(kind: WorkloadKind) -> None:
    (custom,) = customs({WorkloadRef(namespace="demo", name="x", kind=kind.kind)})
    assert isinstance(custom, Custom)
    assert stream.rights(custom) == "bootstrap/rbac.yaml"
