"""The log of bugs that are met beside a pass: each once, however often it is met again."""

from __future__ import annotations

from collections import OrderedDict

import structlog

from reconciler.errors import Bug

_MOST = 1000
"""Bugs that are remembered; beyond the limit the bug logged longest ago is forgotten, and logged anew if it returns."""

log = structlog.get_logger()


class BugLog:
    """Logs each bug with its traceback when it is met first. Safe to use from several threads."""

    def __init__(self) -> None:
        """Begin without any."""
        self._met: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def note(self, bug: Bug) -> None:
        """Log a bug, unless one of its type has been met in the same work on the same item.

        Its text makes no new one: callers may choose what is in it, and must not fill the log.
        """
        kind = bug.task, bug.item, bug.error.partition(":")[0]
        if kind in self._met:
            return
        self._met[kind] = None
        if len(self._met) > _MOST:
            self._met.popitem(last=False)
        log.error("bug", line=str(bug), exception=bug.trace)


BUGS = BugLog()
"""The log of this process."""
