"""A Prometheus for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.prometheus import Metrics, serving


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    with serving() as made:
        yield made
