"""Apprise in a process of its own: one message has a deadline and a bound on memory, whichever service it goes to.

Its plugins speak HTTP, SMTP, MQTT and others, each with time-outs of single reads alone, and read answers of any size.
A process that is late is killed, and what its server sends costs it alone. It also keeps 15 MB of modules out of the
daemon. Run as a program, this module sends the message on its standard input.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from reconciler.adapters import operating_system
from reconciler.adapters.notification.sender import NotTaken
from reconciler.model.bounds import MESSAGE_MEMORY, MESSAGE_TIME

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


def deliver(message: AppriseMessage, *, seconds: float = MESSAGE_TIME.most) -> AppriseResult:
    """Send a message, or check its address. Raises NotTaken where Apprise is missing, late or out of memory."""
    if importlib.util.find_spec("apprise") is None:
        raise NotTaken("Apprise is not installed here (try: pip install 'overspill[notify]')")
    command = [sys.executable, "-m", "reconciler.adapters.notification.apprise_process"]
    try:
        # The address is a secret: it goes by standard input, and what is printed beside the result to nobody.
        done = subprocess.run(
            command,
            input=json.dumps(asdict(message)).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotTaken("Apprise could not deliver it in time") from None
    except OSError as error:
        raise NotTaken(f"Apprise cannot be started: {error.strerror}") from error
    try:
        return AppriseResult(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, TypeError, ValueError):
        why = f"ended with status {done.returncode} (its receiver may answer with over {MESSAGE_MEMORY})"
        raise NotTaken(f"Apprise could not deliver it: it {why}") from None


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
    return AppriseResult(known=True, taken=bool(taken), reason=str(lines[0])[:_MOST_WORDS] if lines else "")


def main() -> None:
    """Send the message of standard input, and print its result."""
    operating_system.bound_own_memory(MESSAGE_MEMORY.most)
    logging.getLogger("apprise").propagate = False
    message = AppriseMessage(**json.loads(sys.stdin.buffer.read()))
    sys.stdout.write("\n" + json.dumps(asdict(_send(message))) + "\n")


if __name__ == "__main__":
    main()
