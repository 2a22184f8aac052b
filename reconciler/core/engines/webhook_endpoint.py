"""How people name an engine's webhook: ``argocd=URL`` or ``flux=URL``.

What is refused is never repeated: the path of Flux's is half a secret.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from reconciler.model.policy import EngineName

EXAMPLES: Mapping[EngineName, str] = {
    EngineName.ARGOCD: "argocd=https://argocd.example.com/api/webhook",
    EngineName.FLUX: "flux=https://flux.example.com/hook/DIGEST, with the path that `kubectl get receiver` shows",
}
"""The engines that can be told of a push, and how one says where."""


def read_endpoint(word: str) -> tuple[EngineName, str]:
    """Read ``ENGINE=URL`` into both. Raises ValueError with a way out.

    A signature keeps nothing from being read on the way, and Flux's path should not be: plain http is for this machine,
    for private addresses and for Services of the cluster that we run in.
    """
    name, equals, url = word.partition("=")
    if not equals or "/" in name:
        raise ValueError(f"holds a word that is not ENGINE=URL (try {EXAMPLES[EngineName.ARGOCD]})")
    if name not in EXAMPLES:
        raise ValueError(f"{name!r} is no engine that can be told of a push (try argocd or flux)")
    engine = EngineName(name)
    fault, hint = _fault(url)
    if fault:
        raise ValueError(f"the address for {engine} {fault} ({hint or f'try {EXAMPLES[engine]}'})")
    return engine, url


def _fault(url: str) -> tuple[str, str]:
    """Say what is wrong with an address, and a way out where it is not the example's."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        return f"cannot be read: {error}", ""
    if parts.scheme not in ("https", "http") or not host or not url.isascii() or not url.isprintable():
        return "is none of https", ""
    if "@" in parts.netloc or "#" in url:
        return "may hold neither a login nor a #", ""
    if parts.path in ("", "/"):
        return "has no path", ""
    if parts.scheme == "http" and not _near(host):
        return f"is plain http to {host}", "try https://, or for a Service of this cluster NAME.NAMESPACE.svc"
    return "", ""


def _near(host: str) -> bool:
    """Tell whether a host is this machine, a private address, or a name that only a cluster or this network knows."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.rstrip(".")
        return "." not in name or name.endswith((".svc", ".localhost")) or ".svc." in name
    return address.is_loopback or address.is_private
