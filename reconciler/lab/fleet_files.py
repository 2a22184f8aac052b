"""The fleet repository of a scenario: clusters, a workspace, a template for each workload, and the policy on trial."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.schema import yaml
from reconciler.lab.scenario import PRIMARY, ClusterScenario, DemandScenario, Scenario
from reconciler.model.workload import Json

GPU = "nvidia.com/gpu"
MODEL_LABEL = "nvidia.com/gpu.product"
NAMESPACE = "demo"
WORKSPACE = "llm"
POLICY_PATH = "policies/policy.yaml"
LEFT_OUT = ("templates", "workspaces")
"""Fields of a policy's spec that are left out: it governs all workloads of the scenario."""


def fleet_files(scenario: Scenario, policy: bytes, *, burst_duration: str = "10m") -> Mapping[str, bytes]:
    """Write the files of the source branch, by path.

    `policy` is YAML with a BurstPolicy as its first document, which stands there but for the fields `LEFT_OUT`.
    """
    document = dict(yaml.parse(policy, POLICY_PATH)[0].value)
    spec = {name: value for name, value in (document.get("spec") or {}).items() if name not in LEFT_OUT}
    names = [PRIMARY, *(cluster.name for cluster in scenario.clusters)]
    documents: dict[str, Json] = {
        "fleet.yaml": _object("Fleet", "lab", {"engine": "manifests"}),
        f"clusters/{PRIMARY}.yaml": _object("Cluster", PRIMARY, {}),
        **{f"clusters/{cluster.name}.yaml": _cluster(cluster) for cluster in scenario.clusters},
        f"workspaces/{WORKSPACE}.yaml": _object(
            "Workspace", WORKSPACE, {"primaryCluster": PRIMARY, "clusters": names, "namespaces": [NAMESPACE]}
        ),
        POLICY_PATH: {**document, "spec": spec},
        **{f"templates/{demand.name}.yaml": _template(demand, burst_duration) for demand in scenario.demands},
    }
    return {path: yaml.emit(value).encode() for path, value in documents.items()}


def _object(kind: str, name: str, spec: Json, **metadata: Json) -> Json:
    return {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _cluster(cluster: ClusterScenario) -> Json:
    spec: dict[str, Json] = {}
    if cluster.price is not None:
        spec["pricePerGPUHour"] = cluster.price
    if cluster.declared is not None:
        spec["timeToReady"] = f"{cluster.declared}s"
    if cluster.added is not None:
        spec["autoscaling"] = [
            {
                "allocatable": {GPU: cluster.gpus},
                "labels": {MODEL_LABEL: cluster.model},
                "maxNodes": cluster.nodes + cluster.added.most,
                "delay": f"{cluster.added.delay}s",
            }
        ]
    labels = {"capacity": cluster.capacity_type, **({"region": cluster.region} if cluster.region else {})}
    return _object("Cluster", cluster.name, spec, labels=labels)


def _template(demand: DemandScenario, burst_duration: str) -> Json:
    pod: dict[str, Json] = {
        "containers": [
            {
                "name": "server",
                "image": "registry.example.com/server:1.0",
                "resources": {"limits": {GPU: demand.gpus}},
            }
        ]
    }
    if demand.model:
        pod["nodeSelector"] = {MODEL_LABEL: demand.model}
    labels = {"app": demand.name}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": demand.name, "namespace": NAMESPACE},
        "spec": {
            "replicas": "{{ replicas }}",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    return {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {"name": demand.name, "namespace": "lab"},
        "spec": {
            "workspaceName": WORKSPACE,
            "burstDuration": burst_duration,
            "manifestResources": [{"name": "server", "manifest": manifest}],
            "steps": [{"name": "server", "type": "manifest"}],
        },
    }
