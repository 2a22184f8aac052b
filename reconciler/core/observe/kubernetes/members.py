"""The pods of a cluster with their owners, and the workload objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.observe.kubernetes.capacity.free_nodes import NodeTracker
from reconciler.core.observe.kubernetes.controllers import ControllerRecord, read_controller
from reconciler.core.observe.kubernetes.node_rejections import NodeRejections, read_rejection
from reconciler.core.observe.kubernetes.ownership import BUILT_IN_MARKS, Marks, labelled_owners
from reconciler.core.observe.kubernetes.placed_objects import PlacedRecord, read_placed
from reconciler.core.observe.kubernetes.placement_pods import PlacementPods
from reconciler.core.observe.kubernetes.pods import (
    PodRecord,
    controller_of,
    ended_owners,
    placement_of,
    read_pod,
    read_success,
)
from reconciler.core.observe.kubernetes.resources import Owner, Resource
from reconciler.core.observe.kubernetes.unplaced_workloads import UnplacedWorkloads
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.watch import ChangeEffect, key_of, namespace_of_key
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json, WorkloadRef


class FollowedWorkloads:
    """The followed workloads, and the marks by which their pods are found.

    The parts of a cluster share one instance, so that all see a change at once. `met` are the owners of pods or asks,
    by kind and group. `unlabelled` are the kinds and groups of owners that have the label of a placement in place of
    their pods. `bare_pods` says whether placements make pods without a controller, whose end is their run's.
    """

    def __init__(
        self,
        refs: AbstractSet[WorkloadRef],
        marks: Marks = BUILT_IN_MARKS,
        unlabelled: AbstractSet[tuple[str, str]] = frozenset(),
        *,
        bare_pods: bool = False,
    ) -> None:
        self.follow(refs, marks, unlabelled, bare_pods=bare_pods)

    def follow(
        self,
        refs: AbstractSet[WorkloadRef],
        marks: Marks,
        unlabelled: AbstractSet[tuple[str, str]],
        *,
        bare_pods: bool,
    ) -> None:
        """Follow these from now on, without any met."""
        self.refs = frozenset(refs)
        self.unlabelled = frozenset(unlabelled)
        self.bare_pods = bare_pods
        self.namespaces = {ref.namespace for ref in refs}
        self.marks = marks
        self.met: set[WorkloadRef] = set()
        self._named: dict[tuple[str, str], list[WorkloadRef]] = {}
        for ref in self.refs:
            self._named.setdefault((ref.namespace, ref.name), []).append(ref)

    def meet(self, owners: Iterable[Owner]) -> None:
        """Record the owners of an object, if they are followed."""
        for owner in owners:
            if any(owner.meant_by(ref) for ref in self._named.get((owner.namespace, owner.name), ())):
                self.met.add(owner.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPod:
    """What a pod counts for, while it counts for one placement, or for none."""

    record: PodRecord | None
    """None if it has finished."""
    success: tuple[PlacementName, datetime] | None
    """Its placement, and when it has succeeded; None while it has not, and without a placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledPod:
    """A pod whose owners may have the label of a placement in its place, read for both cases.

    Its owners are read later, or change: no pod that cannot be read keeps any of them from being read then.
    """

    owners: tuple[Owner, ...]
    alone: ReadPod
    placed: ReadPod

    def read(self, placement: PlacementName | None) -> ReadPod:
        """Return what it counts for with the placement of its owner; None for none."""
        if placement is None:
            return self.alone
        record, success = self.placed.record, self.placed.success
        return ReadPod(
            record=None if record is None else replace(record, placement=placement),
            success=None if success is None else (placement, success[1]),
        )


