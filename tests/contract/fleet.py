"""The fleet repository that calls are tried on: the workspace of EGS's samples, with room in two clusters."""

from __future__ import annotations

import json
from datetime import datetime

from reconciler.text.timestamps import format_time
from tests.builders.daemon import ABC_FILE
from tests.builders.passes import SOURCE_FILES

_CLUSTERS = ("worker-1", "worker-2")

FILES = {
    "fleet.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: egs}\nspec: {engine: argocd}\n",
    "clusters.yaml": "---\n".join(
        f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{}}\n"
        for name in _CLUSTERS
    ),
    "workspaces.yaml": ABC_FILE,
    "template.yaml": SOURCE_FILES["template.yaml"]
    .replace("kubeslice-demo", "kubeslice-egs")
    .replace("workspaceName: llm", "workspaceName: abc")
    .replace("namespace: demo", "namespace: bookinfo"),
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
