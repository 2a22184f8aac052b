"""Why a pod is not where it should be: what the scheduler holds against it, and what its containers wait for."""

from __future__ import annotations

import re
import sys

from reconciler.model.workload import Json
from reconciler.text.wording import is_gpu

_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]+\w)")
_NO_ROOM = ("Too many pods", "cannot allocate all claims")
_STORAGE = re.compile(r"volume|PersistentVolume", re.IGNORECASE)
NOT_ADMITTED = "no node admits it"
_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_LONGEST = 80


def scheduling_shortage(message: str) -> str | None:
    """Say what a pod lacks by the scheduler's message; None when it lacks nothing that nodes could give.

    The message names each thing that some node failed on ("0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3
    node(s) had untolerated taint ..."). One lack of room among them is enough: a node more would mend it. GPUs come
    first. A pod that waits for its volume is no demand: another cluster has the volume even less.
    """
    lacking = sorted(set(_INSUFFICIENT.findall(message)), key=lambda name: (not is_gpu(name), name))
    if lacking:
        return f"insufficient {', '.join(lacking)}"[:_LONGEST]
    for words in _NO_ROOM:
        if words in message:
            return words[:1].lower() + words[1:]
    return None if _STORAGE.search(message) else NOT_ADMITTED


def describe_gates(gates: Json) -> str:
    """Say which gates keep a pod from being scheduled at all."""
    names = sorted(str(gate.get("name", "")) for gate in gates or ())
    return f"held by scheduling gate {', '.join(names)}"[:_LONGEST] if names else "held by a scheduling gate"


def describe_refusal(message: str) -> str:
    """Say why a controller may not create pods; a quota is all that is worth telling apart."""
    return "pods refused: quota exceeded" if "exceeded quota" in message else "pods refused by the API server"


def describe_trouble(status: Json, held: str) -> str:
    """Say what a pod that is not ready waits for, the same words for as long as it is the same; empty for nothing odd.

    `held` is what keeps it off every node.
    """
    if held:
        return f"Unschedulable: {held}"[:_LONGEST]
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            reason = ((container.get("state") or {}).get("waiting") or {}).get("reason") or ""
            if reason and reason not in _STARTING:
                what = f"image {container.get('image')}" if "Image" in reason else f"container {container.get('name')}"
                return sys.intern(f"{reason}: {what}"[:_LONGEST])
    return ""