class UnlabelledPods:
    """The pods whose owner may have the label of a placement in their place."""

    def __init__(self) -> None:
        self._pods: dict[str, UnlabelledPod] = {}
        self._by_owner: dict[Owner, set[str]] = {}

    def put(self, key: str, pod: UnlabelledPod | None) -> None:
        """Keep a pod, or drop it."""
        before = self._pods.pop(key, None)
        for owner in before.owners if before is not None else ():
            _enter(self._by_owner, owner, key, -1)
        if pod is not None:
            self._pods[key] = pod
        for owner in pod.owners if pod is not None else ():
            _enter(self._by_owner, owner, key, 1)

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the pods."""
        return self._pods.keys()

    def of(self, owner: Owner) -> tuple[tuple[str, UnlabelledPod], ...]:
        """List the pods of an owner by key."""
        return tuple((key, self._pods[key]) for key in sorted(self._by_owner.get(owner, ())))


_SOME = PlacementName("any")
"""The placement of a pod for which it is read before its owner names one."""
_GONE = ReadPod(record=None, success=None)


class PodSums:
    """The part of pods (a `watch.ResourcePart`): by owner, by placement, and on their nodes. About 400 bytes a pod."""

    def __init__(self, followed: FollowedWorkloads, room: NodeTracker) -> None:
        self._followed = followed
        self._room = room
        self._pods: dict[str, PodRecord] = {}
        self._by_owner: dict[Owner, set[str]] = {}
        self._ours = PlacementPods()
        self._claiming: set[str] = set()
        self._placed: dict[Owner, PlacedRecord] = {}
        self._bare: dict[str, PlacedRecord] = {}
        self._unlabelled = UnlabelledPods()
        self._ended: dict[str, tuple[Owner, ...]] = {}
        self._ended_by_owner: dict[Owner, set[str]] = {}
        self.unplaced = UnplacedWorkloads(frozenset())
        """The workloads of pods without the label of a placement."""
        self.rejections = NodeRejections()
        """The pods of followed namespaces and of placements that their nodes have rejected."""

    @property
    def pods(self) -> Mapping[str, PodRecord]:
        """All pods that have not finished."""
        return self._pods

    @property
    def by_owner(self) -> Mapping[Owner, Iterable[str]]:
        """The pods of each object that controls them, or that their marks name."""
        return self._by_owner

    @property
    def ended(self) -> Mapping[Owner, Collection[str]]:
        """The pods that have succeeded or failed, and still exist, of each object with a controller of its own."""
        return self._ended_by_owner

    @property
    def ours(self) -> PlacementPods:
        """The pods of placements."""
        return self._ours

    def bound(self, allocated: AbstractSet[str] | None) -> Mapping[PlacementName, int]:
        """Count the bound replicas of each placement.

        A pod with a claim outside of `allocated` holds devices whose allocation is not observed yet: it counts as in
        flight, or its devices would count as free. None without an observation of claims.
        """
        bound = self._ours.progress().bound
        if allocated is None or not self._claiming:
            return bound
        counts = Counter(bound)
        claiming = [self._pods[key] for key in self._claiming]
        counts.subtract(pod.placement for pod in claiming if not allocated >= set(pod.holds))
        return {name: count for name, count in sorted(counts.items()) if count}

    def apply(self, raw: Json) -> ChangeEffect:
        """Apply a pod."""
        key, owners = key_of(raw), self._owners_with_label(raw["metadata"])
        pod = self._read(raw)
        unlabelled = UnlabelledPod(owners=owners, alone=pod, placed=self._read(raw, _SOME)) if owners else None
        self._unlabelled.put(key, unlabelled)
        effect = self._count_as(key, pod if unlabelled is None else self._read_placed(unlabelled))
        effect = max(effect, self._note_end(key, ended_owners(raw, self._followed.marks)), self._note_rejection(raw))
        if self._followed.bare_pods and _is_placed(raw["metadata"]):
            return self._end(key, read_placed(raw, BUILT_IN["/Pod"])) or effect
        return effect

    def remove(self, key: str) -> ChangeEffect:
        """Apply the deletion of a pod."""
        self._unlabelled.put(key, None)
        self._end(key, None)
        return max(self._note_end(key, ()), self._count_as(key, _GONE))

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the pods that have not finished, and of those of placements that have succeeded."""
        ended = self._ours.succeeded.keys() | self._bare.keys() | self._ended.keys()
        return self._pods.keys() | self._unlabelled.keys() | ended

    def place(self, owner: Owner, record: PlacedRecord | None) -> None:
        """Count the pods of an object without a label of their own for its placement, or for none any more."""
        before = self._placed.pop(owner, None)
        if record is not None:
            self._placed[owner] = record
        self._ours.end(owner, record)
        if before is None or record is None or before.placement != record.placement:
            for key, pod in self._unlabelled.of(owner):
                self._count_as(key, self._read_placed(pod))

    def _end(self, key: str, record: PlacedRecord | None) -> ChangeEffect:
        """Note how the run of a pod that is an object of its placement has ended; None for one that is gone."""
        if self._bare.get(key) == record:
            return ChangeEffect.NOTHING
        namespace, _, name = key.partition("/")
        self._ours.end(Owner(Resource.PODS.kind, namespace, name), record)
        if record is None:
            del self._bare[key]
        else:
            self._bare[key] = record
        return ChangeEffect.DEMAND

    def _note_end(self, key: str, owners: tuple[Owner, ...]) -> ChangeEffect:
        """Note the owners of a pod that has finished; none of one that goes on, or is gone."""
        before = self._ended.pop(key, ())
        if owners:
            self._ended[key] = owners
        if before == owners:
            return ChangeEffect.NOTHING
        for owner in before:
            _enter(self._ended_by_owner, owner, key, -1)
        for owner in owners:
            _enter(self._ended_by_owner, owner, key, 1)
        return ChangeEffect.DEMAND if namespace_of_key(key) in self._followed.namespaces else ChangeEffect.NOTHING

    def _note_rejection(self, raw: Json) -> ChangeEffect:
        """Note that a kubelet has rejected a pod."""
        rejection = read_rejection(raw, self._followed.marks)
        ours = rejection is not None and (
            rejection.placement
            or raw["metadata"]["namespace"] in self._followed.namespaces
            or self._owners_with_label(raw["metadata"])
        )
        if rejection is None or not ours or not self.rejections.note(rejection):
            return ChangeEffect.NOTHING
        return ChangeEffect.DEMAND

    def _owners_with_label(self, metadata: Json) -> tuple[Owner, ...]:
        """Return the owners that may have the label of a placement in place of a pod with these metadata."""
        if not self._followed.unlabelled or PLACEMENT_LABEL in (metadata.get("labels") or {}):
            return ()
        owners = labelled_owners(metadata, metadata.get("namespace", ""), self._followed.marks)
        return tuple(owner for owner in owners if (owner.kind, owner.group) in self._followed.unlabelled)

    def _read(self, raw: Json, placement: PlacementName | None = None) -> ReadPod:
        """Read a pod for a placement; None is that of its own label."""
        placement = placement_of(raw["metadata"]) if placement is None else placement
        end = read_success(raw) if placement else None
        record = read_pod(raw, self._followed.marks, placement)
        return ReadPod(record=record, success=None if end is None else (placement, end))

    def _read_placed(self, pod: UnlabelledPod) -> ReadPod:
        """Return what a pod counts for with the label of its first owner that has one."""
        owner = next((owner for owner in pod.owners if owner in self._placed), None)
        return pod.read(None if owner is None else self._placed[owner].placement)

    def _count_as(self, key: str, pod: ReadPod) -> ChangeEffect:
        effect = self._put(key, pod.record)
        return ChangeEffect.DEMAND if self._ours.succeed(key, pod.success) else effect

    def _put(self, key: str, record: PodRecord | None) -> ChangeEffect:
        before = self._pods.get(key)
        record = record and record.waiting_on(before)
        if before == record:
            return ChangeEffect.NOTHING
        if before is not None:
            self._count(key, before, -1)
        if record is None:
            del self._pods[key]
        else:
            self._pods[key] = record
            self._count(key, record, 1)
            self._followed.meet(record.owners)
        pods = [pod for pod in (before, record) if pod is not None]
        if namespace_of_key(key) in self._followed.namespaces:
            return ChangeEffect.DEMAND
        ours = record is not None and record.placement
        if before and record and not ours and replace(before, ready=record.ready, taken=record.taken) == record:
            return ChangeEffect.NOTHING  # it has started, which counts for placements alone
        if any(pod.held or pod.placement for pod in pods):
            return ChangeEffect.DEMAND
        return ChangeEffect.CAPACITY if any(pod.node for pod in pods) else ChangeEffect.NOTHING

    def _count(self, key: str, pod: PodRecord, sign: int) -> None:
        """Add a pod to its sums, or subtract it."""
        for owner in pod.owners:
            _enter(self._by_owner, owner, key, sign)
        self.unplaced.count(pod, sign)
        if pod.placement:
            self._ours.count(key, pod, sign)
        if pod.holds and pod.runs:
            (self._claiming.add if sign > 0 else self._claiming.discard)(key)
        if pod.node:
            self._room.count(pod, sign)


