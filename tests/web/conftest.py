"""What the tests of the page share: a daemon, and a browser without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.browser import Browser
from tests.builders.daemon import OWNER, Daemon, daemon
from tests.builders.remote import Remote


@pytest.fixture
def running(remote: Remote, tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon on an empty output branch."""
    with daemon(remote, tmp_path / "cache") as one:
        yield one


@pytest.fixture
def browser(running: Daemon) -> Browser:
    """Open a browser that is signed in as the owner of everything."""
    return signed_in(running, OWNER)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Run one daemon for all tests of a module that write nothing."""
    path = tmp_path_factory.mktemp("shared")
    with daemon(Remote(path / "remote.git"), path / "cache") as one:
        one.sight.missing = 3
        one.wake("observation")
        one.until(lambda: len(one.latest.read().decision.inputs.ledger.placements))
        yield one


def signed_in(running: Daemon, token: str) -> Browser:
    """Open a browser and sign in."""
    browser = Browser(f"http://127.0.0.1:{running.port}")
    assert browser.sign_in(token).status == 303
    return browser
