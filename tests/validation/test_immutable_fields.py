"""Fields that nobody can change are those of Kubernetes, and of the fleet's CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.core.validation.custom_resources import custom_kind
from reconciler.core.validation.immutable_fields import immutable_changes, is_immutable
from reconciler.core.validation.immutable_rules import FIELDS
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from tests.builders.immutable_objects import CHANGES, FREE_CHANGES


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_change_of_an_immutable_field_is_found(change: Any) -> None:
    found = immutable_changes(change.before, change.after)
    assert [".".join(path) for path in found] == [change.field]


@pytest.mark.parametrize("change", FREE_CHANGES, ids=lambda change: change.id)
def test_change_of_any_other_field_is_none(change: Any) -> None:
    assert immutable_changes(change.before, change.after) == ()


def test_every_rule_of_kubernetes_itself_has_a_change_that_an_api_server_judges() -> None:
    own = {(rule.kind, ".".join(rule.path)) for rule in FIELDS if "kubernetes/kubernetes" in rule.source}
    told = {(change.kind, change.field) for change in CHANGES}
    assert own - told == set()
    assert all(rule.source.startswith("https://github.com/") for rule in FIELDS)


FREE = {
    "/ReplicationController": "ValidateReplicationControllerUpdate of Kubernetes validates the new version alone",
    "batch/CronJob": "ValidateCronJobUpdate of Kubernetes validates the new version alone",
    "disaggregatedset.x-k8s.io/DisaggregatedSet": "its webhook validates the new version alone",
    "apps.kruise.io/BroadcastJob": "the webhook of Kruise gets the new version alone (broadcastjob/validating)",
}
"""The kinds of workloads all of whose fields may change, each with the reason."""


def test_every_kind_of_workload_has_a_rule_or_a_reason_for_none() -> None:
    ruled = {rule.kind for rule in FIELDS}
    assert BUILT_IN.keys() - ruled == FREE.keys()


_TASK = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}}
_TASKS = {"minAvailable": 2, "queue": "a", "tasks": [{"name": "head", "replicas": 1}, _TASK]}
_GROUPS = {"leaderWorkerTemplate": {"size": 4, "subGroupPolicy": {"subGroupSize": 2}}}


@pytest.mark.parametrize(
    ("kind", "before", "after", "changes"),
    [
        ("batch.volcano.sh/v1alpha1/Job", _TASKS, {**_TASKS, "minAvailable": 3, "priorityClassName": "b"}, []),
        ("batch.volcano.sh/v1alpha1/Job", _TASKS, {**_TASKS, "queue": "b"}, ["spec"]),
        (
            "batch.volcano.sh/v1alpha1/Job",
            _TASKS,
            {**_TASKS, "tasks": [_TASKS["tasks"][0], {**_TASK, "replicas": 5, "minAvailable": 1}]},
            [],
        ),
        ("batch.volcano.sh/v1alpha1/Job", _TASKS, {**_TASKS, "tasks": [_TASK]}, ["spec.tasks"]),
        (
            "batch.volcano.sh/v1alpha1/Job",
            _TASKS,
            {**_TASKS, "tasks": [_TASKS["tasks"][0], {**_TASK, "maxRetry": 3}]},
            ["spec.tasks"],
        ),
        (
            "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet",
            _GROUPS,
            {"leaderWorkerTemplate": {"size": 4, "subGroupPolicy": {"subGroupSize": 4}}},
            ["spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"],
        ),
        (
            "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet",
            _GROUPS,
            {"leaderWorkerTemplate": {"size": 4}},
            ["spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"],
        ),
        (
            "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet",
            _GROUPS,
            {"leaderWorkerTemplate": {**_GROUPS["leaderWorkerTemplate"], "size": 8}},
            [],
        ),
        (
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            {"scope": "Namespaced", "names": {"kind": "A"}},
            {"scope": "Cluster", "names": {"kind": "B"}},
            ["spec.names.kind", "spec.scope"],
        ),
        (
            "jobset.x-k8s.io/v1alpha2/JobSet",
            {"failurePolicy": {"maxRestarts": 1}, "network": {"subdomain": "a"}, "ttlSecondsAfterFinished": 1},
            {"failurePolicy": {"maxRestarts": 2}, "network": {"subdomain": "b"}, "ttlSecondsAfterFinished": 2},
            ["spec.failurePolicy", "spec.network"],
        ),
        (
            "trainer.kubeflow.org/v1alpha1/TrainJob",
            {"runtimeRef": {"name": "a"}, "suspend": True},
            {"runtimeRef": {"name": "b"}},
            ["spec.runtimeRef"],
        ),
        ("apps.kruise.io/v1alpha1/CloneSet", {"selector": {"a": 1}}, {"selector": {"a": 2}}, ["spec"]),
        ("apps.kruise.io/v1alpha1/CloneSet", {"replicas": 1, "template": {}}, {"replicas": 2, "lifecycle": {}}, []),
        ("apps.kruise.io/v1beta1/StatefulSet", {"serviceName": "a"}, {"serviceName": "b"}, ["spec"]),
        ("apps.kruise.io/v1beta1/StatefulSet", {"reserveOrdinals": [1]}, {"reserveOrdinals": [2], "replicas": 2}, []),
        ("apps.kruise.io/v1alpha1/DaemonSet", {"selector": {"a": 1}}, {"selector": {"a": 2}}, ["spec"]),
        ("apps.kruise.io/v1alpha1/DaemonSet", {"template": {"a": 1}}, {"template": {"a": 2}}, []),
        (
            "apps.kruise.io/v1alpha1/AdvancedCronJob",
            {"schedule": "a", "template": {"jobTemplate": {"a": 1}}},
            {"schedule": "b", "template": {"jobTemplate": {"a": 2}}},
            ["spec.template"],
        ),
        ("argoproj.io/v1alpha1/Rollout", {"selector": {"a": 1}}, {"selector": {"a": 2}}, ["spec.selector"]),
        ("argoproj.io/v1alpha1/Rollout", {"strategy": {"canary": {}}}, {"strategy": {"blueGreen": {}}}, []),
        ("kueue.x-k8s.io/v1beta2/LocalQueue", {"clusterQueue": "a"}, {"clusterQueue": "b"}, ["spec.clusterQueue"]),
        ("snapshot.storage.k8s.io/v1/VolumeSnapshot", {"source": {"a": 1}}, {"source": {"a": 2}}, ["spec.source"]),
        ("pool.kubevirt.io/v1alpha1/VirtualMachinePool", {"selector": {"a": 1}}, {"selector": {}}, ["spec.selector"]),
        (
            "serving.kserve.io/v1alpha2/LLMInferenceService",
            {"parallelism": {"tensor": 4}, "replicas": 1},
            {"parallelism": {"tensor": 8}, "replicas": 2},
            ["spec.parallelism"],
        ),
        *(
            (
                f"kubeflow.org/v1/{kind}",
                {"runPolicy": {"managedBy": "a", "suspend": True}},
                {"runPolicy": {"managedBy": "b", "suspend": False}},
                ["spec.runPolicy.managedBy"],
            )
            for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
        ),
        (
            "workload.codeflare.dev/v1beta2/AppWrapper",
            {"components": [{"template": {"spec": {"replicas": 1}}, "podSets": [{"path": "a"}]}]},
            {"components": [{"template": {"spec": {"replicas": 2}}, "podSets": [{"path": "a"}]}]},
            ["spec.components"],
        ),
        (
            "workload.codeflare.dev/v1beta2/AppWrapper",
            {"managedBy": "a", "components": [{"podSets": [{"path": "a", "replicas": 1}]}]},
            {"managedBy": "b", "components": [{"podSets": [{"path": "a", "replicas": 2}]}]},
            ["spec.managedBy", "spec.components.*.podSets"],
        ),
        (
            "workload.codeflare.dev/v1beta2/AppWrapper",
            {"components": [{}]},
            {"components": [{}, {}]},
            ["spec.components"],
        ),
        (
            "workload.codeflare.dev/v1beta2/AppWrapper",
            {"suspend": True, "components": [{"template": {"a": 1}, "podSets": [{"path": "a"}]}]},
            {
                "suspend": False,
                "components": [
                    {"template": {"a": 1}, "annotations": {"b": "c"}, "podSets": [{"path": "a", "annotations": {}}]}
                ],
            },
            [],
        ),
        (
            "apps.kruise.io/v1alpha1/UnitedDeployment",
            {
                "replicas": 1,
                "template": {"statefulSetTemplate": {"spec": {"serviceName": "a", "template": {"a": 1}}}},
                "topology": {"subsets": [{"name": "a", "tolerations": [1]}, {"name": "b", "replicas": 1}]},
            },
            {
                "replicas": 2,
                "template": {"statefulSetTemplate": {"spec": {"serviceName": "b", "template": {"a": 2}}}},
                "topology": {"subsets": [{"name": "b", "replicas": 2}, {"name": "a", "tolerations": [2]}]},
            },
            ["spec.template.statefulSetTemplate.spec", "spec.topology.subsets.*.tolerations"],
        ),
        (
            "apps.kruise.io/v1alpha1/UnitedDeployment",
            {"topology": {"subsets": [{"name": "a", "nodeSelectorTerm": {"a": 1}}]}},
            {"topology": {"subsets": [{"name": "c"}, {"name": "a", "nodeSelectorTerm": {"a": 1}}]}},
            [],
        ),
        (
            "grove.io/v1alpha1/PodCliqueSet",
            {"replicas": 1, "template": {"cliques": [{"name": "a", "spec": {"replicas": 1, "minAvailable": 1}}]}},
            {"replicas": 2, "template": {"cliques": [{"name": "a", "spec": {"replicas": 2, "minAvailable": 2}}]}},
            ["spec.template.cliques.*.spec.minAvailable"],
        ),
        (
            "grove.io/v1alpha1/PodCliqueSet",
            {"template": {"cliqueStartupType": "a", "cliques": [{"name": "a", "spec": {"podSpec": {"a": 1}}}]}},
            {"template": {"cliqueStartupType": "b", "cliques": [{"name": "b", "spec": {"podSpec": {"a": 2}}}]}},
            ["spec.template.cliques", "spec.template.cliqueStartupType"],
        ),
        (
            "nvidia.com/v1alpha1/DynamoGraphDeployment",
            {"backendFramework": "a", "services": {"x": {"replicas": 1}, "y": {"multinode": {"nodeCount": 2}}}},
            {"backendFramework": "b", "services": {"y": {}, "x": {"replicas": 2}}},
            ["spec.backendFramework", "spec.services.*.multinode"],
        ),
        (
            "nvidia.com/v1alpha1/DynamoGraphDeployment",
            {"services": {"x": {"replicas": 1, "scalingAdapter": {"enabled": True}}, "y": {"replicas": 1}}},
            {"services": {"x": {"replicas": 2}, "y": {"replicas": 2, "scalingAdapter": {"enabled": False}}}},
            ["spec.services.*.replicas"],
        ),
        (
            "nvidia.com/v1beta1/DynamoGraphDeployment",
            {"components": [{"name": "x", "replicas": 1, "scalingAdapter": {}}]},
            {"components": [{"name": "x", "replicas": 2, "scalingAdapter": {}}, {"name": "y"}]},
            ["spec.components", "spec.components.*.replicas"],
        ),
        ("ray.io/v1/RayService", {"managedBy": "a"}, {"managedBy": "b"}, ["spec.managedBy"]),
        ("ray.io/v1/RayJob", {"managedBy": "a"}, {"managedBy": "b"}, ["spec.managedBy"]),
        ("ray.io/v1/RayJob", {"entrypoint": "a"}, {"entrypoint": "b"}, []),
        ("scheduling.volcano.sh/v1beta1/PodGroup", {"minMember": 1}, {"minMember": 2}, []),
    ],
)
def test_change_that_the_webhook_of_a_gpu_platform_refuses_is_found(
    kind: str, before: Any, after: Any, changes: list[str]
) -> None:
    version, _, name = kind.rpartition("/")
    old, new = ({"apiVersion": version, "kind": name, "metadata": {"name": "a"}, "spec": s} for s in (before, after))
    assert [".".join(path) for path in immutable_changes(old, new)] == changes


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("10Gi", "20Gi", []),
        ("1Ti", "1000Gi", ["spec.resources.requests.storage"]),
        ("1024Mi", "1Gi", []),
        ("10Gi", "junk", []),
        ("10Gi", None, []),
    ],
)
def test_claim_may_grow_and_never_shrink(before: str, after: str | None, changes: list[str]) -> None:
    old, new = (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "a"},
            "spec": {"resources": {"requests": {"storage": each}}},
        }
        for each in (before, after)
    )
    assert [".".join(path) for path in immutable_changes(old, new)] == changes


def test_load_balancer_class_may_come_with_the_type_of_the_service() -> None:
    def service(**spec: Any) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}

    balanced = service(type="LoadBalancer", loadBalancerClass="example.com/a")
    assert immutable_changes(service(type="ClusterIP"), balanced) == ()
    assert immutable_changes(balanced, service(type="ClusterIP")) == ()
    assert immutable_changes(balanced, service(type="LoadBalancer")) == (("spec", "loadBalancerClass"),)


def test_replicas_of_a_task_may_change_and_its_template_may_not() -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a"}, "spec": _TASKS}
    assert not is_immutable(job, ("spec", "minAvailable"))
    assert not is_immutable(job, ("spec", "tasks", "1", "replicas"))
    assert is_immutable(job, ("spec", "tasks", "1", "template", "spec"))
    assert is_immutable(job, ("spec", "queue"))


def test_deployment_mode_of_an_inference_service_stays_as_it_is_set() -> None:
    def service(**annotations: str) -> dict[str, Any]:
        metadata = {
            "name": "a",
            "annotations": {f"serving.kserve.io/{name}": text for name, text in annotations.items()},
        }
        return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": metadata}

    mode = ("metadata", "annotations", "serving.kserve.io/deploymentMode")
    assert immutable_changes(service(deploymentMode="Standard"), service(deploymentMode="Knative")) == (mode,)
    assert immutable_changes(service(deploymentMode="Standard"), service(storageInitializer="a")) == ()


def test_entry_of_a_list_is_immutable_by_its_name_and_by_what_stands_beside_it() -> None:
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "a"}}
    assert is_immutable(wrapper, ("spec", "components", "0", "template", "spec", "replicas"))
    assert is_immutable(wrapper, ("spec", "components", "0", "podSets", "1", "replicas"))
    assert not is_immutable(wrapper, ("spec", "components", "0", "annotations", "a"))
    graph = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "a"},
        "spec": {"services": {"x": {"scalingAdapter": {"enabled": True}}, "y": {}}},
    }
    assert is_immutable(graph, ("spec", "services", "x", "replicas"))
    assert not is_immutable(graph, ("spec", "services", "y", "replicas"))
    cliques = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "a"}}
    assert is_immutable(cliques, ("spec", "template", "cliques", "0", "name"))
    assert not is_immutable(cliques, ("spec", "template", "cliques", "0", "spec", "replicas"))


def _serving(kind: str, spec: Any, **labels: str) -> dict[str, Any]:
    version, _, name = kind.rpartition("/")
    metadata = {"name": "a", "labels": {f"kueue.x-k8s.io/{key}": text for key, text in labels.items()}}
    return {"apiVersion": version, "kind": name, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"replicas": 2}, {"replicas": 3}, ["spec.replicas"]),
        ({}, {"replicas": 2}, ["spec.replicas"]),
        ({}, {"replicas": 1}, []),
        ({"replicas": 2}, {"replicas": 0}, []),
        ({"replicas": 0}, {"replicas": 2}, []),
        (
            {"template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}},
            {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}},
            [],
        ),
        (
            {"template": {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": 1}}}]}}},
            {"template": {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": 2}}}]}}},
            ["spec.template.spec.containers.*.resources.requests"],
        ),
        (
            {"template": {"spec": {"containers": [{"name": "a"}]}}},
            {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"a": "b"}}}},
            ["spec.template.spec.containers", "spec.template.spec.nodeSelector"],
        ),
    ],
)
def test_queue_of_kueue_keeps_the_replicas_and_the_shape_of_a_stateful_set(
    before: Any, after: Any, changes: list[str]
) -> None:
    kind, queue = "apps/v1/StatefulSet", {"queue-name": "team"}
    old, new = (_serving(kind, spec, **queue) for spec in (before, after))
    assert [".".join(path) for path in immutable_changes(old, new)] == changes
    assert immutable_changes(_serving(kind, before), _serving(kind, after)) == (), "without a queue"


def test_queue_of_kueue_keeps_the_shape_of_the_groups_of_a_leader_worker_set_and_not_their_number() -> None:
    def groups(replicas: int, worker: Any, **more: Any) -> Any:
        return {"replicas": replicas, "leaderWorkerTemplate": {"workerTemplate": {"spec": worker}, **more}}

    kind, queue = "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet", {"queue-name": "team"}
    old = _serving(kind, groups(1, {"tolerations": []}), **queue)
    assert immutable_changes(old, _serving(kind, groups(3, {"tolerations": []}), **queue)) == ()
    new = _serving(kind, groups(1, {"tolerations": [{"operator": "Exists"}]}, leaderTemplate={"spec": {}}), **queue)
    assert immutable_changes(old, new) == (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate", "spec", "tolerations"),
    )


def test_labels_that_kueue_reads_of_a_queued_job_stay() -> None:
    def job(**labels: str) -> dict[str, Any]:
        return _serving("batch/v1/Job", {}, **{name.replace("_", "-"): text for name, text in labels.items()})

    def changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        return [path[-1].partition("/")[2] for path in immutable_changes(old, new)]

    team = {"queue_name": "team"}
    assert changes(job(**team), job(**team, max_exec_time_seconds="60")) == ["max-exec-time-seconds"]
    assert changes(job(**team, priority_class="low"), job(**team)) == ["priority-class"]
    assert changes(job(**team, priority_class="low"), job(**team, priority_class="high")) == []
    assert changes(job(), job(max_exec_time_seconds="60")) == []


def test_rule_with_an_old_value_lets_a_field_come_and_go() -> None:
    def job(**cluster: str) -> dict[str, Any]:
        spec = {"rayClusterSpec": {"gcsFaultToleranceOptions": cluster} if cluster else {}}
        return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "a"}, "spec": spec}

    field = ("spec", "rayClusterSpec", "gcsFaultToleranceOptions", "backend")
    assert immutable_changes(job(backend="redis"), job(backend="rocksdb")) == (field,)
    assert immutable_changes(job(), job(backend="redis")) == ()
    assert immutable_changes(job(backend="redis"), job()) == ()


def test_rule_of_a_definition_keeps_a_field_and_what_is_below_it() -> None:
    stays = {"x-kubernetes-validations": [{"rule": "self ==  oldSelf", "message": "immutable"}]}
    outline = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "model": {"type": "string", **stays},
                    "pool": {"type": "object", **stays, "additionalProperties": {"type": "string"}},
                    "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
                },
            }
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "acme.example",
            "names": {"kind": "Model"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": outline}}],
        },
    }
    kind, findings = custom_kind(definition)
    assert kind is not None
    assert not findings
    schemas = ObjectSchemas(custom={kind.name: kind})

    def model(**spec: Any) -> dict[str, Any]:
        return {"apiVersion": "acme.example/v1", "kind": "Model", "metadata": {"name": "m"}, "spec": spec}

    before = model(model="a", pool={"gpu": "h100"}, size=1)
    after = model(model="b", pool={"gpu": "a100"}, size=2)
    assert immutable_changes(before, after, schemas) == (("spec", "model"), ("spec", "pool"))
    assert immutable_changes(model(size=1), after, schemas) == (), "a field without an old value may be set"
    assert is_immutable(before, ("spec", "pool", "gpu"), schemas)
    assert not is_immutable(before, ("spec", "size"), schemas)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("self.model == oldSelf.model", {"model"}),
        ("oldSelf.model==self.model && self.size >= 1", {"model"}),
        ("(self.model == oldSelf.model) && (self.size == oldSelf.size)", {"model", "size"}),
        ("!has(oldSelf.model) || self.model == oldSelf.model", {"model"}),
        ("self.pool.gpu == oldSelf.pool.gpu", {"pool.gpu"}),
        ("self == oldSelf", {"", "model", "size", "pool.gpu"}),
        ("self.suspend || self.model == oldSelf.model", set()),
        ("self.a || (self.b && self.model == oldSelf.model)", set()),
        ("self.size > 1 ? self.model == oldSelf.model : true", set()),
        ("!(self.model == oldSelf.model)", set()),
        ("self.model == oldSelf.size", set()),
        ("self.model == self.model", set()),
        ("self.absent == oldSelf.absent", set()),
        ("==", set()),
        ("", set()),
    ],
)
def test_rule_of_an_object_keeps_the_fields_that_it_compares(rule: str, kept: set[str]) -> None:
    text = {"type": "string"}
    outline = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule}],
        "properties": {"model": text, "size": text, "pool": {"type": "object", "properties": {"gpu": text}}},
    }
    schema = {"type": "object", "properties": {"spec": outline}}
    kind, _ = custom_kind(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": "acme.example",
                "names": {"kind": "Model"},
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
            },
        }
    )
    assert kind is not None
    schemas = ObjectSchemas(custom={kind.name: kind})
    made = {"apiVersion": "acme.example/v1", "kind": "Model", "spec": {}}
    fields = ("", "model", "size", "pool.gpu")
    assert {field for field in fields if is_immutable(made, ("spec", *filter(None, field.split("."))), schemas)} == kept


def test_type_of_a_service_that_is_no_text_makes_no_balanced_service() -> None:
    """People write to the output branch, so that what stands may be of any type."""
    stands, after = (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "a"},
            "spec": {"type": ["LoadBalancer"], "loadBalancerClass": name},
        }
        for name in ("example.com/a", "example.com/b")
    )
    assert immutable_changes(stands, after) == ()
