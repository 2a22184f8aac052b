"""Numbers that signals state, at their bound."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from reconciler.core.signals.merge import merge
from reconciler.model.bounds import ASKED_REPLICAS
from reconciler.model.capacity import WorkloadObservation
from tests.bounds.experiment import Experiment, experiment
from tests.signals.test_bounded_counts import REF, decide_on, request


@experiment(ASKED_REPLICAS)
def _(_place: Path) -> Iterator[Experiment]:
    def asked(number: int) -> str:
        """Decide on a workload that asks for so many replicas, and count those that it gets asked for."""
        asks = (request("prometheus queue", number),)
        decide_on(WorkloadObservation(ref=REF, wanted=4, running=4, asks=asks))
        return f"{sum(step.replicas for step in merge(0, (), asks, timedelta(minutes=1)))} count"

    def at() -> None:
        assert asked(ASKED_REPLICAS.most) == f"{ASKED_REPLICAS.most} count"

    yield Experiment(at=at, beyond=lambda: asked(10**18), says=f"^{ASKED_REPLICAS.most} count")
