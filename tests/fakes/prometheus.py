"""A small Prometheus over real HTTP: answers queries from a table, and in every way that can go wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.loopback import LoopbackHandler, LoopbackServer


class Metrics:
    """What is answered to which query. `says` takes the place of every answer: a status, and a body."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.says: tuple[int, bytes] | None = None
        self.token = ""
        self.answered = 0
        self.hangs = threading.Event()
        self.hangs.set()
        self.asked: list[str] = []
        self.changed = threading.Condition()
        self.url = ""
        self.elsewhere = ""

    def wait_for(self, count: int) -> None:
        """Wait until so many queries have been asked."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, 60), self.asked

    def answer(self, query: str) -> tuple[int, bytes]:
        if self.says is not None:
            return self.says
        if query not in self.values:
            return 200, self.vector()
        value = self.values[query]
        return value if isinstance(value, tuple) else (200, self.vector(value))

    @staticmethod
    def vector(*values: float | str) -> bytes:
        result = [{"metric": {"pod": str(index)}, "value": [1.5, str(value)]} for index, value in enumerate(values)]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

    @staticmethod
    def error(kind: str, message: str) -> bytes:
        return json.dumps({"status": "error", "errorType": kind, "error": message}).encode()


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    metrics: Metrics

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        query = parse_qs(at.query).get("query", [""])[0]
        with self.metrics.changed:
            self.metrics.asked.append(query)
            self.metrics.changed.notify_all()
        self.metrics.hangs.wait(60)
        self.metrics.answered += 1
        if self.metrics.elsewhere:
            self.reply(302, b"", {"Location": self.metrics.elsewhere + self.path})
        elif self.metrics.token and self.headers.get("Authorization") != f"Bearer {self.metrics.token}":
            self.reply(401, b"who are you?")
        elif at.path != "/prom/api/v1/query":
            self.reply(404, b"nothing here")
        else:
            self.reply(*self.metrics.answer(query))


@contextmanager
def serving() -> Iterator[Metrics]:
    """Serve metrics at an address with a path of its own, as behind a proxy."""
    metrics = Metrics()
    handler = type("Handler", (_Handler,), {"metrics": metrics})
    with LoopbackServer(handler) as server:
        metrics.url = f"{server.url}/prom"
        try:
            yield metrics
        finally:
            metrics.hangs.set()
