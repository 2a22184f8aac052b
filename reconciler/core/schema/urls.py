"""URLs of repositories and webhooks: permitted schemes, and no password."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from reconciler.core.schema.strict_model import refusal

_SAFE = ("https://", "oci://")
_PASSWORD = re.compile(r"://[^/?#@:]*:(?![0-9]*+(?:[/?#]|$))")
"""A user and a password, where an @ follows; a port is no password, whatever the path holds."""
_PROGRAM = re.compile(r"[A-Za-z0-9_+.-]+::")
"""A remote helper, such as ``ext::sh -c ...``: git runs a program of its name."""
_USER_OF_HTTP = re.compile(r"https?://[^/?#]*@", re.IGNORECASE)
"""Any user before the host: git sends a lone name as a token, see adapters/git/remote.py."""


def _fetched_by_git(address: str) -> str:
    """Refuse an address that holds a credential or that git reads otherwise, without repeating it."""
    if address.startswith("-") or _PROGRAM.match(address) or not address.isprintable() or address != address.strip():
        raise refusal("is no address of a repository", "try 'https://git.example.com/apps.git'")
    password = _PASSWORD.search(address)
    if (password and "@" in address[password.end() :]) or _USER_OF_HTTP.match(address):
        hint = "leave it out; the engine has credentials of its own for a repository"
        raise refusal("may not hold a password or a token", hint)
    return address


def _source_repository(address: str) -> str:
    """Refuse an address that the daemon would not give to git: it takes https, ssh, files, and http of this machine."""
    scheme, mark, _ = _fetched_by_git(address).partition("://")
    if not address or (mark and scheme not in ("https", "ssh", "file") and not _stays_here(address)):
        raise refusal("is no address of a repository to read", "try 'https://git.example.com/apps.git'")
    return address


def _chart_repository(address: str) -> str:
    """Refuse an address without TLS, without repeating it, since it may hold a password too.

    An address with an expression is left to `check_expressions`, which refuses expressions here.
    """
    if not address or address.startswith(_SAFE) or "{{" in address or "{%" in address or _stays_here(address):
        return address
    raise refusal("must begin with https:// or oci://", "plain http is for localhost only")


def _stays_here(address: str) -> bool:
    """Return whether an address is plain http to the local machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme != "http":
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _webhook(address: str) -> str:
    """Refuse an address that is none of a webhook, without repeating it: it may hold a password.

    Plain http is for this machine, and for Services of the cluster that the daemon runs in.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or parts.scheme not in ("https", "http") or not address.isascii() or not address.isprintable():
        raise refusal("is no address of a webhook", "try 'https://hooks.example.com/overspill'")
    if "@" in parts.netloc:
        raise refusal("may not hold a password or a token", "leave it out; what is sent is signed")
    if parts.scheme == "http" and not _stays_here(address) and not host.endswith(".svc"):
        raise refusal("must begin with https://", "plain http is for localhost and for NAME.NAMESPACE.svc")
    return address


def is_own_machine(host: str) -> bool:
    """Return whether a host is this machine or on its own link, by name or by address; no name server is asked."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_link_local or address.is_unspecified


GitAddress = Annotated[str, AfterValidator(_fetched_by_git)]
SourceAddress = Annotated[str, AfterValidator(_source_repository)]
ChartAddress = Annotated[str, AfterValidator(_chart_repository)]
WebhookAddress = Annotated[str, AfterValidator(_webhook)]
