"""Kueue's Workloads and its words: what waits for quota at home, and what it holds back or has evicted elsewhere.

Conditions and reasons are those of `apis/kueue/v1beta1/workload_types.go` of Kueue 0.14. Objects of Workloads are
suspended and have no pods, or their pods are gated.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.observe.kubernetes.members import FollowedWorkloads
from reconciler.core.observe.kubernetes.placement_pods import PlacementProgress, with_more_pending
from reconciler.core.observe.kubernetes.pods import admission_key, controller_of, object_admission
from reconciler.core.observe.kubernetes.record_store import RecordStore
from reconciler.core.observe.kubernetes.replica_asks import AskRecord
from reconciler.core.observe.kubernetes.resources import SIGNAL_KINDS, Owner, Resource
from reconciler.core.observe.kubernetes.unscheduled import (
    Unscheduled,
    WaitingReplicas,
    unscheduled,
    with_kept_since,
    written_at,
)
from reconciler.core.observe.kubernetes.words.kueue import DEACTIVATED, quota_wait, words_of
from reconciler.core.observe.kubernetes.words.sayings import PodWait
from reconciler.core.pods.pod_admission import POD_GROUP
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.workloads.watch import ChangeEffect, namespace_of_key
from reconciler.model.capacity import PendingPods, ReplicaShape
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.signal import ReplicaRequest
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import Json
from reconciler.text.redaction import redacted
from reconciler.text.timestamps import read_moment

_LONGEST = 80
_LONGEST_HOLD = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRecord:
    """The record of a Workload that is not admitted (a `replica_asks.AskRecord`)."""

    owner: Owner
    signal: str
    replicas: int
    # For quota, or for something else.
    wait: Unscheduled
    shape: ReplicaShape | None
    # The uid of its owner, which may have gone and come back meanwhile; empty where unknown.
    owner_uid: str = ""

    @property
    def current(self) -> int:
        """Kueue counts pods, and states no scale."""
        return 0

    def ask(self, pods: int, ready: int) -> ReplicaRequest | None:
        """Ask for the missing pods of the object.

        Existing pods are counted by themselves: behind Kueue's scheduling gate if it holds back pods and not the
        object, as of a LeaderWorkerSet, or running if the object only grows.
        """
        del ready
        missing = self.replicas - pods
        if missing <= 0 or not self.wait.lacks_room:
            return None
        wait = self.wait
        return ReplicaRequest(signal=self.signal, replicas=missing, since=wait.since, cause=wait.cause, beyond=True)

    def waiting_on(self, before: QueuedRecord) -> QueuedRecord:
        """Return the record with the moment since which it lacks quota, or does not; `before` is it until now."""
        wait = with_kept_since(before.wait, self.wait)
        return self if wait is self.wait else replace(self, wait=wait)


def blocked_by_queue(record: AskRecord, pods: int) -> WaitingReplicas | None:
    """Return the pods that an object misses since its Workload waits for something else than quota, given its pods."""
    if not isinstance(record, QueuedRecord) or record.wait.lacks_room or record.replicas <= pods:
        return None
    return WaitingReplicas(replicas=record.replicas - pods, wait=record.wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRecord:
    """The record of a Workload that waits for something else than quota, by the `admission_key` of its gated pods."""

    admission: str
    wait: Unscheduled


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRecord:
    """The record of a Workload that Kueue has not admitted, or has evicted."""

    # The placement of its pods by their labels; empty where only the gated pods, or the object, tell.
    placement: PlacementName
    # The `admission_key` of its gated pods, or the `object_admission` of its object.
    admission: str
    # Pods that its object makes once it is admitted; 0 where they exist behind a gate.
    pods: int
    # When it lost its quota, or first got none; None while it has quota, or has not been looked at.
    since: datetime | None
    shape: ReplicaShape | None
    evicted: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord:
    """The record of a Workload that has quota and admission checks: its pods may begin on another cluster."""

    owner: Owner | None
    # The `admission_key` of its gated pods.
    admission: str
    # Whether it has begun: it is admitted or dispatched, or all of its checks are ready. A check may still refuse else.
    begun: bool
    # Whether MultiKueue runs it on another cluster.
    dispatched: bool
    message: str


def read_queued(raw: Json) -> QueuedRecord | None:
    """Read a Workload that is not admitted; None for any other, and for one of existing pods.

    It has no quota, or has some and waits for admission checks, which may refuse it.

    Pods that Kueue manages directly wait behind a gate. A Workload of one such pod is controlled by it, that of a pod
    group has no controller.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    owner = controller_of(metadata)
    if owner is None or owner.kind == "Pod":
        return None
    wait = _wait(metadata, spec, status)
    if wait is None:
        return None
    replicas, shape = _missing_pods(metadata, spec, status)
    if not replicas:
        return None
    return QueuedRecord(
        owner=owner,
        signal=sys.intern(_queue(spec)),
        replicas=replicas,
        wait=wait,
        shape=shape,
        owner_uid=next((each.get("uid") or "" for each in metadata["ownerReferences"] if each.get("controller")), ""),
    )


