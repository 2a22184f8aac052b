"""A question to a running daemon: how it is, and what time it is there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

from reconciler.core.readiness.programs import DaemonAnswer
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpClient, NoAnswer, json_object_in
from reconciler.ports import Clock

_LIMIT = 64 << 10
"""Bytes that are read of an answer."""


class DaemonCall:
    """Asks a daemon for its health (a `ports.RunningDaemon`). The answer needs no token."""

    def __init__(self, url: str, *, authorities: Path | None, timeout: timedelta, clock: Clock) -> None:
        self.url = url
        self._authorities = authorities
        self._timeout = timeout.total_seconds()
        self._clock = clock

    def ask(self) -> DaemonAnswer:
        """Return its answer, or why there is none."""
        began = self._clock.now()
        try:
            with HttpClient(
                timeout=self._timeout, authorities=self._authorities, authorities_from="OVERSPILL_SERVER_CA_FILE"
            ) as http:
                answer = http.send("GET", f"{self.url}/healthz", limit=_LIMIT)
        except (NoAnswer, InvalidInput) as error:
            return DaemonAnswer(trouble=str(error))
        ended = self._clock.now()
        body = json_object_in(answer.body)
        return DaemonAnswer(
            status=answer.status,
            state=str(body.get("status") or ""),
            reason=str(body.get("reason") or ""),
            skew=_skew(answer.headers, began, ended),
        )


def _skew(headers: Mapping[str, str], began: datetime, ended: datetime) -> timedelta | None:
    """Tell how far the time of an answer lies beyond the time in which it was asked, by our clock."""
    try:
        moment = parsedate_to_datetime(headers["Date"])
        return max(moment - ended, timedelta()) + min(moment - began, timedelta())
    except (KeyError, ValueError, TypeError):
        return None
