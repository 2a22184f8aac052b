"""What schedulers say of a pod that finds no node: kube-scheduler, and KAI and Volcano, which use its filters.

A message counts nodes by what keeps the pod from them ("0/5 nodes are available: 2 ..., 3 ... . preemption: ..."), or
says what keeps it from all. Filters run in the order of `getDefaultPlugins` (kube-scheduler 1.36.3,
pkg/scheduler/apis/config/v1/default_plugins.go), and a node is named by the first that it does not pass: taints, node
affinity and ports, then resources, then volumes, then rules about pods, then claims. KAI and Volcano try resources
before all of these. So a node that is named by a volume had room.
"""

from __future__ import annotations

import re
from functools import lru_cache

from reconciler.core.observe.kubernetes.words.sayings import PodWait, Saying, Sayings, one_line
from reconciler.model.wait_reason import WaitReason
from reconciler.text.wording import is_gpu

_PLUGINS = "kube-scheduler 1.36.3, pkg/scheduler/framework/plugins"
_VOLUMES = f"{_PLUGINS}/volumebinding"
_CLAIMS = f"{_PLUGINS}/dynamicresources/dynamicresources.go"
_OWNERS = "kube-scheduler 1.36.3, k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go"
_ALLOCATOR = "kube-scheduler 1.36.3, k8s.io/dynamic-resource-allocation/structured/internal/stable/allocator_stable.go"
_KAI = "KAI-Scheduler 0.13, pkg/scheduler"
_LOOK_AT_VOLUMES = "look at its PersistentVolumeClaims (`kubectl describe pvc`) and their StorageClass"
_LOOK_AT_CLAIMS = "look at its ResourceClaims (`kubectl describe resourceclaim`) and their templates"


def _volume(says: str, cause: str, source: str, way_out: str = _LOOK_AT_VOLUMES) -> Saying:
    return Saying(says=says, reason=WaitReason.VOLUME, cause=cause, way_out=way_out, source=source)


def _claim(says: str, cause: str, way_out: str = _LOOK_AT_CLAIMS, source: str = _CLAIMS) -> Saying:
    return Saying(says=says, reason=WaitReason.RESOURCE_CLAIM, cause=cause, way_out=way_out, source=source)


def _lacks(says: str, cause: str, source: str) -> Saying:
    return Saying(says=says, reason=WaitReason.CAPACITY, cause=cause, source=source)


