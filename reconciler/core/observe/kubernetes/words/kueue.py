"""What Kueue says of a Workload without quota: the condition QuotaReserved, with Evicted and Requeued beside it.

Until 0.18, and later unless the feature UnadmittedWorkloadsObservability is on, most waits have the reason Pending, and
the message tells them apart (pkg/scheduler/scheduler.go and pkg/controller/jobframework/reconciler.go, which repeats
the message of an eviction). With it, reasons do. Messages are those of Kueue 0.10 to 0.19.
"""

from __future__ import annotations

import re
from functools import lru_cache

from reconciler.core.observe.kubernetes.words.sayings import PodWait, Saying, Sayings, one_line
from reconciler.model.wait_reason import WaitReason

_SCHEDULER = "Kueue 0.10 to 0.19, pkg/scheduler/scheduler.go"
_ASSIGNER = "Kueue 0.10 to 0.19, pkg/scheduler/flavorassigner/flavorassigner.go"
_CONTROLLER = "Kueue 0.10 to 0.19, pkg/controller/core/workload_controller.go"
_TYPES = "Kueue 0.19, apis/kueue/v1beta2/workload_types.go"
_MEND_QUEUE = "create or start the queue, or name another one"
_LIMITS = "change the requests and limits of the pod template, or the LimitRange of the namespace"


def _saying(says: str, reason: WaitReason, cause: str, source: str, way_out: str = "") -> Saying:
    return Saying(says=says, reason=reason, cause=cause, way_out=way_out, source=source)


