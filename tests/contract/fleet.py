"""The fleet repository that calls are tried on: the workspace of EGS's samples, with room in two clusters."""

from __future__ import annotations

import json
from datetime import datetime

from reconciler.core.times import format_time

_CLUSTERS = ("worker-1", "worker-2")

FILES = {
    "fleet.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: egs}\nspec: {engine: argocd}\n",
    "clusters.yaml": "---\n".join(
        f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{}}\n"
        for name in _CLUSTERS
    ),
    "workspace.yaml": """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {name: abc}
spec:
  primaryCluster: worker-1
  clusters: [worker-1, worker-2]
  namespaces: [bookinfo]
  allowUnpinnedCharts: true
""",
    "template.yaml": """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {name: vllm, namespace: kubeslice-egs}
spec:
  workspaceName: abc
  burstDuration: 10m
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: vllm, namespace: bookinfo}
        spec:
          replicas: "{{ replicas }}"
          selector: {matchLabels: {app: vllm}}
          template:
            metadata: {labels: {app: vllm}}
            spec: {containers: [{name: server, image: registry.example.com/vllm:1.0}]}
  steps: [{name: server, type: manifest}]
""",
}


def observations(now: datetime) -> dict[str, str]:
    """Write what is seen of each cluster: sixteen nodes of eight free GPUs."""
    return {
        f"{name}.json": json.dumps(
            {
                "apiVersion": "overspill.dev/v1alpha1",
                "kind": "Observation",
                "cluster": name,
                "observedAt": format_time(now),
                "pools": [
                    {
                        "name": "gpu",
                        "allocatable": {"cpu": "128", "memory": "1024Gi", "nvidia.com/gpu": "8"},
                        "nodes": [{"name": f"{name}-{number}"} for number in range(16)],
                    }
                ],
            }
        )
        for name in _CLUSTERS
    }
