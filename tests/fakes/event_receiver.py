"""A receiver of events over real HTTP, which checks signatures as Standard Webhooks do, and misbehaves on demand."""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.fakes.loopback import LoopbackHandler, LoopbackServer

SECRET = "whsec_" + base64.b64encode(b"receivers-" * 3).decode()


@dataclass
class Request:
    """A request that was made, whatever came of it."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """A receiver that takes what is signed. `answers` come before its own, one a request.

    `deaf` takes the request, and says that it did not, as one that dies before it answers.
    """

    url: str = ""
    secret: str = SECRET
    answers: list[int] = field(default_factory=list)
    deaf: int = 0
    requests: list[Request] = field(default_factory=list)
    taken: list[Request] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something holds; fails when it does not come to that."""
        with self.changed:
            assert self.changed.wait_for(true, 60), (len(self.requests), [one.body for one in self.taken])

    @property
    def ids(self) -> list[str]:
        """The ids of the CloudEvents that were taken, in the order in which each came first."""
        return list(dict.fromkeys(one.json["id"] for one in self.taken))

    def ids_of(self, path: str) -> list[str]:
        """Return the ids of the CloudEvents that one path has taken, in the order in which each came first."""
        return list(dict.fromkeys(one.json["id"] for one in self.taken if one.path == path))

    def answer(self, request: Request) -> int:
        with self.changed:
            self.requests.append(request)
            status = self.answers.pop(0) if self.answers else self._judge(request)
            if status // 100 == 2:
                self.taken.append(request)
                if self.deaf:
                    self.deaf -= 1
                    status = 500
            self.changed.notify_all()
        return status

    def _judge(self, request: Request) -> int:
        """Check a signature where there is one to check; chats have none."""
        if "webhook-id" not in request.headers:
            return 200
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        given = request.headers["webhook-signature"].removeprefix("v1,")
        head = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode()
        made = base64.b64encode(hmac.digest(key, head + request.body, sha256)).decode()
        return 204 if hmac.compare_digest(given, made) else 401


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    receiver: Receiver

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.reply(self.receiver.answer(Request(path=self.path, headers=headers, body=self.body())))


@contextmanager
def receiving(receiver: Receiver | None = None, port: int = 0) -> Iterator[Receiver]:
    """Serve a receiver on a loopback port; one that was there before may come back at its port."""
    receiver = receiver or Receiver()
    with LoopbackServer(type("Handler", (_Handler,), {"receiver": receiver}), port=port) as server:
        receiver.url = f"{server.url}/events"
        yield receiver