MESSAGES = Sayings(
    _saying(
        "couldn't assign flavors to pod set {name}: flavor {flavor} not found$",
        WaitReason.QUEUE,
        "its ClusterQueue has ResourceFlavor {flavor}, which does not exist",
        _ASSIGNER,
        "create the ResourceFlavor, or take it out of the ClusterQueue",
    ),
    _saying("couldn't assign flavors to pod set", WaitReason.QUOTA, "waits for quota", _ASSIGNER),
    _saying(
        "failed to assign flavors to pod set",
        WaitReason.ERROR,
        "Kueue failed to choose a flavor, and tries again",
        _ASSIGNER,
    ),
    *(
        _saying(says, WaitReason.QUOTA, "waits for quota", _SCHEDULER)
        for says in (
            "Workload no longer fits after processing another workload",
            "Workload has overlapping preemption targets",
            "Bypassed scheduling evaluation because an equivalent workload recently failed",
        )
    ),
    _saying(
        "Preempted to accommodate a workload",
        WaitReason.QUOTA,
        "waits for quota, since it was preempted",
        "Kueue 0.10 to 0.19, pkg/scheduler/preemption/preemption.go",
    ),
    *(
        _saying(
            says,
            WaitReason.CAPACITY,
            "waits for quota, since its nodes failed",
            "Kueue 0.14 to 0.19, pkg/controller/tas/node_failure_controller.go",
        )
        for says in ("Workload was evicted as there was no replacement", "Workload eviction triggered due to")
    ),
    *(
        _saying(f"{kind} {{queue}} {state}", WaitReason.QUEUE, f"{kind} {{queue}} {state}", source, _MEND_QUEUE)
        for kind in ("LocalQueue", "ClusterQueue")
        for state, source in (
            ("doesn't exist", _CONTROLLER),
            ("is inactive", _CONTROLLER),
            ("is stopped", _CONTROLLER),
            ("is terminating or missing", _CONTROLLER),
            ("not found", _SCHEDULER),
        )
    ),
    _saying("The LocalQueue is stopped", WaitReason.QUEUE, "its LocalQueue is stopped", _CONTROLLER, _MEND_QUEUE),
    _saying("The ClusterQueue is stopped", WaitReason.QUEUE, "its ClusterQueue is stopped", _CONTROLLER, _MEND_QUEUE),
    *(
        _saying(
            f"{word}orkload namespace doesn't match ClusterQueue selector",
            WaitReason.QUEUE,
            "its ClusterQueue does not take its namespace",
            _SCHEDULER,
            "correct the namespaceSelector of the ClusterQueue, or label the namespace",
        )
        for word in ("W", "w")
    ),
    _saying(
        "resources didn't satisfy LimitRange constraints",
        WaitReason.POLICY,
        "a LimitRange forbids its pods",
        _SCHEDULER,
        _LIMITS,
    ),
    _saying(
        "didn't satisfy LimitRange constraints",
        WaitReason.POLICY,
        "a LimitRange forbids its pods",
        "Kueue 0.10, pkg/scheduler/scheduler.go",
        _LIMITS,
    ),
    _saying(
        "resources validation failed",
        WaitReason.POLICY,
        "its pods request more than their limits",
        _SCHEDULER,
        "correct the requests and limits of the pod template",
    ),
    _saying(
        "resource validation failed",
        WaitReason.POLICY,
        "its pods request more than their limits",
        "Kueue 0.10, pkg/scheduler/scheduler.go",
        "correct the requests and limits of the pod template",
    ),
    _saying(
        "Exceeded the PodsReady timeout",
        WaitReason.BACKOFF,
        "its pods were not ready in time, and Kueue tries again later",
        _CONTROLLER,
        "see why its pods did not become ready",
    ),
    _saying(
        "At least one admission check is false",
        WaitReason.ADMISSION_CHECK,
        "an admission check has refused it",
        _CONTROLLER,
        "see the admission checks of its Workload",
    ),
    _saying(
        "The workload has failed admission checks",
        WaitReason.ADMISSION_CHECK,
        "an admission check has refused it",
        _SCHEDULER,
        "see the admission checks of its Workload",
    ),
    _saying(
        "Admission check(s):",
        WaitReason.ADMISSION_CHECK,
        "an admission check has refused it",
        _CONTROLLER,
        "see the admission checks of its Workload",
    ),
    _saying(
        "The workload is deactivated",
        WaitReason.DEACTIVATED,
        "its Workload is deactivated",
        _CONTROLLER,
        "set spec.active of its Workload to true",
    ),
    _saying(
        "waiting for all admitted workloads to be in PodsReady condition",
        WaitReason.UNDECIDED,
        "waits until the pods of those before it are ready",
        _SCHEDULER,
    ),
    _saying(
        "Could not obtain workload namespace",
        WaitReason.ERROR,
        "Kueue failed to read its namespace, and tries again",
        _SCHEDULER,
    ),
    _saying("Failed to admit workload", WaitReason.ERROR, "Kueue failed to admit it, and tries again", _SCHEDULER),
    _saying(
        "Admission is gated by: {gate}",
        WaitReason.GATE,
        "its admission is gated by {gate}",
        _CONTROLLER,
        "the controller of the gate has to remove it",
    ),
    *(
        _saying(says, WaitReason.UNDECIDED, "waits until Kueue looks at it", source)
        for says, source in (
            ("AdmissionGatedBy cleared", _CONTROLLER),
            ("Workload is pending evaluation in the scheduling queue", _CONTROLLER),
            ("A more favorable variant is already admitted", _SCHEDULER),
            ("Target flavor is below LastAcceptableFlavorName", _SCHEDULER),
        )
    ),
    *(
        _saying(
            f"{name} feature does not support use of resource claims",
            WaitReason.QUEUE,
            "Kueue does not take ResourceClaims here",
            _CONTROLLER,
            "switch Kueue's support of ResourceClaims on, or request devices without claims",
        )
        for name in ("DynamicResourceAllocation", "KueueDRAIntegration")
    ),
)
"""Messages of the condition QuotaReserved. What the flavors lack is all a lack of room: another cluster may have it."""

