"""Placements export their Services where, and as, their workspace shares a network."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from reconciler.core.engines.flux.bootstrap import flux
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.errors import Severity
from reconciler.model.cluster import NetworkApi, SharedNetworking
from reconciler.model.ids import ClusterName, CommitId, WorkspaceName
from reconciler.model.policy import Cluster, Desired, EngineName, Fleet
from reconciler.model.workload import DeploySpec, Json
from tests.builders.deploy_specs import WORKSPACE, chart, files, spec
from tests.builders.fleet_files import FLEET, cluster, load, policy, workspace
from tests.builders.platform_objects import deployment, obj

MULTICLUSTER = replace(WORKSPACE, shared_networking=SharedNetworking(api=NetworkApi.MULTICLUSTER))
KUBESLICE = replace(WORKSPACE, shared_networking=SharedNetworking(api=NetworkApi.KUBESLICE, slice="red"))
SERVER = deployment(replicas=1, ports=[{"name": "http", "containerPort": 8000}])


def service(target: Json = "http", **fields: Json) -> Json:
    ports = [{"name": "web", "port": 80, "targetPort": target}]
    return obj("v1", "Service", "router", {"selector": {"app": "server"}, "ports": ports, **fields})


def exported(
    *objects: Json, workspace: object = KUBESLICE, engine: EngineName = EngineName.MANIFESTS, **more: object
) -> list[Json]:
    deployed = spec(*((f"part-{number}", one) for number, one in enumerate(objects)))
    return found(deployed, workspace=workspace, engine=engine, **more)


def found(deployed: DeploySpec, *, workspace: object, engine: EngineName, **more: object) -> list[Json]:
    made = files(deployed, engine, workspace=workspace, **more)
    documents = (one for data in made.values() for one in yaml.safe_load_all(data))
    return [one for one in documents if one["kind"] == "ServiceExport"]


@pytest.mark.parametrize("engine", [*EngineName])
def test_every_engine_is_given_the_export_that_the_multicluster_api_takes(engine: EngineName) -> None:
    (made,) = exported(SERVER, service(), workspace=MULTICLUSTER, engine=engine)
    metadata = made.pop("metadata")
    assert made == {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport"}
    assert (metadata["name"], metadata["namespace"]) == ("router", "ml")
    assert metadata["labels"] == {"overspill.dev/placement": "vllm-7f3a"}, "it goes with its placement"


@pytest.mark.parametrize("engine", [*EngineName])
def test_every_engine_is_given_the_export_that_kubeslice_takes(engine: EngineName) -> None:
    (made,) = exported(SERVER, service(), engine=engine)
    assert made["apiVersion"] == "networking.kubeslice.io/v1beta1"
    assert made["spec"] == {
        "slice": "red",
        "selector": {"matchLabels": {"app": "server"}},
        "ports": [{"name": "web", "containerPort": 8000, "protocol": "TCP"}],
    }


def test_services_that_a_workload_wraps_are_exported_too() -> None:
    components = {"components": [{"template": SERVER}, {"template": service()}]}
    (made,) = exported(obj("workload.codeflare.dev/v1beta2", "AppWrapper", spec=components))
    (plain,) = exported(SERVER, service())
    assert made == plain


def test_without_a_shared_network_nothing_is_exported() -> None:
    assert exported(SERVER, service(), workspace=WORKSPACE) == []


def test_a_port_of_a_number_is_that_of_the_pods_and_one_without_a_target_its_own() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 80, "targetPort": "8080"}]
    (made,) = exported(service(9000))
    assert made["spec"]["ports"] == [{"name": "web", "containerPort": 9000, "protocol": "TCP"}]
    (made,) = exported(service(ports=ports))
    assert made["spec"]["ports"] == [
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 8080, "protocol": "TCP"},
    ]


def test_an_export_that_the_template_brings_stands_and_another_name_is_none() -> None:
    own = obj("multicluster.x-k8s.io/v1alpha1", "ServiceExport", "router")
    assert len(exported(SERVER, service(), own, workspace=MULTICLUSTER)) == 1
    assert exported(service(type="ExternalName"), workspace=MULTICLUSTER) == []


def test_services_of_a_chart_that_is_rendered_here_are_exported_too() -> None:
    objects = tuple({**one, "metadata": {"name": one["metadata"]["name"]}} for one in (SERVER, service()))
    (made,) = found(spec(chart()), workspace=MULTICLUSTER, engine=EngineName.MANIFESTS, charts={"vllm-app": objects})
    assert made["metadata"]["namespace"] == "vllm-demo"


def test_a_service_that_is_only_marked_is_nobody_of_ours() -> None:
    deployed = spec(("mark", "kubectl label service router team=red -n vllm-demo"))
    assert found(deployed, workspace=MULTICLUSTER, engine=EngineName.ARGOCD) == []


def test_the_cluster_has_to_know_the_kind_first() -> None:
    for shared, kind in ((MULTICLUSTER, "multicluster.x-k8s.io"), (KUBESLICE, "networking.kubeslice.io")):
        one, version = prerequisites(spec(("a", service())), shared, NO_KINDS)
        assert (one.name, one.by) == (f"{kind}/ServiceExport", "Service router")
        assert (version.name.partition("/")[0], version.by) == (kind, "ServiceExport")
    assert prerequisites(spec(("a", service())), WORKSPACE, NO_KINDS) == ()


def test_flux_may_make_exports_where_a_workspace_shares_a_network() -> None:
    def rights(shared: SharedNetworking | None) -> bool:
        space = replace(WORKSPACE, shared_networking=shared)
        clusters = {name: Cluster(name=name, engine=EngineName.FLUX) for name in space.clusters}
        fleet = Fleet(name="demo", repo_url="https://git.example.com/fleet.git")
        desired = Desired(commit=CommitId(""), fleet=fleet, clusters=clusters, workspaces={space.name: space})
        return "serviceexports" in flux(desired, ClusterName("worker-2"), output_branch="placements")

    assert rights(SharedNetworking(api=NetworkApi.MULTICLUSTER))
    assert not rights(None)


def warnings(sharing: str, *objects: Json, helm: bool = False) -> list[str]:
    parts: Json = [{"name": f"part-{number}", "manifest": one} for number, one in enumerate(objects)]
    steps = [{"name": part["name"], "type": "manifest"} for part in parts]
    charts = []
    if helm:
        steps.append({"name": "vllm", "type": "helm"})
        where = {"repoURL": "https://charts.example.com", "releaseName": "vllm", "releaseNamespace": "llm-demo"}
        charts.append(
            {"name": "vllm", "chart": "stack", "version": "0.1.7", "values": {"a": "{{ replicas }}"}, **where}
        )
    template = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {"name": "vllm", "annotations": {"overspill.dev/workload": "Deployment/llm-demo/model"}},
        "spec": {"workspaceName": "llm", "manifestResources": parts, "helmConfig": charts, "steps": steps},
    }
    says = cluster("worker-2", "{provides: {kinds: ['*']}}")
    text = json.dumps(template).replace('"ml"', '"llm-demo"')
    changed = {
        "workspaces/llm.yaml": workspace(more=sharing),
        "templates/vllm.yaml": text,
        "clusters/worker-2.yaml": says,
    }
    return [one.message for one in load({**FLEET, **changed, "policies/gpu.yaml": policy()}).problems]


SLICED = "sharedNetworking: {api: kubeslice}"
SCALED = deployment(ports=[{"name": "http", "containerPort": 8000}])


def test_check_tells_what_cannot_be_exported() -> None:
    assert warnings(SLICED, SCALED, service()) == []
    assert warnings(SLICED, SCALED, service("grpc")) == [
        "Service router is not exported: nothing here says which number its port grpc has in its pods"
    ]
    (endless,) = warnings(SLICED, SCALED, service("9" * 5000))
    assert endless.startswith("Service router is not exported: nothing here says which number its port 999")
    assert warnings(SLICED, SCALED, service(selector={})) == [
        "Service router is not exported: it has no selector, by which KubeSlice finds its pods"
    ]
    assert warnings(SLICED, SCALED, service(ports=[])) == [
        "Service router is not exported: it has no ports, which KubeSlice wants"
    ]
    assert warnings("sharedNetworking: {api: multicluster}", SCALED, service("grpc")) == []


def test_check_tells_of_charts_that_an_engine_installs() -> None:
    told = "the Services of chart vllm are not exported under argocd, which install it"
    assert warnings(SLICED, helm=True) == [told.replace("install it", "installs it")]
    assert warnings("", helm=True) == []


def test_a_workspace_names_its_slice_after_itself() -> None:
    def shared(said: str) -> SharedNetworking | None:
        return (
            load({**FLEET, "workspaces/llm.yaml": workspace(more=said)})
            .workspaces[WorkspaceName("llm")]
            .shared_networking
        )

    assert shared(SLICED) == SharedNetworking(api=NetworkApi.KUBESLICE, slice="llm")
    assert shared("sharedNetworking: {api: kubeslice, slice: red}") == KUBESLICE.shared_networking
    assert shared("sharedNetworking: {api: multicluster}") == MULTICLUSTER.shared_networking
    assert shared("") is None


def test_a_slice_of_an_api_without_slices_is_refused() -> None:
    desired = load(
        {**FLEET, "workspaces/llm.yaml": workspace(more="sharedNetworking: {api: multicluster, slice: red}")}
    )
    (wrong,) = (one for one in desired.problems if one.severity is Severity.ERROR)
    assert wrong.message == "has a slice, which multicluster knows nothing of"
    assert wrong.hint == "try api: kubeslice, or leave the slice out"
