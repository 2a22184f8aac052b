"""Addresses of daemons that a token may be sent to."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from reconciler.errors import InvalidInput

_EXAMPLE = "try https://overspill.example.com"


def server_address(text: str) -> str:
    """Check the address of a daemon and return it without a slash at its end.

    A path is that of a proxy. Raises InvalidInput for an invalid address, for one with a password, and for http to
    another machine, which would send the token in clear text.
    """
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        raise _refused(text) from None
    if "@" in parts.netloc:
        raise InvalidInput("the server's address holds a user or a password (try it without, and OVERSPILL_TOKEN_FILE)")
    if not whole or parts.query or parts.fragment or re.search(r"[^!-~]", text):
        raise _refused(text)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InvalidInput(f"{text}: a token is sent by https only, but to this machine (try https://{parts.netloc})")
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, independent of name servers."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is not the address of a server ({_EXAMPLE})")