_PENDING = "Pending"
REASONS = {
    "WaitingForQuota": WaitReason.QUOTA,
    "WaitingForPreemptedWorkloads": WaitReason.QUOTA,
    "ExceedsMaxQuota": WaitReason.QUOTA,
    "NoMatchingFlavor": WaitReason.QUOTA,
    "TopologyPlacementFailed": WaitReason.QUOTA,
    _PENDING: WaitReason.QUOTA,
    "Preempted": WaitReason.QUOTA,
    "NodeFailures": WaitReason.QUOTA,
    "PendingEvaluation": WaitReason.UNDECIDED,
    "WaitingForPodsReady": WaitReason.UNDECIDED,
    "Waiting": WaitReason.UNDECIDED,
    "FlavorMigration": WaitReason.UNDECIDED,
    "Inadmissible": WaitReason.QUEUE,
    "Misconfigured": WaitReason.QUEUE,
    "Suspended": WaitReason.QUEUE,
    "OnHold": WaitReason.QUEUE,
    "ClusterQueueStopped": WaitReason.QUEUE,
    "LocalQueueStopped": WaitReason.QUEUE,
    "AdmissionGated": WaitReason.GATE,
    "PodsReadyTimeout": WaitReason.BACKOFF,
    "AdmissionCheck": WaitReason.ADMISSION_CHECK,
    "Deactivated": WaitReason.DEACTIVATED,
}
"""The class of a reason of QuotaReserved, Evicted or Requeued whose message the table does not have (`_TYPES`)."""

_CAUSES = {
    WaitReason.QUOTA: ("waits for quota", ""),
    WaitReason.UNDECIDED: ("waits until Kueue looks at it", ""),
    WaitReason.QUEUE: ("its queue does not take it", _MEND_QUEUE),
    WaitReason.GATE: ("its admission is gated", "the controller of the gate has to remove it"),
    WaitReason.BACKOFF: ("Kueue tries it again later", "see why its pods did not become ready"),
    WaitReason.ADMISSION_CHECK: ("an admission check has refused it", "see the admission checks of its Workload"),
    WaitReason.DEACTIVATED: ("its Workload is deactivated", "set spec.active of its Workload to true"),
}
DEACTIVATED = PodWait(
    reason=WaitReason.DEACTIVATED,
    cause=_CAUSES[WaitReason.DEACTIVATED][0],
    way_out=_CAUSES[WaitReason.DEACTIVATED][1],
)
_PREAMBLE = re.compile(r"couldn't assign flavors to pod set [^:]*: ")
_PREEMPTOR = re.compile(r" \(UID: [^()]*\)")
"""The identity of the Workload that another one made way for, which changes with each attempt."""
_LONGEST = 160


def words_of(message: str) -> str:
    """Return a message of Kueue without words that say only that the Workload waits, or who came."""
    return _PREEMPTOR.sub("", _PREAMBLE.sub("", one_line(message)))


@lru_cache(maxsize=4096)
def quota_wait(reason: str, message: str, requeued: str = "") -> PodWait:
    """Return what a Workload waits for whose condition QuotaReserved is False for a reason, with a message.

    `requeued` is the reason of its condition Requeued, if that is False: it is in no queue until that ends.
    """
    of_reason = REASONS.get(requeued or reason, WaitReason.UNDECIDED)
    if of_reason.lacks_room:
        of_reason = REASONS.get(reason, WaitReason.UNDECIDED)
    said = MESSAGES.wait(one_line(message))
    # 1. The reason says less than the message, or as much.
    if said is not None and (of_reason.lacks_room is said.reason.lacks_room or (reason, requeued) == (_PENDING, "")):
        return PodWait(reason=said.reason, cause=_with_words(said.cause, message, said.reason), way_out=said.way_out)
    # 2. By its reason; what Kueue has no known words for waits for quota where the reason is Pending.
    return _of_reason(of_reason, message)


def _of_reason(reason: WaitReason, message: str) -> PodWait:
    cause, way_out = _CAUSES[reason]
    return PodWait(reason=reason, cause=_with_words(cause, message, reason), way_out=way_out)


def _with_words(cause: str, message: str, reason: WaitReason) -> str:
    """Return Kueue's own words of a lack of room, and behind ours for anything else."""
    words = words_of(message)
    if reason.lacks_room:
        return (words or cause)[:_LONGEST]
    return f"{cause}: {words}"[:_LONGEST] if words and words not in cause else cause
