"""HorizontalPodAutoscalers that would scale further than they may."""

from __future__ import annotations

from reconciler.core.kubernetes.asks import AskRecord
from reconciler.core.kubernetes.pods import moment
from reconciler.core.kubernetes.resources import Owner
from reconciler.model.capacity import Ask
from reconciler.model.workload import Json


def read_autoscaler(raw: Json) -> AskRecord | None:
    """Read what an autoscaler that stands at its maximum would add; None for any other.

    What it wants within its maximum it gets: those replicas are pods, and wait as pods where there is no room.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    limited, active = conditions.get("ScalingLimited") or {}, conditions.get("ScalingActive") or {}
    if limited.get("status") != "True" or limited.get("reason") != "TooManyReplicas" or active.get("status") != "True":
        return None
    target, maximum = spec["scaleTargetRef"], spec["maxReplicas"]
    return AskRecord(
        owner=Owner(target["kind"], metadata["namespace"], target["name"]),
        ask=Ask(
            signal=f"hpa {metadata['namespace']}/{metadata['name']}",
            replicas=1,
            since=moment(limited.get("lastTransitionTime") or metadata["creationTimestamp"]),
            cause=f"stands at its maximum of {maximum}",
            beyond=True,
        ),
    )
