"""A way to a server on which every connection comes from another address of this machine.

The daemon bounds the failed logins of each address, and schemathesis fails on purpose at every operation. All of
127.0.0.0/8 is this machine, on Linux.
"""

from __future__ import annotations

import itertools
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SOURCES = itertools.cycle(f"127.0.{third}.{fourth}" for third in range(1, 255) for fourth in range(1, 255))


@contextmanager
def crowd(port: int) -> Iterator[int]:
    """Forward connections to a port of this machine, and yield the port to connect to instead."""

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port), source_address=(next(_SOURCES), 0)) as other:
                back = threading.Thread(target=_copy, args=(other, self.request), daemon=True)
                back.start()
                _copy(self.request, other)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Forward) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy what comes until nothing more does, and say so to the other side."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
