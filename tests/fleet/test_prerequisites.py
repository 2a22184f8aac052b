"""What a cluster must have first is what the objects refer to and do not bring along."""

from __future__ import annotations

import pytest

from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.cluster import Category
from reconciler.model.workload import Command, DeploySpec, Json, Step, StepType
from tests.builders.deploy_specs import chart, spec
from tests.builders.platform_objects import WORKSPACE, deployment, needed, obj
from tests.builders.requests import manifests
from tests.builders.workload_kinds import lws

POD: tuple[tuple[Json, dict[str, list[str]]], ...] = (
    ({"schedulerName": "volcano"}, {"schedulers": ["volcano"]}),
    ({"priorityClassName": "urgent"}, {"priorityClasses": ["urgent"]}),
    ({"runtimeClassName": "nvidia"}, {"runtimeClasses": ["nvidia"]}),
    ({"serviceAccountName": "reader"}, {"serviceAccounts": ["ml/reader"]}),
    ({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "models"}}]}, {"volumes": ["ml/models"]}),
    ({"volumes": [{"name": "a", "configMap": {"name": "settings"}}]}, {"configMaps": ["ml/settings"]}),
    ({"volumes": [{"name": "a", "secret": {"secretName": "login"}}]}, {"secrets": ["ml/login"]}),
    (
        {
            "volumes": [
                {"name": "a", "projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}}
            ]
        },
        {"configMaps": ["ml/a"], "secrets": ["ml/b"]},
    ),
    (
        {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}]},
        {"storageClasses": ["fast"]},
    ),
    ({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "one-gpu"}]}, {"claimTemplates": ["ml/one-gpu"]}),
    ({"resourceClaims": [{"name": "a", "resourceClaimName": "shared"}]}, {"claims": ["ml/shared"]}),
)
CONTAINER: tuple[tuple[Json, dict[str, list[str]]], ...] = (
    (
        {"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]},
        {"configMaps": ["ml/a"], "secrets": ["ml/b"]},
    ),
    ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "b", "key": "c"}}}]}, {"secrets": ["ml/b"]}),
    ({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "c"}}}]}, {"configMaps": ["ml/b"]}),
    ({"imagePullPolicy": "Never"}, {"images": ["registry.example.com/server:1"]}),
    (
        {"resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "1"}}},
        {"deviceClasses": ["gpu.nvidia.com"]},
    ),
)


@pytest.mark.parametrize(("pod", "expected"), POD, ids=lambda value: str(value)[:60])
def test_what_the_spec_of_a_pod_names_is_needed(pod: Json, expected: dict[str, list[str]]) -> None:
    assert needed(deployment(pod)) == expected


@pytest.mark.parametrize(("container", "expected"), CONTAINER, ids=lambda value: str(value)[:60])
def test_what_a_container_names_is_needed(container: Json, expected: dict[str, list[str]]) -> None:
    assert needed(deployment(**container)) == expected


def test_what_every_cluster_has_is_not_needed() -> None:
    pod = {
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "priorityClassName": "system-node-critical",
    }
    assert needed(deployment(pod)) == {}


def test_what_a_pod_starts_without_is_not_needed() -> None:
    pod = {
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [{"name": "a", "configMap": {"name": "a", "optional": True}}, {"name": "b", "emptyDir": {}}],
    }
    assert needed(deployment(pod, envFrom=[{"secretRef": {"name": "a", "optional": True}}])) == {}


@pytest.mark.parametrize(
    ("made", "pod"),
    [
        (
            obj("v1", "PersistentVolumeClaim"),
            {"volumes": [{"name": "model", "persistentVolumeClaim": {"claimName": "model"}}]},
        ),
        (obj("v1", "ConfigMap"), {"volumes": [{"configMap": {"name": "model"}}]}),
        (obj("v1", "ServiceAccount"), {"serviceAccountName": "model"}),
        (obj("scheduling.k8s.io/v1", "PriorityClass"), {"priorityClassName": "model"}),
        (obj("node.k8s.io/v1", "RuntimeClass"), {"runtimeClassName": "model"}),
        (
            obj("resource.k8s.io/v1", "ResourceClaimTemplate"),
            {"resourceClaims": [{"resourceClaimTemplateName": "model"}]},
        ),
    ],
    ids=lambda value: value.get("kind", ""),
)
def test_what_the_template_brings_is_not_needed(made: Json, pod: Json) -> None:
    assert len(needed(deployment(pod))) == 1
    assert needed(made, deployment(pod)) == {}


