"""Objects of kinds that Kubernetes itself does not have say how many pods they want, where they can be watched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from reconciler.adapters.kube import stream
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.ownership import marks_by_label
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource, custom_resources, needed_resources
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import Count, PodTemplate, WorkloadKind, path
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.units import ONE
from reconciler.model.workload import ManifestResource, WorkloadRef
from tests.builders.fleet_files import FLEET, load
from tests.builders.gangs import torch, volcano
from tests.builders.inputs import VLLM
from tests.builders.kube_objects import GPU, NO_GPU, pod, queued, workload
from tests.builders.run_statuses import ENDED
from tests.builders.watched_clusters import TWO_NAME, Fleet, seen, until
from tests.builders.workload_kinds import SAMPLES, lws
from tests.fleet.test_workload_kinds import SERVERS
from tests.fleet.test_workload_kinds import SET as DECLARED
from tests.observe.test_cluster_state import AT, NAME

SET = WorkloadRef(namespace="demo", name="model", kind="LeaderWorkerSet")
LISTED = "/leaderworkersets"
GAMES = load({**FLEET, "kinds.yaml": DECLARED}).kinds


def leader(group: str = "0", index: int = 0, *, on: str = "", gpus: int = 1) -> dict[str, Any]:
    labels = {"leaderworkerset.sigs.k8s.io/name": "model", "leaderworkerset.sigs.k8s.io/group-index": group}
    return pod(f"model-{group}-{index}", on, owner=None, waits="" if on else NO_GPU, labels=labels, gpus=gpus)


def watched(
    manifest: dict[str, Any], *pods: dict[str, Any], ref: WorkloadRef = SET, kinds: Kinds = NO_KINDS
) -> tuple[WorkloadObservation, ...]:
    """Tell a cluster's state of an object and of pods, and return what it reports."""
    made = ClusterState({ref}, marks_by_label(kinds), kinds)
    (custom,) = custom_resources({ref}, kinds)
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


def test_pods_beyond_what_the_object_says_are_not_wanted() -> None:
    (found,) = watched(lws(1, 1), leader("0", on="gpu-1"), leader("1", on="gpu-1"))
    assert (found.wanted, found.running) == (1, 1)


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


def test_an_object_whose_pods_need_nobody_knows_what_says_how_many_they_are() -> None:
    broken = lws(2, 4)
    broken["spec"]["leaderWorkerTemplate"] = {"size": 4}
    (found,) = watched(broken, leader())
    assert (found.wanted, group(found)) == (8, (1, [(1, 1)]))


def test_an_object_that_is_gone_says_nothing_any_more() -> None:
    made = ClusterState({SET})
    (custom,) = custom_resources({SET})
    made.apply(custom, lws(2, 4))
    made.apply(Resource.PODS, leader())
    made.remove(custom, "demo/model")
    (found,) = made.observation(ClusterName(NAME), AT).workloads
    assert found.wanted == 1


def test_an_object_of_a_kind_that_is_followed_no_longer_is_passed_over() -> None:
    made = ClusterState({SET})
    (custom,) = custom_resources({SET})
    made.apply(custom, lws(2, 4))
    made.follow({WorkloadRef(namespace="demo", name="model", kind="Deployment")})
    made.apply(custom, lws(3, 4))
    made.retain(custom, set())
    made.follow({SET})
    made.apply(Resource.PODS, leader())
    assert [one.wanted for one in made.observation(ClusterName(NAME), AT).workloads] == [1]


def test_objects_are_read_anew_once_their_kind_is_declared_otherwise() -> None:
    ref = WorkloadRef(namespace="demo", name="model", kind="GameServerSet")
    made = ClusterState({ref}, marks_by_label(GAMES), GAMES)
    (custom,) = custom_resources({ref}, GAMES)
    made.apply(custom, SERVERS)
    made.apply(Resource.PODS, pod("a", owner=("GameServerSet", "model"), waits=NO_GPU))
    assert [one.wanted for one in made.observation(ClusterName(NAME), AT).workloads] == [9]
    other = {name: replace(kind, templates=kind.templates[:0]) for name, kind in GAMES.items()}
    assert custom in made.follow({ref}, marks_by_label(other), other)


