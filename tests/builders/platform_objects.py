"""Short ways to say what a template deploys, and which clusters it is burst to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Cluster, Desired, Workspace
from reconciler.model.workload import DeploySpec, Json
from tests.builders.inputs import VLLM, cluster, desired
from tests.builders.requests import manifests

WORKSPACE = Workspace(
    name=WorkspaceName("llm"), primary=ClusterName("worker-1"), clusters=(ClusterName("worker-1"),), namespaces=("ml",)
)


def obj(api_version: str, kind: str, name: str = "model", spec: Json = None, **metadata: Json) -> Json:
    """Make an object in the namespace ml."""
    made = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "ml", **metadata}}
    return made if spec is None else {**made, "spec": spec}


def deployment(
    pod: Json = None, *, replicas: Json = "{{ replicas }}", metadata: Json = None, **container: Json
) -> Json:
    """Make a Deployment whose pods have these fields beside one container, and this metadata."""
    spec = {"containers": [{"name": "server", "image": "registry.example.com/server:1", **container}], **(pod or {})}
    template = {"metadata": {"labels": {"app": "server"}, **(metadata or {})}, "spec": spec}
    selector = {"matchLabels": {"app": "server"}}
    return obj("apps/v1", "Deployment", spec={"replicas": replicas, "selector": selector, "template": template})


def needed(*objects: Json) -> dict[str, list[str]]:
    """What objects that are deployed together need, by category, but for the API versions that they are written in."""
    found: dict[str, list[str]] = {}
    for one in prerequisites(manifests(*objects), WORKSPACE, NO_KINDS):
        if one.category is not Category.API_VERSIONS:
            found.setdefault(one.category, []).append(one.name)
    return found


def bursting_fleet(*clusters: Cluster, spec: DeploySpec, policy: object = None) -> Desired:
    """A fleet in which replicas of `spec` burst to these clusters; the primary is worker-1."""
    fleet = desired(policy, clusters=(cluster("worker-1"), *clusters))
    template = fleet.templates[VLLM]
    workspace = fleet.workspaces[VLLM.workspace]
    needs: tuple[Prerequisite, ...] = prerequisites(spec, workspace, NO_KINDS)
    return replace(fleet, templates={VLLM: replace(template, spec=spec, prerequisites=needs)})


def providing(name: str, **said: tuple[str, ...]) -> Cluster:
    provides: Mapping[Category, tuple[str, ...]] = {Category(field): names for field, names in said.items()}
    return cluster(name, provides=provides)
