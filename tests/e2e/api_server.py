"""Requests of a Kubernetes API server, as its administrator."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = Any
PATIENCE = 30
"""Seconds for an answer, and for a server that asks us to come again."""


class Refused(Exception):  # noqa: N818 -- it is the API server's answer
    """An answer of the API server that is not 2xx."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status for those who expect one."""
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What somebody needs to log in."""

    server: str
    token: str
    authority: Path


class ApiServer:
    """One API server, asked by urllib: a connection for each request, so that none outlives a server that is killed."""

    def __init__(self, access: Access) -> None:
        """Trust the server's own certificate."""
        self._access = access
        self._trust = ssl.create_default_context(cafile=str(access.authority))

    def call(self, method: str, path: str, body: Json = None) -> Json:
        """Make one request; a PATCH is a merge patch. Raises Refused."""
        return self._ask(
            method, path, body, "application/merge-patch+json" if method == "PATCH" else "application/json"
        )

    def apply(self, path: str, body: Json) -> Json:
        """Apply an object on the server's side, as Argo CD and Flux do. Raises Refused."""
        query = "fieldManager=engine&force=true"
        return self._ask("PATCH", f"{path}/{body['metadata']['name']}?{query}", body, "application/apply-patch+yaml")

    def _ask(self, method: str, path: str, body: Json, kind: str) -> Json:
        request = urllib.request.Request(
            f"{self._access.server}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._access.token}", "Content-Type": kind},
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(request, context=self._trust, timeout=PATIENCE) as answer:
                    text = answer.read()
                return json.loads(text) if text[:1] == b"{" else text.decode()
            except urllib.error.HTTPError as error:
                with error:
                    # Just started, a server says so of kinds that are not its own, though it calls itself ready.
                    if error.code != 429 or time.monotonic() > deadline:
                        raise Refused(error.code, error.read().decode()[:2000]) from None
            time.sleep(0.2)
