"""What blocked pods of an observation file wait for, and what ends the wait, where the file gives a reason alone.

Components of a cluster say more, and their words go before these (`kubernetes.words`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reconciler.model.wait_reason import WaitReason


class DefaultCause(NamedTuple):
    """The cause of a wait, as a clause, and its way out; the latter is empty where the wait ends by itself."""

    cause: str
    way_out: str = ""


DEFAULT_CAUSES: Mapping[WaitReason, DefaultCause] = {
    WaitReason.VOLUME: DefaultCause("waits for a volume", "look at its PersistentVolumeClaims"),
    WaitReason.RESOURCE_CLAIM: DefaultCause("waits for a ResourceClaim", "look at its ResourceClaims"),
    WaitReason.PREEMPTION: DefaultCause("waits until other pods have made way for it"),
    WaitReason.MISSING_OBJECT: DefaultCause(
        "refers to an object that does not exist", "create it, or name another in the pod template"
    ),
    WaitReason.POLICY: DefaultCause(
        "a rule of its cluster or namespace refuses it", "change the pod template, or the rule"
    ),
    WaitReason.WEBHOOK: DefaultCause("an admission webhook refuses it, or does not answer", "see the webhook's logs"),
    WaitReason.QUEUE: DefaultCause("its queue does not take it", "create or start the queue, or name another one"),
    WaitReason.BACKOFF: DefaultCause("was ended, and is tried again later", "see why it was ended"),
    WaitReason.ADMISSION_CHECK: DefaultCause(
        "an admission check does not let it in", "see the admission checks of its Workload"
    ),
    WaitReason.DEACTIVATED: DefaultCause("its Workload is deactivated", "set spec.active of its Workload to true"),
    WaitReason.GATE: DefaultCause("has a scheduling gate", "the controller that has set the gate has to remove it"),
    WaitReason.ERROR: DefaultCause("a component failed, and tries again", "see the Events of its pods"),
    WaitReason.UNDECIDED: DefaultCause("nobody has decided on it yet"),
}
"""One for each reason that is no lack of room."""