def read_block(raw: Json) -> BlockRecord | None:
    """Read a Workload that waits for something else than quota; None for any other."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    wait = _wait(metadata, spec, status)
    if wait is None or wait.lacks_room:
        return None
    return BlockRecord(admission=_admission(metadata, controller_of(metadata)), wait=wait)


def _wait(metadata: Json, spec: Json, status: Json) -> Unscheduled | None:
    """Read what a Workload that is not admitted waits for; None for any other."""
    conditions = _conditions(status)
    if "deletionTimestamp" in metadata or _is_true(conditions, "Finished"):
        return None
    reserved, requeued = conditions.get("QuotaReserved", {}), conditions.get("Requeued", {})
    since = reserved.get("lastTransitionTime") or metadata.get("creationTimestamp")
    if not since:
        return None
    # 1. It is deactivated.
    if spec.get("active") is False:
        return unscheduled(DEACTIVATED, read_moment(since))
    # 2. It has no quota.
    if reserved.get("status") == "False":
        out_of_queue = requeued.get("reason") or "" if requeued.get("status") == "False" else ""
        wait = quota_wait(reserved.get("reason") or "", reserved.get("message") or "", out_of_queue)
        wait = replace(wait, cause=sys.intern(wait.cause[:_LONGEST] if wait.reason.lacks_room else wait.cause))
        return unscheduled(wait, read_moment(since), written_at(metadata, "QuotaReserved"))
    # 3. It has some, and waits for admission checks.
    checks = _unready_checks(status) if _waits_for_checks(status, conditions) else ()
    if not checks:
        return None
    names = ", ".join(str(check.get("name")) for check in checks)
    cause = f"has quota, and waits for admission check {names}"[:_LONGEST]
    return unscheduled(PodWait(reason=WaitReason.QUOTA, cause=sys.intern(cause)), read_moment(since))


def read_hold(raw: Json, unlabelled: AbstractSet[tuple[str, str]] = frozenset()) -> HoldRecord | None:
    """Read a Workload that Kueue does not let run; None for any other, and for one that cannot be of a placement.

    `unlabelled` are the kinds and groups of objects that have the label of a placement in place of their pods.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    conditions = _conditions(status)
    evicted = _is_true(conditions, "Evicted")
    if "deletionTimestamp" in metadata or _is_true(conditions, "Finished"):
        return None
    if _is_true(conditions, "Admitted") and not evicted:
        return None
    owner, placement = controller_of(metadata), _placement(spec)
    of_pods = owner is None or owner.kind == "Pod"
    by_object = owner is not None and (owner.kind, owner.group) in unlabelled
    if not placement and not of_pods and not by_object:
        return None
    has_quota = _is_true(conditions, "QuotaReserved")
    reserved = conditions.get("QuotaReserved", {})
    unmade, shape = (0, None) if of_pods else _missing_pods(metadata, spec, status)
    return HoldRecord(
        placement=placement,
        admission=object_admission(owner) if owner is not None and by_object else _admission(metadata, owner),
        pods=0 if evicted and has_quota else unmade,  # its pods are being ended
        since=None if has_quota or not reserved else read_moment(reserved["lastTransitionTime"]),
        shape=shape,
        evicted=evicted,
        message=sys.intern(_describe_hold(spec, status, conditions)[:_LONGEST_HOLD]),
    )


