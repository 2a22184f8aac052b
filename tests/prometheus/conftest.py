"""A Prometheus for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.prometheus import Metrics, serving


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no proxy of whoever runs the tests stand between."""
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    with serving() as made:
        yield made
