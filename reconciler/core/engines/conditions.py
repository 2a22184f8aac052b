"""Conditions of an object's status, as Kubernetes' API conventions and Argo CD write them, and signs of outages."""

from __future__ import annotations

import re
from datetime import datetime

from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment

_UNREACHED = re.compile(
    r"connection refused|connection reset by peer|i/o timeout|no such host|no route to host|network is unreachable"
    r"|TLS handshake timeout|\bEOF\b|Client\.Timeout exceeded|http2: client connection lost"
    r"|the server is currently unable to handle the request"
)
"""Words of Go's network and HTTP packages, of client-go and of Kubernetes' own answer 503."""


def condition(raw: Json, kind: str) -> Json:
    """Return an object's condition of one type; empty where it has none."""
    for entry in (raw.get("status") or {}).get("conditions") or ():
        if entry.get("type") == kind:
            return entry
    return {}


def first_time(*times: Json) -> datetime | None:
    """Read the first time that is given."""
    return next((read_moment(str(text)) for text in times if text), None)


def is_unreachable(message: str) -> bool:
    """Return whether a message is about a server that could not be reached, which passes without a commit."""
    return _UNREACHED.search(message) is not None