def test_a_kind_is_watched_only_where_it_is_named_and_known() -> None:
    assert {one.full_name for one in custom_resources({SET})} == {"leaderworkersets.leaderworkerset.x-k8s.io"}
    assert custom_resources({WorkloadRef(namespace="demo", name="model")}) == frozenset()
    job = WorkloadRef(namespace="demo", name="model", kind="Job")
    assert custom_resources({job, replace(job, group="batch")}) == frozenset()
    assert names(custom_resources({replace(job, group="batch.volcano.sh")})) == {"jobs.batch.volcano.sh"}
    assert custom_resources({replace(SET, group="example.com")}) == frozenset()
    named = WorkloadRef(namespace="demo", name="arena", kind="GameServerSet")
    assert custom_resources({named}) == frozenset()
    assert {*custom_resources({named}, GAMES)} <= needed_resources({named}, GAMES)


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
    (found,) = custom_resources({WorkloadRef(namespace="demo", name="x", kind=kind)}, {declared.name: declared})
    assert found.paths("demo") == (f"/apis/game.example.com/v1/namespaces/demo/{plural}",)


def test_the_newest_version_is_asked_for_first() -> None:
    (found,) = custom_resources({WorkloadRef(namespace="demo", name="x", kind="CloneSet")})
    assert found.paths() == ("/apis/apps.kruise.io/v1beta1/clonesets", "/apis/apps.kruise.io/v1alpha1/clonesets")


def names(found: Iterable[CustomResource]) -> set[str]:
    return {one.full_name for one in found}


UNNAMED = WorkloadRef(namespace="demo", name="model")


@pytest.mark.parametrize(
    ("made", "kinds"),
    [
        (leader(), {"leaderworkersets.leaderworkerset.x-k8s.io"}),
        (pod("a", owner=("CloneSet", "model"), version="apps.kruise.io/v1alpha1"), {"clonesets.apps.kruise.io"}),
        (pod("a", owner=("Job", "model"), version="batch.volcano.sh/v1alpha1"), {"jobs.batch.volcano.sh"}),
        (pod("a", owner=("Job", "model"), version="batch/v1"), set()),
        (pod("a", owner=("Job", "model")), set()),
        (pod("a", owner=("StatefulSet", "model"), version="apps/v1"), set()),
        (pod("a", owner=("Engine", "model"), version="example.com/v1"), set()),
        (pod("a", owner=("CloneSet", "other"), version="apps.kruise.io/v1alpha1"), set()),
        (pod("a", owner=("CloneSet", "model"), namespace="other"), set()),
    ],
    ids=["by label", "by owner", "Volcano's", "own", "no version", "a set", "unknown", "another", "elsewhere"],
)
def test_where_no_kind_is_named_that_of_whose_the_pods_turn_out_to_be_is_followed(
    made: dict[str, Any], kinds: set[str]
) -> None:
    state = ClusterState({UNNAMED})
    assert state.customs == frozenset()
    state.apply(Resource.PODS, made)
    assert names(state.customs) == kinds


def test_the_owner_of_what_makes_the_pods_is_followed_as_well() -> None:
    state = ClusterState({UNNAMED})
    state.apply(Resource.REPLICA_SETS, workload("model-1", 3, owner=("Rollout", "model")))
    assert names(state.customs) == {"rollouts.argoproj.io"}


def test_an_object_that_kueue_holds_back_before_there_is_any_pod_goes_whole_as_well() -> None:
    ref = WorkloadRef(namespace="demo", name="model")
    state = ClusterState({ref})
    state.apply(Resource.QUEUED, queued("jobset-model", 9, owner=("JobSet", "model")))
    assert names(state.customs) == {"jobsets.jobset.x-k8s.io"}
    state.follow({replace(ref, name="other")})
    state.follow({ref})
    (custom,) = state.customs
    state.apply(custom, SAMPLES["JobSet"][0])
    (found,) = state.observation(ClusterName(NAME), AT).workloads
    assert (found.wanted, group(found), [ask.replicas for ask in found.asks]) == (9, (0, [(0, 1), (8, 8)]), [9])


