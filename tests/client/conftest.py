"""What the client's tests share: a daemon, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.client import Client
from tests.builders.daemon import EDITOR, Daemon, daemon
from tests.builders.remote import Remote
from tests.fakes.faulty_servers import QUICK


@pytest.fixture
def running(remote: Remote, tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon on an empty output branch."""
    with daemon(remote, tmp_path / "cache") as one:
        yield one


@pytest.fixture
def client(running: Daemon) -> Iterator[Client]:
    """Speak to it as an Editor of the workspace abc."""
    with Client(f"http://127.0.0.1:{running.port}", token=EDITOR, pace=QUICK) as made:
        yield made
