"""The webhooks of engines, as a request without an event reaches them."""

from __future__ import annotations

from shlex import quote
from urllib.parse import urlsplit

from reconciler.core.engines import WEBHOOKS
from reconciler.core.readiness.check import CheckResult, missing, ok
from reconciler.model.events.event import Endpoint

_NOT_FOUND, _REDIRECTED, _REFUSED, _BROKEN = 404, 300, 400, 500
_LOOK = "curl --head"


def webhook_result(endpoint: Endpoint, answer: int | str) -> CheckResult:
    """Report an endpoint from the status of its answer, or from why there is none.

    A request that is no signed event is refused by an endpoint that works, so any status below 500 but a redirection
    and 404 shows that it is reached.
    """
    subject = f"webhook {endpoint}"
    parts = urlsplit(endpoint.url)
    shown = f"{parts.scheme}://{parts.netloc}{'' if endpoint.secret_path else parts.path}"
    look = f"{_LOOK} {quote(shown)}"
    if isinstance(answer, str):
        return missing(subject, answer, look)
    if answer == _NOT_FOUND:
        return missing(subject, f"answers 404: {WEBHOOKS[endpoint.engine].path_hint}", look)
    if _REDIRECTED <= answer < _REFUSED:
        return missing(subject, f"redirects ({answer}): name the address that this leads to", look)
    if answer >= _BROKEN:
        return missing(subject, f"answers {answer}", look)
    return ok(subject, "reached; nothing was announced")
