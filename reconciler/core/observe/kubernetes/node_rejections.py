"""Pods that the kubelets of their nodes reject, one after the other: whoever makes them makes the next at once.

A rejected pod has failed, and says nothing about now: its successor may long be running. So a rejection counts for pods
that its owner lacks, or that no kubelet has taken yet, and only while the last one is recent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.ownership import Marks
from reconciler.core.observe.kubernetes.pods import owners_of, placement_of
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled, unscheduled
from reconciler.core.observe.kubernetes.words.kubelet import rejection_wait
from reconciler.model.ids import PlacementName
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment

_RECENT = timedelta(minutes=10)
"""Longer than the controller of Jobs waits before it makes another pod: six minutes (KEP-3329)."""
RejectedOwner = Owner | PlacementName


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedPod:
    """The record of a pod that its node has rejected."""

    owners: tuple[Owner, ...]
    placement: PlacementName
    wait: Unscheduled


def read_rejection(raw: Json, marks: Marks) -> RejectedPod | None:
    """Read a pod; None for one that no kubelet has rejected, and where nothing says when."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    if status.get("phase") != "Failed":
        return None
    wait = rejection_wait(status.get("reason") or "", status.get("message") or "")
    since = status.get("startTime") or metadata.get("creationTimestamp")
    if wait is None or not since:
        return None
    return RejectedPod(
        owners=owners_of(metadata, marks), placement=placement_of(metadata), wait=unscheduled(wait, read_moment(since))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Rejections of the pods of one owner without a long break."""

    first: datetime
    last: datetime
    wait: Unscheduled
    """Of the last one."""


class NodeRejections:
    """The latest rejections by owner and by placement. They outlive their pods, which controllers may delete."""

    def __init__(self) -> None:
        self._rows: dict[RejectedOwner, _Row] = {}

    def note(self, rejection: RejectedPod) -> bool:
        """Keep a rejection; return whether it is news."""
        keys: list[RejectedOwner] = [*rejection.owners, *((rejection.placement,) if rejection.placement else ())]
        news = False
        for key in keys:
            before = self._rows.get(key)
            row = _joined(before, rejection.wait)
            if row != before:
                self._rows[key] = row
                news = True
        return news

    def are_over(self, at: datetime) -> bool:
        """Return whether some rejections are no longer recent, so that what was observed with them is outdated."""
        return any(row.last + _RECENT < at for row in self._rows.values())

    def current(self, at: datetime) -> Mapping[RejectedOwner, Unscheduled]:
        """Return since when pods have been rejected of what has recent rejections, and drop all others."""
        self._rows = {key: row for key, row in self._rows.items() if row.last + _RECENT >= at}
        return {key: replace(row.wait, since=row.first) for key, row in self._rows.items()}


def with_rejections(
    controllers: Mapping[Owner, ControllerRecord], rejected: Mapping[RejectedOwner, Unscheduled]
) -> Mapping[Owner, ControllerRecord]:
    """Return the records of controllers, whose missing pods are refused by nodes where nothing else refuses them.

    Of a ReplicaSet they are missing to its Deployment.
    """
    changed: dict[Owner, ControllerRecord] = {}
    for key, wait in rejected.items():
        maker = controllers.get(key) if isinstance(key, Owner) else None
        for owner in (key, maker.owner) if maker is not None else ():
            record = controllers.get(owner) if isinstance(owner, Owner) else None
            if isinstance(owner, Owner) and record is not None and record.refused is None and not record.suspended:
                changed[owner] = replace(record, refused=wait)
    return {**controllers, **changed} if changed else controllers


def _joined(before: _Row | None, wait: Unscheduled) -> _Row:
    at = wait.since
    if before is None or at > before.last + _RECENT:
        return _Row(first=at, last=at, wait=wait)
    if at < before.first - _RECENT:
        return before
    return _Row(first=min(before.first, at), last=max(before.last, at), wait=wait if at >= before.last else before.wait)
