"""A connection to a server that is asked over and over, and the words for answers that tell nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus

from reconciler.http_client import ConnectionLost, HttpAnswer, HttpClient
from reconciler.model.outward_call import OutwardCall
from reconciler.ports import MeasureCall
from reconciler.text.findings import shortened


class KeptConnection:
    """Sends GET requests over a connection that is kept. Not safe to use from several threads."""

    def __init__(self, call: OutwardCall, *, limit: int, patience: timedelta, measure: MeasureCall) -> None:
        """Take the call that `measure` measures, and the most bytes of an answer.

        Raises InvalidInput for a proxy that is none.
        """
        self._call = call
        self._limit = limit
        self._measure = measure
        self._http = HttpClient(timeout=patience.total_seconds(), headers={"Accept": "application/json"})
        self._kept = False  # an earlier request has left a connection

    def get(
        self, url: str, *, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Send a request, and once more where a kept connection turns out to be closed. Raises Transient."""
        try:
            answer = self._try(url, params, headers)
        except ConnectionLost:
            if not self._kept:
                raise
            answer = self._try(url, params, headers)
        self._kept = True
        return answer

    def close(self) -> None:
        """Close the connection, for good."""
        self._http.close()

    def _try(self, url: str, params: Mapping[str, str] | None, headers: Mapping[str, str] | None) -> HttpAnswer:
        with self._measure(self._call) as note:
            answer = self._http.send("GET", url, params=params, headers=headers, limit=self._limit)
            note(str(answer.status))
        return answer


def trouble(answer: HttpAnswer, *, service: str, access: str) -> str:
    """Say what an answer that tells nothing is most likely due to; `access` is the setting that gives access."""
    answered = f"it answers {answer.status} {shortened(answer.reason, 60)}".rstrip()
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"{answered} (is {access} right?)"
    if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
        return f"{answered}, which is not followed (try the address that it leads to)"
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.OK):
        return f"{answered}, not as {service} does (is the address right?)"
    return answered
