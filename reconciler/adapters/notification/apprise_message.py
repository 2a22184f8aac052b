"""Sends notices as one message through Apprise: Slack, Teams, mail, pagers and a hundred more.

Apprise says no more of a failure than that it was one; its log tells why, with addresses in it, and is shown redacted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from reconciler.adapters.notification.sender import NotTaken, SingleTarget
from reconciler.core.notification.message import Uncertain, write_message
from reconciler.model.events.notice import Notice
from reconciler.model.events.notification import Importance
from reconciler.text.wording import sanitize

_SHORTEST = 6
"""Characters of a secret; shorter parts of an address are words."""
_TYPES = {Importance.INFO: "info", Importance.WARNING: "warning", Importance.ERROR: "failure"}


class AppriseSender(SingleTarget):
    """Sends to one address of Apprise, which `url` reads."""

    def __init__(self, url: Callable[[], str], *, fleet: str) -> None:
        self._url = url
        self._fleet = fleet

    def ready(self) -> None:
        """Import Apprise, which takes a while, and read the address. Raises NotTaken."""
        _receiver(_apprise(), self._url())

    def send(self, _target: str, notices: Sequence[Notice], uncertain: Uncertain | None = None) -> None:
        """Send one message of all notices. Raises NotTaken."""
        url = self._url()
        receiver = _receiver(_apprise(), url)
        message = write_message(self._fleet, notices, uncertain)
        taken = receiver.notify(
            body=message.body, title=message.title, notify_type=_TYPES[message.importance], body_format="text"
        )
        if not taken:
            raise NotTaken(f"Apprise could not deliver it{_reason(taken, url)}")


def _apprise() -> ModuleType:
    try:
        import apprise  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise NotTaken("Apprise is not installed here (try: pip install 'overspill[notify]')") from error
    # What it logs goes to nobody: addresses are in it.
    logging.getLogger("apprise").propagate = False
    return apprise


def _receiver(apprise: ModuleType, url: str) -> Any:
    receiver = apprise.Apprise()
    if not receiver.add(url):
        raise NotTaken("its secret is no address of Apprise (try slack://…, msteams://… or mailtos://…)")
    return receiver


def _reason(result: Any, url: str) -> str:
    """Return what Apprise has logged of a failure, without the address and what that is made of."""
    lines = [entry.message for service in result for attempt in service for entry in attempt.logs]
    if not lines:
        return ""
    text = str(lines[0])
    for secret in sorted((url, *_parts(url)), key=len, reverse=True):
        text = text.replace(secret, "***")
    return f": {sanitize(text).rstrip('.')}"


def _parts(url: str) -> list[str]:
    """Return the parts of an address that are long enough to be secrets."""
    _, _, rest = url.partition("://")
    for sign in "/:@?&=":
        rest = rest.replace(sign, " ")
    return [part for part in rest.split() if len(part) >= _SHORTEST]
