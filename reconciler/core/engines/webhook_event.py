"""What an engine is told of a push: a signed event in the form of GitHub's, as small as the engines allow.

Facts from their handlers, Argo CD 3.5 (util/webhook, applicationset/webhook, util/app/path, and go-playground/webhooks
6.4 beneath, the same since Argo CD 2.13) and notification-controller 1.9 (internal/server):

* Argo CD reads ``ref``, ``before``, ``after``, ``repository.html_url``, ``repository.default_branch`` and each commit's
  ``added``, ``modified`` and ``removed``, which it makes no difference between. The default branch matters to those who
  follow HEAD, so it is left out: they do not follow this branch. It checks X-Hub-Signature-256 and not the older one,
  and answers 200 before it has looked at the event.
* An Application is refreshed whose sources have the branch and the repository, and of whose paths one is in the lists,
  or if the lists are empty. For the others what was rendered at ``before`` counts as rendered at ``after``: so the
  lists must be complete, or empty.
* html_url is taken as a web page's: a source matches it by host and path, whatever its scheme, user and port, and may
  have ``.git`` at the end, which html_url therefore must not.
* Flux's receiver of type generic-hmac checks X-Signature over any body of up to 3 MiB. Its filters may look inside.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import urlsplit

from reconciler.model.policy import EngineName
from reconciler.model.push import Endpoint, Push

MOST_BYTES = 1 << 20
_SCP = re.compile(r"(?:[^@/:]+@)?([^@/:]+):(?!//)/?(.+)")
"""``git@host:path``, which is no URL."""


def signed(endpoint: Endpoint, push: Push) -> tuple[Mapping[str, str], bytes]:
    """Write the headers and the body that tell an endpoint of a push."""
    body = _body(push)
    signature = "sha256=" + hmac.digest(endpoint.secret.encode(), body, sha256).hex()
    headers = {"Content-Type": "application/json", "User-Agent": "overspill"}
    if endpoint.engine is EngineName.FLUX:
        return {**headers, "X-Signature": signature}, body
    return {**headers, "X-GitHub-Event": "push", "X-Hub-Signature-256": signature}, body


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
        # What was written and what was removed stand in one list, and a directory that went stands for its files.
        commit = {"id": push.new, "added": [], "modified": sorted(push.paths), "removed": []}
        body = json.dumps({**event, "commits": [commit]}).encode()
        if len(body) <= MOST_BYTES:
            return body
    return json.dumps(event).encode()
