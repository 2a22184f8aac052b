"""Any number that a signal of any kind states asks for a bounded number of replicas, with a bounded work of a pass."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.signals.merge import merge
from reconciler.core.signals.prometheus import Query
from reconciler.core.signals.schedule import Schedule
from reconciler.core.signals.slurm import PendingGpus, pending_jobs
from reconciler.errors import InvalidInput
from reconciler.model.bounds import ASKED_REPLICAS, BoundedInput, InputBound, JsonBounds, Unit
from reconciler.model.capacity import ClusterObservation, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.signal import ReplicaRequest
from reconciler.model.workload import WorkloadRef
from reconciler.text.json_input import parse_json
from tests.builders.counted_work import within
from tests.builders.inputs import NOW, desired, free, inputs, ordering, tenants
from tests.builders.kube_objects import autoscaler, other_metric, pod, queued, workload

NUMBERS = ["2147483647", "1000000000000000000", "1" + "0" * 400, "1e18", "1e400", "NaN", "-5", "0"]
MINUTE = timedelta(minutes=1)
NAME = tenants(1)[0]
REF = WorkloadRef(namespace="demo", name=NAME.name)
WIDE = JsonBounds(
    size=InputBound(input=BoundedInput.CLUSTERS, of="a", most=1 << 20, unit=Unit.BYTES, beyond=""),
    values=InputBound(input=BoundedInput.CLUSTERS, of="a", most=1 << 20, unit=Unit.VALUES, beyond=""),
    depth=InputBound(input=BoundedInput.CLUSTERS, of="a", most=99, unit=Unit.LEVELS, beyond=""),
)
HOLE = "the number"


def wire(document: Any, number: str) -> Any:
    """Put a number into a document as it stands on the wire, and read it; raises UnreadableJson."""
    return parse_json(json.dumps(document).replace(f'"{HOLE}"', number).encode(), WIDE)


def observed(resource: Resource, raw: Any, *more: tuple[Resource, Any]) -> WorkloadObservation | None:
    state = ClusterState(frozenset({REF}))
    for each, document in (*more, (resource, raw)):
        state.apply(each, document)
    for seen in state.observation(ClusterName("worker-1"), NOW).workloads:
        if seen.ref.name == REF.name:
            return seen
    return None


def asked_by_autoscaler(number: str) -> WorkloadObservation | None:
    raw = autoscaler(REF.name, 6, other_metric("External", {"type": "AverageValue", "averageValue": "1"}))
    raw["status"]["currentMetrics"] = [{"type": "External", "external": {"current": {"averageValue": HOLE}}}]
    return observed(Resource.AUTOSCALERS, wire(raw, number), (Resource.DEPLOYMENTS, workload(REF.name)))


def asked_by_maximum(number: str) -> WorkloadObservation | None:
    raw = autoscaler(REF.name, 6)
    raw["spec"]["maxReplicas"] = raw["status"]["desiredReplicas"] = raw["status"]["currentReplicas"] = HOLE
    return observed(Resource.AUTOSCALERS, wire(raw, number), (Resource.DEPLOYMENTS, workload(REF.name)))


def asked_by_deployment(number: str) -> WorkloadObservation | None:
    raw = workload(REF.name)
    raw["spec"]["replicas"] = HOLE
    return observed(Resource.DEPLOYMENTS, wire(raw, number))


def asked_by_job(number: str) -> WorkloadObservation | None:
    raw = workload(REF.name)
    raw["spec"] |= {"parallelism": HOLE, "completions": HOLE}
    return observed(Resource.JOBS, wire(raw, number))


def asked_by_queue(number: str) -> WorkloadObservation | None:
    raw = queued("job-1", 4, owner=("Job", REF.name))
    raw["spec"]["podSets"][0]["count"] = HOLE
    return observed(Resource.QUEUED, wire(raw, number), (Resource.JOBS, workload(REF.name)))


def asked_by_pods(number: str) -> WorkloadObservation | None:
    raw = workload(REF.name)
    raw["spec"]["replicas"] = HOLE
    waits = pod("vllm-1-a", owner=("StatefulSet", REF.name), waits="0/1 nodes are available")
    return observed(Resource.STATEFUL_SETS, wire(raw, number), (Resource.PODS, waits))


CLUSTERS: list[Callable[[str], WorkloadObservation | None]] = [
    asked_by_autoscaler, asked_by_maximum, asked_by_deployment, asked_by_job, asked_by_queue, asked_by_pods,
]  # fmt: skip # a list of kinds


def decide_on(seen: WorkloadObservation) -> None:
    """Decide on a workload as its primary reports it."""
    policy = replace(ordering("worker-2", "worker-3"), scale_up_window=MINUTE)
    wanted = desired(workloads=[NAME], policies={NAME: policy})
    primary = ClusterObservation(cluster=ClusterName("worker-1"), observed_at=NOW, workloads=(seen,))
    plan = decide(inputs(primary, free("worker-2", 4), free("worker-3", 8), wanted=wanted))
    assert not plan.bugs


def steps_of(seen: WorkloadObservation) -> int:
    return sum(step.replicas for step in merge(max(0, seen.wanted - seen.running), seen.waiting, seen.asks, MINUTE))


@pytest.mark.parametrize("kind", CLUSTERS, ids=lambda kind: kind.__name__)
def test_usual_number_of_an_object_counts(kind: Callable[[str], WorkloadObservation | None]) -> None:
    seen = kind("40")
    assert seen is not None
    assert seen.wanted >= 40 or steps_of(seen) >= 1


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", CLUSTERS, ids=lambda kind: kind.__name__)
def test_number_of_an_object_is_bounded(kind: Callable[[str], WorkloadObservation | None], number: str) -> None:
    seen = None
    with suppress(ValueError, TypeError, OverflowError, KeyError):  # the object is left out, as unreadable ones are
        seen = within(50_000, lambda: kind(number))
    if seen is None:
        return
    # Pods, and what is asked for beyond their object's own.
    assert within(10_000, lambda: steps_of(seen)) <= 2 * ASKED_REPLICAS.most
    within(400_000, lambda: decide_on(seen))


def answers(number: float) -> Iterator[ReplicaRequest]:
    """Yield what services and schedules ask for where they state a number."""
    query = Query(name="queue", text="queue", per_replica=1)
    above = Query(name="queue", text="queue", above=1, replicas=int(number) if math.isfinite(number) else 1)
    for each in (query, above):
        with suppress(InvalidInput):
            yield request(each.label, each.replicas_for(number))
    if math.isfinite(number):
        start = Schedule(
            name="day", start="* * * * *", duration=timedelta(hours=1), zone="UTC", replicas=max(1, int(number))
        )
        yield from start.asks(NOW)
        jobs = {"job_state": "PENDING", "state_reason": "Resources", "array_task_string": f"0-{int(number)}"}
        tres = f"gres/gpu={abs(int(number))}"
        answer = {"jobs": [{**jobs, "job_id": 1, "partition": "gpu", "tres_req_str": tres, "submit_time": 1}]}
        slurm = PendingGpus(name="all", partition="gpu", gpus_per_replica=1)
        yield request("slurm", slurm.replicas_for(pending_jobs(answer)))


def request(signal: str, replicas: int) -> ReplicaRequest:
    return ReplicaRequest(signal=signal, replicas=replicas, since=NOW - 60 * MINUTE, cause="asks", beyond=False)


@pytest.mark.parametrize("number", [float(2**31 - 1), 1e18, 1e300, math.inf, -math.inf, math.nan, -5.0])
def test_number_of_a_service_or_a_schedule_is_bounded(number: float) -> None:
    asks = within(20_000, lambda: [*answers(number)])
    steps = within(10_000, lambda: merge(0, (), asks, MINUTE))
    assert sum(step.replicas for step in steps) <= ASKED_REPLICAS.most
    seen = WorkloadObservation(ref=REF, wanted=4, running=4, asks=tuple(asks))
    within(400_000, lambda: decide_on(seen))
