"""Kueue's Workloads that wait for quota: their objects are suspended and have no pods."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.observe.kubernetes.pods import controller_of, read_time
from reconciler.core.observe.kubernetes.resources import SIGNAL_KINDS, Owner, Resource
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.capacity import ReplicaShape
from reconciler.model.signal import ReplicaRequest
from reconciler.model.workload import Json
from reconciler.text.redaction import redacted

_LACKING = frozenset(
    {
        "Pending",  # Kueue's reason unless its feature UnadmittedWorkloadsObservability is on
        "WaitingForQuota",
        "WaitingForPreemptedWorkloads",
        "ExceedsMaxQuota",
        "NoMatchingFlavor",
        "TopologyPlacementFailed",
    }
)
"""Reasons that more capacity would resolve; a stopped or missing queue, or a pending evaluation, is none."""
_PREAMBLE = re.compile(r"couldn't assign flavors to pod set [^:]*: ")
_LONGEST = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRecord:
    """The record of a Workload that waits for quota (a `replica_asks.AskRecord`)."""

    owner: Owner
    signal: str
    replicas: int
    since: datetime
    cause: str
    shape: ReplicaShape | None

    def ask(self, pods: int, ready: int) -> ReplicaRequest | None:
        """Ask for the missing pods of the object.

        Existing pods are counted by themselves: behind Kueue's scheduling gate if it holds back pods and not the
        object, as of a LeaderWorkerSet, or running if the object only grows.
        """
        del ready
        missing = self.replicas - pods
        if missing <= 0:
            return None
        return ReplicaRequest(signal=self.signal, replicas=missing, since=self.since, cause=self.cause, beyond=True)


def read_queued(raw: Json) -> QueuedRecord | None:
    """Read a Workload without quota; None for any other, and for one of existing pods.

    Pods that Kueue manages directly wait behind a gate. A Workload of one such pod is controlled by it, that of a pod
    group has no controller.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    conditions: dict[str, Json] = {entry["type"]: entry for entry in status.get("conditions") or ()}
    reserved = conditions.get("QuotaReserved", {})
    owner = controller_of(metadata)
    if owner is None or owner.kind == "Pod" or spec.get("active") is False:
        return None
    if conditions.get("Finished", {}).get("status") == "True":
        return None
    if reserved.get("status") != "False" or reserved.get("reason") not in _LACKING:
        return None
    done = {entry["name"]: entry["count"] for entry in status.get("reclaimablePods") or ()}
    pod_sets = [(max(0, _count(entry) - done.get(entry.get("name"), 0)), entry) for entry in spec.get("podSets") or ()]
    if not any(count for count, _ in pod_sets):
        return None
    _, largest = max(pod_sets, key=lambda entry: entry[0])
    template = largest.get("template") or {}
    return QueuedRecord(
        owner=owner,
        signal=sys.intern(f"{SIGNAL_KINDS[Resource.QUEUED]} {spec.get('queueName') or ''}".rstrip()),
        replicas=sum(count for count, _ in pod_sets),
        since=read_time(reserved["lastTransitionTime"]),
        cause=_cause(reserved.get("message") or ""),
        shape=replica_shape(
            template.get("spec") or {}, {**(template.get("metadata") or {}), "namespace": metadata.get("namespace")}
        ),
    )


def _count(pod_set: Json) -> int:
    count = pod_set.get("count")
    return 1 if count is None else int(count)


def _cause(message: str) -> str:
    """Shorten Kueue's message by its first words, which say only that the Workload waits."""
    return sys.intern(_PREAMBLE.sub("", " ".join(redacted(message).split()))[:_LONGEST] or "waits for quota")