BLOCKS = Sayings(
    _volume(
        "pod has unbound immediate PersistentVolumeClaims",
        "waits for a volume: a PersistentVolumeClaim is not bound yet",
        f"{_VOLUMES}/volume_binding.go",
    ),
    _volume(
        'persistentvolumeclaim "{claim}" not found',
        "waits for a volume: PersistentVolumeClaim {claim} does not exist",
        f"{_VOLUMES}/volume_binding.go",
        "create it, or correct its name in the pod template",
    ),
    _volume(
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "{claim}"',
        "waits for a volume: its PersistentVolumeClaim {claim} is not created yet",
        f"{_VOLUMES}/volume_binding.go",
    ),
    _volume(
        'persistentvolumeclaim "{claim}" bound to non-existent persistentvolume "{volume}"',
        "waits for a volume: {volume}, to which PersistentVolumeClaim {claim} is bound, is gone",
        f"{_VOLUMES}/volume_binding.go",
        "restore the volume, or delete the claim and let it be made again",
    ),
    _volume(
        'persistentvolumeclaim "{claim}" is being deleted',
        "waits for a volume: PersistentVolumeClaim {claim} is being deleted",
        f"{_VOLUMES}/volume_binding.go",
    ),
    _volume(
        "node(s) didn't find available persistent volumes to bind",
        "waits for a volume: no PersistentVolume is there to bind",
        f"{_VOLUMES}/binder.go",
    ),
    _volume(
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "waits for a volume: the PersistentVolume of its claim is gone",
        f"{_VOLUMES}/binder.go",
        "restore the volume, or delete the claim and let it be made again",
    ),
    _volume(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use",
        "waits for a volume: another pod uses its ReadWriteOncePod volume",
        f"{_PLUGINS}/volumerestrictions/volume_restrictions.go",
        "end the pod that uses it, or give each replica a claim of its own",
    ),
    _volume(
        "node(s) had no available disk",
        "waits for a volume: another pod uses its disk",
        f"{_PLUGINS}/volumerestrictions/volume_restrictions.go",
        "end the pod that uses it, or give each replica a claim of its own",
    ),
    _volume(
        "{driver} CSI driver is not installed on the node",
        "waits for a volume: CSI driver {driver} is not on the nodes that have room",
        f"{_PLUGINS}/nodevolumelimits/csi.go",
        "install the driver there",
    ),
    *(
        _volume(says, f"waits for a volume: {cause}", f"{_PLUGINS}/volumezone/volume_zone.go")
        for says, cause in (
            ("PersistentVolumeClaim had no name", "a claim of the pod has no name"),
            ("PersistentVolumeClaim had no pv name and storageClass name", "its claim has no StorageClass"),
            ("VolumeBindingMode not set for StorageClass", "its StorageClass has no binding mode"),
            ("PersistentVolume had no name", "its claim names no PersistentVolume"),
        )
    ),
    _volume(
        'storageclass.storage.k8s.io "{storage}" not found',
        "waits for a volume: StorageClass {storage} does not exist",
        f"{_PLUGINS}/volumezone/volume_zone.go",
        "create it, or name another in the claim",
    ),
    _volume(
        'persistentvolume "{volume}" not found',
        "waits for a volume: PersistentVolume {volume} does not exist",
        f"{_PLUGINS}/volumezone/volume_zone.go",
    ),
    _claim('resourceclaim "{claim}" is being deleted', "waits for ResourceClaim {claim}, which is being deleted"),
    _claim(
        'resourceclaim.resource.k8s.io "{claim}" not found', "waits for ResourceClaim {claim}, which does not exist"
    ),
    _claim(
        'pod "{pod}": ResourceClaim not created yet',
        "waits for a ResourceClaim that is not created yet",
        source=_OWNERS,
    ),
    _claim(
        "waiting for resource claim to be created",
        "waits for a ResourceClaim that is not created yet",
        source=f"{_CLAIMS}, 1.26",
    ),
    _claim(
        "ResourceClaim {claim} was not created for Pod",
        "waits for ResourceClaim {claim}, which is of another pod",
        source=_OWNERS,
    ),
    _claim("resourceclaim in use", "waits for a ResourceClaim that others use as often as it may be"),
    _claim(
        "resource claim {claim} is in the process of being allocated",
        "waits while ResourceClaim {claim} is allocated",
        "",
    ),
    _claim("ResourceClaim unreserved for PodGroup", "waits while its ResourceClaim is given back", ""),
    _claim(
        "resource claim {claim}, request {request}:", "waits for ResourceClaim {claim}, which the scheduler cannot read"
    ),
    _claim(
        "claim {claim}: selector …: CEL",
        "waits for ResourceClaim {claim}, an expression of which fails",
        source=_ALLOCATOR,
    ),
    _claim(
        "class {name}: selector …: CEL",
        "waits for devices of DeviceClass {name}, an expression of which fails",
        source=_ALLOCATOR,
    ),
    _claim(
        "claim {claim}, ", "waits for ResourceClaim {claim}, which the scheduler cannot allocate", source=_ALLOCATOR
    ),
    _claim("node allocatable resource claim {claim}", "waits for ResourceClaim {claim}, which another pod uses"),
    Saying(
        says="request {request}: device class {name} does not exist",
        reason=WaitReason.MISSING_OBJECT,
        cause="needs DeviceClass {name}, which does not exist",
        way_out="create it, or name another in the claim",
        source=_CLAIMS,
    ),
    Saying(
        says="waiting for the preemption for this pod",
        reason=WaitReason.PREEMPTION,
        cause="waits while other pods make way for it",
        source=f"{_PLUGINS}/defaultpreemption/default_preemption.go",
    ),
    Saying(
        says="pod group is waiting for preemption to complete",
        reason=WaitReason.PREEMPTION,
        cause="waits while other pods make way for its group",
        source="kube-scheduler 1.36.3, pkg/scheduler/schedule_one_podgroup.go",
    ),
    *(
        Saying(
            says=says,
            reason=WaitReason.MISSING_OBJECT,
            cause=cause,
            way_out="see why its controller does not create them",
            source=f"{_PLUGINS}/gangscheduling/gangscheduling.go",
        )
        for says, cause in (
            (
                'waiting for pods\'s pod group "{group}" to appear',
                "waits for its PodGroup {group}, which does not exist",
            ),
            ("waiting for minCount pods from a gang to appear", "waits for pods of its group that do not exist"),
        )
    ),
    Saying(
        says="waiting for scheduling gates",
        reason=WaitReason.GATE,
        cause="is held by a scheduling gate",
        way_out="the controller of the gate has to remove it",
        source=f"{_PLUGINS}/schedulinggates/scheduling_gates.go",
    ),
    Saying(
        says="pod affinity terms conflict",
        reason=WaitReason.POLICY,
        cause="has node affinity terms that exclude each other",
        way_out="correct the affinity in the pod template",
        source=f"{_PLUGINS}/nodeaffinity/node_affinity.go",
    ),
    Saying(
        says="Missing required configmaps",
        reason=WaitReason.MISSING_OBJECT,
        cause="needs ConfigMaps that do not exist",
        way_out="create the ConfigMaps that its pod template names",
        source=f"{_KAI}/k8s_internal/predicates/config_maps.go",
    ),
)
"""What a node says that had room, or the message of a pod that was kept from all nodes before any was tried."""

