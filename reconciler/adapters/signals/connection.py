"""A connection to a server that is asked over and over, and the words for answers that tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlencode

from reconciler.http_client import ConnectionLost, HttpAnswer, HttpClient
from reconciler.model.outward_call import OutwardCall
from reconciler.ports import MeasureCall


class KeptConnection:
    """Sends requests over a connection that is kept. Not safe to use from several threads."""

    def __init__(self, call: OutwardCall, *, patience: timedelta, measure: MeasureCall) -> None:
        """Take the call that `measure` measures. Raises InvalidInput for a proxy that is none."""
        self._call = call
        self._measure = measure
        self._http = HttpClient(timeout=patience.total_seconds(), headers={"Accept": "application/json"})
        self._kept = False  # an earlier request has left a connection

    def send(
        self,
        method: Literal["GET", "POST"],
        url: str,
        parameters: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        limit: int,
    ) -> HttpAnswer:
        """Send a request, and once more where a kept connection turns out to be closed. Raises Transient.

        A POST has its parameters in a form. At most `limit` bytes of the answer are read.
        """
        send = partial(self._http.send, method, url, headers=headers, limit=limit)
        if method == "POST":
            form = {**(headers or {}), "Content-Type": "application/x-www-form-urlencoded"}
            send = partial(send, headers=form, body=urlencode(parameters or {}).encode())
        elif parameters is not None:
            send = partial(send, params=parameters)
        try:
            answer = self._try(send)
        except ConnectionLost:
            if not self._kept:
                raise
            answer = self._try(send)
        self._kept = True
        return answer

    def close(self) -> None:
        """Close the connection, for good."""
        self._http.close()

    def _try(self, send: Callable[[], HttpAnswer]) -> HttpAnswer:
        with self._measure(self._call) as note:
            answer = send()
            note(str(answer.status))
        return answer


def trouble(answer: HttpAnswer, *, service: str, access: str) -> str:
    """Say what an answer that tells nothing is most likely due to; `access` is the setting that gives access."""
    answered = f"it answers {answer.status} {answer.reason}".rstrip()
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"{answered} (is {access} right?)"
    if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
        return f"{answered}, which is not followed (try the address that it leads to)"
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.OK):
        return f"{answered}, not as {service} does (is the address right?)"
    return answered
