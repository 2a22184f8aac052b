"""What every test may use: a bare remote, and our adapter on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from reconciler.adapters.git import GitRepository
from tests.builders.remote import Remote

# How long an example takes says how busy the machine is; speed is measured in tests/bench. Fifty examples of what is no
# search keep all tests together within five minutes.
settings.register_profile("untimed", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """Make an empty bare repository."""
    return Remote(tmp_path / "remote.git")


@pytest.fixture
def repository(remote: Remote, tmp_path: Path) -> Iterator[GitRepository]:
    """Open our adapter on that remote, with nothing fetched yet."""
    with GitRepository(remote.url, cache=tmp_path / "cache") as opened:
        yield opened
