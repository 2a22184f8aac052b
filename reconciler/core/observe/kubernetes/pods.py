"""Parses pods: node, requests, owner, and why they are pending."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

from reconciler.core.observe.kubernetes.ownership import (
    BUILT_IN_MARKS,
    GroupMembership,
    Marks,
    labelled_owners,
    memberships,
)
from reconciler.core.observe.kubernetes.pod_failures import describe_waiting
from reconciler.core.observe.kubernetes.resources import CONTROLLERS, Owner, owner_of
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled, unscheduled, with_kept_since, written_at
from reconciler.core.observe.kubernetes.words.gates import ADMITTED
from reconciler.core.observe.kubernetes.words.kubelet import rejection_wait
from reconciler.core.observe.kubernetes.words.pod_condition import unscheduled_wait
from reconciler.core.pods.gpu_parts import gpu_part_obstacle
from reconciler.core.pods.pod_admission import POD_GROUP
from reconciler.core.pods.pod_affinity import pod_on_node
from reconciler.core.pods.pod_requests import pod_requests
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.pods.resource_claims import NO_CLAIMS, PodClaims, claims_held, pod_claims
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import PlacementName
from reconciler.model.kubernetes.scheduling import PodOnNode
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.units import Resources
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment

_FINISHED = frozenset({"Succeeded", "Failed"})
_COUNTING = frozenset(resource.kind for resource in CONTROLLERS)
"""Kinds whose objects say themselves how many of their pods have ended, or create a pod in place of each."""
_CLEANED_UP = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """The record of a pod that has not finished."""

    # Empty until it is bound, or the scheduler has nominated a node for it, which keeps room there.
    node: str
    requests: Resources
    owner: Owner | None
    placement: PlacementName
    # Whether it is terminating: it uses its node still, but is no replica any more.
    leaving: bool
    # Autoscalers measure ready pods only.
    ready: bool
    # Since when, and why, it lacks room.
    held: Unscheduled | None
    # Whether somebody has yet to let the scheduler look at it.
    gated: bool
    # Known of unscheduled pods, of those in gangs, and of those of placements without a node.
    shape: ReplicaShape | None
    # Known of unscheduled pods and those in gangs.
    claims: PodClaims
    # The claims of a bound pod of a placement.
    holds: tuple[str, ...]
    # Since when, and why, it waits for something else than room.
    blocked: Unscheduled | None = None
    # The `admission_key` of a gated pod; empty for others.
    admission: str = ""
    # Whether it is a pod of a placement that asks for no device at all, and for no part of one.
    helping: bool = False
    # Whether it is a pod of a placement with a part of a GPU that only another scheduler counts.
    shares_gpu: bool = False
    # Known of pods of placements that are not ready.
    waiting_reason: str = ""
    # Owners by its labels, beside its owner reference.
    belongs: tuple[Owner, ...] = ()
    groups: tuple[GroupMembership, ...] = ()
    # The part that pod rules refer to; None until it is bound, unless it is in a gang.
    here: PodOnNode | None = None
    # Whether it waits for its node: pods there have to end before it can be bound.
    nominated: bool = False
    # Whether the kubelet of its node has taken it, and not merely the scheduler chosen that.
    taken: bool = False
    # By when a terminating pod leaves its room to a successor; None of one that ends on account of its node, or of a
    # pod that takes its place.
    drained: datetime | None = None

    @property
    def wait(self) -> Unscheduled | None:
        """Since when, and why, it is unscheduled."""
        return self.held or self.blocked

    def waiting_on(self, before: PodRecord | None) -> PodRecord:
        """Return the pod with the moment since which it lacks room, or waits for something else.

        `before` is its record until now.
        """
        if before is None or self.wait is None:
            return self
        wait = with_kept_since(before.wait, self.wait)
        if wait is self.wait:
            return self
        return replace(self, held=wait if self.held else None, blocked=None if self.held else wait)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The owners of the pod, each once."""
        return self.belongs if self.owner is None or self.owner in self.belongs else (self.owner, *self.belongs)

    @property
    def runs(self) -> bool:
        """Return whether it is a replica with a node."""
        return bool(self.node) and not self.leaving


