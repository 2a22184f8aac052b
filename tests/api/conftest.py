"""What the tests of the API share: a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.daemon import Daemon, daemon
from tests.builders.remote import Remote


@pytest.fixture
def running(remote: Remote, tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon on an empty output branch."""
    with daemon(remote, tmp_path / "cache") as one:
        yield one


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Run one daemon for all tests of a module that write nothing, or clear it."""
    path = tmp_path_factory.mktemp("shared")
    with daemon(Remote(path / "remote.git"), path / "cache") as one:
        yield one
