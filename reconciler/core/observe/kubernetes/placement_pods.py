"""The pods of placements in a cluster, and the progress of each placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from reconciler.core.observe.kubernetes.placed_objects import PlacedRecord
from reconciler.core.observe.kubernetes.pods import PodRecord, object_admission
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.model.capacity import FailedObject, GpuPod, NonGpuPods, PendingPods, SucceededPods
from reconciler.model.ids import PlacementName
from reconciler.model.units import ONE
from reconciler.text.wording import is_gpu

_REMEMBERED = timedelta(days=1)
"""How long the end of an object that is gone is known: far longer than any pass is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementProgress:
    """The progress of the pods of placements, as in `ClusterObservation`."""

    bound: Mapping[PlacementName, int] = field(default_factory=dict)
    ready: Mapping[PlacementName, int] = field(default_factory=dict)
    non_gpu_pods: Mapping[PlacementName, NonGpuPods] = field(default_factory=dict)
    gpu_pods: Mapping[PlacementName, tuple[GpuPod, ...]] = field(default_factory=dict)
    pending_pods: Mapping[PlacementName, PendingPods] = field(default_factory=dict)
    waiting_reasons: Mapping[PlacementName, str] = field(default_factory=dict)
    succeeded: Mapping[PlacementName, SucceededPods] = field(default_factory=dict)
    failed: Mapping[PlacementName, FailedObject] = field(default_factory=dict)
    unfinished: AbstractSet[PlacementName] = frozenset()
    unadmitted: Mapping[PlacementName, str] = field(default_factory=dict)
    evicted: Mapping[PlacementName, str] = field(default_factory=dict)
    refused: Mapping[PlacementName, str] = field(default_factory=dict)
    rejected: Mapping[PlacementName, int] = field(default_factory=dict)
    """Pods in `bound` that count as having no node: it has rejected those before them."""
    admissions: Mapping[str, PlacementName] = field(default_factory=dict)
    """The placement of gated pods, and of objects that have the label in place of their pods, by the key by which
    Kueue's Workload of them is found."""


def with_more_pending(before: PendingPods | None, more: PendingPods) -> PendingPods:
    """Add pods to those of their placement that have no node; those of `before` that merely help are left out."""
    if before is None or before.helping:
        return more
    return PendingPods(
        replicas=before.replicas + more.replicas,
        uncreated=before.uncreated + more.uncreated,
        shape=before.shape if before.shape is not None else more.shape,
        since=min((each.since for each in (before, more) if each.since is not None), default=None),
    )


class PlacementPods:
    """The pods of each placement; terminating pods are no replicas any more."""

    def __init__(self) -> None:
        self._pods: dict[PlacementName, dict[str, PodRecord]] = {}
        self._succeeded: dict[str, tuple[PlacementName, datetime]] = {}
        self._objects: dict[Owner, PlacedRecord] = {}
        self._ended: dict[Owner, PlacedRecord] = {}
        self._unread: AbstractSet[tuple[str, str]] = frozenset()
        self._progress: PlacementProgress | None = None

    @property
    def pods(self) -> Mapping[PlacementName, Collection[PodRecord]]:
        """The pods of each placement that have not finished."""
        return {name: pods.values() for name, pods in self._pods.items()}

    @property
    def succeeded(self) -> Mapping[str, tuple[PlacementName, datetime]]:
        """The pods that have succeeded, with their placement and their end."""
        return self._succeeded

    def succeed(self, key: str, success: tuple[PlacementName, datetime] | None) -> bool:
        """Keep that a pod has succeeded, or that it has not; return whether that is new."""
        if self._succeeded.get(key) == success:
            return False
        self._progress = None
        if success is None:
            del self._succeeded[key]
        else:
            self._succeeded[key] = success
        return True

    def end(self, owner: Owner, record: PlacedRecord | None) -> None:
        """Keep what an object's status says of the end of its run; None once the object is gone.

        An end that was said stays known without the object, which its own controller may delete then
        (`ttlSecondsAfterFinished`), and beside another of its name, which an engine may make in its place.
        """
        self._progress = None
        before = self._objects.pop(owner, None)
        if before is not None and before.ended_at is not None and (record is None or record.uid != before.uid):
            self._ended[owner] = before
        if record is not None:
            self._objects[owner] = record

    def forget_ends(self, now: datetime) -> None:
        """Drop the ends of objects that are gone once they are so old that every pass has seen them."""
        old = [owner for owner, record in self._ended.items() if now - _ended_at(record) > _REMEMBERED]
        for owner in old:
            self._progress = None
            del self._ended[owner]

    def disregard_ends(self, kinds: AbstractSet[tuple[str, str]]) -> None:
        """Take how the runs of these kinds of objects have ended, by kind and group of an `Owner`, for unknown."""
        if kinds != self._unread:
            self._unread = frozenset(kinds)
            self._progress = None

    def count(self, key: str, pod: PodRecord, sign: int) -> None:
        """Add a pod, or remove it."""
        self._progress = None
        if sign > 0:
            self._pods.setdefault(pod.placement, {})[key] = pod
            return
        pods = self._pods[pod.placement]
        del pods[key]
        if not pods:
            del self._pods[pod.placement]

    def progress(self) -> PlacementProgress:
        """Return the progress of each placement; the same object until something changes."""
        if self._progress is None:
            known = [record for owner, record in self._sorted_ends() if self._is_read(owner)]
            failed = {record.placement: record.failed for record in known if record.failed}
            pods = _summed_up(self._pods)
            objects = {object_admission(owner): record.placement for owner, record in self._objects.items()}
            self._progress = replace(
                pods,
                succeeded=self._succeeded_placements(),
                failed=failed,
                unfinished=frozenset(record.placement for record in known if record.ended_at is None),
                admissions={**pods.admissions, **objects},
            )
        return self._progress

    def _sorted_ends(self) -> Iterator[tuple[Owner, PlacedRecord]]:
        """Yield what objects say and have said, by owner: what is gone before what is in its place."""
        for owner in sorted({*self._ended, *self._objects}):
            for records in (self._ended, self._objects):
                if owner in records:
                    yield owner, records[owner]

    def _is_read(self, owner: Owner) -> bool:
        return (owner.kind, owner.group) not in self._unread

    def _succeeded_placements(self) -> Mapping[PlacementName, SucceededPods]:
        """Sum up the placements whose pods have all finished, and those with complete objects."""
        ends: dict[PlacementName, list[datetime]] = {}
        for placement, end in self._succeeded.values():
            if placement not in self._pods:
                ends.setdefault(placement, []).append(end)
        complete: dict[PlacementName, dict[Owner, datetime]] = {}
        for owner, record in self._sorted_ends():
            if record.complete_at is not None and self._is_read(owner):
                complete.setdefault(record.placement, {})[owner] = record.complete_at
        return {
            name: SucceededPods(
                pods=len(ends.get(name, ())),
                at=max(complete[name].values()) if name in complete else max(ends[name]),
                objects=len(complete.get(name, ())),
            )
            for name in sorted({*ends, *complete})
        }


