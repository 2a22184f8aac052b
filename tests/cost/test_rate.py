"""The rate of placements at a moment: GPUs, and dollars by the hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from reconciler.core.cost.rate import HourlyRate, hourly_rate
from reconciler.model.cluster import SpotPrice
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster
from tests.builders.inputs import placement, shape

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)
WORKER_2, WORKER_3 = ClusterName("worker-2"), ClusterName("worker-3")
CLUSTERS = {
    WORKER_2: Cluster(name=WORKER_2, price_per_gpu_hour=2.0),
    WORKER_3: Cluster(name=WORKER_3),
}


def test_gpus_without_a_price_are_counted_apart() -> None:
    placements = [
        replace(placement(replicas=3), cluster=WORKER_2),
        replace(placement(replicas=2), cluster=WORKER_3),
        replace(placement(replicas=1), cluster=ClusterName("gone")),
    ]
    assert hourly_rate(placements, CLUSTERS, NOW) == HourlyRate(gpus=6, dollars=6.0, unpriced_gpus=3, priced=True)


def test_groups_count_all_of_their_gpus_and_spot_has_its_price() -> None:
    spot = SpotPrice(labels={"capacity": "spot"}, price_per_gpu_hour=0.5)
    clusters = {WORKER_2: replace(CLUSTERS[WORKER_2], spot=spot)}
    group = replace(shape(8), group_size=2, node_selector={"capacity": "spot"})
    placements = [replace(placement(replicas=1), cluster=WORKER_2, shape=group)]
    assert hourly_rate(placements, clusters, NOW) == HourlyRate(gpus=16, dollars=8.0, priced=True)


def test_a_difference_may_be_less() -> None:
    before, after = HourlyRate(gpus=8, dollars=16.0, priced=True), HourlyRate(gpus=2, unpriced_gpus=2)
    assert after.minus(before) == HourlyRate(gpus=-6, dollars=-16.0, unpriced_gpus=2, priced=True)
