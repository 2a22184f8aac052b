"""The condition PodScheduled of a pod, by whoever has written it."""

from __future__ import annotations

from reconciler.core.observe.kubernetes.words.gates import gate_wait
from reconciler.core.observe.kubernetes.words.sayings import PodWait
from reconciler.core.observe.kubernetes.words.scheduler import scheduler_error, scheduling_wait
from reconciler.core.observe.kubernetes.words.volcano import GANG, GANG_REASONS
from reconciler.model.workload import Json


def unscheduled_wait(condition: Json, gates: Json) -> PodWait:
    """Return what a pod waits for by its condition PodScheduled, which is False, and its scheduling gates."""
    reason, message = condition.get("reason"), condition.get("message") or ""
    if reason == "SchedulingGated":
        return gate_wait(str(gate.get("name", "")) for gate in gates or ())
    if reason in GANG_REASONS:
        return GANG
    return scheduling_wait(message) if reason == "Unschedulable" else scheduler_error(message)
