"""Requests that are sent a byte at a time: each costs its own caller time, and nobody else a connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from reconciler.model.bounds import API_BODIES_OF_CALLER, API_BODY, API_BODY_SECONDS, API_CONNECTIONS, API_REQUESTS
from tests.builders.daemon import LLM_OWNER, PATH, STRANGER, Daemon, small

MOST = API_BODIES_OF_CALLER.most
WEBHOOK = "/api/v1/webhooks/github"


class Dripping:
    """A request whose body never ends: a byte every tenth of a second, for as long as somebody takes them."""

    def __init__(self, port: int, path: str, token: str = "", *, header: str = "Content-Length: 1000") -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        login = f"Authorization: Bearer {token}\r\n" if token else ""
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\n{login}Content-Type: application/json\r\n{header}\r\n\r\n"
        self._connection.sendall(head.encode())
        self._drop = b"1\r\n \r\n" if "chunked" in header else b" "
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._drip, daemon=True)
        self._thread.start()

    def _drip(self) -> None:
        while not self._over.wait(0.1):
            try:
                self._connection.sendall(self._drop)
            except OSError:
                return

    def answer(self) -> tuple[int, bytes]:
        """Wait for the answer, and for the end of the connection; return the status and the rest."""
        received = b""
        try:
            while part := self._connection.recv(1 << 16):
                received += part
        except ConnectionError:  # closed with bytes of ours unread
            pass
        return int(received.split(b" ")[1]), received

    def close(self) -> None:
        self._over.set()
        self._connection.close()
        self._thread.join()


@contextmanager
def dripping(daemon: Daemon, number: int, path: str, token: str = "", **more: str) -> Iterator[list[Dripping]]:
    with ExitStack() as stack:
        begun = [Dripping(daemon.port, path, token, **more) for _ in range(number)]
        for each in begun:
            stack.callback(each.close)
        time.sleep(0.5)  # each has been begun to be answered
        yield begun


def test_slow_bodies_of_a_caller_are_bounded_in_number_and_time_and_cost_no_other_caller(
    shared: Daemon,
) -> None:
    path, token, began = PATH, STRANGER, time.monotonic()
    with dripping(shared, MOST, path, token) as slow, dripping(shared, 4, path, token) as refused:
        assert [each.answer()[0] for each in refused] == [429] * 4
        assert shared.call("POST", PATH, small("other"), token=LLM_OWNER).status == 404, "it was read, and judged"
        assert shared.call("GET", "/healthz", token="").status == 200
        assert shared.call("GET", PATH, token=token).status == 200, "requests without a body are not counted"
        assert time.monotonic() - began < API_BODY_SECONDS.most
        assert [each.answer()[0] for each in slow] == [408] * MOST
    assert time.monotonic() - began < 2 * API_BODY_SECONDS.most
    with dripping(shared, 1, path, token, header=f"Content-Length: {64 * API_BODY.most}") as large:
        assert large[0].answer()[0] == 413, "the next one is read again"


def test_slow_chunks_of_nobody_leave_those_who_have_logged_in_alone(shared: Daemon) -> None:
    with dripping(shared, 2 * MOST, WEBHOOK, header="Transfer-Encoding: chunked"):
        assert shared.call("POST", PATH, small("other"), token=LLM_OWNER).status == 404


def test_one_caller_takes_a_small_part_of_the_requests_and_of_the_connections() -> None:
    assert MOST * 6 <= API_REQUESTS.most < API_CONNECTIONS.most