def read_pod(raw: Json, marks: Marks = BUILT_IN_MARKS, placement: PlacementName | None = None) -> PodRecord | None:
    """Read a pod, and its owners by `marks`; None if it has finished and uses nothing any more.

    `placement` counts in place of its own label.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    if status.get("phase") in _FINISHED:
        return None
    bound = spec.get("nodeName") or ""
    leaving = "deletionTimestamp" in metadata
    node = bound or ("" if leaving else status.get("nominatedNodeName") or "")
    wait = None if node or leaving else _unscheduled(metadata, spec, status)
    held = wait if wait is not None and wait.lacks_room else None
    labels = metadata.get("labels") or {}
    placement = placement_of(metadata) if placement is None else placement
    ours = bool(placement) and not leaving
    ready = bool(bound) and not leaving and _is_true(status, "Ready")
    requests = pod_requests(spec)
    shares = bool(placement) and bool(gpu_part_obstacle(requests.amounts, metadata))
    groups = memberships(metadata, metadata.get("namespace", ""), marks)
    gated = not node and any(gate.get("name") != ADMITTED for gate in spec.get("schedulingGates") or ())
    return PodRecord(
        node=sys.intern(node),
        requests=requests,
        owner=controller_of(metadata),
        placement=placement,
        leaving=leaving,
        ready=ready,
        held=held,
        blocked=wait if held is None else None,
        gated=gated,
        admission=admission_key(metadata.get("namespace", ""), metadata["name"], labels) if gated else "",
        shape=_shape(spec, metadata) if held or groups or (ours and not node) else None,
        claims=pod_claims(spec) if held or groups else NO_CLAIMS,
        holds=claims_held(metadata.get("namespace") or "", spec, status) if placement and node else (),
        helping=ours and not requests.extended and not spec.get("resourceClaims") and not shares,
        shares_gpu=shares,
        waiting_reason=_waiting_reason(status, wait, bound, node) if ours and not ready else "",
        belongs=labelled_owners(metadata, metadata.get("namespace", ""), marks),
        groups=groups,
        here=pod_on_node(spec, metadata, expected=bool(node) and not bound) if node or groups else None,
        nominated=bool(node) and not bound,
        taken=bool(bound and status.get("startTime")) or status.get("phase") == "Running",
        drained=_drained(metadata, status) if leaving and bound else None,
    )


def _waiting_reason(status: Json, wait: Unscheduled | None, bound: str, node: str) -> str:
    if node and not bound:
        return sys.intern(f"Nominated: pods end on {node} to make room")
    return describe_waiting(status, wait)


def placement_of(metadata: Json) -> PlacementName:
    """Return the placement that the label of a pod names; empty for none."""
    return PlacementName(sys.intern((metadata.get("labels") or {}).get(PLACEMENT_LABEL, "")))


def ended_owners(raw: Json, marks: Marks) -> tuple[Owner, ...]:
    """Return the owners of a pod that has finished, by `marks`, without those that count such pods themselves.

    None for one that its node has rejected: it has not begun, and another is made in its place.
    """
    metadata, status = raw["metadata"], raw.get("status") or {}
    if status.get("phase") not in _FINISHED or rejection_wait(status.get("reason") or "", status.get("message") or ""):
        return ()
    return tuple(owner for owner in owners_of(metadata, marks) if owner.group or owner.kind not in _COUNTING)


def owners_of(metadata: Json, marks: Marks) -> tuple[Owner, ...]:
    """Return the owners of a pod by its labels and its controller, each once."""
    owners = dict.fromkeys(labelled_owners(metadata, metadata.get("namespace", ""), marks))
    if owner := controller_of(metadata):
        owners[owner] = None
    return tuple(owners)


def read_success(raw: Json) -> datetime | None:
    """Return when a pod has succeeded; None for every other pod."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    if status.get("phase") != "Succeeded":
        return None
    containers = [state for entry in status.get("containerStatuses") or () if (state := entry.get("state"))]
    ends = [end for state in containers if (end := (state.get("terminated") or {}).get("finishedAt"))]
    moments = ends or [moment for moment in (metadata.get("creationTimestamp"),) if moment]
    return max(map(read_moment, moments)) if moments else None


def admission_key(namespace: str, pod: str, labels: Mapping[str, str]) -> str:
    """Return the key of Kueue's Workload of a pod: by the name of its group, or by its own."""
    group = labels.get(POD_GROUP)
    return sys.intern(f"{namespace}/{group}") if group else object_admission(Owner("Pod", namespace, pod))


def object_admission(owner: Owner) -> str:
    """Return the key of Kueue's Workload of an object."""
    return sys.intern(f"{owner.namespace}/{owner.kind}/{owner.name}")


def controller_of(metadata: Json) -> Owner | None:
    """Return the controlling owner of an object; other owners only affect garbage collection."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            made = reference.get("apiVersion") or ""
            return _owner(reference["kind"], metadata.get("namespace", ""), reference["name"], made)
    return None


def _unscheduled(metadata: Json, spec: Json, status: Json) -> Unscheduled | None:
    """Read since when and why a pod is unscheduled; None until the scheduler has tried it."""
    for condition in status.get("conditions") or ():
        if condition.get("type") != "PodScheduled" or condition.get("status") != "False":
            continue
        since = condition.get("lastTransitionTime") or metadata.get("creationTimestamp")
        if not since:
            return None
        wait = unscheduled_wait(condition, spec.get("schedulingGates"))
        return unscheduled(wait, read_moment(since), written_at(metadata, "PodScheduled"))
    return None


def _shape(spec: Json, metadata: Json) -> ReplicaShape:
    """Read the needs of a pod, independent of the node that the scheduler has chosen."""
    return replica_shape({key: value for key, value in spec.items() if key != "nodeName"}, metadata)


def _drained(metadata: Json, status: Json) -> datetime | None:
    """Return by when a terminating pod has left: another grace period after its own is over, and a minute at least.

    A pod that is disrupted makes room for another workload's, or its node is going (KEP-3329, ``DisruptionTarget``).
    """
    if _is_true(status, "DisruptionTarget"):
        return None
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    return read_moment(metadata["deletionTimestamp"]) + max(grace, _CLEANED_UP)


def _is_true(status: Json, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


@lru_cache(maxsize=8192)
def _owner(kind: str, namespace: str, name: str, api_version: str) -> Owner:
    return owner_of(kind, namespace, name, api_version)
