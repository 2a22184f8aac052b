"""Webhooks of engines: the addresses of `--notify`, and a signed event of a push in the form of GitHub's.

The event is as small as the engines allow.

Facts from the handlers of Argo CD 3.5 (util/webhook, applicationset/webhook, util/app/path, and go-playground/webhooks
6.4 beneath, the same since Argo CD 2.13) and of notification-controller 1.9 (internal/server):

* Argo CD reads ``ref``, ``before``, ``after``, ``repository.html_url``, ``repository.default_branch`` and each commit's
  ``added``, ``modified`` and ``removed``, which it makes no difference between. The default branch matters to
  Applications that follow HEAD, so it is left out: none of ours does. Argo CD checks X-Hub-Signature-256 and not the
  older header, and answers 200 before it reads the event.
* Argo CD refreshes an Application whose sources have the branch and the repository, and of whose paths one is in the
  lists, or if the lists are empty. For the others what was rendered at ``before`` counts as rendered at ``after``: so
  the lists must be complete, or empty.
* html_url is taken as a web page's: a source matches it by host and path, whatever its scheme, user and port, and may
  have ``.git`` at the end, which html_url therefore must not.
* Flux's receiver of type generic-hmac checks X-Signature over any body of up to 3 MiB. Its filters may look inside.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlsplit

from reconciler.model.events.event import Endpoint, Push
from reconciler.model.policy import EngineName

MOST_BYTES = 1 << 20
"""Of a body; a longer one goes without its paths."""

_SCP = re.compile(r"(?:[^@/:]+@)?([^@/:]+):(?!//)/?(.+)")
"""``git@host:path``, which is no URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """The webhook of an engine for pushes."""

    example: str
    """An endpoint as `--notify` takes it, for messages: ``argocd=https://argocd.example.com/api/webhook``."""
    signature_header: str
    """The header that carries the HMAC of the body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers."""
    path_hint: str
    """Where the path of the URL is to be had, for an endpoint that answers 404."""
    secret_path: bool = False
    """Whether the last part of the URL's path is a secret, which no message may show."""
    page_refusal: str = ""
    """Why a push of a repository without a web page cannot be announced; empty where the engine does not compare it."""


def read_endpoint(text: str, webhooks: Mapping[EngineName, Webhook]) -> tuple[EngineName, str]:
    """Read ``ENGINE=URL`` into both. Raises ValueError with a way out; its message never quotes the URL's path.

    The signature does not hide the event, and Flux's path should not be read on the way: plain http is for this
    machine, private addresses, and Services of the cluster that the daemon runs in.
    """
    name, equals, url = text.partition("=")
    if not equals or "/" in name:
        first = next(iter(webhooks.values()))
        raise ValueError(f"holds a word that is not ENGINE=URL (try {first.example})")
    if name not in webhooks:
        raise ValueError(f"{name!r} is no engine that can be told of a push (try {' or '.join(webhooks)})")
    engine = EngineName(name)
    fault, hint = _fault(url)
    if fault:
        raise ValueError(f"the address for {engine} {fault} ({hint or f'try {webhooks[engine].example}'})")
    return engine, url


def _fault(url: str) -> tuple[str, str]:
    """Describe the fault of an address, with a way out."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        return f"cannot be read: {error}", ""
    if parts.scheme not in ("https", "http") or not host or not url.isascii() or not url.isprintable():
        return "must be an https URL", ""
    if "@" in parts.netloc or "#" in url:
        return "may hold neither a login nor a #", ""
    if parts.path in ("", "/"):
        return "has no path", ""
    if parts.scheme == "http" and not _near(host):
        return f"is plain http to {host}", "try https://, or for a Service of this cluster NAME.NAMESPACE.svc"
    return "", ""


def _near(host: str) -> bool:
    """Return whether a host is this machine, a private address, or a name that only a cluster or this network knows."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.rstrip(".")
        return "." not in name or name.endswith((".svc", ".localhost")) or ".svc." in name
    return address.is_loopback or address.is_private


def signed(webhook: Webhook, endpoint: Endpoint, push: Push) -> tuple[Mapping[str, str], bytes]:
    """Write the headers and the body that tell an endpoint of a push."""
    body = _body(push)
    signature = "sha256=" + hmac.digest(endpoint.secret.encode(), body, sha256).hex()
    headers = {"Content-Type": "application/json", "User-Agent": "overspill"}
    return {**headers, **webhook.headers, webhook.signature_header: signature}, body


def web_page(repo_url: str) -> str:
    """Write a repository's address as that of its page; empty for one that no Argo CD could compare with a page's."""
    scp = _SCP.fullmatch(repo_url)
    if scp is not None:
        return f"https://{scp[1]}/{scp[2].removesuffix('.git')}"
    try:
        parts = urlsplit(repo_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("https", "http", "ssh") or not host:
        return ""
    if parts.scheme == "ssh":
        return f"https://{host}{parts.path.removesuffix('.git')}"
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.removesuffix('.git')}"


def _body(push: Push) -> bytes:
    """Write the event, without the paths if it would be too long with them."""
    event = {
        "ref": f"refs/heads/{push.branch}",
        "before": push.old or "0" * len(push.new),
        "after": push.new,
        "repository": {"html_url": web_page(push.repo_url)},
        "commits": [],
    }
    if push.paths is not None:
        # Written and removed paths share one list, and a directory that was removed stands for its files.
        commit = {"id": push.new, "added": [], "modified": sorted(push.paths), "removed": []}
        body = json.dumps({**event, "commits": [commit]}).encode()
        if len(body) <= MOST_BYTES:
            return body
    return json.dumps(event).encode()
