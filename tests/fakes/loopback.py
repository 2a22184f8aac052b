"""HTTP servers on a loopback port: what all of them do alike, whatever they answer."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Handler = Callable[..., BaseHTTPRequestHandler]


class LoopbackServer(ThreadingHTTPServer):
    """A server that runs in a thread of its own, for as long as a `with` statement or from `start` to `stop`."""

    request_queue_size = 128  # of Python's five, streams that connect at once would be left out for a second

    def __init__(self, handler: Handler, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Listen at a free port, or at this one; with TLS where there is a context for it."""
        super().__init__(("127.0.0.1", port), handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and free the port."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over clients that leave early, as those of these tests do."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError | ssl.SSLError):
            super().handle_error(request, client_address)


class LoopbackHandler(BaseHTTPRequestHandler):
    """Answers in one piece, and logs nothing."""

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer; who asked may have given up meanwhile."""
        try:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True

    def reply_json(self, status: int, document: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with a document."""
        self.reply(status, json.dumps(document).encode(), {"Content-Type": "application/json", **(headers or {})})

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


def files_of(root: Path) -> Handler:
    """Make the handler that serves the files below a directory."""
    return partial(_Files, directory=str(root))
