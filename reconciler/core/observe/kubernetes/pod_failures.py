"""The wait of a pod of a placement that is not ready: for a node, or for one of its containers."""

from __future__ import annotations

import sys

from reconciler.core.observe.kubernetes.unscheduled import Unscheduled
from reconciler.model.workload import Json

_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_LONGEST = 80


_PODS = ("pods refused", "pods rejected")


def describe_refused(wait: Unscheduled) -> str:
    """Describe why pods of a placement may not be created, and the way out."""
    cause = wait.cause.removeprefix("pods ") if wait.cause.startswith(_PODS) else f"refused: {wait.cause}"
    return f"{cause}; {wait.way_out}" if wait.way_out else cause


def describe_waiting(status: Json, wait: Unscheduled | None) -> str:
    """Describe the wait of a pod that is not ready, in the same words while it lasts; empty without trouble.

    `wait` is the obstacle to its scheduling; of one that no room ends, the way out is told.
    """
    # 1. No node takes the pod.
    if wait is not None:
        out = f"; {wait.way_out}" if wait.way_out else ""
        return sys.intern(f"Unschedulable: {wait.cause[:_LONGEST] if wait.lacks_room else wait.cause}{out}")
    # 2. A container waits for another reason than its start.
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            reason = ((container.get("state") or {}).get("waiting") or {}).get("reason") or ""
            if reason and reason not in _STARTING:
                what = f"image {container.get('image')}" if "Image" in reason else f"container {container.get('name')}"
                return sys.intern(f"{reason}: {what}"[:_LONGEST])
    return ""
