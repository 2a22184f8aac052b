"""Signatures of webhooks of three git hosts, over the body's raw bytes.

Header names are in lower case. Each check only proves that the sender knows the secret.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from reconciler.text.digits import whole_number

WINDOW = timedelta(minutes=5)
"""Age, or lead, that a signed time may have (the tolerance of the Standard Webhooks libraries)."""

Headers = Mapping[str, str]
Check = Callable[[Headers, bytes, str, datetime], bool]


def github(headers: Headers, body: bytes, secret: str, _now: datetime) -> bool:
    """Check ``X-Hub-Signature-256: sha256=<hex>``."""
    return _same(headers.get("x-hub-signature-256"), "sha256=" + _hex(secret, body))


def gitea(headers: Headers, body: bytes, secret: str, now: datetime) -> bool:
    """Check ``X-Gitea-Signature: <hex>`` (Forgejo sends it too), or GitHub's header, which newer versions send."""
    return _same(headers.get("x-gitea-signature"), _hex(secret, body)) or github(headers, body, secret, now)


def gitlab(headers: Headers, body: bytes, secret: str, now: datetime) -> bool:
    """Check ``webhook-signature: v1,<base64>`` over ``id.timestamp.body``, or without one the older ``X-Gitlab-Token``.

    GitLab's signing tokens are ``whsec_`` and the key in base64 (gitlab-org/gitlab!230944, !231325). Several signatures
    may stand in the header, parted by blanks, while a token is exchanged.
    """
    signatures = headers.get("webhook-signature")
    if signatures is None:
        return _same(headers.get("x-gitlab-token"), secret)
    delivery, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not _recent(stamp, now):
        return False
    digest = hmac.digest(_key(secret), f"{delivery}.{stamp}.".encode() + body, sha256)
    expected = "v1," + base64.b64encode(digest).decode()
    return any(_same(signature, expected) for signature in signatures.split())


def _hex(secret: str, body: bytes) -> str:
    return hmac.digest(secret.encode(), body, sha256).hex()


def _key(secret: str) -> bytes:
    """Decode the key of a signing token; a secret of any other form is its own key."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return secret.encode()


def _recent(stamp: str, now: datetime) -> bool:
    """Return whether a time in Unix seconds is near enough to `now`."""
    seconds = whole_number(stamp, digits=10)  # which last until 2286
    return seconds is not None and abs(now - datetime.fromtimestamp(seconds, UTC)) <= WINDOW


def _same(signature: str | None, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest((signature or "").encode(), expected.encode())
