"""The program that delivers messages by Apprise, one after the other: it reads and writes a line of JSON for each.

It imports nothing of ours that it does not need, since it is started again after each receiver that is late. It ends
when its standard input does, in the middle of a message as well: a daemon that was killed leaves nobody behind who
still delivers while the next one begins.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any

from reconciler.adapters import operating_system
from reconciler.model.bounds import MESSAGE_MEMORY

_MOST_WORDS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseMessage:
    """One message to one address."""

    url: str
    title: str = ""
    body: str = ""
    """Nothing is sent where it is empty; the address is checked alone."""
    kind: str = "info"
    body_format: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseResult:
    """What became of it."""

    known: bool
    """Whether the address is one of Apprise."""
    taken: bool = False
    reason: str = ""
    """What Apprise logged first of a failure; addresses may be in it."""
    last: bool = False
    """Whether the process ends after it: what it holds by now would be missing to the next message."""


def _send(message: AppriseMessage) -> AppriseResult:
    import apprise  # noqa: PLC0415 - an extra, and slow to import

    receiver: Any = apprise.Apprise()
    if not receiver.add(message.url):
        return AppriseResult(known=False)
    if not message.body:
        return AppriseResult(known=True)
    taken: Any = receiver.notify(
        body=message.body, title=message.title, notify_type=message.kind, body_format=message.body_format
    )
    lines = [] if taken else [entry.message for service in taken for attempt in service for entry in attempt.logs]
    last = operating_system.own_memory() > MESSAGE_MEMORY.most // 2
    reason = str(lines[0])[:_MOST_WORDS] if lines else ""
    return AppriseResult(known=True, taken=bool(taken), reason=reason, last=last)


def _read(lines: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _serve() -> None:
    operating_system.bound_own_memory(MESSAGE_MEMORY.most)
    logging.getLogger("apprise").propagate = False
    # What a plugin prints is no result, and nobody reads it.
    results = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    lines: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_read, args=(lines,), daemon=True).start()
    result = AppriseResult(known=False)
    while not result.last:
        result = _send(AppriseMessage(**json.loads(lines.get())))
        os.write(results, json.dumps(asdict(result)).encode() + b"\n")


def main() -> None:
    """Deliver the messages of standard input until it ends."""
    try:
        _serve()
    finally:
        os._exit(1)  # one that waits for standard input would keep the process


if __name__ == "__main__":
    main()
