"""Short ways to say a spec, a placement and what an engine makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from reconciler.core.engines import Deployment, engine, target_namespace
from reconciler.core.expressions.render import Context, render
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster, CommandJobs, EngineName, Workspace
from reconciler.model.units import Resources
from reconciler.model.workload import (
    Command,
    DeploySpec,
    HelmConfig,
    ManifestResource,
    Step,
    StepType,
    WorkloadTemplate,
)

NOW = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
WORKLOAD = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
IMAGE = "registry.example.com/tools/kubectl@sha256:" + "0" * 64
JOBS = CommandJobs(image=IMAGE)

WORKSPACE = Workspace(
    name=WorkspaceName("llm"),
    primary=ClusterName("worker-1"),
    clusters=(ClusterName("worker-1"), ClusterName("worker-2")),
    namespaces=("vllm-demo", "tools"),
)
CLUSTER = Cluster(name=ClusterName("worker-2"), labels={"zone": "eu-1", "nvidia.com/gpu.product": "H100"})
PLACEMENT = Placement(
    name=PlacementName("vllm-7f3a"),
    cluster=CLUSTER.name,
    workload=WORKLOAD,
    replicas=3,
    created_at=NOW,
    changed_at=NOW,
    expires_at=NOW + timedelta(minutes=10),
    engine=EngineName.ARGOCD,
    policy="default",
    deletion_policy=DeploySpec().deletion_policy,
    source_commit=CommitId("5" * 40),
    namespace="kubeslice-avesha",
    target_namespace="vllm-demo",
    shape=ReplicaShape(requests=Resources()),
    digest="sha256-" + "1" * 64,
)

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "vllm-demo", "labels": {"app": "web"}},
    "spec": {
        "replicas": "{{ replicas }}",
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
        },
    },
}


def chart(name: str = "vllm-app", **changes: Any) -> HelmConfig:
    config = HelmConfig(
        name=name,
        chart="vllm/vllm-stack",
        repo_name="vllm",
        repo_url="https://charts.example.com",
        version="0.1.7",
        release_name="vllm",
        release_namespace="vllm-demo",
        values={"replicaCount": 1},
    )
    return replace(config, **changes)


def spec(*parts: HelmConfig | tuple[str, Mapping[str, Any] | str], **more: Any) -> DeploySpec:
    """A spec whose steps are its parts: charts, (name, manifest) and (name, command line)."""
    helm = tuple({part.name: part for part in parts if isinstance(part, HelmConfig)}.values())
    manifests, commands, steps = [], [], []
    for part in parts:
        if isinstance(part, HelmConfig):
            steps.append(Step(name=part.name, type=StepType.HELM))
        elif isinstance(part[1], str):
            commands.append(Command(name=part[0], cmd=part[1]))
            steps.append(Step(name=part[0], type=StepType.COMMAND))
        else:
            manifests.append(ManifestResource(name=part[0], manifest=part[1]))
            steps.append(Step(name=part[0], type=StepType.MANIFEST))
    return DeploySpec(helm=helm, manifests=tuple(manifests), commands=tuple(commands), steps=tuple(steps), **more)


def context(deployed: DeploySpec, *, replicas: int = 3, cluster: Cluster = CLUSTER) -> Context:
    template = WorkloadTemplate(
        name=WORKLOAD.name,
        workspace=WORKLOAD.workspace,
        namespace="kubeslice-avesha",
        spec=deployed,
        ref=None,
        path="templates/vllm.yaml",
        line=4,
    )
    return Context(replicas=replicas, cluster=cluster, placement=PLACEMENT, workspace=WORKSPACE, template=template)


def rendered(value: Any, **changes: Any) -> Any:
    """What a value of a chart's values becomes."""
    deployed = spec(chart(values={"it": value}))
    return render(deployed, context(deployed, **changes)).helm[0].values["it"]


def files(
    deployed: DeploySpec,
    name: EngineName = EngineName.ARGOCD,
    *,
    workspace: Workspace = WORKSPACE,
    charts: Mapping[str, tuple[Any, ...]] | None = None,
    placement: Placement = PLACEMENT,
    schemas: ObjectSchemas = NO_SCHEMAS,
) -> dict[str, bytes]:
    """What an engine writes for a spec, the marker included, by path below the placement's directory."""
    chosen = engine(name)
    placement = replace(placement, engine=name, target_namespace=target_namespace(deployed, workspace))
    deployment = Deployment(
        placement=placement, spec=deployed, workspace=workspace, charts=charts or {}, schemas=schemas
    )
    written = {**chosen.files(deployment), chosen.marker_path(placement): chosen.marker(deployment)}
    return {path.removeprefix(f"{placement.name}/"): data for path, data in written.items()}


def objects(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """The same as values, by file name below ``manifests/``, as a YAML reader that knows nothing of ours reads them."""
    return {
        path.removeprefix("manifests/"): yaml.safe_load(data)
        for path, data in sorted(files(*args, **kwargs).items())
        if path.startswith("manifests/")
    }
