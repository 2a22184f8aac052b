"""What the tests on three clusters share: the clusters with their engines, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Fleet
from tests.e2e.control_plane import missing
from tests.e2e.three_clusters.clusters import ThreeClusters
from tests.e2e.three_clusters.clusters import missing as missing_engines
from tests.e2e.three_clusters.scenario import Scenario


@pytest.fixture(scope="package")
def _three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeClusters]:
    if reason := missing() or missing_engines():
        pytest.skip(reason)
    three = ThreeClusters(tmp_path_factory.mktemp("three"))
    yield three
    three.stop()


@pytest.fixture
def three_clusters(_three: ThreeClusters, fleet: Fleet, charts: str) -> Iterator[ThreeClusters]:
    """Lend the three clusters with their engines to the test's fleet; `describe` begins it."""
    with _three.with_fleet(fleet, charts):
        yield _three


@pytest.fixture
def scenario(three_clusters: ThreeClusters, fleet: Fleet) -> Scenario:
    """Set the three clusters' stage for one workload; `begin` raises the curtain."""
    return Scenario(three_clusters, fleet)
