"""A command before all else in the layout's template, as a Job that has to be done before anything follows."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster

NAMESPACE = "kubeslice-system"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_IMAGE = f"registry.invalid/kubectl@sha256:{'0' * 64}"
EDITS = {
    "workspaces/llm.yaml": {"  namespaces:\n": f"  commandJobs:\n    image: {_IMAGE}\n  namespaces:\n"},
    "templates/vllm.yaml": {
        "  deletionPolicy: Delete\n": "  deletionPolicy: Delete\n  serviceAccount: vllm-sa\n  cmdExec:\n"
        "  - name: prepare\n    cmd: kubectl get pods -n vllm-demo\n",
        "  steps:\n": "  steps:\n  - name: prepare\n    type: command\n",
    },
}
"""For `Fleet.describe`."""


def prepare(cluster: Cluster) -> None:
    """Make what placements never bring: the namespace of commands, and their account."""
    cluster.ensure_namespace(NAMESPACE)
    cluster.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "vllm-sa"}})


def held(cluster: Cluster) -> AbstractContextManager[None]:
    """Let nothing run, and so no command end: the kubelets stand still meanwhile."""
    return cluster.paused("kwok")


def done(job: Json) -> bool:
    """Tell whether a command has succeeded."""
    succeeded: int = job.get("status", {}).get("succeeded", 0)
    return succeeded > 0