def test_a_kind_that_is_named_is_the_only_one_that_is_followed() -> None:
    state = ClusterState({replace(UNNAMED, kind="Deployment")})
    state.apply(Resource.PODS, leader())
    assert state.customs == frozenset()


def test_an_object_that_no_template_gives_a_kind_says_how_many_pods_it_wants() -> None:
    state = ClusterState({UNNAMED})
    state.apply(Resource.PODS, leader())
    (custom,) = state.customs
    state.apply(custom, lws(2, 4))
    (found,) = state.observation(ClusterName(NAME), AT).workloads
    assert (found.wanted, group(found)) == (8, (2, [(8, 4)]))


def test_pods_that_are_known_already_say_of_which_kind_it_is_that_is_followed_from_now_on() -> None:
    state = ClusterState({replace(UNNAMED, name="other")})
    state.apply(Resource.PODS, leader())
    assert state.customs == frozenset()
    state.follow({UNNAMED})
    assert names(state.customs) == {"leaderworkersets.leaderworkerset.x-k8s.io"}
    state.follow({replace(UNNAMED, name="other")})
    assert state.customs == frozenset()


def test_a_kind_that_has_been_met_stays_though_its_pods_go_for_a_while() -> None:
    state = ClusterState({UNNAMED})
    state.apply(Resource.PODS, leader())
    state.remove(Resource.PODS, "demo/model-0-0")
    assert names(state.customs) == {"leaderworkersets.leaderworkerset.x-k8s.io"}


def test_a_declared_kind_may_be_named_like_one_of_kubernetes_own() -> None:
    advanced = WorkloadKind(
        group="apps.kruise.io",
        kind="StatefulSet",
        versions=("v1beta1",),
        templates=(PodTemplate(spec=path("spec.template.spec"), counts=(Count(path=path("spec.replicas")),)),),
    )
    kinds = {advanced.name: advanced}
    state = ClusterState({replace(UNNAMED, kind="StatefulSet")}, marks_by_label(kinds), kinds)
    made = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", **workload("model", 3)}
    state.apply(Resource.PODS, pod("a", owner=("StatefulSet", "model"), version="apps.kruise.io/v1beta1"))
    (custom,) = state.customs
    state.apply(custom, made)
    (found,) = state.observation(ClusterName(NAME), AT).workloads
    assert (custom.full_name, found.ref.group, found.wanted) == ("statefulsets.apps.kruise.io", "apps.kruise.io", 3)


def following(clusters: Fleet, ref: WorkloadRef = SET) -> None:
    """Have the fleet's template burst replicas of the set."""
    template = clusters.desired.templates[VLLM]
    clusters.desired = replace(clusters.desired, templates={VLLM: replace(template, ref=ref)})
    clusters.one.put("pods", leader())
    clusters.one.put("leaderworkersets", lws(2, 4))


def test_the_objects_of_a_primary_are_watched(clusters: Fleet) -> None:
    following(clusters)
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [8]
    clusters.one.put("leaderworkersets", lws(3, 4))
    until(lambda: [one.wanted for one in seen(view).workloads] == [12])
    assert clusters.two.selectors(LISTED) == {PLACEMENT_LABEL}


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


def test_an_object_whose_kind_no_template_names_is_watched_before_its_cluster_counts_as_seen(clusters: Fleet) -> None:
    following(clusters, UNNAMED)
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [8]
    clusters.one.put("leaderworkersets", lws(3, 4))
    until(lambda: [one.wanted for one in seen(view).workloads] == [12])


