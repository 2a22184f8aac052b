"""Delivers the events of a pass to the sinks: a failing sink harms neither the others nor the pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug
from reconciler.model.events.event import Event, Push
from reconciler.ports import EventSink


def publish_events(sinks: Sequence[EventSink], events: tuple[Event, ...], pushes: tuple[Push, ...]) -> None:
    """Publish events and pushes to every sink."""
    for sink in sinks:
        published = attempt(Seam.SINK, type(sink).__name__, partial(sink.publish, events, pushes))
        if isinstance(published, Bug):
            BUGS.note(published)
