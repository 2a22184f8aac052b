"""Since when a demand lacks replicas that nothing serves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.capacity import MissingReplicas
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName
from tests.builders.inputs import NOW, VLLM

HOUR_AGO, MINUTE_AGO = NOW - timedelta(hours=1), NOW - timedelta(minutes=1)
DEMAND = Demand(
    workload=VLLM,
    primary=ClusterName("worker-1"),
    wanted=10,
    running=6,
    missing=4,
    waiting=(
        MissingReplicas(replicas=1, since=MINUTE_AGO),
        MissingReplicas(replicas=2, since=HOUR_AGO),
        MissingReplicas(replicas=1, since=HOUR_AGO - timedelta(days=1), spare=True),
    ),
    shape=None,
    history=(),
)


@pytest.mark.parametrize(("placed", "since"), [(0, HOUR_AGO), (1, HOUR_AGO), (2, MINUTE_AGO), (3, None), (4, None)])
def test_placed_replicas_serve_those_that_have_been_missing_longest(placed: int, since: object) -> None:
    assert DEMAND.lacking_since(placed) == since