def test_what_a_template_wraps_is_brought_by_it_and_its_kind_is_needed() -> None:
    pod = {"volumes": [{"configMap": {"name": "model"}}]}
    inner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "model"}}
    job = obj("kubeflow.org/v1", "PyTorchJob", spec={})
    components = [{"template": deployment(pod)}, {"template": inner}, {"template": job}]
    wrapper = obj("workload.codeflare.dev/v1beta2", "AppWrapper", spec={"components": components})
    assert needed(wrapper) == {"kinds": ["kubeflow.org/PyTorchJob", "workload.codeflare.dev/AppWrapper"]}


@pytest.mark.parametrize(
    "made",
    [
        obj("external-secrets.io/v1", "ExternalSecret", "other", {"target": {"name": "login"}}),
        obj("external-secrets.io/v1", "ExternalSecret", "login", {"refreshInterval": "1h"}),
        obj("bitnami.com/v1alpha1", "SealedSecret", "login", {"encryptedData": {}}),
        obj("cert-manager.io/v1", "Certificate", "other", {"secretName": "login"}),
    ],
    ids=lambda value: f"{value['kind']} {value['metadata']['name']}",
)
def test_a_secret_that_another_object_makes_is_not_needed(made: Json) -> None:
    pod = {"volumes": [{"secret": {"secretName": "login"}}]}
    assert needed(made, deployment(pod)).get("secrets") is None


def test_what_is_brought_to_another_namespace_is_needed_all_the_same() -> None:
    pod = {"volumes": [{"configMap": {"name": "model"}}]}
    made = obj("v1", "ConfigMap", namespace="other")
    assert needed(made, deployment(pod)) == {"configMaps": ["ml/model"]}


def test_what_a_command_makes_is_not_needed_and_what_no_step_applies_is() -> None:
    made = manifests_with_command("kubectl create configmap model --from-literal=a=b -n ml")
    assert [one.name for one in prerequisites(made, WORKSPACE, NO_KINDS)] == ["apps/v1"]
    unused = DeploySpec(manifests=made.manifests, commands=made.commands, steps=made.steps[1:])
    assert [one.name for one in prerequisites(unused, WORKSPACE, NO_KINDS)] == ["apps/v1", "ml/model"]


def manifests_with_command(line: str) -> DeploySpec:
    made = spec(("first", line), ("server", deployment({"volumes": [{"configMap": {"name": "model"}}]})))
    assert made.steps[0] == Step(name="first", type=StepType.COMMAND)
    assert made.commands == (Command(name="first", cmd=line),)
    return made


def test_a_kind_that_kubernetes_does_not_serve_has_to_be_installed() -> None:
    assert needed(lws()) == {"kinds": ["leaderworkerset.x-k8s.io/LeaderWorkerSet"]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io"},
        "spec": {"group": "leaderworkerset.x-k8s.io", "names": {"kind": "LeaderWorkerSet"}},
    }
    assert needed(definition, lws()) == {}


def api_versions(made: DeploySpec) -> dict[str, str]:
    needs = prerequisites(made, WORKSPACE, NO_KINDS)
    return {one.name: one.by for one in needs if one.category is Category.API_VERSIONS}


def test_the_version_that_each_object_is_written_in_is_needed() -> None:
    claim = obj("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu")
    components = [{"template": deployment()}, {"template": claim}]
    wrapper = obj("workload.codeflare.dev/v1beta2", "AppWrapper", spec={"components": components})
    service, written = obj("v1", "Service"), obj("{{ cluster.labels.dra }}", "ResourceClaim", "any")
    assert api_versions(manifests(wrapper, service, written)) == {
        "apps/v1": "Deployment",
        "resource.k8s.io/v1": "ResourceClaimTemplate",
        "workload.codeflare.dev/v1beta2": "AppWrapper",
    }


