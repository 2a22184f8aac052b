"""Who is told of pushes."""

from __future__ import annotations

import structlog

from reconciler.model.push import Push
from reconciler.ports import Outbox
from reconciler.text.wording import count

log = structlog.get_logger("overspill")


class JoinedOutbox:
    """Several who are told of pushes, as one (a `ports.Outbox`); where there are none, nobody is told."""

    def __init__(self, *outboxes: Outbox) -> None:
        self._outboxes = outboxes

    def pushed(self, push: Push) -> None:
        """Tell each."""
        for outbox in self._outboxes:
            outbox.pushed(push)


class PushLog:
    """Notes each push in the log (a `ports.Outbox`)."""

    def pushed(self, push: Push) -> None:
        """Log one line for the push; the loop's announcer tells each change."""
        line = f"pushed {count(push.commits, 'commit')} to {push.branch}"
        log.info("pushed", line=line, tip=push.new[:12], took=f"{push.took.total_seconds():.3f}s")
