"""Each kind of signal in the register satisfies the interface, and names itself by its field."""

from __future__ import annotations

import pytest

from reconciler.core.schema.signals import SignalFile
from reconciler.core.signals.freshness import fresh_asks
from reconciler.model.capacity import Observed
from reconciler.model.signal import Signal
from tests.builders.inputs import NOW, VLLM, ordering, seconds

EXAMPLES = {
    "schedule": {"start": "0 0 * * *", "duration": "24h", "replicas": 3},
    "prometheus": {"query": "sum(up)", "perReplica": 10},
    "slurm": {"partition": "gpu-h100", "gpusPerReplica": 8},
    "forecast": {"method": "Trend"},
}


def signal(kind: str) -> Signal:
    return SignalFile.model_validate({"name": "queue", kind: EXAMPLES[kind]}).value_of()


def test_every_kind_of_the_register_has_an_example_here() -> None:
    assert [field for field in SignalFile.model_fields if field != "name"] == list(EXAMPLES)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_signal_is_labelled_by_its_kind_and_its_name(kind: str) -> None:
    assert signal(kind).label == f"{kind} queue"
    assert all(ask.signal == f"{kind} queue" for ask in signal(kind).asks(NOW))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_time_tells_what_a_signal_asks_for_or_a_source_outside_or_the_past(kind: str) -> None:
    value = signal(kind)
    assert [bool(value.asks(NOW)), bool(value.source), bool(value.looks_back)].count(True) == 1
    assert bool(value.looks_back) == bool(value.foresees((), 0, NOW).statement)
    assert bool(value.next_change(NOW)) != bool(value.source)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_signal_with_a_source_is_stale_until_it_answers_and_any_other_never_is(kind: str) -> None:
    value = signal(kind)
    policy = ordering("worker-2", signals=(value,))
    _, stale = fresh_asks(VLLM, policy, Observed(), seconds(120), NOW)
    assert stale == ((f"{value.label} is not asked (is a {value.source} configured?)",) if value.source else ())
