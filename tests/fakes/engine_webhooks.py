"""Engines' webhooks over real HTTP, which check and read an event as Argo CD and Flux do, and misbehave on demand."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.loopback import LoopbackHandler, LoopbackServer

SECRET = "engines-" + "secret-" * 3
ARGOCD, FLUX = "/api/webhook", "/hook/" + "0f" * 32
Event = dict[str, Any]
Answer = int | tuple[int, dict[str, str]]


@dataclass
class Engine:
    """A server of both kinds of webhooks. `answers` come before its own, one a request; it holds back while `held`."""

    url: str = ""
    secret: str = SECRET
    answers: list[Answer] = field(default_factory=list)
    tries: list[float] = field(default_factory=list)
    taken: list[Event] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.held.set()

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something holds; fails when it does not come to that."""
        with self.changed:
            assert self.changed.wait_for(true, 30), (len(self.tries), self.taken)

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Take one request as the engine of that path would."""
        with self.changed:
            self.tries.append(time.monotonic())
            scripted = self.answers.pop(0) if self.answers else None
            self.changed.notify_all()
        assert self.held.wait(60)
        if scripted is not None:
            return scripted
        status = self._argo_cd(headers, body) if path == ARGOCD else self._flux(headers, body) if path == FLUX else 404
        if status == 200:
            with self.changed:
                self.taken.append(json.loads(body))
                self.changed.notify_all()
        return status

    def _argo_cd(self, headers: dict[str, str], body: bytes) -> int:
        """Check as go-playground/webhooks does: the event, then the MAC, with or without its prefix."""
        if headers.get("x-gogs-event") or headers.get("x-github-event") not in ("push", "ping"):
            return 400
        given = headers.get("x-hub-signature-256", "").removeprefix("sha256=")
        return 200 if hmac.compare_digest(given, self._mac(body, "sha256")) else 400

    def _flux(self, headers: dict[str, str], body: bytes) -> int:
        """Check as go-github's ValidateSignature does: the hash is named by the prefix."""
        if len(body) > 3 << 20:
            return 413
        name, _, given = headers.get("x-signature", "").partition("=")
        if name not in ("sha1", "sha256", "sha512"):
            return 400
        return 200 if hmac.compare_digest(given, self._mac(body, name)) else 400

    def _mac(self, body: bytes, name: str) -> str:
        return hmac.new(self.secret.encode(), body, getattr(hashlib, name)).hexdigest()


def refreshes(event: Event, *, repo_url: str, revision: str, paths: Collection[str]) -> bool:
    """Tell whether Argo CD refreshes an Application of a repository, revision and manifest-generate-paths (3.5.1)."""
    page = urlsplit(event["repository"]["html_url"])
    source = re.compile(
        r"^((https?|ssh)://)?([\w\.][\w\.-]{0,30}[\w\.\$-]?@)?((alt)?ssh\.)?"
        + re.escape(page.hostname or "")
        + r"(:\d+)?[:/]"
        + re.escape(page.path.removeprefix("/"))
        + r"(\.git)?$",
        re.IGNORECASE,
    )
    if not source.match(repo_url) or revision.removeprefix("refs/heads/") != event["ref"].split("/", 2)[2]:
        return False
    if not paths:
        return True
    changed = [file for each in event["commits"] for kind in ("added", "modified", "removed") for file in each[kind]]
    return not changed or any(
        file == path or file.startswith(f"{path}/") for file in changed for path in (path.strip("/") for path in paths)
    )


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def do_HEAD(self) -> None:
        """Answer as to an event: neither engine looks at the method."""
        self.do_POST()

    def do_POST(self) -> None:
        given = self.engine.answer(self.path, {k.lower(): v for k, v in self.headers.items()}, self.body())
        status, headers = given if isinstance(given, tuple) else (given, {})
        self.reply(status, headers=headers)


@contextmanager
def listening(tls: ssl.SSLContext | None = None) -> Iterator[Engine]:
    """Serve an engine's webhooks on a loopback port, with TLS if a certificate is given."""
    engine = Engine()
    with LoopbackServer(type("Handler", (_Handler,), {"engine": engine}), tls=tls) as server:
        engine.url = server.url
        try:
            yield engine
        finally:
            engine.held.set()
