"""Outages: how what an engine says tells that it did not get through to an API server, a webhook or a chart server."""

from __future__ import annotations

import re

_UNREACHED = re.compile(
    r"connection refused|connection reset by peer|i/o timeout|no such host|no route to host|network is unreachable"
    r"|TLS handshake timeout|\bEOF\b|Client\.Timeout exceeded|http2: client connection lost"
    r"|the server is currently unable to handle the request"
)
"""Words of Go's network and HTTP packages, of client-go and of Kubernetes' own answer 503."""


def unreached(message: str) -> bool:
    """Tell whether a message is about somebody that could not be reached, which passes without a commit."""
    return _UNREACHED.search(message) is not None