def test_an_object_is_watched_from_its_first_pod_on_and_no_more_once_it_is_not_followed(clusters: Fleet) -> None:
    following(clusters, UNNAMED)
    clusters.one.delete("pods", "model-0-0", "demo")
    view = clusters.following()
    assert seen(view).workloads == ()
    assert not clusters.one.count(LISTED, watch=False)
    clusters.one.put("pods", leader())
    told: list[list[int]] = []
    until(lambda: told.append([one.wanted for one in seen(view).workloads]) or told[-1])
    assert told[-1] == [8]
    following(clusters, replace(UNNAMED, kind="Deployment"))
    view.follow(clusters.desired)
    until(lambda: not seen(view).workloads)
    asked = clusters.one.count(LISTED, watch=True)
    clusters.one.put("leaderworkersets", lws(4, 4))
    clusters.one.drop()
    until(lambda: clusters.one.count("/pods", watch=True) > 1)
    assert clusters.one.count(LISTED, watch=True) == asked


VOLCANO = "batch.volcano.sh/v1alpha1"


def jobs(clusters: Fleet, version: str) -> None:
    """Have the fleet's template burst replicas of a Job, of which a pod waits."""
    following(clusters, replace(UNNAMED, kind="Job"))
    clusters.one.put("jobs", {**workload("model"), "spec": {"parallelism": 2}})
    clusters.one.put("jobs.batch.volcano.sh", volcano((5, 8, None), least=3))
    clusters.one.put("pods", pod("a", owner=("Job", "model"), version=version, waits=NO_GPU))


TRAIN_JOBS = "/trainjobs"


def deploying_train_jobs(clusters: Fleet) -> None:
    """Have the fleet's template deploy a TrainJob, and worker-2 run a pod of it."""
    template = clusters.desired.templates[VLLM]
    manifest = SAMPLES["TrainJob"][0]
    spec = replace(template.spec, manifests=(ManifestResource(name="web", manifest=manifest),))
    clusters.desired = replace(clusters.desired, templates={VLLM: replace(template, spec=spec)})
    clusters.two.put("pods", pod("llm-node-0-0", "gpu-1", labels={"jobset.sigs.k8s.io/jobset-name": "llm"}))
    ours = {"overspill.dev/placement": "llm-1"}
    clusters.two.put("trainjobs", {"metadata": {"name": "llm", "namespace": "demo", "labels": ours}})


def test_train_jobs_of_placements_are_watched_where_they_may_go(clusters: Fleet) -> None:
    view = clusters.following()
    assert seen(view, TWO_NAME).bound == {}
    assert not clusters.two.count(TRAIN_JOBS, watch=False)
    deploying_train_jobs(clusters)
    view.follow(clusters.desired)
    until(lambda: seen(view, TWO_NAME).bound == {"llm-1": 1})
    clusters.two.delete("trainjobs", "llm", "demo")
    until(lambda: seen(view, TWO_NAME).bound == {})


RUNS = {
    "Job": "jobs",
    "Job of Volcano": "jobs.batch.volcano.sh",
    "PyTorchJob": "pytorchjobs",
    "RayJob": "rayjobs",
    "JobSet": "jobsets",
}
"""Samples that run once, and how the API server calls their resource."""


def deploying_runs(clusters: Fleet, sample: str) -> None:
    """Have the fleet's template deploy what runs once, and worker-2 have one of a placement that is complete."""
    template, made = clusters.desired.templates[VLLM], SAMPLES[sample][0]
    spec = replace(template.spec, manifests=(ManifestResource(name="web", manifest=made),))
    clusters.desired = replace(clusters.desired, templates={VLLM: replace(template, spec=spec)})
    (status, _), *_ = ENDED[group_kind(made)][0]
    for name, labels in (("llm", {"overspill.dev/placement": "llm-1"}), ("other", {"app": "other"})):
        metadata = {"name": name, "namespace": "demo", "labels": labels}
        clusters.two.put(RUNS[sample], {"metadata": metadata, "spec": made["spec"], "status": status})


@pytest.mark.parametrize("sample", RUNS)
def test_objects_of_placements_that_run_once_are_watched_where_they_may_go_and_no_others(
    clusters: Fleet, sample: str
) -> None:
    deploying_runs(clusters, sample)
    view = clusters.following()
    until(lambda: {name: told.objects for name, told in seen(view, TWO_NAME).succeeded.items()} == {"llm-1": 1})
    plural = RUNS[sample].partition(".")[0]
    asked = [query for _, path, query in clusters.two.asked if path.endswith(f"/{plural}")]
    assert asked
    assert all("overspill.dev" in str(query) for query in asked)
    assert view.observe().problems == ()