LACKS = Sayings(
    _lacks("Insufficient {resource}", "insufficient {resource}", f"{_PLUGINS}/noderesources/fit.go"),
    _lacks(
        "node(s) didn't have enough resources: {resource}",
        "insufficient {resource}",
        f"{_KAI}/api/common_info/pod_errors.go",
    ),
    _lacks(
        "node(s) didn't have enough of mig profile: {resource}",
        "insufficient {resource}",
        f"{_KAI}/api/common_info/pod_errors.go",
    ),
    _lacks("Too many pods", "too many pods", f"{_PLUGINS}/noderesources/fit.go"),
    _lacks("node(s) pod number exceeded", "too many pods", "Volcano 1.15, pkg/scheduler/api/unschedule_info.go"),
    _lacks("cannot allocate all claims", "cannot allocate all claims", _CLAIMS),
    _lacks(
        "node(s) exceed max volume count",
        "nodes can attach no more volumes",
        f"{_PLUGINS}/nodevolumelimits/csi.go",
    ),
    _lacks("node(s) did not have enough free storage", "insufficient storage", f"{_VOLUMES}/binder.go"),
    _lacks(
        "node(s) didn't match pod topology spread constraints",
        "no node admits it",
        f"{_PLUGINS}/podtopologyspread/plugin.go",
    ),
    *(
        _lacks(says, "no node admits it", f"{_PLUGINS}/interpodaffinity/filtering.go")
        for says in (
            "node(s) didn't satisfy existing pods anti-affinity rules",
            "node(s) didn't match pod affinity rules",
            "node(s) didn't match pod anti-affinity rules",
        )
    ),
    _lacks("node(s) resource fit failed", "no node admits it", "Volcano 1.15, pkg/scheduler/api/unschedule_info.go"),
)
"""What a node says on which another pod fewer, or another node like it, would be room."""

BOUND = Sayings(
    *(
        _volume(says, "waits for a volume: its volume is in another zone, or on another node", source)
        for says, source in (
            ("node(s) didn't match PersistentVolume's node affinity", f"{_VOLUMES}/binder.go"),
            ("node(s) had volume node affinity conflict", f"{_VOLUMES}/binder.go, until 1.34"),
            ("node(s) had no available volume zone", f"{_PLUGINS}/volumezone/volume_zone.go"),
        )
    ),
    _claim("resourceclaim not available on the node", "waits for a ResourceClaim that is allocated on another node"),
)
"""What a node says that is not where the pod's volume or device is: whether that place is full, the others say."""

GROUP = Sayings(
    *(
        Saying(says=says, reason=WaitReason.GANG, cause="waits for the rest of its group", source=source)
        for says, source in (
            ("pod group is unschedulable", "kube-scheduler 1.36.3, pkg/scheduler/schedule_one_podgroup.go"),
            ("pod group is not ready", "Volcano 1.15, pkg/scheduler/api/job_info.go"),
            ("Pod {pod} can possibly be assigned to {node}", "Volcano 1.15, pkg/scheduler/api/job_info.go"),
        )
    ),
)
"""What is said of a pod that by itself would fit, or was not tried, since its group cannot start."""

QUOTA = Sayings(
    *(
        Saying(says=says, reason=WaitReason.QUOTA, cause="the quota of its queue is used up", source=source)
        for says, source in (
            ("Non-preemptible workload is over quota", f"{_KAI}/api/unschedule_info.go"),
            ("{queue} quota has reached the allowable limit", f"{_KAI}/api/unschedule_info.go"),
        )
    ),
)
"""What is said of a pod that its queue keeps from all nodes."""

