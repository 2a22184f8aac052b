"""Pods of a test cluster as a kubelet sees them: whether one runs, and that one ends."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster


def runs(pod: Json) -> bool:
    """Return whether a pod runs and is not about to go."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def end_pod(cluster: Cluster, pod: Json, exit_code: int) -> None:
    """Say as a kubelet that the containers of a running pod have ended, unless somebody has written it since."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    phase, reason = ("Failed", "Error") if exit_code else ("Succeeded", "Completed")
    ended = {"terminated": {"exitCode": exit_code, "finishedAt": moment, "reason": reason}}
    statuses = [{**each, "ready": False, "state": ended} for each in pod["status"]["containerStatuses"]]
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
    read = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    try:
        cluster.call("PATCH", path, {"metadata": read, "status": {"phase": phase, "containerStatuses": statuses}})
    except Refused as refused:
        if refused.status not in (404, 409):  # it is gone, or was written to: it is looked at once more
            raise


def condition(pod: Json, name: str) -> Json:
    """Return a condition of a pod; empty while it has none of this type."""
    conditions = pod["status"].get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})
