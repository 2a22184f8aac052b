"""The log of events and pushes of passes."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from reconciler.model.event import Event, EventKind, Push
from reconciler.text.wording import count

log = structlog.get_logger("overspill")


class EventLog:
    """Logs a line for each push and one for each event (a `ports.EventSink`)."""

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Log the moved branches, then the events that they carry."""
        for push in pushes:
            line = f"pushed {count(push.commits, 'commit')} to {push.branch}"
            log.info("pushed", line=line, tip=push.new[:12], took=f"{push.took.total_seconds():.3f}s")
        for event in events:
            match event.kind:
                case EventKind.HELD_BACK:
                    log.info("held back", line=event.line, reason=str(event.held_by))
                case EventKind.NO_LONGER_HELD_BACK:
                    log.info("no longer held back", line=event.line)
                case _:
                    log.info("committed", line=event.line)