NO_NODE = "no node admits it"
_NO_NODE = PodWait(reason=WaitReason.CAPACITY, cause=NO_NODE)
_FAILED = PodWait(reason=WaitReason.ERROR, cause="the scheduler failed, and tries again")
_SCHEDULER_ERRORS = Sayings(
    *(
        _volume(says, "waits for a volume: binding or provisioning it failed", f"{_VOLUMES}/binder.go")
        for says in ('running PreBind plugin "VolumeBinding"', "binding volumes")
    ),
    *(
        _claim(says, "waits for a ResourceClaim: binding its devices failed")
        for says in ('running PreBind plugin "DynamicResources"', "device binding")
    ),
)
"""What kube-scheduler says with the reason SchedulerError."""

_HEAD = re.compile(
    r"(?:Node-Pool '[^']*': )?(?:In hyperNode \S+: )?(?:0/[0-9]+ nodes are (?:un)?available:?\s*"
    r"|all nodes are unavailable:?\s*"
    r"|no nodes with enough resources were found:?\s*"
    r"|Scheduling conditions were not met for pod \S+:\s*(?:[A-Z]\w+: )?)"
)
_ORIGIN = re.compile(r"\. Origin reason is(?: \S+)?: ")
_AFTER_FILTERS = re.compile(
    r"\.\s+(?:preemption: |no new claims to deallocate|still not schedulable|deallocation of ResourceClaim"
    r"|deletion of ResourceClaim|plugin disabled|All PostFilter plugins)"
)
"""Where the messages of PostFilter plugins begin: they are about victims, and count nodes as well."""
_COUNTED = re.compile(r"(?:^|(?:,|\.) )[0-9]+ ")


@lru_cache(maxsize=8192)
def scheduling_wait(message: str) -> PodWait:
    """Return what a pod waits for by a scheduler's message with the reason Unschedulable.

    A node that names what the pod waits for had room, so a lack on other nodes says nothing: nodes without GPUs lack
    them always. One lack of capacity among the rest is enough: another node would resolve it. GPUs come first. A pod
    whose volume or device is elsewhere lacks room there if any node does, and waits for it if none does.
    """
    reasons = _reasons(one_line(message))
    # 1. A node had room, or the pod was kept from all.
    for reason in reasons:
        if wait := BLOCKS.wait(reason):
            return wait
    # 2. A node lacks something.
    lacking = [wait.cause for wait in map(LACKS.wait, reasons) if wait is not None]
    if lacking:
        return PodWait(reason=WaitReason.CAPACITY, cause=_joined(lacking))
    # 3. Nodes are not where its volume or device is, or its queue or group keeps it from all.
    for table in (BOUND, QUOTA, GROUP):
        for reason in reasons:
            if wait := table.wait(reason):
                return wait
    # 4. Any other obstacle means that no node admits the pod.
    return _NO_NODE


@lru_cache(maxsize=1024)
def scheduler_error(message: str) -> PodWait:
    """Return what a pod waits for by a scheduler's message with the reason SchedulerError: no lack of room."""
    return _SCHEDULER_ERRORS.wait(one_line(message)) or _FAILED


def _reasons(message: str) -> list[str]:
    """Return what keeps the pod from nodes, without their numbers."""
    message = _ORIGIN.split(message)[-1]
    if head := _HEAD.match(message):
        message = message[head.end() :]
    if after := _AFTER_FILTERS.search(message):
        message = message[: after.start()]
    if not re.match(r"[0-9]+ ", message):
        return [message]
    return [reason.rstrip(". ") for reason in _COUNTED.split(message) if reason]


_LACKED = "insufficient "


def _joined(causes: list[str]) -> str:
    """Name the resources that nodes lack, GPUs first; of other lacks the first in the table."""
    names = {cause.removeprefix(_LACKED).partition(". ")[0] for cause in causes if cause.startswith(_LACKED)}
    if names:
        return _LACKED + ", ".join(sorted(names, key=lambda name: (not _is_gpu(name), name)))
    order = [saying.cause for saying in LACKS]
    return min(causes, key=order.index)


def _is_gpu(name: str) -> bool:
    """Return whether a resource is a GPU; KAI calls them GPUs, whatever their resource."""
    return is_gpu(name) or name.startswith("GPU")
