"""What every client of ours does alike: it follows no redirect, and says in a line why there was no answer."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.error import URLError
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler


def opener(authorities: Path | None = None) -> OpenerDirector:
    """Make a client that follows no redirect: what is meant for one address goes to no other.

    Proxies are those of the environment, and authorities those of the file, of SSL_CERT_FILE or of the system. Raises
    OSError for a file that holds none.
    """
    made = OpenerDirector()
    context = ssl.create_default_context(cafile=authorities)
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(context=context)):
        made.add_handler(handler)
    return made


def describe_failure(error: Exception, *, authorities: str = "SSL_CERT_FILE") -> str:
    """Say in a line why there was no answer; `authorities` names what would trust another certificate."""
    cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message} ({authorities} may name its authority)"
    if isinstance(cause, TimeoutError):
        return "it does not answer"
    return (isinstance(cause, OSError) and cause.strerror) or str(cause) or type(cause).__name__
