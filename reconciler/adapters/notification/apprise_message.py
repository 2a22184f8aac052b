"""Sends notices as one message through Apprise: Slack, Teams, mail, pagers and a hundred more.

Apprise says no more of a failure than that it was one; its log tells why, with addresses in it, and is shown redacted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reconciler.adapters.notification.apprise_process import deliver
from reconciler.adapters.notification.apprise_program import AppriseMessage, AppriseResult
from reconciler.adapters.notification.sender import NotTaken, SingleTarget
from reconciler.core.notification.message import Uncertain, write_message
from reconciler.model.events.event import Notice
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
        """Read the address, and have Apprise check it. Raises NotTaken."""
        _check(deliver(AppriseMessage(url=self._url())))

    def send(self, _target: str, notices: Sequence[Notice], uncertain: Uncertain | None = None) -> None:
        """Send one message of all notices. Raises NotTaken."""
        url = self._url()
        message = write_message(self._fleet, notices, uncertain)
        result = deliver(
            AppriseMessage(url=url, title=message.title, body=message.body, kind=_TYPES[message.importance])
        )
        _check(result)
        if not result.taken:
            raise NotTaken(f"Apprise could not deliver it{_reason(result.reason, url)}")


def _check(result: AppriseResult) -> None:
    if not result.known:
        raise NotTaken("its secret is no address of Apprise (try slack://…, msteams://… or mailtos://…)")


def _reason(text: str, url: str) -> str:
    """Return what Apprise has logged of a failure, without the address and what that is made of."""
    if not text:
        return ""
    for secret in sorted((url, *_parts(url)), key=len, reverse=True):
        text = text.replace(secret, "***")
    return f": {sanitize(text).rstrip('.')}"


def _parts(url: str) -> list[str]:
    """Return the parts of an address that are long enough to be secrets."""
    _, _, rest = url.partition("://")
    for sign in "/:@?&=":
        rest = rest.replace(sign, " ")
    return [part for part in rest.split() if len(part) >= _SHORTEST]
