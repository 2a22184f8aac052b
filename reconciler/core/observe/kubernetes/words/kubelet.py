"""What a kubelet says of a pod that was bound to its node, and that it rejects: the pod has failed then.

The message begins with ``Pod was rejected: `` (`rejectPod` in pkg/kubelet/kubelet.go of Kubernetes 1.29 to 1.36).
Whoever has made the pod makes another, and the scheduler binds that, often to the same node.
"""

from __future__ import annotations

from functools import lru_cache

from reconciler.core.observe.kubernetes.words.sayings import PodWait, Saying, Sayings, one_line
from reconciler.model.wait_reason import WaitReason

_KUBELET = "kubelet 1.36.3, pkg/kubelet"
_PREDICATE = f"{_KUBELET}/lifecycle/predicate.go"
_DEVICES = f"{_KUBELET}/cm/devicemanager/manager.go"
_HANDLERS = f"{_KUBELET}/lifecycle/handlers.go"
_PRESSURE = f"{_KUBELET}/eviction/eviction_manager.go"
REJECTED = "pods rejected by their node: "
"""How each cause begins."""
_LONGEST = 160


def _saying(says: str, reason: WaitReason, cause: str, source: str, way_out: str = "") -> Saying:
    return Saying(says=says, reason=reason, cause=REJECTED + cause, way_out=way_out, source=source)


def _lacks(says: str, cause: str, source: str) -> Saying:
    return _saying(says, WaitReason.CAPACITY, cause, source)


def _forbids(says: str, cause: str, source: str, way_out: str = "change the pod template, or the nodes") -> Saying:
    return _saying(says, WaitReason.POLICY, cause, source, way_out)


def _fails(says: str, cause: str, source: str, way_out: str = "") -> Saying:
    return _saying(says, WaitReason.ERROR, cause, source, way_out)


REJECTIONS = Sayings(
    _lacks("Node didn't have enough resource: {resource}, requested", "insufficient {resource}", _PREDICATE),
    *(
        _lacks(f"{step} failed due to {says}", cause, _DEVICES)
        for step in ("Allocate", "Update plugin resources")
        for says, cause in (
            ("requested number of devices unavailable for {resource}. Requested", "insufficient {resource}"),
            (
                "no healthy devices present; cannot allocate unhealthy devices {resource},",
                "no {resource} there is healthy",
            ),
            (
                "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource},",
                "its {resource} is not healthy any more",
            ),
        )
    ),
    *(
        _fails(
            f"{step} failed due to cannot allocate unregistered device {{resource}},",
            "no device plugin for {resource} is registered there",
            _DEVICES,
            "see the device plugin's pods on the node",
        )
        for step in ("Allocate", "Update plugin resources")
    ),
    _fails(
        "Allocate failed due to rpc error:",
        "its device plugin failed",
        f"{_KUBELET}/cm/admission/errors.go",
        "see the log of the device plugin on the node",
    ),
    *(
        _lacks(says, "no NUMA node there has all of it", f"{_KUBELET}/cm/topologymanager/topology_manager.go")
        for says in ("Resources cannot be allocated with Topology locality", "Pod Scope ")
    ),
    _lacks(
        "SMT Alignment Error: not enough free physical CPUs",
        "insufficient physical CPUs",
        f"{_KUBELET}/cm/cpumanager/policy_static.go",
    ),
    _forbids(
        "SMT Alignment Error: requested {number} cpus not multiple",
        "{number} CPUs are no multiple of those of a core",
        f"{_KUBELET}/cm/cpumanager/policy_static.go",
        "ask for whole cores",
    ),
    _lacks("The node had condition: [{condition}]", "the node has {condition}", _PRESSURE),
    _lacks("Predicate NodePorts failed:", "a host port is taken", _PREDICATE),
    *(
        _fails(
            f"Predicate {predicate} failed:",
            f"{what} of the node have changed",
            _PREDICATE,
            f"see the {what} of the node",
        )
        for predicate, what in (("NodeAffinity", "labels"), ("TaintToleration", "taints"))
    ),
    _fails(
        "Pod was rejected as the node is shutting down",
        "the node shuts down",
        f"{_KUBELET}/nodeshutdown/nodeshutdown_manager.go",
    ),
    _fails("Kubelet cannot get node info", "its kubelet cannot read the node", _PREDICATE),
    _forbids("Failed to admit pod as the", "it has another operating system", _PREDICATE),
    _forbids("SupplementalGroupsPolicy={policy} is not supported", "no SupplementalGroupsPolicy there", _PREDICATE),
    _forbids("forbidden sysctl: {sysctl}", "forbidden sysctl {sysctl}", f"{_KUBELET}/sysctl/allowlist.go"),
    _forbids("Cannot enforce AppArmor: {words}", "AppArmor: {words}", _HANDLERS),
    _forbids("Pod requires node features that are not available: {features}", "no {features} there", _HANDLERS),
)
"""What is behind ``Pod was rejected: ``."""
_BEGINS = "Pod was rejected: "


@lru_cache(maxsize=4096)
def rejection_wait(reason: str, message: str) -> PodWait | None:
    """Return what a pod lacks that has failed with this reason and message; None where no kubelet has rejected it.

    Words that the table does not have are an error, which no room elsewhere ends.
    """
    if not message.startswith(_BEGINS):
        return None
    text = one_line(message.removeprefix(_BEGINS))
    return REJECTIONS.wait(text) or PodWait(
        reason=WaitReason.ERROR,
        cause=f"{REJECTED}{one_line(reason)}: {text}"[:_LONGEST],
        way_out="see the log of its kubelet",
    )
