"""Pods that a quota at home keeps from existing, or another refusal, of objects whose status does not say so.

Deployments and ReplicaSets have the condition ReplicaFailure. StatefulSets, Jobs and most kinds with controllers of
their own have none: their controllers write an Event at most (`CREATION_EVENTS`), and the ResourceQuota shows that it
is used up. A quota with enough left for another pod keeps none from existing, whatever an Event says: the controller is
about to try again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.capacity.admission_defaults import with_admission_defaults
from reconciler.core.capacity.pod_quotas import PodQuotas
from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord
from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.observe.kubernetes.resources import CONTROLLERS, WITH_REPLICA_FAILURE, Owner, owner_of
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled, unscheduled
from reconciler.core.observe.kubernetes.words.refusals import is_refused_creation, refusal_wait
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment

_USED_UP = refusal_wait("exceeded quota: any")
_MUTE = frozenset(each.kind for each in CONTROLLERS - WITH_REPLICA_FAILURE)
"""Kinds of Kubernetes without a condition for pods that are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCreation:
    """The record of an Event: pods of an object were refused."""

    owner: Owner
    wait: Unscheduled


def read_failed_creation(raw: Json) -> FailedCreation | None:
    """Read an Event; None for one that is about something else. How often it was written since does not matter."""
    about, message = raw.get("involvedObject") or {}, str(raw.get("message") or "")
    since = raw.get("firstTimestamp") or raw.get("eventTime") or raw["metadata"].get("creationTimestamp")
    if not is_refused_creation(str(raw.get("reason")), message) or not since or not about.get("name"):
        return None
    kind, namespace, name = (str(about.get(field) or "") for field in ("kind", "namespace", "name"))
    owner = owner_of(kind, namespace, name, about.get("apiVersion") or "")
    return FailedCreation(owner=owner, wait=unscheduled(refusal_wait(message), read_moment(since)))


class QuotaRefusals:
    """Tells since when the quotas of a cluster have kept pods of its objects from existing."""

    def __init__(self, seen: ClusterObservation, events: Iterable[FailedCreation]) -> None:
        """Take the quotas of a cluster, with what it adds to pods, and the Events of its objects."""
        self._seen = seen
        self._quotas = PodQuotas(seen)
        self._events: dict[Owner, datetime] = {}
        self._others: dict[Owner, Unscheduled] = {}
        for event in sorted(events, key=lambda event: event.wait.since):
            if event.wait.lacks_room:
                self._events.setdefault(event.owner, event.wait.since)
            else:
                self._others[event.owner] = event.wait

    def has_event(self, owner: Owner) -> bool:
        """Return whether an Event says that a quota has refused pods of an object."""
        return owner in self._events

    @property
    def _nothing(self) -> bool:
        return not (self._seen.quotas or self._events or self._others)

    def of(self, owner: Owner, shape: ReplicaShape | None) -> Unscheduled | None:
        """Return since when pods of an object have been refused: by a quota, or by what its last Event names."""
        return self._of_quota(owner, shape) or self._others.get(owner)

    def _of_quota(self, owner: Owner, shape: ReplicaShape | None) -> Unscheduled | None:
        """Return since when a quota has refused pods of an object; None where none does.

        Where no Event tells, that is since the use of such a quota has last changed. Where quotas are unknown, Events
        alone tell.
        """
        told, quotas = self._events.get(owner), self._seen.quotas
        if quotas is None:
            return None if told is None else _refused(told)
        if shape is None or owner.namespace not in quotas:
            return None
        full = self._quotas.used_up(with_admission_defaults(shape, self._seen))
        since = told or max((quota.since for quota in full if quota.since is not None), default=None)
        return _refused(since) if full and since is not None else None

    def of_controllers(
        self,
        controllers: Mapping[Owner, ControllerRecord],
        pods: Mapping[str, PodRecord],
        by_owner: Mapping[Owner, Iterable[str]],
    ) -> Mapping[Owner, ControllerRecord]:
        """Return the records of controllers, with the refusals of those whose status has none.

        Pods that are being deleted still count in their quota, and leave it to their successors. What makes one pod
        after the other has not tried the next one while one of them is not ready, unless an Event on a quota says so.
        """
        if self._nothing:
            return controllers
        refused: dict[Owner, ControllerRecord] = {}
        for owner, record in controllers.items():
            if owner.kind not in _MUTE or owner.group or record.refused is not None or record.suspended:
                continue
            own = [pods[key] for key in by_owner.get(owner, ())]
            waits = record.ordered and not self.has_event(owner) and not all(pod.ready for pod in own)
            if len(own) < record.wanted and not waits and (why := self.of(owner, record.shape)) is not None:
                refused[owner] = replace(record, refused=why)
        return {**controllers, **refused} if refused else controllers

    def of_customs(
        self,
        customs: Mapping[Owner, CustomWorkloadRecord],
        controllers: Mapping[Owner, ControllerRecord],
        by_owner: Mapping[Owner, Iterable[str]],
        ended: Mapping[Owner, Sized],
    ) -> Mapping[Owner, CustomWorkloadRecord]:
        """Return the records of objects with controllers of their own, with refusals of those that create pods.

        Those that make other objects to create them have no refusals themselves. In the place of a pod that has ended
        none is created where the object runs once; `ended` are those pods.
        """
        if not customs or self._nothing:
            return customs
        makers = {owner for record in controllers.values() for owner in record.owners}
        makers |= {owner for record in customs.values() for owner in record.owners}
        refused: dict[Owner, CustomWorkloadRecord] = {}
        for owner, record in customs.items():
            own = tuple(by_owner.get(owner, ()))
            if owner in makers or record.suspended or record.unmade is not None:
                continue
            done = len(ended.get(owner, ())) if record.runs_once else 0
            uncreated = (record.wanted or 0) - len(own) - done
            if uncreated > 0 and (why := self.of(owner, record.shape)) is not None:
                refused[owner] = replace(record, refused=why, uncreated=uncreated)
        return {**customs, **refused} if refused else customs


def _refused(since: datetime) -> Unscheduled:
    return unscheduled(_USED_UP, since)
