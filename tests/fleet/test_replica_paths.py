"""A template that EGS reads as well says beside its content where the share of a placement is written."""

from __future__ import annotations

import json

import pytest

from reconciler.core.expressions import render
from reconciler.core.fleet.replica_paths import REPLICAS
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json
from tests.builders.deploy_specs import context
from tests.builders.fleet_files import errors, warnings, with_template

MODELS = [
    {"name": "small", "replicaCount": 1, "tag": "{{ cluster.name }}"},
    {"name": "large", "replicaCount": 2, "count": "{{ replicas }}"},
]


def template(where: str | None, kind: str = "Deployment", **spec: Json) -> Desired:
    """Load a template of a chart and an object, with the annotation if there is one."""
    pods = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [{"name": "server", "image": "server:1"}]}}
    required = {"selector": {"matchLabels": {"app": "vllm"}}, "template": pods} if kind == "Deployment" else {}
    return with_template(
        json.dumps(
            {
                "apiVersion": "gpr.kubeslice.io/v1alpha1",
                "kind": "WorkloadTemplate",
                "metadata": {"name": "vllm", "annotations": {} if where is None else {REPLICAS: where}},
                "spec": {
                    "workspaceName": "llm",
                    "burstDuration": "10m",
                    "helmConfig": [
                        {
                            "name": "engine",
                            "chart": "vllm-stack",
                            "repoURL": "https://charts.example.com",
                            "version": "0.1.7",
                            "releaseName": "vllm",
                            "releaseNamespace": "llm-demo",
                            "values": {"servingEngineSpec": {"modelSpec": MODELS}, "ports": {"http": 80}},
                        }
                    ],
                    "manifestResources": [
                        {
                            "name": "server",
                            "manifest": {
                                "apiVersion": {"Deployment": "apps/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}[kind],
                                "kind": kind,
                                "metadata": {"name": "vllm", "namespace": "llm-demo"},
                                "spec": {"replicas": 4, **required, **spec},
                            },
                        }
                    ],
                    "steps": [{"name": "engine", "type": "helm"}, {"name": "server", "type": "manifest"}],
                },
            }
        )
    )


def rendered(desired: Desired) -> DeploySpec:
    """Fill the template in for a placement of three replicas."""
    assert errors(desired) == []
    spec = desired.templates[WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))].spec
    return render.render(spec, context(spec))


def test_the_share_is_written_at_a_path_of_a_charts_values_and_nowhere_else() -> None:
    desired = template("engine:servingEngineSpec.modelSpec.0.replicaCount")
    small, large = rendered(desired).helm[0].values["servingEngineSpec"]["modelSpec"]
    assert (small["replicaCount"], large["replicaCount"]) == (3, 2)
    assert rendered(desired).manifests[0].manifest["spec"]["replicas"] == 4


@pytest.mark.parametrize("where", ["server", "server:spec.replicas"])
def test_the_share_is_written_in_an_object_where_its_kind_has_its_replicas(where: str) -> None:
    desired = template(where)
    assert rendered(desired).manifests[0].manifest["spec"]["replicas"] == 3
    assert warnings(desired) == []


def test_without_the_annotation_what_is_written_is_deployed() -> None:
    assert rendered(template(None)).manifests[0].manifest["spec"]["replicas"] == 4


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("servr", "'servr' is no chart or manifest of this template (try 'server')"),
        ("engine", "says nothing of where in engine (try 'engine:spec.replicas', or where it is there)"),
        ("engine:ports[0]", "'ports[0]' is no path (try 'ports.0')"),
        ("engine:servingEngineSpec.modelSpec.*.replicaCount", "'servingEngineSpec.modelSpec.*.replicaCount' leads to"),
        (
            "engine:servingEngineSpec.models.0.replicaCount",
            "nothing stands at servingEngineSpec.models.0.replicaCount in engine (try 'modelSpec')",
        ),
        (
            "engine:servingEngineSpec.modelSpec.2.replicaCount",
            "nothing stands at servingEngineSpec.modelSpec.2.replicaCount in engine (it has 2 items, counted from 0)",
        ),
        (
            "engine:servingEngineSpec.modelSpec.0000000009.replicaCount",
            "nothing stands at servingEngineSpec.modelSpec.0000000009.replicaCount in engine (it has 2 items",
        ),
        (
            "engine:servingEngineSpec.modelSpec.0.replicas",
            "nothing stands at servingEngineSpec.modelSpec.0.replicas in engine (write out there",
        ),
        ("engine:servingEngineSpec.modelSpec", "no number of replicas stands at servingEngineSpec.modelSpec"),
        ("engine:servingEngineSpec.modelSpec.1.count", "an expression stands at"),
    ],
    ids=[
        "a part",
        "no path",
        "brackets",
        "several",
        "a field",
        "an item",
        "ten digits",
        "the end",
        "a list",
        "an expression",
    ],
)
def test_a_way_that_leads_to_no_number_keeps_the_file_out_and_is_told(where: str, told: str) -> None:
    (found,) = errors(template(where))
    assert found.startswith(f'templates/vllm.yaml:1: metadata.annotations["{REPLICAS}"]: {told}')


def test_a_kind_with_its_replicas_in_several_places_has_to_be_told_where() -> None:
    (found,) = errors(template("server", kind="JobSet"))
    assert "says nothing of where in server" in found
