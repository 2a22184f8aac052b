"""Reasons why a pod is not running: the scheduler's obstacles, and the waits of its containers."""

from __future__ import annotations

import re
import sys

from reconciler.model.workload import Json
from reconciler.text.wording import is_gpu

_INSUFFICIENT = re.compile(r"Insufficient ([A-Za-z0-9_./-]+[A-Za-z0-9_])")
_NO_ROOM = ("Too many pods", "cannot allocate all claims")
_STORAGE = re.compile(r"volume|PersistentVolume", re.IGNORECASE)
NOT_ADMITTED = "no node admits it"
_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_LONGEST = 80


def scheduling_shortage(message: str) -> str | None:
    """Return the resource that a pod lacks by the scheduler's message; None if nodes would not help.

    The message names each obstacle of some node ("0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) had
    untolerated taint ..."). One lack of capacity among them is enough: another node would resolve it. GPUs come first.
    A pod that waits for its volume is no demand: another cluster has the volume even less.
    """
    # 1. Some node lacks a resource.
    lacking = sorted(set(_INSUFFICIENT.findall(message)), key=lambda name: (not is_gpu(name), name))
    if lacking:
        return f"insufficient {', '.join(lacking)}"[:_LONGEST]
    # 2. Nodes have no room for another pod or claim.
    for words in _NO_ROOM:
        if words in message:
            return words[:1].lower() + words[1:]
    # 3. A missing volume is no demand; any other obstacle means that no node admits the pod.
    return None if _STORAGE.search(message) else NOT_ADMITTED


def describe_gates(gates: Json) -> str:
    """Describe the scheduling gates of a pod."""
    names = sorted(str(gate.get("name", "")) for gate in gates or ())
    return f"held by scheduling gate {', '.join(names)}"[:_LONGEST] if names else "held by a scheduling gate"


def describe_refusal(message: str) -> str:
    """Describe why a controller may not create pods; only a quota is distinguished."""
    return "pods refused: quota exceeded" if "exceeded quota" in message else "pods refused by the API server"


def describe_waiting(status: Json, held: str) -> str:
    """Describe the wait of a pod that is not ready, in the same words while it lasts; empty without trouble.

    `held` is the obstacle to its scheduling.
    """
    # 1. No node takes the pod.
    if held:
        return f"Unschedulable: {held}"[:_LONGEST]
    # 2. A container waits for another reason than its start.
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            reason = ((container.get("state") or {}).get("waiting") or {}).get("reason") or ""
            if reason and reason not in _STARTING:
                what = f"image {container.get('image')}" if "Image" in reason else f"container {container.get('name')}"
                return sys.intern(f"{reason}: {what}"[:_LONGEST])
    return ""
