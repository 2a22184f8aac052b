"""Pods: where they are, what they take there, whom they belong to, and what they wait for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from reconciler.core.observe.kubernetes import pod_failures
from reconciler.core.observe.kubernetes.ownership import (
    BUILT_IN_MARKS,
    GroupMembership,
    Marks,
    labelled_owners,
    memberships,
)
from reconciler.core.observe.kubernetes.resources import Owner, owner_of
from reconciler.core.workloads.pod_affinity import pod_on_node
from reconciler.core.workloads.pod_requests import pod_requests
from reconciler.core.workloads.pod_shape import replica_shape
from reconciler.core.workloads.resource_claims import NO_CLAIMS, PodClaims, claims_held, pod_claims
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.scheduling import PodOnNode
from reconciler.model.units import Resources
from reconciler.model.workload import Json

_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscheduled:
    """That a pod, or what would be one, has been kept off every node since a moment, and by what."""

    since: datetime
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """What is kept of a pod that has not finished.

    `node` is empty until it is bound, and `here`, what rules can ask about it, is None until then unless it runs in
    groups. One that is `leaving` takes its room on the node still, but is no replica any more. One that is `ready` is
    what autoscalers measure.
    `shape` is known of pods that are held, of those that run in `groups`, and of those of our placements that have no
    node; of theirs that are not ready, the `trouble` is known as well. `claims` are known of pods that are held or in
    groups; `holds` names the claims of one of ours that has a node, and one of ours is `helping` that asks for no
    device at all. It `belongs` to other objects than its owner, by its labels.
    """

    node: str
    requests: Resources
    owner: Owner | None
    placement: PlacementName
    leaving: bool
    ready: bool
    held: Unscheduled | None
    shape: ReplicaShape | None
    claims: PodClaims
    holds: tuple[str, ...]
    helping: bool = False
    trouble: str = ""
    belongs: tuple[Owner, ...] = ()
    groups: tuple[GroupMembership, ...] = ()
    here: PodOnNode | None = None

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The objects that it belongs to, each once."""
        return self.belongs if self.owner is None or self.owner in self.belongs else (self.owner, *self.belongs)

    @property
    def runs(self) -> bool:
        """Tell whether it is a replica that has a node."""
        return bool(self.node) and not self.leaving


def read_pod(raw: Json, marks: Marks = BUILT_IN_MARKS) -> PodRecord | None:
    """Read a pod, and by its `marks` whose it is; None when it has finished and takes nothing any more."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    if status.get("phase") in _FINISHED:
        return None
    node = spec.get("nodeName") or ""
    leaving = "deletionTimestamp" in metadata
    held = None if node or leaving else _held(metadata, spec, status)
    labels = metadata.get("labels") or {}
    placement = PlacementName(sys.intern(labels.get(PLACEMENT_LABEL, "")))
    ours = bool(placement) and not leaving
    ready = bool(node) and not leaving and _is_ready(status)
    requests = pod_requests(spec)
    groups = memberships(metadata, metadata.get("namespace", ""), marks)
    return PodRecord(
        node=sys.intern(node),
        requests=requests,
        owner=controller_of(metadata),
        placement=placement,
        leaving=leaving,
        ready=ready,
        held=held,
        shape=_shape(spec, metadata) if held or groups or (ours and not node) else None,
        claims=pod_claims(spec) if held or groups else NO_CLAIMS,
        holds=claims_held(metadata.get("namespace") or "", spec, status) if placement and node else (),
        helping=ours and not requests.extended and not spec.get("resourceClaims"),
        trouble=pod_failures.describe_trouble(status, held.cause if held else "") if ours and not ready else "",
        belongs=labelled_owners(metadata, metadata.get("namespace", ""), marks),
        groups=groups,
        here=pod_on_node(spec, metadata) if node or groups else None,
    )


def controller_of(metadata: Json) -> Owner | None:
    """Find the owner that manages an object; the others only keep it from being collected."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            made = reference.get("apiVersion") or ""
            return _owner(reference["kind"], metadata.get("namespace", ""), reference["name"], made)
    return None


def read_time(text: str) -> datetime:
    """Read a time of the API server."""
    return datetime.fromisoformat(text)


def _held(metadata: Json, spec: Json, status: Json) -> Unscheduled | None:
    """Read since when and by what a pod is kept off every node; None while the scheduler has not looked at it yet."""
    for condition in status.get("conditions") or ():
        if condition.get("type") != "PodScheduled" or condition.get("status") != "False":
            continue
        if condition.get("reason") == "SchedulingGated":
            cause: str | None = pod_failures.describe_gates(spec.get("schedulingGates"))
        elif condition.get("reason") == "Unschedulable":
            cause = pod_failures.scheduling_shortage(condition.get("message") or "")
        else:  # SchedulerError and the like: it will be tried again
            cause = None
        since = condition.get("lastTransitionTime") or metadata.get("creationTimestamp")
        return Unscheduled(since=read_time(since), cause=cause) if cause and since else None
    return None


def _shape(spec: Json, metadata: Json) -> ReplicaShape:
    """Read what a pod needs wherever it may go: on a node, the scheduler has put it there."""
    return replica_shape({key: value for key, value in spec.items() if key != "nodeName"}, metadata)


def _is_ready(status: Json) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


@lru_cache(maxsize=8192)
def _owner(kind: str, namespace: str, name: str, api_version: str) -> Owner:
    return owner_of(kind, namespace, name, api_version)
