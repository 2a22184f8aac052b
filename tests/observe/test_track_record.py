"""Clusters have a track record: how long placements took to become ready there, and what failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.core.ledger.lifecycle import cool_down
from reconciler.core.observe.rollouts import Rollouts, RolloutSigns
from reconciler.core.observe.track_record import FAILURES_KEPT, ClusterRecord, PlacementStart, TrackRecord, follow
from reconciler.model.capacity import Observed
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.policy import BurstPolicy, Fleet
from tests.builders.inputs import NOW, VLLM, free, ledger, placement, seconds

WORKER_2 = ClusterName("worker-2")
OTHER = WorkloadId(VLLM.workspace, TemplateName("other"))


def watch(before: TrackRecord, there: Ledger, ready: int, at: datetime, *, seen: bool = True) -> TrackRecord:
    pods = {each.name: ready for each in there.placements.values()}
    observed = Observed(
        clusters={WORKER_2: free("worker-2", 8, at=at if seen else at - timedelta(hours=1), ready=pods)}
    )
    signs = RolloutSigns.of(there, observed, Fleet(), at)
    return follow(before, signs, Rollouts(), at)


def made(replicas: int = 2) -> Placement:
    return placement("worker-2", replicas, created=NOW)


def test_time_to_ready_is_from_the_commit_to_the_first_ready_pod() -> None:
    there = ledger(made())
    record = watch(TrackRecord(), ledger(), 0, NOW)
    record = watch(record, there, 0, NOW + seconds(1))
    record = watch(record, there, 0, NOW + seconds(60))
    assert record.of(WORKER_2).time_to_ready(VLLM) is None
    record = watch(record, there, 1, NOW + seconds(90))
    assert record.of(WORKER_2).time_to_ready(VLLM) == seconds(90)
    assert record.started == {VLLM}
    assert watch(record, there, 2, NOW + seconds(120)).of(WORKER_2).starts == record.of(WORKER_2).starts


def test_placement_that_was_ready_at_the_first_look_tells_nothing() -> None:
    record = watch(TrackRecord(), ledger(made()), 2, NOW + seconds(500))
    record = watch(record, ledger(made()), 0, NOW + seconds(600))
    assert not watch(record, ledger(made()), 2, NOW + seconds(700)).of(WORKER_2).starts


def test_placement_that_is_ready_within_one_pass_is_measured_from_its_commit() -> None:
    record = watch(TrackRecord(), ledger(), 0, NOW)
    record = watch(record, ledger(made()), 1, NOW + seconds(20))
    assert record.of(WORKER_2).time_to_ready(VLLM) == seconds(20)


def test_placement_that_a_clock_ahead_has_made_tells_nothing() -> None:
    record = watch(TrackRecord(), ledger(), 0, NOW - seconds(75))
    record = watch(record, ledger(made()), 0, NOW - seconds(70))
    assert not watch(record, ledger(made()), 1, NOW - seconds(60)).of(WORKER_2).starts


def test_placement_that_became_ready_out_of_sight_tells_nothing() -> None:
    record = watch(TrackRecord(), ledger(), 0, NOW)
    record = watch(record, ledger(made()), 0, NOW + seconds(20), seen=False)
    assert not watch(record, ledger(made()), 2, NOW + seconds(600)).of(WORKER_2).starts


def test_placement_that_a_person_brought_back_tells_nothing() -> None:
    record = watch(TrackRecord(), ledger(made()), 2, NOW + seconds(300))
    record = watch(record, ledger(), 0, NOW + seconds(600))
    assert not watch(record, ledger(made()), 2, NOW + seconds(900)).of(WORKER_2).starts


def test_placement_that_ended_before_it_was_ready_took_at_least_that_long() -> None:
    record = watch(TrackRecord(), ledger(made()), 0, NOW)
    record = watch(record, ledger(), 0, NOW + seconds(600))
    assert record.of(WORKER_2).time_to_ready(VLLM) == seconds(600)


def test_placement_that_ended_sooner_than_others_became_ready_tells_nothing() -> None:
    starts = (
        PlacementStart(workload=VLLM, took=seconds(90), ready=True),
        PlacementStart(workload=VLLM, took=seconds(20), ready=False),
    )
    assert ClusterRecord(starts=starts).time_to_ready(VLLM) == seconds(90)


def test_own_starts_of_a_workload_count_before_those_of_others() -> None:
    starts = (
        PlacementStart(workload=VLLM, took=seconds(90), ready=True),
        PlacementStart(workload=OTHER, took=seconds(20), ready=True),
    )
    assert ClusterRecord(starts=starts).time_to_ready(VLLM) == seconds(90)
    assert ClusterRecord(starts=starts[1:]).time_to_ready(VLLM) == seconds(20)


def test_cluster_out_of_sight_measures_nothing_meanwhile() -> None:
    there = ledger(made())
    record = watch(TrackRecord(), there, 0, NOW)
    unseen = watch(record, there, 2, NOW + seconds(300), seen=False)
    assert unseen.of(WORKER_2) is record.of(WORKER_2)
    assert watch(unseen, there, 2, NOW + seconds(400), seen=False) is unseen


def test_pass_without_a_change_keeps_the_same_record() -> None:
    there, observed = ledger(made()), Observed(clusters={WORKER_2: free("worker-2", 8, ready={})})
    signs = RolloutSigns.of(there, observed, Fleet(), NOW)
    record = follow(TrackRecord(), signs, Rollouts(), NOW)
    assert follow(record, signs, Rollouts(), NOW + seconds(5)) is record


def test_failures_are_kept_for_an_hour() -> None:
    restraint = cool_down(made(), BurstPolicy(name="gpu"), EndReason.FAILED, NOW)
    assert restraint is not None
    record = watch(TrackRecord(), ledger(restraints={VLLM: (restraint,)}), 0, NOW)
    assert record.failures_since(WORKER_2, NOW - seconds(1)) == 1
    later = watch(record, ledger(), 0, NOW + seconds(600))
    assert later.failures_since(WORKER_2, NOW - seconds(1)) == 1
    assert not watch(later, ledger(), 0, NOW + FAILURES_KEPT).failures.get(WORKER_2)


def test_ends_that_say_nothing_against_a_cluster_are_no_failures() -> None:
    policy = BurstPolicy(name="gpu")
    for why in (EndReason.POLICY, EndReason.PREEMPTED, EndReason.IDLE):
        restraint = cool_down(made(), policy, why, NOW)
        assert restraint is not None
        record = watch(TrackRecord(), replace(ledger(), restraints={VLLM: (restraint,)}), 0, NOW)
        assert not record.failures