def read_start(raw: Json) -> StartRecord | None:
    """Read a Workload that has quota and whose admission checks decide where and when it begins; None for any other.

    Rule of `SyncAdmittedCondition` in `pkg/workload/admissionchecks.go`: it is admitted once all checks are ready.
    Until then one of them may refuse it, and it loses its quota.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    conditions, cluster = _conditions(status), status.get("clusterName") or ""
    checks = status.get("admissionChecks") or ()
    if "deletionTimestamp" in metadata or not _is_true(conditions, "QuotaReserved"):
        return None
    if _is_true(conditions, "Finished") or _is_true(conditions, "Evicted") or not (cluster or checks):
        return None
    owner = controller_of(metadata)
    nominated = status.get("nominatedClusterNames") or ()
    message = f"{_queue(spec)} has reserved quota for it"
    if cluster:
        message = f"{_queue(spec)} has dispatched it to {cluster} by MultiKueue"
    elif nominated:
        message += f" and nominated {', '.join(map(str, nominated))} by MultiKueue"
    return StartRecord(
        owner=owner,
        admission=_admission(metadata, owner),
        begun=not _waits_for_checks(status, conditions),
        dispatched=bool(cluster),
        message=sys.intern(redacted(message)[:_LONGEST_HOLD]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedRecord:
    """The record of a placement's Workload that has quota, whether or not it is admitted."""

    placement: PlacementName
    # Pods that have not finished.
    pods: int


def read_reserved(raw: Json) -> ReservedRecord | None:
    """Read a Workload that has quota; None for any other, and for one whose pods are of no placement by their labels.

    What the ClusterQueue has reserved counts these pods, so that they are not in flight for it.
    """
    spec, status = raw["spec"], raw.get("status") or {}
    conditions, placement = _conditions(status), _placement(spec)
    if not placement or not _is_true(conditions, "QuotaReserved") or _is_true(conditions, "Finished"):
        return None
    return ReservedRecord(placement=placement, pods=sum(count for count, _ in _unfinished(spec, status)))


