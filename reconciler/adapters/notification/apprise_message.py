"""Sends notices as one message through Apprise: Slack, Teams, mail, pagers and a hundred more.

Apprise says no more of a failure than that it was one; its log tells why, with addresses in it, and is shown redacted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from reconciler.adapters.notification.sender import NotTaken
from reconciler.core.notification.message import Uncertain, write_message
from reconciler.model.notice import Notice
from reconciler.model.notification import Importance
from reconciler.text.wording import sanitize

_TYPES = {Importance.INFO: "info", Importance.WARNING: "warning", Importance.ERROR: "failure"}


class AppriseSender:
    """Sends to one address of Apprise, which `url` reads."""

    def __init__(self, url: Callable[[], str], *, fleet: str) -> None:
        self._url = url
        self._fleet = fleet

    def ready(self) -> None:
        """Import Apprise, which takes a while, and read the address. Raises NotTaken."""
        _receiver(_apprise(), self._url())

    def send(self, notices: Sequence[Notice], uncertain: Uncertain | None = None) -> None:
        """Send one message of all notices. Raises NotTaken."""
        url = self._url()
        receiver = _receiver(_apprise(), url)
        message = write_message(self._fleet, notices, uncertain)
        with _reasons(url) as reasons:
            taken = receiver.notify(
                body=message.body, title=message.title, notify_type=_TYPES[message.importance], body_format="text"
            )
        if not taken:
            raise NotTaken(f"Apprise could not deliver it{_why(reasons)}")


def _apprise() -> ModuleType:
    try:
        import apprise  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise NotTaken("Apprise is not installed here (try: pip install 'overspill[notify]')") from error
    return apprise


def _receiver(apprise: ModuleType, url: str) -> Any:
    with _reasons(url) as reasons:
        receiver = apprise.Apprise()
        if not receiver.add(url):
            raise NotTaken(f"its secret is no address of Apprise{_why(reasons)}")
    return receiver


@contextmanager
def _reasons(url: str) -> Iterator[list[str]]:
    """Collect what Apprise logs in this thread, without the address and what it is made of."""
    reasons: list[str] = []
    thread = threading.get_ident()
    secrets = sorted({part for part in [url, *_parts(url)] if part}, key=len, reverse=True)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                text = record.getMessage()
                for secret in secrets:
                    text = text.replace(secret, "***")
                reasons.append(sanitize(text))

    handler = Collector(level=logging.WARNING)
    logger = logging.getLogger("apprise")
    logger.addHandler(handler)
    try:
        yield reasons
    finally:
        logger.removeHandler(handler)


def _parts(url: str) -> list[str]:
    """Return the parts of an address that are long enough to be secrets."""
    _, _, rest = url.partition("://")
    for sign in "/:@?&=":
        rest = rest.replace(sign, " ")
    return [part for part in rest.split() if len(part) >= 6]  # noqa: PLR2004 - shorter ones are words


def _why(reasons: Sequence[str]) -> str:
    return f": {reasons[0]}" if reasons else ""
