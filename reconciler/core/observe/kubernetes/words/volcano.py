"""What Volcano says of the pods of a PodGroup: reasons of its own in the condition PodScheduled.

A gang that cannot start is one lack of room. Of its pods, one that finds no node is Unschedulable, one that would fit
Schedulable, and one that was not tried Undetermined (`TaskSchedulingReason` in Volcano 1.7 to 1.15,
pkg/scheduler/api/job_info.go; since 1.8 the last are Unschedulable, with the words on their PodGroup).
"""

from __future__ import annotations

from reconciler.core.observe.kubernetes.words.sayings import PodWait
from reconciler.model.wait_reason import WaitReason

_SOURCE = "Volcano 1.15, pkg/scheduler/api/unschedule_info.go"
GANG_REASONS = {"Schedulable": _SOURCE, "Undetermined": f"{_SOURCE}, until 1.7"}
"""The reasons of pods that wait for the rest of their gang, with their source."""
GANG = PodWait(reason=WaitReason.GANG, cause="waits for the rest of its group")
