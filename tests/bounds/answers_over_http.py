"""Servers that are asked over HTTP, at the bounds of their answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from reconciler.http_client import HttpClient, json_in
from reconciler.model.bounds import (
    HTTP_ANSWER_DEPTH,
    HTTP_ANSWER_SIZE,
    HTTP_ANSWER_VALUES,
    HTTP_EXCHANGE,
    HTTP_HEAD,
    HTTP_PIECES,
)
from tests.adapters.test_http_exchange import OK, Peer, dripping, peer, pouring
from tests.bounds.experiment import Experiment, experiment

HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
DONE = OK + b"Content-Length: 2\r\n\r\n{}"


def _whole(answer: bytes) -> Peer:
    """Send one answer, and no more."""

    def send(connection: socket.socket, _over: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(answer)

    return send


def _asked(fits: Peer, endless: Peer, says: str, *, timeout: float = 30, scaled: str = "") -> Iterator[Experiment]:
    def ask(address: str) -> str:
        with HttpClient(timeout=timeout) as http:
            return str(http.send("GET", f"http://{address}/", limit=1 << 20).status)

    with peer(fits) as near, peer(endless) as far:
        yield Experiment(at=lambda: ask(near), beyond=lambda: ask(far), says=says, scaled=scaled)


@experiment(HTTP_HEAD)
def _(_place: Path) -> Iterator[Experiment]:
    hints = HINT * ((HTTP_HEAD.most - 200) // len(HINT))
    yield from _asked(_whole(hints + DONE), pouring(b"", HINT * 50), f"over {HTTP_HEAD} before its answer")


@experiment(HTTP_PIECES)
def _(_place: Path) -> Iterator[Experiment]:
    first, piece = OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"
    fits = first + piece * (HTTP_PIECES.most - 1) + b"0\r\n\r\n"
    yield from _asked(_whole(fits), pouring(first, piece * 1000), f"in over {HTTP_PIECES.most:,} pieces")


@experiment(HTTP_EXCHANGE)
def _(_place: Path) -> Iterator[Experiment]:
    yield from _asked(
        _whole(DONE),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "does not answer in time",
        timeout=1,
        scaled="1 s",
    )


def _parsed(fits: bytes, too_much: bytes) -> Iterator[Experiment]:
    def at() -> None:
        assert json_in(fits) is not None

    yield Experiment(at=at, beyond=lambda: json_in(too_much), says="^None")


@experiment(HTTP_ANSWER_SIZE)
def _(_place: Path) -> Iterator[Experiment]:
    yield from _parsed(b'"' + b"x" * (HTTP_ANSWER_SIZE.most - 2) + b'"', b" " * (HTTP_ANSWER_SIZE.most + 1))


@experiment(HTTP_ANSWER_VALUES)
def _(_place: Path) -> Iterator[Experiment]:
    most = HTTP_ANSWER_VALUES.most
    yield from _parsed(b"[" + b"{}," * (most // 2 - 2) + b"{}]", b"[" + b"{}," * 5 * most + b"{}]")


@experiment(HTTP_ANSWER_DEPTH)
def _(_place: Path) -> Iterator[Experiment]:
    most = HTTP_ANSWER_DEPTH.most
    yield from _parsed(b"[" * most + b"]" * most, b"[" * (8 << 20) + b"]" * (8 << 20))
