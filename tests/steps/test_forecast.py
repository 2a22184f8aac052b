"""Foreseen replicas: placed beforehand, after all that are missing, within the policy's bounds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.messages import message
from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.observe.demand import Demands
from reconciler.core.signals.forecast import Forecast, Method
from reconciler.core.signals.merge import with_foreseen, with_headroom
from reconciler.core.signals.past_demand import step_of
from reconciler.model.action import Action
from reconciler.model.capacity import MissingReplicas, Node, Pool
from reconciler.model.demand import Demand, Sample
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Origin
from reconciler.model.plan import Plan
from reconciler.model.signal import DemandLevel, ReplicaRequest
from tests.builders.gprs import binding, gpr_template, record, request
from tests.builders.inputs import (
    NOW,
    SOURCE,
    VLLM,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    placement,
    seconds,
    shape,
    short,
)

DAY = timedelta(days=1)
OTHER = WorkloadId(WorkspaceName("llm"), TemplateName("other"))
USUAL = Forecast(name="usual", method=Method.YESTERDAY, ahead=timedelta(minutes=10), window=timedelta(minutes=30))
FORESIGHTED = ordering("worker-2", "worker-3", signals=(USUAL,))


def yesterday(replicas: int, workload: WorkloadId = VLLM) -> dict[WorkloadId, tuple[DemandLevel, ...]]:
    return {workload: (DemandLevel(at=step_of(NOW - DAY), missing=replicas), DemandLevel(at=NOW - DAY / 2, missing=0))}


def decided(missing: int, foreseen: int, *, there: int = 0, room: int = 8, **fields: object) -> Plan:
    clusters = (short(missing), free("worker-2", room), free("worker-3", 0))
    placed = ledger(placement("worker-2", there)) if there else ledger()
    wanted = desired(replace(FORESIGHTED, **fields))
    return decide(inputs(*clusters, wanted=wanted, there=placed, past=yesterday(foreseen)))


def asked(*replicas: int) -> list[ReplicaRequest]:
    return [
        ReplicaRequest(signal=f"forecast {count}", replicas=count, since=NOW, cause="", beyond=False, planned=True)
        for count in replicas
    ]


def test_foreseen_replicas_are_placed_at_once_and_the_commit_says_so() -> None:
    (begun,) = decided(0, 3).changes
    assert begun.action is Action.PLACE
    assert begun.placement.replicas == 3
    assert begun.shortage is not None
    assert begun.shortage.asks[0].startswith("forecast usual foresees 3 missing until ")
    (more,) = decided(3, 5, there=3).changes
    assert more.action is Action.RESIZE
    assert more.after.replicas == 5


def test_forecast_of_no_more_than_is_missing_changes_nothing() -> None:
    assert decided(3, 3, there=3).changes == ()
    assert decided(3, 2, there=3).changes == ()


def test_bounds_of_the_policy_hold_for_what_is_foreseen() -> None:
    (begun,) = decided(0, 6, max_replicas=4).changes
    assert begun.action is Action.PLACE
    assert begun.placement.replicas == 4


def test_the_highest_forecast_counts_and_spare_replicas_are_part_of_it() -> None:
    steps = (MissingReplicas(replicas=2, since=NOW - seconds(60)),)
    spare = with_headroom(steps, 2, None, NOW)
    *_, foreseen = with_foreseen(spare, asked(3, 6))
    assert (foreseen.replicas, foreseen.signal, foreseen.spare, foreseen.planned) == (2, "forecast 6", True, True)
    assert with_foreseen(spare, asked(3, 4)) == spare
    assert with_foreseen((), asked(1))[0].replicas == 1


def test_what_is_missing_goes_before_what_is_foreseen() -> None:
    policies = {OTHER: ordering("worker-2"), VLLM: FORESIGHTED}
    home = short(0)
    both = replace(home, workloads=home.workloads + short(4, workload=OTHER).workloads)
    seen = (both, free("worker-2", 5))
    wanted = desired(workloads=(VLLM, OTHER), policies=policies)
    changes = decide(inputs(*seen, wanted=wanted, past=yesterday(5))).changes
    got = {change.placement.workload: change.placement.replicas for change in changes if change.action is Action.PLACE}
    assert got == {OTHER: 4, VLLM: 1}


@pytest.mark.parametrize(("missing", "foreseen", "evicted"), [(2, 0, 2), (1, 2, 1), (0, 2, 0)])
def test_what_is_foreseen_evicts_nobody(missing: int, foreseen: int, evicted: int) -> None:
    """A burst of urgent GPRs evicts requests for what it is missing, and none for what is foreseen."""
    wanted = desired(
        ordering("worker-2", signals=(USUAL,)),
        gpr_templates={"h100": gpr_template(priority=250)},
        bindings=binding({"worker-2": "h100"}),
    )
    asked_by = [
        record(request(name, ask=GpuAsk(gpus=4), terms=GprTerms(priority=50, evictable=True)), received=NOW)
        for name in ("a", "b")
    ]
    runs = [
        placement("worker-2", 1, workload=each.workload, shape=shape(4), origin=Origin.REQUEST) for each in asked_by
    ]
    there = ledger(*runs, requests={each.workload: replace(each, began_at=NOW) for each in asked_by})
    node = Node(name="busy", free=gpus(0), allocatable=gpus(8))
    bound = {each.name: 1 for each in runs}
    busy = replace(free("worker-2", bound=bound), pools=(Pool(name="gpu", nodes=(node,)),))
    home = short(missing, replica=shape(4))
    changes = decide(inputs(home, busy, wanted=wanted, there=there, past=yesterday(foreseen))).changes
    assert sum(change.action is Action.REVERT for change in changes) == evicted


def demand(demands: Demands) -> Demand:
    measured = demands[VLLM]
    assert isinstance(measured, Demand)
    return measured


def test_words_tell_apart_what_is_missing_and_what_is_wanted_beforehand() -> None:
    (begun,) = decided(0, 3).changes
    (more,) = decided(3, 5, there=3).changes
    assert "\n3 replicas wanted beforehand for worker-1 (nvidia.com/gpu" in message(begun, source=SOURCE)
    assert "2 of 2 more replicas for worker-1.\n3 replicas missing on worker-1 for 45s, and 2 wanted beforehand" in (
        message(more, source=SOURCE)
    )
    there = inputs(short(3), free("worker-2", 1), wanted=desired(FORESIGHTED), past=yesterday(5))
    told = explain(VLLM, there, decide(there)).conclusion
    assert told[0].startswith("3 replicas missing and 2 replicas wanted beforehand: worker-1 runs 5 of 8, ")


def test_past_is_what_was_missing_without_what_was_spare_or_foreseen() -> None:
    wanted = desired(replace(FORESIGHTED, headroom=2))
    measured = demand(inputs(short(3), free("worker-2", 8), wanted=wanted, past=yesterday(7)).demands)
    assert measured.missing == 7
    assert measured.past[-1].missing == 3
    assert measured.history[-1] == Sample(at=NOW, missing=7, asked=True)
