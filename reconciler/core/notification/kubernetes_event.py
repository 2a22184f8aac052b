"""Notices as Kubernetes Events on the object of a workload.

An Event is named after the object and the notice, so that a second one is refused as being there already. The API
server keeps Events for an hour (``--event-ttl``); older notices are written nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.events.event import Notice
from reconciler.model.events.notification import Importance
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Connection, Desired
from reconciler.model.workload import Json, WorkloadRef
from reconciler.text.targets import TextTarget, escape
from reconciler.text.timestamps import format_time

LIFETIME = timedelta(hours=1)
_COMPONENT = "overspill"
_LONGEST = 1024
"""Characters of a message that API servers take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTarget:
    """An object on which an Event is written, in one cluster."""

    cluster: ClusterName
    connection: Connection
    api_version: str
    kind: str
    namespace: str
    name: str


def is_current(notice: Notice, now: datetime) -> bool:
    """Return whether an API server would still keep an Event of a notice."""
    return now - notice.event.at < LIFETIME


def event_targets(notice: Notice, desired: Desired) -> Iterator[EventTarget]:
    """Yield the workload's object in its primary, and its like in the clusters of the event.

    A request has no object in the primary, and a workload whose kind is not known none that could be named.
    """
    workload = notice.event.workload
    template = None if workload is None else desired.templates.get(workload)
    if workload is None or template is None or template.ref is None or not template.ref.kind:
        return
    kind = _kind(template.ref, desired)
    workspace = desired.workspaces.get(workload.workspace)
    if kind is None or not kind.versions or workspace is None:
        return
    version = kind.versions[0]
    for cluster in dict.fromkeys((workspace.primary, *notice.event.clusters)):
        known = desired.clusters.get(cluster)
        if known is None:
            continue
        yield EventTarget(
            cluster=cluster,
            connection=known.connection or Connection(context=cluster),
            api_version=f"{kind.group}/{version}" if kind.group else version,
            kind=kind.kind,
            namespace=template.ref.namespace,
            name=template.ref.name,
        )


def write_event(notice: Notice, target: EventTarget, uid: str) -> Json:
    """Write the Event; `uid` is the object's, by which `kubectl describe` finds it, and empty where it is not known."""
    event = notice.event
    at = format_time(event.at)
    words = " ".join(escape(text, TextTarget.LINE) for text in (event.line, *event.reasons))
    involved = {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
        **({"uid": uid} if uid else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{target.name[:200]}.{notice.id[:16]}", "namespace": target.namespace},
        "involvedObject": involved,
        "reason": f"Overspill{event.kind.title().replace(' ', '')}",
        "message": words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…",
        "type": "Normal" if notice.importance is Importance.INFO else "Warning",
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "reportingInstance": _COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _kind(ref: WorkloadRef, desired: Desired) -> WorkloadKind | None:
    """Return the kind of a reference, which may leave out its group."""
    kinds = {**BUILT_IN, **desired.kinds}.values()
    return next((kind for kind in kinds if kind.kind == ref.kind and (not ref.group or kind.group == ref.group)), None)
