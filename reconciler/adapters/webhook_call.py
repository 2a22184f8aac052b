"""One event to one endpoint: the request, and what its answer means."""

from __future__ import annotations

from http.client import HTTPException
from urllib.parse import urlsplit
from urllib.request import Request

from reconciler.adapters.web import describe_failure, opener
from reconciler.core.engines.webhook_event import signed, web_page
from reconciler.model.policy import EngineName
from reconciler.model.push import Endpoint, Push

_PASSING = frozenset({408, 425, 429})
"""Answers below 500 that say nothing of what was asked, only of when."""


class WebhookRejected(Exception):  # noqa: N818 - what it says is an answer
    """An endpoint does not want the event, and will not want it a second later."""


def announce(endpoint: Endpoint, push: Push, *, timeout: float) -> str:
    """Tell an endpoint of a push; returns why that failed this time, empty if it did not.

    `timeout` is in seconds, for the connection and for each part of the answer. Raises Refused.
    """
    if endpoint.engine is EngineName.ARGOCD and not web_page(push.repo_url):
        raise WebhookRejected(
            "Argo CD knows a repository by its https or ssh address, and the Fleet's spec.repoURL is none"
        )
    headers, body = signed(endpoint, push)
    request = Request(endpoint.url, data=body, headers=dict(headers), method="POST")  # noqa: S310 - its scheme was checked when the address was read
    try:
        with opener().open(request, timeout=timeout) as response:
            status, location = int(response.status), str(response.headers.get("Location", ""))
    except (OSError, HTTPException, ValueError) as error:
        return describe_failure(error)
    match status // 100:
        case 2:
            return ""
        case 3:
            raise WebhookRejected(_redirection(status, location))
        case 4 if status not in _PASSING:
            raise WebhookRejected(_refusal(endpoint.engine, status))
        case _:
            return f"it answers {status}"


def _redirection(status: int, location: str) -> str:
    parts = urlsplit(location)
    where = f"to {parts.scheme}://{parts.netloc}" if parts.netloc else f"({status})"
    return f"it redirects {where} (name the address that this leads to)"


def _refusal(engine: EngineName, status: int) -> str:
    """Say what a refusal is most likely for."""
    match status:
        case 400 | 401 | 403:
            return f"it answers {status} (is its secret the one that is given here?)"
        case 404 if engine is EngineName.FLUX:
            return "it answers 404 (`kubectl get receiver` shows the path)"
        case 404:
            return "it answers 404 (the path ends in /api/webhook)"
        case _:
            return f"it answers {status}"
