"""Servers that answer calls wrongly, late or not at all, over real HTTP and https."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reconciler.client import Client, Pace
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

QUICK = Pace(first_backoff=0.001)
TOKEN = "t0ken-" * 4


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a server says; `hangs_up` says nothing and closes the connection."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs_up: bool = False


def said(code: int, **answer: Any) -> Reply:
    """Make an answer in the envelope."""
    return Reply(status=code, body=json.dumps({"statusCode": code, **answer}).encode())


@dataclass
class Server:
    """Gives the answers of `replies` one after the other, the last one for ever, and keeps what it was asked."""

    replies: list[Reply] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def client(self, **how: Any) -> Client:
        return Client(self.url, **{"token": TOKEN, "pace": QUICK, **how})


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    server_: Server

    def _any(self) -> None:
        self.body()
        server = self.server_
        server.asked.append(
            (f"{self.command} {self.path}", {name.lower(): value for name, value in self.headers.items()})
        )
        reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
        if reply.hangs_up:
            self.close_connection = True
            return
        self.reply(reply.status, reply.body, reply.headers)

    do_GET = do_POST = do_PUT = do_DELETE = _any


@contextmanager
def serving(*replies: Reply, wrap: Callable[[ssl.SSLContext], None] | None = None) -> Iterator[Server]:
    """Serve at this machine; `wrap` loads a certificate for https."""
    made = Server(replies=list(replies))
    handler = type("Handler", (_Handler,), {"server_": made})
    tls = None
    if wrap is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        wrap(tls)
    with LoopbackServer(handler, tls=tls) as server:
        made.url = server.url
        yield made
