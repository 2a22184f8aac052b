"""Workload objects: their replicas, their shape, and refusals of their pods."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.observe.kubernetes.object_records import UNKNOWN_OBJECT, ObjectIdentity, object_identity
from reconciler.core.observe.kubernetes.ownership import (
    BUILT_IN_MARKS,
    GroupMembership,
    Marks,
    labelled_owners,
    memberships,
)
from reconciler.core.observe.kubernetes.pods import controller_of
from reconciler.core.observe.kubernetes.releases import release_of
from reconciler.core.observe.kubernetes.resources import Owner, Resource
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled, unscheduled
from reconciler.core.observe.kubernetes.words.refusals import refusal_wait
from reconciler.core.pods.pod_affinity import pod_on_node
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.pods.resource_claims import PodClaims, pod_claims
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.containers import container_summaries
from reconciler.core.workloads.ends import asks_for_nothing
from reconciler.core.workloads.portable_object import is_managed_by_multikueue
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.scheduling import PodOnNode
from reconciler.model.workload import ContainerSummary, Json
from reconciler.text.timestamps import read_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRecord:
    """The record of a workload object."""

    wanted: int
    shape: ReplicaShape
    claims: PodClaims
    owner: Owner | None
    # Since when it may not create its missing pods.
    refused: Unscheduled | None
    # Whether it creates a pod only when all before it are ready.
    ordered: bool
    # Whether it is a Job that makes no pods until it is resumed.
    suspended: bool
    # Other owners of its pods, and their gangs, by the labels that it gives them.
    belongs: tuple[Owner, ...] = ()
    groups: tuple[GroupMembership, ...] = ()
    # The part of pods in gangs that pod rules refer to.
    here: PodOnNode | None = None
    # Of an object that a template may burst; a ReplicaSet's are those of its Deployment.
    containers: tuple[ContainerSummary, ...] = ()
    # The Helm release that made it, as ``namespace/name``; empty for none.
    release: str = ""
    # Whether MultiKueue manages it, so that no pod of it is made here.
    multikueue: bool = False
    identity: ObjectIdentity = UNKNOWN_OBJECT

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The owners of the object and its pods, each once."""
        return self.belongs if self.owner is None or self.owner in self.belongs else (self.owner, *self.belongs)


def read_controller(resource: Resource, raw: Json, marks: Marks = BUILT_IN_MARKS) -> ControllerRecord:
    """Read a Deployment, StatefulSet, ReplicaSet or Job; `marks` are the labels that name owners of its pods."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    template, namespace = spec.get("template") or {}, raw["metadata"].get("namespace")
    given = template.get("metadata") or {}
    groups = memberships(given, namespace or "", marks)
    return ControllerRecord(
        wanted=_pods_of_job(spec, status) if resource is Resource.JOBS else _or(spec.get("replicas"), 1),
        shape=replica_shape(template.get("spec") or {}, {**given, "namespace": namespace}),
        claims=pod_claims(template.get("spec") or {}),
        owner=controller_of(raw["metadata"]),
        refused=replica_failure(status),
        ordered=resource is Resource.STATEFUL_SETS and spec.get("podManagementPolicy") != "Parallel",
        suspended=resource is Resource.JOBS and spec.get("suspend") is True,
        belongs=labelled_owners(given, namespace or "", marks),
        groups=groups,
        containers=() if resource is Resource.REPLICA_SETS else container_summaries(template.get("spec") or {}),
        here=pod_on_node(template.get("spec") or {}, {**given, "namespace": namespace}) if groups else None,
        release=release_of(raw["metadata"]),
        multikueue=is_managed_by_multikueue(raw),
        identity=object_identity(raw["metadata"], given),
    )


def _pods_of_job(spec: Json, status: Json) -> int:
    """Count the parallel pods of a Job, at most as many as have yet to succeed or to fail for good.

    Indexes that have failed for good are in `status.failedIndexes` (KEP-3850). Without a number of completions it makes
    no pods once one has succeeded (`manageJob`, pkg/controller/job/job_controller.go).
    """
    if spec.get("suspend"):
        return 0
    at_once = _or(spec.get("parallelism"), 1)
    completions = spec.get("completions")
    if asks_for_nothing(BUILT_IN["batch/Job"], {"status": status}):
        return 0
    if completions is None:
        return min(at_once, _or(status.get("active"), 0)) if status.get("succeeded") else at_once
    left: int = completions - _or(status.get("succeeded"), 0) - _indexes(status.get("failedIndexes") or "")
    return max(0, min(at_once, left))


def _indexes(text: str) -> int:
    """Count the indexes of a Job's status, as ``1,3-5,7``."""
    ranges = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def replica_failure(status: Json) -> Unscheduled | None:
    """Read the condition ReplicaFailure of an object whose pods are refused, as by a ResourceQuota; None without it."""
    for condition in status.get("conditions") or ():
        since = condition.get("lastTransitionTime")
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True" and since:
            return unscheduled(refusal_wait(condition.get("message") or ""), read_moment(since))
    return None


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
