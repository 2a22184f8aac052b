"""How the status of an object says that its run is over, for every kind that runs once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, kind_of
from reconciler.core.workloads.ends import RunEnd, asks_for_nothing, read_end
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.workload import Json
from tests.builders.run_statuses import CREATED, ENDED, ENDING, GOING_ON, conditions
from tests.builders.workload_kinds import SAMPLES, workload

AT = datetime(2026, 11, 20, 10, 4, tzinfo=UTC)


def with_status(status: Json, **metadata: str) -> Json:
    return {"metadata": {"name": "train", "namespace": "llm", **metadata}, "spec": {}, "status": status}


def test_every_kind_that_runs_once_says_when_it_is_over() -> None:
    assert {name for name, kind in BUILT_IN.items() if kind.once} <= ENDED.keys()
    assert {name for name, kind in BUILT_IN.items() if kind.end is not None} == ENDED.keys() == GOING_ON.keys()


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [(name, status, message) for name, (complete, _) in ENDED.items() for status, message in complete],
)
def test_a_complete_run(name: str, status: Json, message: str) -> None:
    raw = with_status(status)
    assert asks_for_nothing(BUILT_IN[name], raw)
    assert read_end(BUILT_IN[name], raw) == RunEnd(complete=True, at=AT, message=message)


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [(name, status, message) for name, (_, failed) in ENDED.items() for status, message in failed],
)
def test_a_failed_run(name: str, status: Json, message: str) -> None:
    raw = with_status(status)
    assert asks_for_nothing(BUILT_IN[name], raw)
    assert read_end(BUILT_IN[name], raw) == RunEnd(complete=False, at=AT, message=message)


@pytest.mark.parametrize(("name", "status"), [(name, status) for name, many in GOING_ON.items() for status in many])
def test_a_run_that_goes_on(name: str, status: Json) -> None:
    raw = with_status(status)
    assert not asks_for_nothing(BUILT_IN[name], raw)
    assert read_end(BUILT_IN[name], raw) is None


@pytest.mark.parametrize(("name", "status"), [(name, status) for name, many in ENDING.items() for status in many])
def test_a_run_that_is_being_ended_asks_for_nothing_and_is_not_over(name: str, status: Json) -> None:
    raw = with_status(status)
    assert asks_for_nothing(BUILT_IN[name], raw)
    assert read_end(BUILT_IN[name], raw) is None


@pytest.mark.parametrize("name", [name for name, kind in BUILT_IN.items() if kind.end is None])
def test_what_serves_never_ends(name: str) -> None:
    for complete, failed in ENDED.values():
        assert not any(asks_for_nothing(BUILT_IN[name], with_status(status)) for status, _ in (*complete, *failed))


@pytest.mark.parametrize("name", ENDED)
@pytest.mark.parametrize(
    "status", [None, {}, [], {"conditions": "none"}, {"conditions": ["x"], "phase": 3, "state": 1}]
)
def test_a_status_of_another_form_says_nothing(name: str, status: Json) -> None:
    assert not asks_for_nothing(BUILT_IN[name], {"metadata": {"name": "train"}, "status": status})


def test_an_end_without_a_moment_is_as_old_as_its_object() -> None:
    volcano = BUILT_IN["batch.volcano.sh/Job"]
    status = {"state": {"phase": "Completed"}}
    made = read_end(volcano, with_status(status, creationTimestamp=CREATED))
    assert made is not None
    assert made.at == datetime(2026, 11, 20, 9, tzinfo=UTC)
    unknown = read_end(volcano, with_status(status))
    assert unknown is not None
    assert unknown.at is None


def test_a_wrapper_ends_where_something_in_it_does() -> None:
    def wrapped(*names: str) -> WorkloadKind:
        parts = [{"template": SAMPLES[name][0]} for name in names]
        kind = kind_of(workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": parts}), NO_KINDS)
        assert kind is not None
        return kind

    done = with_status({"phase": "Succeeded", **conditions("ResourcesDeployed")})
    assert asks_for_nothing(wrapped("PyTorchJob"), done)
    assert not asks_for_nothing(wrapped("Deployment"), done)
    ends = [wrapped(*names).end for names in (("PyTorchJob",), ("RayJob",), ("PyTorchJob", "Deployment"))]
    assert [end is not None and end.by_pods for end in ends] == [True, False, False]


def test_the_moment_is_that_of_the_last_change() -> None:
    wrapper = BUILT_IN["workload.codeflare.dev/AppWrapper"]
    earlier = {"type": "QuotaReserved", "status": "False", "lastTransitionTime": CREATED}
    status = {"phase": "Succeeded", "conditions": [earlier, *conditions("ResourcesDeployed")["conditions"]]}
    made = read_end(wrapper, with_status(status))
    assert made is not None
    assert made.at == AT