class Controllers:
    """The part of one kind of workload objects (a `watch.ResourcePart`), in the followed namespaces.

    The parts of all kinds write into the same `records`: an object of one kind owns objects of another.
    """

    def __init__(self, resource: Resource, followed: FollowedWorkloads, records: dict[Owner, ControllerRecord]) -> None:
        self._resource = resource
        self._followed = followed
        self._records = records

    def apply(self, raw: Json) -> ChangeEffect:
        """Apply a workload object."""
        key = key_of(raw)
        if namespace_of_key(key) not in self._followed.namespaces:
            return ChangeEffect.NOTHING
        return self._put(key, read_controller(self._resource, raw, self._followed.marks))

    def remove(self, key: str) -> ChangeEffect:
        """Apply the deletion of a workload object."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the kept objects."""
        kind = self._resource.kind
        return {f"{owner.namespace}/{owner.name}" for owner in self._records if owner.kind == kind}

    def _put(self, key: str, record: ControllerRecord | None) -> ChangeEffect:
        namespace, _, name = key.partition("/")
        owner = Owner(self._resource.kind, namespace, name)
        if self._records.get(owner) == record:
            return ChangeEffect.NOTHING
        if record is None:
            del self._records[owner]
        else:
            self._records[owner] = record
            self._followed.meet(record.owners)
        return ChangeEffect.DEMAND


def _is_placed(metadata: Json) -> bool:
    """Return whether a pod is an object of a placement itself, which no controller makes, nor anybody deletes now."""
    if PLACEMENT_LABEL not in (metadata.get("labels") or {}) or "helm.sh/hook" in (metadata.get("annotations") or {}):
        return False
    return "deletionTimestamp" not in metadata and controller_of(metadata) is None


def _enter(index: dict[Owner, set[str]], owner: Owner, key: str, sign: int) -> None:
    """Add a key to the set of its owner, or remove it; an empty set is dropped."""
    if sign > 0:
        index.setdefault(owner, set()).add(key)
        return
    index[owner].discard(key)
    if not index[owner]:
        del index[owner]
