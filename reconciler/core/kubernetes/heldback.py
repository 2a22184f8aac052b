"""Objects whose controller makes no pods before a scheduler lets them in, by what their status says."""

from __future__ import annotations

from reconciler.core.kubernetes.pods import Unscheduled, moment
from reconciler.core.kubernetes.resources import Custom
from reconciler.model.workload import Json

_VOLCANO = "batch.volcano.sh/Job"
HELD_BACK = "Volcano holds back its pods"


def read_unmade(resource: Custom, raw: Json) -> Unscheduled | None:
    """Tell since when an object waits to be let in, and so has no pods unless it shows some; None where it does not.

    Volcano's job controller makes no pods of a Job while the PodGroup of that is Pending, which it is until the
    scheduler's `enqueue` finds room for its minimum. The phase of the Job itself is Pending then, and until its minimum
    runs; a Job that is aborted, terminated or completed has another.
    """
    metadata, state = raw["metadata"], (raw.get("status") or {}).get("state") or {}
    if resource.name != _VOLCANO or state.get("phase") != "Pending" or "deletionTimestamp" in metadata:
        return None
    since = state.get("lastTransitionTime") or metadata.get("creationTimestamp")
    return Unscheduled(since=moment(since), cause=HELD_BACK) if since else None
