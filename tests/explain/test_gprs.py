"""Each placement is a GPR, and so is what each workload waits for; all of it follows from git and what was seen."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.gprs import GprView, gpr_views
from reconciler.core.ledger.lifecycle import cool_down, hold, run_hold
from reconciler.core.observe.rollouts import ClusterRollouts, Rollouts
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import GprState, GprTerms, GpuAsk
from reconciler.model.placement import Origin, RestraintKind
from reconciler.model.plan import Change, Plan, Reason, Suppressed
from reconciler.model.request import Ended, Provisioning
from tests.builders.gprs import TRAIN, binding, gpr_template, record, request
from tests.builders.group_bursts import SET, lacks
from tests.builders.group_bursts import fleet as desired_whole
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, seconds, shape, short


def views_of(seen: PassInput) -> tuple[GprView, ...]:
    return gpr_views(seen, decide(seen))


def test_a_placement_is_a_gpr_that_says_what_it_has_and_until_when() -> None:
    there = placement(replicas=2, shape=shape(4, node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
    wanted = desired(
        ordering("worker-2"),
        gpr_templates={"h100": gpr_template(priority=150, evictable=True, requeue=True)},
        bindings=binding({"worker-2": "h100"}),
    )
    seen = free("worker-2", 8, bound={there.name: 2})
    (one,) = views_of(inputs(short(2, replica=shape(4)), seen, wanted=wanted, there=ledger(there)))
    assert re.fullmatch("gpr-[0-9a-f]{8}", one.id)
    assert (one.name, one.workspace, one.cluster, one.placement) == ("vllm", "llm", "worker-2", there.name)
    assert (one.gpus, one.nodes, one.shape) == (4, 2, "NVIDIA-H100-80GB-HBM3")
    assert (one.priority, one.band, one.evictable, one.requeue) == (150, "medium", True, True)
    assert (one.state, one.reason) == (GprState.SUCCESSFUL, "")
    assert (one.exit_at, one.left) == (there.expires_at, timedelta(minutes=9))
    assert one.started_at == there.created_at


def test_replicas_without_a_node_are_being_provisioned() -> None:
    there = placement(replicas=3)
    seen = free("worker-2", 0, bound={there.name: 1}, waiting_reasons={there.name: "2 pods wait: image not found"})
    (one,) = views_of(inputs(short(3), seen, there=ledger(there)))
    assert one.state is GprState.PROVISIONING
    assert one.reason == "1 of 3 have a node; 2 pods wait: image not found"


def test_gpus_that_a_queue_has_taken_back_are_not_had_though_the_engine_called_it_healthy() -> None:
    there = placement(replicas=3, digest="d")
    words = "kueue queue-a evicted it (Preempted): Preempted to accommodate a workload"
    held = {there.name: words}
    arrived = Rollouts.of({there.cluster: ClusterRollouts(arrived={there.path: "d"})})
    admitted = replace(inputs(short(3), free("worker-2", 0), there=ledger(there)), rollouts=arrived)
    assert views_of(admitted)[0].state is GprState.SUCCESSFUL
    seen = free("worker-2", 0, unadmitted=held, waiting_reasons=held)
    (one,) = views_of(replace(inputs(short(3), seen, there=ledger(there)), rollouts=arrived))
    assert (one.state, one.reason) == (GprState.PROVISIONING, f"0 of 3 have a node; {words}")


def test_what_cannot_be_seen_is_said_to_be_so() -> None:
    (one,) = views_of(inputs(short(3), there=ledger(placement())))
    assert (one.state, one.reason) == (GprState.PROVISIONING, "worker-2 has not been observed")


def test_what_fits_nowhere_is_queued_and_says_why() -> None:
    (one,) = views_of(inputs(short(2, replica=shape(8)), free("worker-2", 4), free("worker-3", 4)))
    assert (one.state, one.cluster, one.placement) == (GprState.QUEUED, None, None)
    assert (one.gpus, one.nodes) == (8, 2)
    assert "worker-2: needs 8 GPUs on one node, largest has 4 GPUs free" in one.reason


def test_why_it_is_queued_is_said_once_for_each_cluster() -> None:
    wanted = desired_whole(SET, policy=ordering("worker-2", "worker-3"))
    (one,) = views_of(inputs(lacks(8), free("worker-2", *[8] * 4), free("worker-3", *[8] * 5), wanted=wanted))
    assert (one.state, one.reason.count("worker-2:"), one.reason.count("worker-3:")) == (GprState.QUEUED, 1, 1)
    assert one.asked_at == NOW - seconds(45)


def test_what_waits_for_its_window_is_pending() -> None:
    (one,) = views_of(inputs(short(2, since=NOW - seconds(5)), free("worker-2", 4)))
    assert one.state is GprState.PENDING
    assert "scale-up window" in one.reason


def test_a_workload_that_is_partly_served_has_one_gpr_of_each_sort() -> None:
    placed, waiting = views_of(inputs(short(5), free("worker-2", 3), free("worker-3")))
    assert sorted([placed.state, waiting.state]) == [GprState.PENDING, GprState.QUEUED]
    assert {placed.nodes, waiting.nodes} == {3, 2}
    assert placed.id != waiting.id


@pytest.mark.parametrize(
    ("why", "state"),
    [
        (EndReason.EXPIRED, GprState.DRAINING),
        (EndReason.IDLE, GprState.DRAINING),
        (EndReason.REQUESTED, GprState.DRAINING),
        (EndReason.DEMAND_GONE, GprState.DRAINING),
        (EndReason.POLICY, GprState.DRAINING),
        (EndReason.FAILED, GprState.FAILED),
        (EndReason.PREEMPTED, GprState.QUEUED),
    ],
)
def test_what_the_plan_ends_is_on_its_way_out(why: EndReason, state: GprState) -> None:
    there = placement()
    seen = inputs(short(3), free("worker-2", 8, bound={there.name: 3}), there=ledger(there))
    (one,) = gpr_views(seen, Plan(changes=(Change(action=Action.REVERT, before=there, why=why, detail="so it is"),)))
    assert (one.state, one.reason) == (state, f"{why}: so it is")


def test_a_request_has_its_own_needs_and_the_same_id_while_it_waits_and_afterwards() -> None:
    asked = request(ask=GpuAsk(gpus=8, nodes=2, shape="NVIDIA-H100-80GB-HBM3"), terms=GprTerms(priority=220))
    known = record(asked)
    seen = inputs(there=ledger(requests={TRAIN: known}))
    (waiting,) = gpr_views(seen, Plan())
    assert (waiting.gpus, waiting.nodes, waiting.band, waiting.state) == (8, 2, "high", GprState.PENDING)
    made = placement(workload=TRAIN, replicas=1, origin=Origin.REQUEST)
    (placed,) = gpr_views(replace(seen, ledger=ledger(made, requests={TRAIN: known})), Plan())
    assert (placed.cluster, placed.state) == ("worker-2", GprState.PROVISIONING)
    over = record(asked, began_at=NOW, ended=Ended(status=Provisioning.COMPLETED, at=NOW, message="its 1h are over"))
    (ended,) = gpr_views(replace(seen, ledger=ledger(requests={TRAIN: over})), Plan())
    assert (ended.state, ended.reason, ended.completed_at) == (GprState.EARLY_RELEASED, "its 1h are over", NOW)
    assert waiting.id == placed.id == ended.id


def test_a_request_that_is_asked_for_again_is_another_gpr() -> None:
    first, second = (
        gpr_views(inputs(there=ledger(requests={TRAIN: record(received=at)})), Plan())[0].id
        for at in (NOW, NOW + seconds(60))
    )
    assert first != second


@pytest.mark.parametrize(
    ("status", "after", "state"),
    [
        (Provisioning.COMPLETED, 600, GprState.COMPLETED),
        (Provisioning.COMPLETED, 300, GprState.EARLY_RELEASED),
        (Provisioning.FAILED, 300, GprState.FAILED),
    ],
)
def test_how_a_request_ended_is_told(status: Provisioning, after: int, state: GprState) -> None:
    end = Ended(status=status, at=NOW + seconds(after), message="")
    (one,) = gpr_views(inputs(there=ledger(requests={TRAIN: record(began_at=NOW, ended=end)})), Plan())
    assert one.state is state


def test_the_most_urgent_come_first_then_the_oldest() -> None:
    def waiting(name: str, priority: int, age: int) -> tuple[object, object]:
        asked = request(name, ask=GpuAsk(gpus=1), terms=GprTerms(priority=priority))
        return asked.workload, record(asked, received=NOW - seconds(age))

    known = dict([waiting("late", 50, 10), waiting("early", 50, 90), waiting("urgent", 250, 5)])
    seen = inputs(there=ledger(requests=known))
    assert [one.name for one in gpr_views(seen, Plan())] == ["urgent", "early", "late"]


def test_what_the_plan_places_is_pending_with_the_name_it_will_have() -> None:
    seen = inputs(short(3), free("worker-2", 8))
    plan = decide(seen)
    (change,) = plan.changes
    assert change.action is Action.PLACE
    (one,) = gpr_views(seen, plan)
    assert (one.state, one.placement) == (GprState.PENDING, change.placement.name)


def test_a_quiet_fleet_has_none() -> None:
    assert views_of(inputs(short(0), free("worker-2", 8))) == ()


@pytest.mark.parametrize(
    ("why", "state"),
    [
        (EndReason.IDLE, GprState.COMPLETED),
        (EndReason.FAILED, GprState.FAILED),
        (EndReason.PREEMPTED, GprState.EARLY_RELEASED),
        (EndReason.POLICY, GprState.EARLY_RELEASED),
    ],
)
def test_the_gpr_of_a_burst_that_has_ended_is_told_while_the_ledger_has_its_cool_down(
    why: EndReason, state: GprState
) -> None:
    there = placement()
    (had,) = gpr_views(inputs(there=ledger(there)), Plan())
    rest = cool_down(there, ordering("worker-2", cool_down=seconds(300)), why, NOW)
    (over,) = gpr_views(inputs(there=ledger(restraints={VLLM: (rest,)})), Plan())
    assert (over.id, over.placement, over.gpus, over.nodes) == (had.id, there.name, 0, 0)
    assert (over.state, over.reason, over.completed_at) == (state, rest.reason, NOW)


def test_the_gpr_of_a_burst_whose_run_has_succeeded_is_completed() -> None:
    rest = run_hold(placement(), EndReason.SUCCEEDED, NOW)
    (over,) = gpr_views(inputs(there=ledger(restraints={VLLM: (rest,)})), Plan())
    assert over.state is GprState.COMPLETED


def test_a_burst_that_stands_has_one_gpr_whatever_holds_others_back() -> None:
    there = placement()
    deleted = hold(there, ordering("worker-2"), NOW)
    moved = replace(deleted, kind=RestraintKind.COOL_DOWN, reason="vllm-1 was moved away", placement="vllm-1")
    (one,) = gpr_views(inputs(there=ledger(there, restraints={VLLM: (deleted, moved)})), Plan())
    assert one.state is GprState.PROVISIONING


@pytest.mark.parametrize("reason", [Reason.AWAITING_APPROVAL, Reason.OVER_BUDGET, Reason.NOT_FOUND])
def test_a_burst_that_lacks_nothing_has_one_gpr_though_its_update_or_renewal_is_held_back(reason: Reason) -> None:
    there = placement()
    held = Suppressed(workload=VLLM, reason=reason, message="its old version stays", replicas=3)
    seen = inputs(short(3), free("worker-2", 8, bound={there.name: 3}), there=ledger(there))
    (one,) = gpr_views(seen, Plan(suppressed=(held,)))
    assert one.placement == there.name
    assert len(gpr_views(replace(seen, ledger=ledger()), Plan(suppressed=(held,)))) == 1


@pytest.mark.parametrize("reason", Reason)
def test_gpr_of_missing_replicas_is_queued_by_what_has_refused_them(reason: Reason) -> None:
    refused = {"NothingFits", "GprLimit", "SpreadLimit", "Held", "CoolingDown", "OverBudget", "AwaitingApproval"}
    held = Suppressed(workload=VLLM, reason=reason, message="waits", replicas=3)
    (one,) = gpr_views(inputs(short(3), free("worker-2", 8)), Plan(suppressed=(held,)))
    assert one.state is (GprState.QUEUED if reason in refused else GprState.PENDING)