def test_a_version_that_the_template_itself_defines_is_not_needed() -> None:
    group, names = "leaderworkerset.x-k8s.io", {"kind": "LeaderWorkerSet"}
    versions = [{"name": "v1", "served": True}, {"name": "v1alpha1", "served": False}]
    spec = {"group": group, "names": names, "versions": versions}
    definition = obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"leaderworkersets.{group}", spec)
    assert api_versions(manifests(definition, lws())) == {"apiextensions.k8s.io/v1": "CustomResourceDefinition"}
    older = {**lws(), "apiVersion": f"{group}/v1alpha1"}
    assert f"{group}/v1alpha1" in api_versions(manifests(definition, older))


def test_what_charts_bring_is_unknown_but_for_the_kinds_of_kubernetes() -> None:
    assert [*api_versions(spec(("a", lws()), ("b", deployment())))] == ["apps/v1", "leaderworkerset.x-k8s.io/v1"]
    assert [*api_versions(spec(chart(), ("a", lws()), ("b", deployment())))] == ["apps/v1"]


def test_the_claims_of_a_set_are_its_own_and_need_their_storage_class() -> None:
    claims = [{"metadata": {"name": "cache"}, "spec": {"storageClassName": "fast"}}]
    made = obj(
        "apps/v1", "StatefulSet", spec={"volumeClaimTemplates": claims, "template": {"spec": {"containers": []}}}
    )
    assert needed(made) == {"storageClasses": ["fast"]}


def test_a_model_that_lies_on_a_volume_needs_the_volume() -> None:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "pvc://models/llama", "runtime": "triton"}
    made = obj("serving.kserve.io/v1beta1", "InferenceService", spec={"predictor": {"model": model}})
    assert needed(made) == {
        "kinds": ["serving.kserve.io/InferenceService"],
        "runtimes": ["triton"],
        "volumes": ["ml/models"],
    }


def test_pods_of_kinds_of_which_nothing_is_known_are_looked_into() -> None:
    pod = {"schedulerName": "volcano", "containers": []}
    job = obj("keda.sh/v1alpha1", "ScaledJob", spec={"jobTargetRef": {"template": {"spec": pod}}})
    assert needed(job) == {"kinds": ["keda.sh/ScaledJob"], "schedulers": ["volcano"]}


def test_the_server_of_a_predictor_is_a_container_as_well() -> None:
    server = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "login", "key": "a"}}}]}
    made = obj("serving.kserve.io/v1beta1", "InferenceService", spec={"predictor": {"triton": server}})
    assert needed(made)["secrets"] == ["ml/login"]


def test_an_object_without_a_namespace_needs_what_is_where_it_goes() -> None:
    made = deployment({"volumes": [{"secret": {"secretName": "login"}}]})
    del made["metadata"]["namespace"]
    assert needed(made) == {"secrets": ["ml/login"]}


def test_of_a_chart_nothing_is_known() -> None:
    assert prerequisites(spec(chart(values={"schedulerName": "volcano"})), WORKSPACE, NO_KINDS) == ()


def test_each_thing_is_needed_once_by_the_first_that_refers_to_it() -> None:
    pod = {"serviceAccountName": "reader"}
    version, one = prerequisites(spec(("a", deployment(pod)), ("b", deployment(pod))), WORKSPACE, NO_KINDS)
    assert (one.name, one.by) == ("ml/reader", "Deployment model")
    assert (version.name, version.by) == ("apps/v1", "Deployment")


@pytest.mark.parametrize("junk", [None, 3, "text", [], {}, [3], {"a": 3}, ["a"]], ids=repr)
def test_what_is_of_the_wrong_type_is_passed_over(junk: Json) -> None:
    pods = ("volumes", "resourceClaims", "serviceAccountName", "schedulerName", "initContainers")
    for field in pods:
        needed(deployment({field: junk}))
    for field in ("env", "envFrom", "resources", "imagePullPolicy"):
        needed(deployment(**{field: junk}))
    for field in ("labels", "annotations"):
        needed(deployment(metadata={field: junk}))
    needed({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a"}, "spec": junk})
