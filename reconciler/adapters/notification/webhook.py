"""Sends notices as signed CloudEvents, each by a request of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reconciler.adapters.notification.sender import NotTaken, SingleTarget
from reconciler.core.notification import cloud_event
from reconciler.core.notification.message import Uncertain
from reconciler.core.schema.urls import is_own_machine
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpClient, NoAnswer
from reconciler.model.events.event import Notice
from reconciler.ports import Clock


class WebhookSender(SingleTarget):
    """Sends to one address; `secret` reads what signs, and `timeout` is in seconds.

    One that is `confined` is sent to no address that only the daemon can reach.
    """

    def __init__(
        self, url: str, secret: Callable[[], str], *, fleet: str, clock: Clock, timeout: float, confined: bool = False
    ) -> None:
        self._url = url
        self._secret = secret
        self._fleet = fleet
        self._clock = clock
        self._timeout = timeout
        self._refuse = _refuse_own_machine if confined else None

    def ready(self) -> None:
        """Read the secret. Raises NotTaken."""
        self._secret()

    def send(self, _target: str, notices: Sequence[Notice], _uncertain: Uncertain | None = None) -> None:
        """Send notices in order. Raises NotTaken."""
        secret = self._secret()
        try:
            with HttpClient(timeout=self._timeout) as http:
                for notice in notices:
                    self._send(http, notice, secret)
        except InvalidInput as error:  # a proxy that cannot be used
            raise NotTaken(str(error)) from error

    def _send(self, http: HttpClient, notice: Notice, secret: str) -> None:
        body = cloud_event.body_of(notice, self._fleet)
        try:
            headers = cloud_event.headers_of(notice, body, secret, self._clock.now())
        except ValueError as error:
            raise NotTaken(f"its secret cannot be used: {error}") from error
        try:
            answer = http.send("POST", self._url, headers=headers, body=body, limit=0, refuse=self._refuse)
        except NoAnswer as error:
            raise NotTaken(str(error)) from error
        match answer.status // 100:
            case 2:
                return
            case 3:
                raise NotTaken(f"it redirects ({answer.status}): name the address that this leads to")
            case 4 if answer.status in (401, 403):
                raise NotTaken(f"it answers {answer.status} (is its secret the one that the receiver has?)")
            case _:
                raise NotTaken(f"it answers {answer.status}")


def _refuse_own_machine(address: str, is_own: bool) -> str:  # noqa: FBT001 - as HttpClient calls it
    if not is_own and not is_own_machine(address):
        return ""
    return f"its name leads to {address}, the daemon's own machine or link, which is not for a workspace to call"
