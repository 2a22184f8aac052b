"""Announcements of a push as a git host would sign them, to the endpoints of engines."""

from __future__ import annotations

import hashlib
import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence


def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Post, and return the status of the answer."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status: int = answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return status


def github(url: str, secret: str, *, repository: str, before: str, after: str, changed: Sequence[str] = ()) -> int:
    """Announce a push to `placements` as GitHub does: `repository` is its web address, `changed` the paths in it."""
    commit = {"id": after, "added": list(changed), "modified": [], "removed": []}
    event = {
        "ref": "refs/heads/placements",
        "before": before,
        "after": after,
        "commits": [commit],
        "repository": {"html_url": repository.removesuffix(".git"), "default_branch": "main"},
    }
    body = json.dumps(event).encode()
    return post(url, body, {"X-GitHub-Event": "push", "X-Hub-Signature-256": _signature(secret, body)})


def generic(url: str, token: str) -> int:
    """Announce that something has changed to a Receiver of type generic-hmac."""
    body = b"{}"
    return post(url, body, {"X-Signature": _signature(token, body)})


def _signature(secret: str, body: bytes) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
