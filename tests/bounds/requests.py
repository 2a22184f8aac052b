"""Callers of the API at their bounds, over a whole daemon."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from reconciler.api.server import HttpServer
from reconciler.model.bounds import (
    API_BODIES_OF_CALLER,
    API_BODY,
    API_BODY_SECONDS,
    API_CONNECTIONS,
    API_HEADER_SECONDS,
    API_REQUESTS,
)
from tests.api.test_http import client
from tests.api.test_slow_requests import dripping
from tests.bounds.experiment import Experiment, experiment
from tests.builders.daemon import OWNER, PATH, STRANGER, daemon
from tests.builders.remote import Remote

WEBHOOK = "/api/v1/webhooks/github"


@experiment(API_BODY)
def _(place: Path) -> Iterator[Experiment]:
    with daemon(Remote(place / "remote.git"), place / "cache") as one:

        def posted(size: int) -> str:
            return f"answers {one.call('POST', PATH, raw=b' ' * size, token=STRANGER).status}"

        def at() -> None:
            assert posted(API_BODY.most) == "answers 400"

        yield Experiment(at=at, beyond=lambda: posted(16 * API_BODY.most), says="answers 413")


@experiment(API_BODY_SECONDS)
def _(place: Path) -> Iterator[Experiment]:
    with daemon(Remote(place / "remote.git"), place / "cache") as one:

        def slow() -> str:
            with dripping(one, 1, PATH, STRANGER) as (request,):
                return f"answers {request.answer()[0]}"

        yield Experiment(at=lambda: one.call("GET", PATH, token=STRANGER), beyond=slow, says="answers 408")


@experiment(API_BODIES_OF_CALLER)
def _(place: Path) -> Iterator[Experiment]:
    most = API_BODIES_OF_CALLER.most
    with daemon(Remote(place / "remote.git"), place / "cache") as one:

        def together(number: int) -> str:
            with dripping(one, number, PATH, STRANGER):
                return f"answers {one.call('POST', PATH, raw=b'[]', token=STRANGER).status}"

        def at() -> None:
            assert together(most - 1) == "answers 400"

        yield Experiment(at=at, beyond=lambda: together(4 * most), says="answers 429")


def _alive(server: HttpServer) -> str:
    """Ask for the health of a server over a connection of its own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return connection.recv(1 << 16).split(b"\r\n")[0].decode()


@experiment(API_HEADER_SECONDS)
def _(_place: Path) -> Iterator[Experiment]:
    server = HttpServer(client().app, host="127.0.0.1", port=0, patience=1)
    server.start()

    def slow() -> str:
        """Send a byte of a header now and then until the connection is closed."""
        with socket.create_connection(("127.0.0.1", server.port), timeout=0.1) as connection:
            began = time.monotonic()
            try:
                while True:
                    connection.sendall(b"G")
                    try:
                        if not connection.recv(1):
                            break
                    except TimeoutError:
                        continue
            except ConnectionError:
                pass
            return f"closed after {time.monotonic() - began:.0f} s"

    yield Experiment(at=lambda: _alive(server), beyond=slow, says="closed after 1 s", scaled="1 s")
    server.stop()


@experiment(API_CONNECTIONS)
def _(_place: Path) -> Iterator[Experiment]:
    server = HttpServer(client().app, host="127.0.0.1", port=0)
    server.start()

    def beside(number: int) -> str:
        with ExitStack() as held:
            for _ in range(number):
                held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            return _alive(server)

    yield Experiment(
        at=lambda: beside(API_CONNECTIONS.most - 1), beyond=lambda: beside(3 * API_CONNECTIONS.most), says="200 OK"
    )
    server.stop()


@experiment(API_REQUESTS)
def _(place: Path) -> Iterator[Experiment]:
    most = API_BODIES_OF_CALLER.most
    with daemon(Remote(place / "remote.git"), place / "cache") as one:

        def beside() -> str:
            """Ask while a tenant, and senders that are nobody, have all the bodies on their way that they may have."""
            with dripping(one, 2 * most, PATH, STRANGER), dripping(one, 2 * most, WEBHOOK):
                return f"answers {one.call('GET', PATH, token=OWNER).status}"

        yield Experiment(at=beside, beyond=beside, says="answers 200", scaled="two callers")
