"""A push event to one endpoint of an engine: the request, and the meaning of its answer."""

from __future__ import annotations

from urllib.parse import urlsplit

from reconciler.core.engines import WEBHOOKS
from reconciler.core.engines.webhook import Webhook, signed, web_page
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpClient, NoAnswer
from reconciler.model.events.event import Endpoint, Push

_PASSING = frozenset({408, 425, 429})
"""Statuses below 500 that refuse the moment, and not the event."""


class WebhookRejected(Exception):  # noqa: N818 - an answer, not a fault
    """The endpoint does not take the event, and would not take it a second later."""


def announce(endpoint: Endpoint, push: Push, *, timeout: float) -> str:
    """Send a push event to an endpoint; returns why this try failed, empty if it did not.

    `timeout` is in seconds, for the connection and for each silence. Raises WebhookRejected.
    """
    webhook = WEBHOOKS[endpoint.engine]
    if webhook.page_refusal and not web_page(push.repo_url):
        raise WebhookRejected(webhook.page_refusal)
    headers, body = signed(webhook, endpoint, push)
    try:
        # A client for each event: a connection that is kept from push to push is mostly closed by then.
        with HttpClient(timeout=timeout) as http:
            answer = http.send("POST", endpoint.url, headers=dict(headers), body=body, limit=0)
    except NoAnswer as error:
        return str(error)
    except InvalidInput as error:
        raise WebhookRejected(str(error)) from error
    match answer.status // 100:
        case 2:
            return ""
        case 3:
            raise WebhookRejected(_redirection(answer.status, answer.headers.get("Location", "")))
        case 4 if answer.status not in _PASSING:
            raise WebhookRejected(_refusal(webhook, answer.status))
        case _:
            return f"it answers {answer.status}"


def reach(endpoint: Endpoint, *, timeout: float) -> int | str:
    """Send an endpoint a request that is no event; returns the status of its answer, or why there is none.

    Both engines refuse what has no event and no signature, and do nothing else (docs/background/upstream/argocd.md,
    "Webhook"; docs/background/upstream/flux.md, "Receiver").
    """
    try:
        with HttpClient(timeout=timeout) as http:
            return http.send("HEAD", endpoint.url, limit=0).status
    except (NoAnswer, InvalidInput) as error:
        return str(error)


def _redirection(status: int, location: str) -> str:
    try:
        parts = urlsplit(location)
    except ValueError:  # half an IPv6 address
        parts = urlsplit("")
    target = f"to {parts.scheme}://{parts.netloc}" if parts.netloc else f"({status})"
    return f"it redirects {target} (name the address that this leads to)"


def _refusal(webhook: Webhook, status: int) -> str:
    """Return the most likely reason of a refusal."""
    match status:
        case 400 | 401 | 403:
            return f"it answers {status} (is its secret the one that is given here?)"
        case 404:
            return f"it answers 404 ({webhook.path_hint})"
        case _:
            return f"it answers {status}"