class KueueWorkloads:
    """The part of Kueue's Workloads (a `watch.ResourcePart`).

    Asks and starts are kept in the followed namespaces, holds in all: a placement may be in any.
    """

    def __init__(self, followed: FollowedWorkloads, meet: Callable[[AskRecord], None]) -> None:
        self._followed = followed
        self.asks: RecordStore[AskRecord] = RecordStore(read_queued, ChangeEffect.DEMAND, followed, meet, after=_after)
        self._blocks = RecordStore(read_block, ChangeEffect.DEMAND, followed)
        self._starts = RecordStore(read_start, ChangeEffect.DEMAND, followed, self._meet)
        self._holds = RecordStore(self._read_hold, ChangeEffect.DEMAND)
        self._reserved = RecordStore(read_reserved, ChangeEffect.CAPACITY)
        self._last_reserved: tuple[int, Mapping[PlacementName, int]] = 0, {}
        self._last: tuple[PlacementProgress, int, PlacementProgress] | None = None

    @property
    def _parts(
        self,
    ) -> tuple[
        RecordStore[AskRecord],
        RecordStore[BlockRecord],
        RecordStore[StartRecord],
        RecordStore[HoldRecord],
        RecordStore[ReservedRecord],
    ]:
        return self.asks, self._blocks, self._starts, self._holds, self._reserved

    def apply(self, raw: Json) -> ChangeEffect:
        """Apply a Workload: to all parts, or where one cannot read it to none."""
        changes = [part.prepare(raw) for part in self._parts]
        return max(change() for change in changes)

    def remove(self, key: str) -> ChangeEffect:
        """Apply the deletion of a Workload."""
        return max(part.remove(key) for part in self._parts)

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the Workloads with a record."""
        return set[str]().union(*(part.keys() for part in self._parts))

    def follow(self) -> None:
        """Drop what is outside of the followed namespaces, and meet the owners of the rest."""
        for part in (self.asks, self._blocks, self._starts):
            for key in [key for key in part.records if namespace_of_key(key) not in self._followed.namespaces]:
                part.remove(key)
        for record in self._starts.records.values():
            self._meet(record)

    def starts(self) -> Mapping[Owner, str]:
        """Return Kueue's words on each object that runs, or begins, without a pod here."""
        return self._words_by_owner(begun=True)

    def reservations(self) -> Mapping[Owner, str]:
        """Return Kueue's words on each object that has quota, and waits for admission checks."""
        return self._words_by_owner(begun=False)

    def _words_by_owner(self, *, begun: bool) -> Mapping[Owner, str]:
        records = self._starts.records.values()
        return {each.owner: each.message for each in records if each.owner is not None and each.begun is begun}

    def dispatched(self) -> Mapping[str, str]:
        """Return Kueue's words on gated pods that run on another cluster, by their `admission_key`."""
        return {record.admission: record.message for record in self._starts.records.values() if record.dispatched}

    def unadmitted(self) -> Mapping[str, Unscheduled]:
        """Return what gated pods wait for that is no lack of quota, by their `admission_key`."""
        return {record.admission: record.wait for record in self._blocks.records.values()}

    def progress(self, pods: PlacementProgress) -> PlacementProgress:
        """Return the progress of placements with what Kueue holds back; the same object until something changes."""
        if self._last is None or self._last[0] is not pods or self._last[1] != self._holds.version:
            self._last = pods, self._holds.version, _with_holds(pods, self._holds.records.values())
        return self._last[2]

    def reserved(self) -> Mapping[PlacementName, int]:
        """Return the pods of placements that have quota; the same object until something changes."""
        if self._last_reserved[0] != self._reserved.version:
            pods = Counter[PlacementName]()
            for record in self._reserved.records.values():
                pods[record.placement] += record.pods
            self._last_reserved = self._reserved.version, dict(sorted(pods.items()))
        return self._last_reserved[1]

    def _read_hold(self, raw: Json) -> HoldRecord | None:
        return read_hold(raw, self._followed.unlabelled)

    def _meet(self, record: StartRecord) -> None:
        if record.owner is not None:
            self._followed.meet((record.owner,))


def _after(before: AskRecord, now: AskRecord) -> AskRecord:
    """Return a record that follows another of the same Workload."""
    if isinstance(before, QueuedRecord) and isinstance(now, QueuedRecord):
        return now.waiting_on(before)
    return now


def _with_holds(progress: PlacementProgress, records: Iterable[HoldRecord]) -> PlacementProgress:
    """Add the Workloads that Kueue holds to the placements that they are of."""
    holds: dict[PlacementName, list[HoldRecord]] = {}
    for record in records:
        if name := record.placement or progress.admissions.get(record.admission):
            holds.setdefault(name, []).append(record)
    if not holds:
        return progress
    unadmitted: dict[PlacementName, str] = {}
    evicted: dict[PlacementName, str] = {}
    reasons, pending = dict(progress.waiting_reasons), dict(progress.pending_pods)
    for name, held in sorted(holds.items()):
        unadmitted[name] = _commonest(held)
        if any(record.evicted for record in held):
            evicted[name] = unadmitted[name]
        reasons[name] = "; ".join(part for part in (reasons.get(name), unadmitted[name]) if part)
        if unmade := [record for record in held if record.pods]:
            pending[name] = with_more_pending(pending.get(name), _unmade_pods(unmade))
    return replace(
        progress,
        unadmitted=unadmitted,
        evicted=evicted,
        waiting_reasons=dict(sorted(reasons.items())),
        pending_pods=dict(sorted(pending.items())),
    )


def _commonest(held: Iterable[HoldRecord]) -> str:
    """Return the words on most of the Workloads of a placement; evictions come first."""
    words = Counter((not record.evicted, record.message) for record in held)
    (_, message), _ = min(words.items(), key=lambda entry: (entry[0][0], -entry[1], entry[0][1]))
    return message


def _unmade_pods(held: list[HoldRecord]) -> PendingPods:
    """Return the pods that objects of one placement make once they are admitted."""
    pods = sum(record.pods for record in held)
    since = min((record.since for record in held if record.since is not None), default=None)
    largest = max(held, key=lambda record: record.pods)
    return PendingPods(replicas=pods, uncreated=pods, shape=largest.shape, since=since)


