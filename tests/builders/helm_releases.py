"""Helm releases as clusters hold them: the Secret of a revision, and what `helm get manifest` prints."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

GPU = {"containers": [{"name": "engine", "image": "engine:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
TEMPLATE = """\
kind: Deployment
spec:
  {{- if not .Values.autoscaling }}
  replicas: {{ .Values.engine.replicaCount }}
  {{- end }}
"""
VALUES: dict[str, Any] = {"engine": {"model": "llama", "chat": "{{ messages }}"}}
DEFAULTS: dict[str, Any] = {"engine": {"replicaCount": 2, "model": "tiny"}, "router": {"replicaCount": 1}}


def workload(name: str, replicas: int | None, pod: dict[str, Any], kind: str = "Deployment") -> dict[str, Any]:
    labels = {"app": name, "helm.sh/chart": "vllm-stack-0.1.7_build.2", "app.kubernetes.io/managed-by": "Helm"}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec}


def of_cluster(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": []}


CPU = {"containers": [{"name": "router", "image": "router:1"}], "serviceAccountName": "router"}
OBJECTS: dict[str, dict[str, Any]] = {
    "vllm-stack/templates/engine.yaml": workload("vllm-engine", 2, GPU),
    "vllm-stack/charts/router/templates/router.yaml": workload("vllm-router", 1, CPU),
    "vllm-stack/templates/role.yaml": of_cluster("ClusterRole", "vllm"),
    "vllm-stack/templates/claim.yaml": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    },
}


def manifest(objects: dict[str, dict[str, Any]] | None = None) -> str:
    parts = (objects or OBJECTS).items()
    return "".join(f"---\n# Source: {source}\n{json.dumps(made, indent=1)}\n" for source, made in parts)


def document(**parts: Any) -> dict[str, Any]:
    """Return what Helm keeps of a release."""
    chart = {
        "metadata": {"name": "vllm-stack", "version": "0.1.7", "home": "https://example.com/vllm"},
        "templates": [{"name": "templates/engine.yaml", "data": base64.b64encode(TEMPLATE.encode()).decode()}],
        "values": DEFAULTS,
        "files": [],
    }
    return {
        "name": "vllm",
        "namespace": "demo",
        "version": 3,
        "chart": chart,
        "config": VALUES,
        "manifest": manifest(),
        "hooks": [],
        **parts,
    }


def secret(content: Any, *, revision: int = 3, status: str = "deployed", namespace: str = "demo") -> dict[str, Any]:
    """Return the Secret of a revision of the release vllm; `content` may be bytes that are no release."""
    data = content if isinstance(content, bytes) else gzip.compress(json.dumps(content).encode())
    packed = base64.b64encode(base64.b64encode(data)).decode()
    labels = {"owner": "helm", "name": "vllm", "status": status, "version": str(revision)}
    return {
        "metadata": {"name": f"sh.helm.release.v1.vllm.v{revision}", "namespace": namespace, "labels": labels},
        "type": "helm.sh/release.v1",
        "data": {"release": packed},
    }
