"""What the stories of a GPU platform share: two clusters on which its controllers run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e import flux
from tests.e2e.conftest import Fleet
from tests.e2e.control_plane import missing
from tests.e2e.platform.controllers import Startable
from tests.e2e.platform.two_clusters import Lender, TwoClusters


@pytest.fixture(scope="package")
def _clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], TwoClusters]]:
    started: list[TwoClusters] = []

    def start() -> TwoClusters:
        if not started:
            started.append(TwoClusters(tmp_path_factory.mktemp("two")))
        return started[0]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="package")
def platform(_clusters: Callable[[], TwoClusters]) -> Callable[..., TwoClusters]:
    """Return the two clusters once these controllers run on both; a test is skipped where one cannot be had."""

    def with_controllers(*wanted: Startable) -> TwoClusters:
        reasons = [missing(), flux.missing(), *(each.missing() for each in wanted)]
        if any(reasons):
            pytest.skip("; ".join(reason for reason in reasons if reason))
        clusters = _clusters()
        for each in wanted:
            clusters.run(each)
        return clusters

    return with_controllers


@pytest.fixture
def lender(request: pytest.FixtureRequest, platform: Callable[..., TwoClusters], fleet: Fleet) -> Iterator[Lender]:
    """Stand before the two clusters with an empty repository; the module names its controllers and its namespace."""
    with platform(*request.module.CONTROLLERS).with_fleet(fleet, request.module.NAMESPACE) as standing:
        yield standing
