"""kill -9 of a real daemon that tells a webhook and a chat of what happens on the output branch."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.events.notification import AppriseReceiver, Notification, WebhookReceiver
from tests.builders.notifications import Fleet, fleet
from tests.builders.passes import QUIET
from tests.fakes.killed_courier import Victim, kill_at_random


@dataclass
class _Daemon:
    """A daemon in a process of its own."""

    process: subprocess.Popen[bytes]

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def run(directory: Path, number: int) -> str:
    """Kill a daemon so often while events happen and receivers misbehave, and see what they have heard."""
    with fleet(directory) as one:
        one.remote.commit("main", QUIET)
        return kill_at_random(one, number, _daemons(one))


def _daemons(one: Fleet) -> Callable[[Sequence[Notification]], Victim]:
    known: list[Sequence[Notification]] = []

    def start(told: Sequence[Notification]) -> Victim:
        if told not in known:
            known.append(told)
            one.remote.commit("main", {"notifications/all.yaml": "---\n".join(map(_file, told))})
        arguments = ["run", "--repo", one.remote.url, "--poll-interval", "1s"]
        secrets = str(one.path / "secrets")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")},
            "OVERSPILL_CACHE_DIR": str(one.path / "daemon"),
            "OVERSPILL_NOTIFICATION_SECRETS": secrets,
        }
        path = one.path / "daemon.log"
        with path.open("ab") as log:
            began = log.tell()
            daemon = _Daemon(
                subprocess.Popen(
                    [sys.executable, "-m", "reconciler", *arguments], env=environment, stdout=log, stderr=log
                )
            )
        while b"watching" not in path.read_bytes()[began:]:
            assert daemon.is_alive(), path.read_text()
            time.sleep(0.01)
        return daemon

    return start


def _file(notification: Notification) -> str:
    """Write a Notification as people do."""
    match notification.receiver:
        case WebhookReceiver(url=url, secret_from=secret):
            spec = f"webhook: {{url: '{url}', secretFrom: {secret}}}"
        case AppriseReceiver(url_from=secret):
            spec = f"apprise: {{urlFrom: {secret}}}"
        case other:
            raise AssertionError(other)
    head = "apiVersion: overspill.dev/v1alpha1\nkind: Notification\n"
    return f"{head}metadata: {{name: {notification.name}}}\nspec: {{{spec}}}\n"