def test_a_cluster_that_refuses_them_is_seen_all_the_same_and_told_a_way_out(clusters: Fleet) -> None:
    deploying_runs(clusters, "Job")
    clusters.two.refuses["batch/v1/jobs"] = 403
    view = clusters.following()
    assert seen(view, TWO_NAME).succeeded == {}
    assert seen(view, TWO_NAME).healthy
    (problem,) = view.observe().problems
    assert problem.message.startswith("jobs.batch are not looked at: ")
    assert problem.message.endswith("(apply bootstrap/rbac.yaml there)")


def test_jobs_of_volcano_are_watched_beside_kubernetes_own_of_the_same_plural(clusters: Fleet) -> None:
    jobs(clusters, VOLCANO)
    clusters.one.delete("jobs", "model", "demo")
    view = clusters.following()
    (found,) = seen(view).workloads
    assert found.group is not None
    assert (found.wanted, found.ref.group, found.group.least) == (5, "batch.volcano.sh", 3)


@pytest.mark.parametrize("refused", [403, 404])
def test_who_has_no_job_of_volcano_needs_no_rights_on_them(clusters: Fleet, refused: int) -> None:
    jobs(clusters, "batch/v1")
    clusters.one.refuses[f"{VOLCANO}/jobs"] = refused
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [2]
    assert view.observe().problems == ()
    assert not clusters.one.count(f"{VOLCANO}/jobs", watch=False)


def test_who_has_a_job_of_volcano_and_no_rights_on_them_is_told_a_way_out(clusters: Fleet) -> None:
    jobs(clusters, VOLCANO)
    clusters.one.refuses[f"{VOLCANO}/jobs"] = 403
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [2, 1]
    (problem,) = view.observe().problems
    assert problem.message.startswith("jobs.batch.volcano.sh are not looked at: ")
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


def unversioned(clusters: Fleet) -> None:
    """Have the fleet's template burst replicas of a declared kind of which no version is said."""
    ref = WorkloadRef(namespace="demo", name="model", kind="GameServerSet")
    following(clusters, ref)
    (kind,) = GAMES.values()
    clusters.desired = replace(clusters.desired, kinds={kind.name: replace(kind, versions=())})
    clusters.one.put("pods", pod("a", owner=("GameServerSet", "model"), waits=NO_GPU))
    clusters.one.put("gameserversets", SERVERS)


@pytest.mark.parametrize(("versions", "first"), [(["v1"], "v1"), (["v1", "v2beta1", "v2"], "v2")])
def test_of_a_kind_that_is_declared_without_versions_the_server_says_which_it_has(
    clusters: Fleet, versions: list[str], first: str
) -> None:
    unversioned(clusters)
    clusters.one.groups["game.example.com"] = versions
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [9]
    assert view.observe().problems == ()
    asked = {path for _, path, _ in clusters.one.asked if path.endswith("/gameserversets")}
    assert asked == {f"/apis/game.example.com/{first}/gameserversets"}


@pytest.mark.parametrize("groups", [{}, {"game.example.com": ["v1"]}], ids=["no group", "no such kind in it"])
def test_a_cluster_without_a_kind_that_is_declared_without_versions_is_no_problem(
    clusters: Fleet, groups: dict[str, list[str]]
) -> None:
    unversioned(clusters)
    clusters.one.groups |= groups
    clusters.one.refuses["/gameserversets"] = 404
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [1]
    assert view.observe().problems == ()


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN.values() if "." in kind.group])
def test_rights_on_what_is_built_in_come_with_the_layout(kind: WorkloadKind) -> None:
    (custom,) = custom_resources({WorkloadRef(namespace="demo", name="x", kind=kind.kind, group=kind.group)})
    assert isinstance(custom, CustomResource)
    assert stream.rights(custom) == "bootstrap/rbac.yaml"
