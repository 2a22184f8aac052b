"""The pods that an object asks for at home: how many, and which of those that exist make them up.

An object asks for what it states, whatever pods exist: a rollout makes pods of a new revision beside those of the old
one, for which no room has to be found elsewhere. Where what an object makes is autoscaled, that states how many
(`WorkloadKind.scaled_below`); where nothing that is known states it, the pods that exist are what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord
from reconciler.core.observe.kubernetes.pod_groups import group_of
from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled
from reconciler.model.kubernetes.workload_kind import EACH

ObjectRecord = ControllerRecord | CustomWorkloadRecord
Maker = tuple[ControllerRecord, list[PodRecord]]
"""An object that creates pods, and its pods that stay."""

_CANARY, _PRIMARY = "Canary", "-primary"
"""The kind of Flagger, and the suffix of the copy that it makes of the target of one (Flagger 15bd6ad5,
pkg/canary/deployment_controller.go)."""
_LATE = datetime.max.replace(tzinfo=UTC)
_REPLICA_SET = "ReplicaSet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Pods that stand for one another, as those of all revisions of a Deployment."""

    wanted: int
    pods: tuple[PodRecord, ...]
    """Those that make up the wanted ones, with a node first."""
    draining: tuple[datetime, ...]
    """By when each pod that is being deleted leaves its room to a successor."""
    makers: tuple[Maker, ...]
    """The objects that create its pods, without those that create the pods of other gangs than these."""
    refused: Unscheduled | None = None
    """Why objects with controllers of their own, which create its pods themselves, create no more of them."""
    uncreated: int = 0
    """The pods that these may not create."""


