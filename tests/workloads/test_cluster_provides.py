"""A cluster that says what it has gets nothing that needs more; of what it does not say, that is told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.core.commits.templates import render_templates
from reconciler.core.explain.workload import explain
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.cluster_provides import describe_prerequisite, refuse_lacking, undeclared
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.kubernetes.queues import KueueQueues, LocalQueue
from reconciler.model.kubernetes.scheduling import RuntimeClass
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, cluster, load, workspace
from tests.builders.inputs import NOW, VLLM, free, inputs, ordering, plan, short
from tests.builders.inputs import cluster as cluster_of
from tests.builders.plans import begun
from tests.builders.platform_objects import WORKSPACE, bursting_fleet, deployment, obj, providing
from tests.builders.requests import manifests, request, wants

WITH_CLAIM = manifests(deployment({"volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}]}))
"""Its pods mount the claim ml/models, which is not deployed with them."""


def placed(made: Plan) -> list[str]:
    return [str(placement.cluster) for placement in begun(made)]


def decided(*names: str, fleet: Desired) -> Plan:
    return plan(short(1), *(free(name, 8) for name in names), wanted=fleet)


def test_a_cluster_without_the_volume_is_passed_over_with_the_reason_and_the_remedy() -> None:
    fleet = bursting_fleet(
        providing("worker-2", volumes=()), providing("worker-3", volumes=("ml/models",)), spec=WITH_CLAIM
    )
    made = decided("worker-2", "worker-3", fleet=fleet)
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert placed(made) == ["worker-3"]
    (refusal,) = change.refused
    assert refusal.reason is Reason.NEEDS_FIRST
    assert refusal.message == "has no PersistentVolumeClaim ml/models, which Deployment model needs"
    assert refusal.remedy == (
        "create it there and list it in its spec.provides.volumes (what a list does not name, the cluster lacks), or"
        " ship it with the workload"
    )


def test_with_no_other_cluster_the_workload_waits_and_says_for_what() -> None:
    fleet = bursting_fleet(providing("worker-2", volumes=("ml/other",)), spec=WITH_CLAIM, policy=ordering("worker-2"))
    made = decided("worker-2", fleet=fleet)
    assert not made.changes
    (held,) = made.suppressed
    assert [refusal.reason for refusal in held.refusals] == [Reason.NEEDS_FIRST]


def test_what_nobody_says_keeps_nothing_away() -> None:
    fleet = bursting_fleet(providing("worker-2", secrets=()), spec=WITH_CLAIM, policy=ordering("worker-2"))
    assert placed(decided("worker-2", fleet=fleet)) == ["worker-2"]


@pytest.mark.parametrize(
    ("patterns", "has"),
    [
        (("ml/models",), True),
        (("models",), True),
        (("ml/*",), True),
        (("model?",), True),
        (("*",), True),
        (("other/models",), False),
        (("ml/model",), False),
        ((), False),
    ],
)
def test_names_are_globs_and_without_a_namespace_hold_in_any(patterns: tuple[str, ...], *, has: bool) -> None:
    one = Prerequisite(category=Category.VOLUMES, name="ml/models", by="Deployment model")
    assert (refuse_lacking(providing("worker-2", volumes=patterns), (one,), None) is None) is has


def test_a_slash_in_a_kind_or_an_image_is_part_of_the_name() -> None:
    image = Prerequisite(category=Category.IMAGES, name="registry.example.com/server:1", by="Deployment model")
    assert refuse_lacking(providing("worker-2", images=("server:1",)), (image,), None) is not None
    assert refuse_lacking(providing("worker-2", images=("registry.example.com/*",)), (image,), None) is None


def test_device_classes_that_are_seen_need_not_be_declared() -> None:
    one = Prerequisite(category=Category.DEVICE_CLASSES, name="gpu.nvidia.com", by="Deployment model")
    undeclared, other = providing("worker-2"), providing("worker-2", deviceClasses=("mig.nvidia.com",))
    assert refuse_lacking(undeclared, (one,), seen("gpu.nvidia.com")) is None
    assert refuse_lacking(undeclared, (one,), seen("gpu.amd.com")) is not None
    assert refuse_lacking(undeclared, (one,), seen()) is None  # nobody has looked
    assert refuse_lacking(other, (one,), seen("gpu.nvidia.com")) is None
    assert refuse_lacking(other, (one,), seen()) is not None


def seen(*classes: str) -> ClusterObservation:
    names = dict.fromkeys(classes, ())
    return ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, device_classes=names)


def test_several_things_that_lack_are_named() -> None:
    pod = {"serviceAccountName": "reader", "schedulerName": "volcano"}
    fleet = bursting_fleet(
        providing("worker-2", schedulers=(), serviceAccounts=()),
        spec=manifests(deployment(pod)),
        policy=ordering("worker-2"),
    )
    (held,) = decided("worker-2", fleet=fleet).suppressed
    (refusal,) = held.refusals
    assert refusal.message == "has no scheduler volcano, which Deployment model needs, nor ServiceAccount ml/reader"
    assert refusal.remedy == (
        "create them there and list them in its spec.provides.schedulers and spec.provides.serviceAccounts"
        " (what a list does not name, the cluster lacks), or ship them with the workload"
    )


def test_explain_tells_what_nobody_knows() -> None:
    fleet = bursting_fleet(providing("worker-2"), spec=WITH_CLAIM, policy=ordering("worker-2"))
    told = inputs(short(1), free("worker-2", 8), wanted=fleet)
    assert explain(VLLM, told, Plan(changes=(), suppressed=())).conclusion[-1] == (
        "worker-2 does not say whether it has PersistentVolumeClaim ml/models: "
        "list what it has in its spec.provides.volumes."
    )


def test_a_request_is_kept_from_a_cluster_that_lacks_something_and_one_that_is_alike_but_for_that_is_not() -> None:
    clusters = (cluster_of("worker-1"), providing("worker-2", volumes=()), providing("worker-3", volumes=("models",)))
    asks = request("worker-2", "worker-3", name="first", spec=WITH_CLAIM)
    alike = request("worker-2", "worker-3", name="second", spec=manifests(deployment()))
    wanted = wants(asks, alike, clusters=clusters)
    made = plan(free("worker-2", 8), free("worker-3", 8), wanted=wanted)
    assert {str(placement.workload.name): str(placement.cluster) for placement in begun(made)} == {
        "first": "worker-3",
        "second": "worker-2",
    }


MOUNTS: Json = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
WARNING = (
    "worker-2 may lack PersistentVolumeClaim llm-demo/models",
    "list all that the cluster has in its spec.provides.volumes; what such a list leaves out counts as absent",
)


def template(kind: str = "WorkloadTemplate", *, replicas: Json = "{{ replicas }}", mode: str = "") -> str:
    """Write a template whose Deployment mounts a claim, which may be deployed with it in this access mode."""
    metadata = {"name": "vllm", "namespace": "llm-demo"}
    pod = {"containers": [{"name": "server", "image": "server:1"}], "volumes": [MOUNTS]}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    labels = {"app": "vllm"}
    pods = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    parts = {"server": {**made, "spec": {"replicas": replicas, **pods}}}
    if mode:
        claim = {"name": "models", "namespace": "llm-demo"}
        access = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
        parts["claim"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": access}
    deployed = {
        "manifestResources": [{"name": name, "manifest": manifest} for name, manifest in parts.items()],
        "steps": [{"name": name, "type": "manifest"} for name in parts],
        "burstDuration": "10m",
        "workspaceName": "llm",
        "clusterNames": [] if kind == "WorkloadTemplate" else ["worker-1", "worker-2"],
    }
    version = "gpr.kubeslice.io/v1alpha1"
    name = {"name": "vllm", "namespace": "kubeslice-acme"}
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": name, "spec": deployed})


def warnings(**files: str) -> list[tuple[str, str]]:
    return [(one.message, one.hint) for one in load({**FLEET, **files}).problems]


def test_check_warns_of_what_no_cluster_speaks_of() -> None:
    assert warnings(**{"templates/vllm.yaml": template()}) == [WARNING]
    says = cluster("worker-2", "{provides: {volumes: [models]}}")
    assert warnings(**{"templates/vllm.yaml": template(), "clusters/worker-2.yaml": says}) == []


def nowhere(*lacking: str, **more: str) -> list[str]:
    """Return the problems of a template that may go to clusters which say that they have these and no others."""
    names = [f"worker-{number}" for number, _ in enumerate(lacking, start=2)]
    home = workspace().replace("[worker-1, worker-2]", f"[worker-1, {', '.join(names)}]")
    says = {f"clusters/{name}.yaml": cluster(name, one) for name, one in zip(names, lacking, strict=True)}
    files = {**FLEET, "templates/vllm.yaml": template(), "workspaces/llm.yaml": home, **says, **more}
    return [str(one) for one in load(files).problems]


def test_check_warns_of_a_template_whose_volume_no_cluster_has() -> None:
    way = "create it there and list it in the Cluster's spec.provides.volumes, or ship it with the workload"
    claim = "PersistentVolumeClaim llm-demo/models, which Deployment vllm needs, and it may go nowhere else"
    at = "templates/vllm.yaml:1: spec.manifestResources[0]:"
    without = "{provides: {volumes: []}}"
    assert nowhere(without) == [f"{at} worker-2 has no {claim} ({way})"]
    assert nowhere(without, without) == [f"{at} none of worker-2 and worker-3 has {claim} ({way})"]
    assert nowhere(without, "{provides: {volumes: [models]}}") == []


def test_check_warns_where_each_cluster_lacks_something_else() -> None:
    pod = template().replace('"containers"', '"schedulerName": "volcano", "containers"')
    has = ("{provides: {volumes: [], schedulers: [volcano]}}", "{provides: {volumes: [models], schedulers: []}}")
    (told,) = nowhere(*has, **{"templates/vllm.yaml": pod})
    assert "worker-2 has no PersistentVolumeClaim llm-demo/models and worker-3 has no scheduler volcano, and" in told
    assert "the Cluster's spec.provides.volumes and spec.provides.schedulers, or ship them with" in told


def test_a_cluster_whose_file_is_broken_may_have_what_the_others_lack() -> None:
    assert not any("nowhere else" in told for told in nowhere("{provides: {volumes: []}}", "{provides: 3}"))


def test_a_request_in_a_file_that_can_go_nowhere_is_told() -> None:
    without = {f"clusters/{name}.yaml": cluster(name, "{provides: {volumes: []}}") for name in ("worker-1", "worker-2")}
    told = warnings(**{"placements/vllm.yaml": template("WorkloadPlacement", replicas=2), **without})
    claim = "none of worker-1 and worker-2 has PersistentVolumeClaim llm-demo/models, which Deployment vllm needs"
    assert f"{claim}, and it may go nowhere else" in [message for message, _ in told]


@pytest.mark.parametrize(
    ("mode", "where"), [("ReadWriteOnce", "on one node"), ("ReadWriteOncePod", "in one pod"), ("ReadWriteMany", "")]
)
def test_a_volume_for_one_node_that_replicas_share_is_told(mode: str, where: str) -> None:
    expected = (
        f"the replicas of Deployment vllm share the {mode} claim models",
        f"it is mounted {where} only; use ReadWriteMany, ReadOnlyMany or volumeClaimTemplates",
    )
    assert warnings(**{"templates/vllm.yaml": template(mode=mode)}) == ([expected] if where else [])


def test_one_replica_has_its_volume_for_itself() -> None:
    text = template("WorkloadPlacement", replicas=1, mode="ReadWriteOnce")
    assert not [message for message, _ in warnings(**{"a.yaml": text}) if "share" in message]
    text = template("WorkloadPlacement", replicas=2, mode="ReadWriteOnce")
    assert [message for message, _ in warnings(**{"a.yaml": text}) if "share" in message]


def test_a_request_in_a_file_is_looked_at_as_well() -> None:
    told = warnings(**{"placements/vllm.yaml": template("WorkloadPlacement", replicas=2)})
    expected = WARNING[0].replace("worker-2", "worker-1 and worker-2")
    assert expected in [message for message, _ in told]


def test_a_name_that_only_an_expression_says_is_looked_at_when_it_is_filled_in() -> None:
    pod: Json = {"volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models-{{ cluster.name }}"}}]}
    spec = manifests(deployment(pod))
    lacks = (
        "has no PersistentVolumeClaim ml/models-worker-2, which Deployment model needs"
        " (create it there and list it in its spec.provides.volumes (what a list does not name, the cluster lacks), or"
        " ship it with the workload)"
    )
    cases: tuple[tuple[tuple[str, ...], str], ...] = ((("ml/models-worker-2",), ""), ((), lacks))
    for volumes, problem in cases:
        fleet = bursting_fleet(providing("worker-2", volumes=volumes), spec=spec, policy=ordering("worker-2"))
        (sheet,) = render_templates(decided("worker-2", fleet=fleet), fleet).values()
        assert sheet.problem == problem


def test_the_file_of_a_cluster_says_what_it_has() -> None:
    text = cluster("worker-2", "{provides: {schedulers: [volcano], queues: ['ml/*'], volumes: []}}")
    desired = assemble(CommitId(""), {"clusters/a.yaml": parse_file(text.encode())})
    assert desired.problems == ()
    assert desired.clusters[ClusterName("worker-2")].provides == {
        Category.SCHEDULERS: ("volcano",),
        Category.QUEUES: ("ml/*",),
        Category.VOLUMES: (),
    }


def test_every_category_is_a_field_of_provides() -> None:
    for category in Category:
        text = cluster("worker-2", f"{{provides: {{{category}: [a]}}}}")
        desired = assemble(CommitId(""), {"clusters/a.yaml": parse_file(text.encode())})
        assert desired.problems == ()
        assert desired.clusters[ClusterName("worker-2")].provides == {category: ("a",)}


def test_runtime_classes_are_seen_as_device_classes_are() -> None:
    spec = manifests(deployment({"runtimeClassName": "kata"}))
    fleet = bursting_fleet(
        cluster_of("worker-2"), cluster_of("worker-3"), spec=spec, policy=ordering("worker-2", "worker-3")
    )
    bare = replace(free("worker-2", 8), runtime_classes={})
    able = replace(free("worker-3", 8), runtime_classes={"kata": RuntimeClass()})
    made = plan(short(1), bare, able, wanted=fleet)
    assert placed(made) == ["worker-3"]
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert [one.message for one in change.refused] == ["has no RuntimeClass kata, which Deployment model needs"]
    assert explain(VLLM, inputs(short(1), able, wanted=fleet), made).conclusion[-1].startswith("worker-2 does not say")


QUEUED = manifests(deployment(metadata={"labels": {"kueue.x-k8s.io/queue-name": "team", "kai.scheduler/queue": "kai"}}))
"""It is in the LocalQueue ml/team and in a Queue of KAI, which is not observed."""


@pytest.mark.parametrize(
    ("declared", "local", "message", "doubtful"),
    [
        (None, None, "", "queue kai and queue ml/team"),
        (None, ("ml", "team"), "", "queue kai"),
        (None, ("other", "team"), "has no queue ml/team, which Deployment model needs", "queue kai"),
        (("kai", "ml/team"), ("other", "team"), "has no queue ml/team, which Deployment model needs", ""),
        (("kai",), ("ml", "team"), "", ""),
        (("ml/team",), None, "has no queue kai, which Deployment model needs", ""),
    ],
    ids=["unknown", "there", "absent", "absent against its file", "there against its file", "of KAI"],
)
def test_observed_local_queues_settle_which_a_cluster_has(
    declared: tuple[str, ...] | None, local: tuple[str, str] | None, message: str, doubtful: str
) -> None:
    there = cluster_of("worker-2") if declared is None else providing("worker-2", queues=declared)
    queues = None if local is None else KueueQueues(local={local: LocalQueue(cluster_queue="all")})
    seen = replace(free("worker-2", 8), queues=queues)
    needed = [each for each in prerequisites(QUEUED, WORKSPACE, NO_KINDS) if each.category is Category.QUEUES]
    refusal = refuse_lacking(there, needed, seen)
    assert ("" if refusal is None else refusal.message) == message
    if refusal is not None and "ml/team" in message:
        assert refusal.remedy == "create it there, or ship it with the workload"
    assert " and ".join(map(describe_prerequisite, undeclared(there, needed, seen))) == doubtful


CLAIMING = manifests(deployment(), obj("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu"))
"""Its claim is written in a version that Kubernetes serves since 1.34."""
BUT_IT = ", but the ResourceClaimTemplate is written in resource.k8s.io/v1"
UPGRADE = "upgrade the cluster to a Kubernetes that serves resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("declared", "observed", "message", "remedy"),
    [
        (None, None, "", ""),
        (None, {"apps/v1", "resource.k8s.io/v1"}, "", ""),
        (("apps/v1", "resource.k8s.io/*"), None, "", ""),
        (("apps/v1",), {"apps/v1", "resource.k8s.io/v1"}, "", ""),
        (
            None,
            {"apps/v1", "resource.k8s.io/v1beta1"},
            "serves resource.k8s.io/v1beta1, but the ResourceClaimTemplate is written in resource.k8s.io/v1",
            f"write it in resource.k8s.io/v1beta1, or {UPGRADE}",
        ),
        (
            None,
            {"apps/v1", "resource.k8s.io/v1beta9", "resource.k8s.io/v1beta10", "resource.k8s.io/v2alpha1"},
            f"serves resource.k8s.io/v2alpha1, resource.k8s.io/v1beta9, resource.k8s.io/v1beta10{BUT_IT}",
            f"write it in resource.k8s.io/v1beta10, or {UPGRADE}",
        ),
        (
            None,
            {"apps/v1", "resource.k8s.io/odd", "resource.k8s.io/v2", "resource.k8s.io/v2beta1"},
            f"serves resource.k8s.io/odd, resource.k8s.io/v2beta1, resource.k8s.io/v2{BUT_IT}",
            f"write it in resource.k8s.io/v2, or {UPGRADE}",
        ),
        (
            ("apps/v1", "resource.k8s.io/v1"),
            {"apps/v1", "resource.k8s.io/v1beta1"},
            "serves resource.k8s.io/v1beta1, but the ResourceClaimTemplate is written in resource.k8s.io/v1",
            f"write it in resource.k8s.io/v1beta1, or {UPGRADE}",
        ),
        (
            ("apps/v1",),
            None,
            "serves no version of resource.k8s.io, the API group of the ResourceClaimTemplate",
            UPGRADE,
        ),
        (
            ("apps/v1", "resource.k8s.io/v1beta2"),
            None,
            "serves resource.k8s.io/v1beta2, but the ResourceClaimTemplate is written in resource.k8s.io/v1",
            f"write it in resource.k8s.io/v1beta2, or {UPGRADE}",
        ),
    ],
    ids=[
        "unknown",
        "served",
        "declared",
        "served against its file",
        "older",
        "several",
        "newer",
        "against its file",
        "not declared",
        "declared older",
    ],
)
def test_a_cluster_gets_no_object_of_a_version_that_it_does_not_serve(
    declared: tuple[str, ...] | None, observed: set[str] | None, message: str, remedy: str
) -> None:
    there = cluster_of("worker-2") if declared is None else providing("worker-2", apiVersions=declared)
    fleet = bursting_fleet(there, spec=CLAIMING, policy=ordering("worker-2"))
    seen = replace(free("worker-2", 8), api_versions=observed)
    made = plan(short(1), seen, wanted=fleet)
    assert placed(made) == ([] if message else ["worker-2"])
    refused = [(one.reason, one.message, one.remedy) for held in made.suppressed for one in held.refusals]
    assert refused == ([(Reason.NEEDS_FIRST, message, remedy)] if message else [])
    conclusion = " ".join(explain(VLLM, inputs(short(1), seen, wanted=fleet), made).conclusion)
    assert ("API version" in conclusion, message in conclusion) == (False, True)


def test_a_group_that_an_api_server_lacks_is_told_and_keeps_nothing_away() -> None:
    fleet = bursting_fleet(cluster_of("worker-2"), spec=CLAIMING, policy=ordering("worker-2"))
    seen = replace(free("worker-2", 8), api_versions={"apps/v1"})
    made = plan(short(1), seen, wanted=fleet)
    assert placed(made) == ["worker-2"]
    conclusion = explain(VLLM, inputs(short(1), seen, wanted=fleet), made).conclusion
    told = f"worker-2 serves no version of resource.k8s.io, the API group of the ResourceClaimTemplate: {UPGRADE}."
    assert told in conclusion


def test_a_custom_kind_that_a_file_does_not_list_is_told_once() -> None:
    spec = manifests(obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"))
    needed = prerequisites(spec, WORKSPACE, NO_KINDS)
    refusal = refuse_lacking(providing("worker-2", apiVersions=("apps/v1",)), needed, None)
    assert refusal is not None
    assert refusal.message == "serves no version of leaderworkerset.x-k8s.io, the API group of the LeaderWorkerSet"
    assert refusal.remedy == "install there what serves it, or ship its CustomResourceDefinition with the workload"
    refusal = refuse_lacking(providing("worker-2", apiVersions=("apps/v1",), kinds=()), needed, None)
    assert refusal is not None
    assert refusal.message == (
        "has no kind leaderworkerset.x-k8s.io/LeaderWorkerSet, which LeaderWorkerSet model needs"
    )


def test_a_version_is_told_beside_what_else_is_lacking() -> None:
    needed = prerequisites(
        manifests(deployment({"runtimeClassName": "kata"}), obj("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu")),
        WORKSPACE,
        NO_KINDS,
    )
    there = providing("worker-2", runtimeClasses=(), apiVersions=("apps/v1", "resource.k8s.io/v1beta1"))
    refusal = refuse_lacking(there, needed, None)
    assert refusal is not None
    assert refusal.message == (
        "has no RuntimeClass kata, which Deployment model needs; serves resource.k8s.io/v1beta1, but"
        " the ResourceClaimTemplate is written in resource.k8s.io/v1"
    )