def _ended_at(record: PlacedRecord) -> datetime:
    return record.ended_at or datetime.max.replace(tzinfo=UTC)


def _summed_up(placements: Mapping[PlacementName, Mapping[str, PodRecord]]) -> PlacementProgress:
    bound: dict[PlacementName, int] = {}
    ready: dict[PlacementName, int] = {}
    non_gpu_pods: dict[PlacementName, NonGpuPods] = {}
    pending_pods: dict[PlacementName, PendingPods] = {}
    waiting_reasons: dict[PlacementName, str] = {}
    gpu_pods: dict[PlacementName, tuple[GpuPod, ...]] = {}
    admissions: dict[str, PlacementName] = {}
    for name, pods in sorted(placements.items()):
        if using := tuple(_gpu_pod(key, pod) for key, pod in sorted(pods.items()) if _has_gpus(pod)):
            gpu_pods[name] = using
        staying = [pod for _, pod in sorted(pods.items()) if not pod.leaving]
        if not staying:
            continue
        ready[name] = sum(pod.ready for pod in staying)
        if runs := sum(pod.runs for pod in staying):
            bound[name] = runs
        if helping := [pod for pod in staying if pod.helping and pod.node]:
            non_gpu_pods[name] = NonGpuPods(bound=len(helping), ready=sum(pod.ready for pod in helping))
        admissions |= {pod.admission: name for pod in staying if pod.admission}
        waiting = [pod for pod in staying if not pod.node]
        asking = [pod for pod in waiting if not pod.helping]
        shape = next((pod.shape for pod in asking or waiting if pod.shape), None)
        if shape is not None:
            since = min((pod.held.since for pod in asking or waiting if pod.held), default=None)
            pending_pods[name] = PendingPods(
                replicas=len(asking or waiting), shape=shape, helping=not asking, since=since
            )
        if pods_by_reason := Counter(pod.waiting_reason for pod in staying if pod.waiting_reason):
            waiting_reason, pods_in_it = min(pods_by_reason.items(), key=lambda entry: (-entry[1], entry[0]))
            waiting_reasons[name] = f"{pods_in_it} of {len(staying)} pods {waiting_reason}"
    return PlacementProgress(
        bound=bound,
        ready=ready,
        non_gpu_pods=non_gpu_pods,
        gpu_pods=gpu_pods,
        pending_pods=pending_pods,
        waiting_reasons=waiting_reasons,
        admissions=admissions,
    )


def _has_gpus(pod: PodRecord) -> bool:
    """Return whether a pod may use GPUs now; a terminating one may as well."""
    return bool(pod.node) and not pod.nominated and (bool(pod.holds) or pod.shares_gpu or bool(_gpus(pod)))


def _gpu_pod(key: str, pod: PodRecord) -> GpuPod:
    namespace, _, name = key.partition("/")
    return GpuPod(namespace=namespace, name=name, gpus=0 if pod.holds or pod.shares_gpu else _gpus(pod))


def _gpus(pod: PodRecord) -> int:
    return sum(amount for name, amount in pod.requests.amounts.items() if is_gpu(name)) // ONE
