"""Scheduling gates of pods: who lifts them, and whether room would.

Cluster Autoscaler, Karpenter and KEP-3521 pass gated pods over: whoever has set a gate has not asked for a node. The
gates of queue managers are another matter: they hold pods until their queue has quota.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.core.observe.kubernetes.words.sayings import PodWait, Saying, Sayings
from reconciler.model.wait_reason import WaitReason

ADMITTED = "kueue.x-k8s.io/topology"
"""The gate of pods that Kueue has admitted and chooses nodes for."""

GATES = Sayings(
    *(
        Saying(says=says, reason=WaitReason.QUOTA, cause=f"held by scheduling gate {says}", source=source)
        for says, source in (
            ("kueue.x-k8s.io/admission", "Kueue 0.19.2, pkg/controller/jobs/pod/constants/constants.go"),
            (ADMITTED, "Kueue 0.19.2, apis/kueue/v1beta2/topology_types.go"),
            ("kueue.x-k8s.io/elastic-job", "Kueue 0.19.2, apis/kueue/v1beta2/constants.go"),
            (
                "scheduling.volcano.sh/queue-allocation-gate",
                "Volcano 1.15, vendored volcano.sh/apis/pkg/apis/scheduling/v1beta1/labels.go",
            ),
        )
    )
)
"""The gates that end once a queue has quota. Kueue's own words on a pod's Workload go before them."""

_OF_QUEUES = frozenset(saying.says for saying in GATES)
_LONGEST = 80


def gate_wait(names: Iterable[str]) -> PodWait:
    """Return what a pod waits for by the names of its scheduling gates; one of a foreign controller goes first."""
    gates = sorted(names)
    foreign = [name for name in gates if name not in _OF_QUEUES]
    held = f"held by scheduling gate {', '.join(foreign or gates)}"[:_LONGEST] if gates else "held by a scheduling gate"
    if gates and not foreign:
        return PodWait(reason=WaitReason.QUOTA, cause=held)
    return PodWait(reason=WaitReason.GATE, cause=held, way_out="the controller that has set the gate has to remove it")