def _describe_hold(spec: Json, status: Json, conditions: Mapping[str, Json]) -> str:
    """Describe in Kueue's words why it does not let a Workload run."""
    evicted, reserved = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    queue, lacking = _queue(spec), _words(reserved)
    # 1. It was admitted, and had to go.
    if evicted.get("status") == "True":
        words = _words(evicted)
        again = lacking if reserved.get("status") == "False" and lacking != words else ""
        return f"{queue} evicted it ({evicted.get('reason')}): {'; '.join(part for part in (words, again) if part)}"
    # 2. It has quota.
    if reserved.get("status") == "True":
        checks = [
            ": ".join(part for part in (f"{check.get('name')} is {check.get('state')}", _words(check)) if part)
            for check in _unready_checks(status)
        ]
        return f"{queue} has reserved quota for it{': admission check ' if checks else ''}{', '.join(checks)}"
    # 3. It has none.
    return f"{queue} has not admitted it{': ' if lacking else ''}{lacking}"


def _waits_for_checks(status: Json, conditions: Mapping[str, Json]) -> bool:
    """Return whether a Workload has quota and is not admitted, since a check of it is not ready."""
    if not _is_true(conditions, "QuotaReserved") or any(_is_true(conditions, word) for word in ("Admitted", "Evicted")):
        return False
    return not status.get("clusterName") and bool(_unready_checks(status))


def _unready_checks(status: Json) -> tuple[Json, ...]:
    return tuple(check for check in status.get("admissionChecks") or () if check.get("state") != "Ready")


def _conditions(status: Json) -> Mapping[str, Json]:
    return {entry["type"]: entry for entry in status.get("conditions") or ()}


def _is_true(conditions: Mapping[str, Json], kind: str) -> bool:
    return bool(conditions.get(kind, {}).get("status") == "True")


def _queue(spec: Json) -> str:
    return f"{SIGNAL_KINDS[Resource.QUEUED]} {spec.get('queueName') or ''}".rstrip()


def _admission(metadata: Json, owner: Owner | None) -> str:
    """Return the `admission_key` of the pods that a Workload is of."""
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    pod = owner.name if owner is not None and owner.kind == "Pod" else ""
    return admission_key(namespace, pod, {} if pod else {POD_GROUP: name})


def _placement(spec: Json) -> PlacementName:
    """Return the placement that the pods of a Workload will be of, by their labels; empty for none."""
    templates = [entry.get("template") or {} for entry in spec.get("podSets") or ()]
    labels = [(template.get("metadata") or {}).get("labels") or {} for template in templates]
    return PlacementName(sys.intern(next((own[PLACEMENT_LABEL] for own in labels if PLACEMENT_LABEL in own), "")))


def _missing_pods(metadata: Json, spec: Json, status: Json) -> tuple[int, ReplicaShape | None]:
    """Count the pods of a Workload that have not finished, and read the shape of those that are most; 0 and None."""
    pod_sets = _unfinished(spec, status)
    total = sum(count for count, _ in pod_sets)
    if not total:
        return 0, None
    _, largest = max(pod_sets, key=lambda entry: entry[0])
    template = largest.get("template") or {}
    whole = {**(template.get("metadata") or {}), "namespace": metadata.get("namespace")}
    return total, replica_shape(template.get("spec") or {}, whole, whole=False)


def _unfinished(spec: Json, status: Json) -> list[tuple[int, Json]]:
    """Return the pod sets of a Workload, each with the number of its pods that have not finished."""
    done = {entry["name"]: entry["count"] for entry in status.get("reclaimablePods") or ()}
    return [(max(0, _count(entry) - done.get(entry.get("name"), 0)), entry) for entry in spec.get("podSets") or ()]


def _count(pod_set: Json) -> int:
    count = pod_set.get("count")
    return 1 if count is None else int(count)


def _words(entry: Json) -> str:
    """Return the message of a condition or check without words that say only that the Workload waits, or who came."""
    return words_of(entry.get("message") or "")
