"""A live object as another cluster takes it: what its own cluster has added is left out, what a person wrote stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.expressions.render import render
from reconciler.core.workloads.portable_object import portable
from reconciler.model.workload import DeploySpec, ManifestResource
from tests.builders.deploy_specs import context

POD: dict[str, Any] = {
    "containers": [{"name": "server", "image": "server:1", "terminationMessagePath": "/dev/termination-log"}],
    "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}],
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "serviceAccount": "runner",
    "serviceAccountName": "runner",
}


def deployment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "vllm",
            "namespace": "serving",
            "uid": "1",
            "resourceVersion": "2",
            "managedFields": [{}],
            "labels": {"app": "vllm", "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"deployment.kubernetes.io/revision": "3", "team": "ml"},
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "vllm"}},
            "template": {"metadata": {"creationTimestamp": None, "labels": {"app": "vllm"}}, "spec": POD},
            **spec,
        },
        "status": {"replicas": 2},
    }


def test_what_a_cluster_and_its_tools_add_is_left_out() -> None:
    assert portable(deployment(progressDeadlineSeconds=600, revisionHistoryLimit=5)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "vllm",
            "namespace": "serving",
            "labels": {"app": "vllm"},
            "annotations": {"team": "ml"},
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "vllm"}},
            "template": {
                "metadata": {"labels": {"app": "vllm"}},
                "spec": {
                    "containers": [{"name": "server", "image": "server:1"}],
                    "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}],
                    "serviceAccountName": "runner",
                },
            },
            "revisionHistoryLimit": 5,
        },
    }


def test_a_custom_kind_keeps_what_looks_like_a_default_of_kubernetes() -> None:
    manifest = {
        "apiVersion": "example.com/v1",
        "kind": "Server",
        "metadata": {"name": "a"},
        "spec": {"timeoutSeconds": 1, "suspend": False, "ref": {"apiVersion": "v1", "fieldPath": "a"}},
    }
    assert portable(manifest) == manifest


def test_labels_that_are_called_as_fields_are_stay() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"selector": {"protocol": "TCP"}, "ports": [{"port": 80, "protocol": "TCP"}]},
    }
    assert portable(manifest)["spec"] == {"selector": {"protocol": "TCP"}, "ports": [{"port": 80}]}


@pytest.mark.parametrize(("address", "kept"), [("10.0.0.7", {}), ("None", {"clusterIP": "None"})])
def test_an_address_is_left_out_and_a_headless_service_stays_headless(address: str, kept: dict[str, str]) -> None:
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": address}}
    assert portable(manifest)["spec"] == kept


def test_a_claim_is_bound_to_no_volume() -> None:
    spec = {"accessModes": ["ReadWriteMany"], "volumeName": "pvc-1", "volumeMode": "Block"}
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "models",
            "finalizers": ["kubernetes.io/pvc-protection"],
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": spec,
        "status": {"phase": "Bound"},
    }
    assert portable(manifest) == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"},
    }


def test_a_job_has_neither_the_selector_nor_the_labels_of_its_controller() -> None:
    labels = {"app": "train", "batch.kubernetes.io/controller-uid": "1", "controller-uid": "1", "job-name": "train"}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
            "suspend": False,
            "parallelism": 2,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [], "restartPolicy": "Never"}},
        },
    }
    assert portable(manifest) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": {"app": "train"}},
        "spec": {
            "parallelism": 2,
            "template": {
                "metadata": {"labels": {"app": "train"}},
                "spec": {"containers": [], "restartPolicy": "Never"},
            },
        },
    }


@pytest.mark.parametrize(
    ("version", "kind", "path"),
    [
        ("batch/v1", "Job", ("spec",)),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", ("spec",)),
        ("kubeflow.org/v1", "PyTorchJob", ("spec", "runPolicy")),
    ],
)
@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", "example.com/own"])
def test_what_multikueue_manages_at_home_is_managed_by_its_own_controller_elsewhere(
    version: str, kind: str, path: tuple[str, ...], manager: str
) -> None:
    field: dict[str, Any] = {"managedBy": manager, "suspend": True}
    spec = field if path == ("spec",) else {"runPolicy": field}
    kept = portable({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    for part in path:
        kept = kept[part]
    assert kept == ({"suspend": True} if "multikueue" in manager else field)


def test_braces_stay_text() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"t": "{{ user }}"}}
    assert portable(manifest)["data"] == {"t": "{% raw %}{{ user }}{% endraw %}"}


PARTS = (
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    " raw ",
    "{% raw %}",
    "{% endraw %}",
    "x",
    "\n",
    "\r\n",
    "'",
    '"',
    "\\",
    "é",
)
TEXTS = st.lists(st.sampled_from(PARTS)).map("".join)


@given(text=TEXTS)
def test_a_template_renders_any_text_of_a_live_object_as_it_was(text: str) -> None:
    spec = DeploySpec(
        manifests=(ManifestResource(name="a", manifest=portable({"kind": "ConfigMap", "data": {"t": text}})),)
    )
    rendered = render(spec, context(spec))
    assert rendered.manifests[0].manifest["data"]["t"] == text


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Service", {"selector": {"job-name": "train"}, "ports": [{"port": 80}]}),
        ("Service", {"selector": {"statefulset.kubernetes.io/pod-name": "web-0"}, "internalTrafficPolicy": "Local"}),
    ],
)
def test_selectors_stay_as_they_are(kind: str, spec: dict[str, Any]) -> None:
    assert portable({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec})["spec"] == spec


def test_labels_that_a_selector_names_stay_in_the_template() -> None:
    helm = {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "vllm-1.0"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"job-name": "t"}}, "topologyKey": "kubernetes.io/hostname"}
    ]}}  # fmt: skip # an object, field by field
    spec = {
        "selector": {"matchLabels": helm},
        "template": {
            "metadata": {"labels": {**helm, "pod-template-hash": "1"}},
            "spec": {"containers": [], "affinity": affinity, "nodeSelector": {"cattle.io/os": "linux"}},
        },
    }
    kept = portable({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})["spec"]
    assert kept["selector"] == {"matchLabels": helm}
    assert kept["template"]["metadata"] == {"labels": helm}
    assert kept["template"]["spec"] == spec["template"]["spec"]


@pytest.mark.parametrize(
    "spec",
    [
        {"template": {"spec": {"containers": [
            {"name": "a", "livenessProbe": {"httpGet": {"port": 80}, "terminationGracePeriodSeconds": 30}}
        ], "terminationGracePeriodSeconds": 600}}},
        {"backoffLimit": 6, "backoffLimitPerIndex": 1, "template": {"spec": {"containers": []}}},
        {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": []}}},
    ],
)  # fmt: skip # objects, field by field
def test_values_that_are_defaults_elsewhere_stay(spec: dict[str, Any]) -> None:
    assert portable({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec})["spec"] == spec


def test_claims_of_a_set_have_no_status() -> None:
    claim = {"metadata": {"name": "models"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = {"volumeClaimTemplates": [{**claim, "status": {"phase": "Pending"}}]}
    kept = portable({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "spec": spec})["spec"]
    assert kept == {"volumeClaimTemplates": [claim]}


def test_ports_of_nodes_are_left_out() -> None:
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}
    kept = portable({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec})["spec"]
    assert kept == {"type": "NodePort", "ports": [{"port": 80}]}
