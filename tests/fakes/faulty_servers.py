"""Servers that answer calls wrongly, late or not at all, over real HTTP and https."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reconciler.client import Client, Pace

QUICK = Pace(first_backoff=0.001)
TOKEN = "t0ken-" * 4


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a server says; `hangs_up` says nothing and closes the connection."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_: Server

    def _any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server = self.server_
        server.asked.append(
            (f"{self.command} {self.path}", {name.lower(): value for name, value in self.headers.items()})
        )
        reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
        if reply.hangs_up:
            self.close_connection = True
            return
        with suppress(ConnectionError):
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815 - as the base class spells them

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def serving(*replies: Reply, wrap: Callable[[ssl.SSLContext], None] | None = None) -> Iterator[Server]:
    """Serve at this machine; `wrap` loads a certificate for https."""
    made = Server(replies=list(replies))
    handler = type("Handler", (_Handler,), {"server_": made})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        scheme = "http"
        if wrap is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            wrap(context)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        made.url = f"{scheme}://127.0.0.1:{server.server_port}"
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