class ObjectTree:
    """Objects that make pods, the objects that they make, and the pods."""

    def __init__(
        self,
        objects: Mapping[Owner, ObjectRecord],
        pods: Mapping[str, PodRecord],
        by_owner: Mapping[Owner, Iterable[str]],
        *,
        is_open: Callable[[str], bool],
        is_gone: Callable[[Owner], bool],
    ) -> None:
        self._objects = objects
        self._pods = pods
        self._by_owner = by_owner
        self._is_open = is_open
        self._is_gone = is_gone
        self._known_keys: dict[Owner, list[str]] = {}
        self._known_leaving: dict[Owner, bool] = {}

    @cached_property
    def owned(self) -> Mapping[Owner, Sequence[Owner]]:
        """The objects that belong to each object, by owner reference or by the labels of their pods.

        Objects whose owner references lead back to them belong to none of each other: nothing refuses such references.
        """
        owned: dict[Owner, list[Owner]] = {}
        for each, record in self._objects.items():
            for owner in record.owners:
                if each != owner and each not in self.above(owner):
                    owned.setdefault(owner, []).append(each)
        return owned

    def below(self, root: Owner) -> Iterator[Owner]:
        """Yield an object and all that belong to it, directly or not."""
        seen: set[Owner] = set()
        open_ = [root]
        while open_:
            owner = open_.pop()
            if owner not in seen:
                seen.add(owner)
                yield owner
                open_ += self.owned.get(owner, ())

    def above(self, root: Owner) -> Iterator[Owner]:
        """Yield the objects that an object belongs to, directly or not."""
        seen: set[Owner] = {root}
        open_ = [root]
        while open_:
            record = self._objects.get(open_.pop())
            for owner in record.owners if record is not None else ():
                if owner not in seen:
                    seen.add(owner)
                    open_.append(owner)
                    yield owner

    def is_leaving(self, owner: Owner) -> bool:
        """Return whether an object is gone or being deleted, or what has made it, with which it goes.

        What belongs to another object by a label alone, as to the name of a release, does not go with it.
        """
        leaving = self._known_leaving.get(owner)
        if leaving is None:
            self._known_leaving[owner] = False  # an object that belongs to itself goes with nothing
            record = self._objects.get(owner)
            if record is None:
                leaving = self._is_gone(owner)
            else:
                above = record.owner
                leaving = record.identity.leaving or (above is not None and self.is_leaving(above))
            self._known_leaving[owner] = leaving
        return leaving

    def serving(self, root: Owner) -> Owner:
        """Return the object that serves in the place of another: Flagger's copy of its target, else itself.

        Flagger scales a target to nothing, and up while a new revision is analyzed: its pods are those of a canary.
        """
        copy = root._replace(name=f"{root.name}{_PRIMARY}")
        record = self._objects.get(copy)
        if record is None or record.owner is None or record.owner.kind != _CANARY:
            return root
        return root if self.is_leaving(root) or self.is_leaving(copy) else copy

    def made(self, root: Owner) -> list[Owner]:
        """Return the objects that an object makes itself, as a Rollout its ReplicaSets.

        Of a Deployment and its ReplicaSet, whose pods have the same marks, it is the Deployment.
        """
        own = self.owned.get(root, ())
        return [each for each in sorted(own) if not any(owner in own for owner in self._objects[each].owners)]

    def pods_below(self, root: Owner) -> list[PodRecord]:
        """Return the pods of an object and of all that belong to it, terminating ones included."""
        return [self._pods[key] for key in self._keys_below(root)]

    def staying_below(self, root: Owner) -> list[PodRecord]:
        """Return the pods of an object and of all that belong to it, without those that go."""
        return [pod for pod in self.pods_below(root) if self._stays(pod)]

    def _stays(self, pod: PodRecord) -> bool:
        """Return whether a pod counts: neither it is being deleted, nor what has made it, with which it goes."""
        return not pod.leaving and (pod.owner is None or not self.is_leaving(pod.owner))

    def _keys_below(self, root: Owner) -> list[str]:
        keys = self._known_keys.get(root)
        if keys is None:
            of_any = set[str]().union(*(self._by_owner.get(owner, ()) for owner in self.below(root)))
            keys = self._known_keys[root] = sorted(of_any)
        return keys

    def parts(self, root: Owner) -> list[Part]:
        """Return the parts of an object, each with the pods that make it up."""
        record = self._objects.get(root)
        stated = None if record is None else record.wanted
        # 1. It is being deleted, and asks for nothing.
        if self.is_leaving(root):
            return [self._part(root, 0, [root])]
        below = isinstance(record, CustomWorkloadRecord) and record.scaled_below
        made = self.made(root) if below or stated is None else []
        # 2. The object states it.
        if stated is not None and not made:
            return [self._part(root, stated, [root])]
        # 3. What it makes states it. Of the revisions of a part one is wanted.
        parts = [self._part(root, self._wanted_of(revisions), revisions) for revisions in self._by_part(record, made)]
        # 4. Nothing states it of pods that it makes itself.
        covered = {key for each in made for key in self._keys_below(each)}
        rest = [key for key in self._keys_below(root) if key not in covered]
        if rest:
            staying = sum(1 for key in rest if self._stays(self._pods[key]))
            left = staying if stated is None else min(staying, max(0, stated - sum(part.wanted for part in parts)))
            parts.append(self._made_up(root, left, rest))
        return parts

    def _wanted_of(self, revisions: Sequence[Owner]) -> int:
        """Count the pods that are wanted of a part: those of its largest revision.

        Where one replaces another pod by pod, that is as many as the earlier one had, if they state as many together.
        """
        stated = [sum(part.wanted for part in self.parts(each)) for each in revisions]
        records = (self._objects[each] for each in revisions)
        before = (record.replaced for record in records if isinstance(record, CustomWorkloadRecord))
        return max(*stated, min(sum(stated), max(before, default=0)))

    def _by_part(self, record: ObjectRecord | None, made: Iterable[Owner]) -> list[list[Owner]]:
        """Group the objects that an object makes into the revisions of each part."""
        label = record.revisions if isinstance(record, CustomWorkloadRecord) else ""
        parts: dict[object, list[Owner]] = {}
        for each in made:
            part = dict(self._objects[each].identity.part).get(label)
            key: object = each if part is None else part
            if label == EACH or (record is None and each.kind == _REPLICA_SET):
                key = each.kind
            parts.setdefault(key, []).append(each)
        return list(parts.values())

    def _part(self, root: Owner, wanted: int, owners: Sequence[Owner]) -> Part:
        """Make up the part of `root` that these objects are."""
        keys: Iterable[str] = self._keys_below(owners[0])
        if len(owners) > 1:
            keys = dict.fromkeys(key for owner in owners for key in self._keys_below(owner))
        records = [self._objects.get(owner) for owner in owners]
        gangs = [record.gangs for record in records if isinstance(record, CustomWorkloadRecord)]
        by_gang = owners[0] if gangs and len(owners) == 1 else root
        below = (self._objects.get(each) for owner in owners for each in self.below(owner))
        refused = [record for record in below if isinstance(record, CustomWorkloadRecord) and record.refused]
        part = self._made_up(by_gang, wanted, keys, list(self._makers(owners)), sum(gangs))
        if not refused:
            return part
        return replace(part, refused=refused[0].refused, uncreated=sum(record.uncreated for record in refused))

    def _made_up(
        self, by_gang: Owner, wanted: int, keys: Iterable[str], makers: Sequence[Maker] = (), gangs: int = 0
    ) -> Part:
        """Choose the pods that make up the wanted ones; `by_gang` is the object whose gangs they are in."""
        everyone = [self._pods[key] for key in keys]
        pods = [pod for pod in everyone if self._stays(pod)]
        draining = sorted(pod.drained for pod in everyone if pod.drained is not None and self._is_open(pod.node))
        kept = _kept_gangs(by_gang, pods, gangs)
        if kept is not None:
            pods = [pod for pod in pods if group_of(by_gang, pod.groups) in kept]
            makers = [each for each in makers if group_of(by_gang, each[0].groups) in kept]
        chosen = sorted(pods, key=_place)[:wanted] if len(pods) > wanted else pods
        return Part(wanted=wanted, pods=tuple(chosen), draining=tuple(draining), makers=tuple(makers))

    def _makers(self, owners: Iterable[Owner]) -> Iterator[Maker]:
        """Yield the objects that create the pods of these, as a Rollout's ReplicaSets do."""
        for owner in owners:
            record = self._objects.get(owner)
            if isinstance(record, ControllerRecord):
                if not self.is_leaving(owner):
                    yield record, self.staying_below(owner)
            else:
                yield from self._makers(self.made(owner))


def _kept_gangs(root: Owner, pods: Iterable[PodRecord], gangs: int) -> frozenset[str] | None:
    """Return the gangs that make up the wanted ones, where there are more: those that run with the most pods."""
    if not gangs:
        return None
    by_name: dict[str, list[PodRecord]] = {}
    for pod in pods:
        if name := group_of(root, pod.groups):
            by_name.setdefault(name, []).append(pod)
    if len(by_name) <= gangs:
        return None
    ranked = sorted(by_name, key=lambda name: (-sum(pod.runs for pod in by_name[name]), _first(by_name[name]), name))
    return frozenset(ranked[:gangs]) | {""}


def _first(pods: Iterable[PodRecord]) -> datetime:
    return min((pod.held.since for pod in pods if pod.held is not None), default=_LATE)


def _place(pod: PodRecord) -> tuple[int, datetime]:
    """Sort pods with a node first, then those that have waited longest, and those that wait for nothing known last."""
    if pod.runs:
        return 0, _LATE
    return (2, _LATE) if pod.held is None else (1, pod.held.since)
