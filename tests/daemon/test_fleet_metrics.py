"""Gauges of a fleet: what they count, and what is written anew once something has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families as families
from prometheus_client.samples import Sample

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.catalogue import Catalogue
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts
from reconciler.daemon.metrics.cluster_samples import cluster_samples
from reconciler.daemon.metrics.fleet_metrics import FleetMetrics
from reconciler.daemon.metrics.gauge import Gauge
from reconciler.daemon.reconcile import PassDecision
from reconciler.daemon.snapshot import Snapshot
from reconciler.daemon.status import status
from reconciler.model.budget import BudgetKind, BudgetOwner, Budgets, BudgetState
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Plan, Reason, Suppressed
from reconciler.model.policy import EngineName
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.model.tree import Tips
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, placement, seconds, shape, short

LLM = WorkspaceName("llm")
REMOVAL = "kubectl delete kustomizations.kustomize.toolkit.fluxcd.io -n overspill -l overspill.dev/placement=vllm-2"


def snapshot(situation: PassInput, *, suppressed: tuple[Suppressed, ...] = ()) -> Snapshot:
    plan = Plan(changes=(), suppressed=suppressed)
    tips = Tips(source=situation.desired.commit, output=None)
    decision = PassDecision(inputs=situation, tips=tips, plan=plan)
    return Snapshot(decision=decision, blobs={}, catalogue=Catalogue({}, situation.ledger.placements), held={})


def gauges(situation: PassInput, **fields: tuple[Suppressed, ...]) -> Mapping[str, list[Sample]]:
    text = FleetMetrics().text(snapshot(situation, **fields), None)
    return {family.name.removeprefix("overspill_"): family.samples for family in families(text)}


def values(samples: list[Sample]) -> list[float]:
    return [each.value for each in samples]


def test_requests_count_apart_and_unknown_nodes_are_not_taken_for_none() -> None:
    """A request may have the name of a template; a cluster that is not seen says nothing of its nodes."""
    burst = placement("worker-2", 2)
    asked = placement("worker-2", 3, workload=VLLM._replace(request=True))
    request = replace(asked, name=PlacementName("vllm-request"))
    there = ledger(burst, request)
    told = gauges(inputs(short(4), free("worker-2", 8, bound={burst.name: 1, request.name: 3}), there=there))
    assert values(told["burst_replicas"]) == [2]
    assert values(told["burst_bound_replicas"]) == [1]
    assert values(told["request_replicas"]) == [3]
    assert values(told["request_bound_replicas"]) == [3]
    assert values(told["placed_gpus"]) == [5]
    assert values(told["workload_unserved_replicas"]) == [3]
    unseen = gauges(inputs(short(4), there=there))
    assert values(unseen["burst_replicas"]) == [2]
    assert values(unseen["burst_bound_replicas"]) == []
    assert values(unseen["workload_unserved_replicas"]) == []


def test_gpus_are_those_of_all_pods_of_a_replica() -> None:
    eight = shape(8, group_size=2)
    burst = placement("worker-2", 2, shape=eight)
    told = gauges(inputs(short(3, replica=eight), free("worker-2", 8), there=ledger(burst)))
    assert values(told["workload_missing_gpus"]) == [48]
    assert values(told["workload_unserved_gpus"]) == [48]
    assert values(told["burst_gpus"]) == [32]


def test_a_workload_waits_since_its_first_replica_that_is_placed_nowhere() -> None:
    since = NOW - timedelta(minutes=7)
    waiting = gauges(inputs(short(3, since=since)))["workload_waiting_timestamp_seconds"]
    assert values(waiting) == [since.timestamp()]
    served = gauges(inputs(short(3, since=since), there=ledger(placement("worker-2", 3))))
    assert values(served["workload_waiting_timestamp_seconds"]) == []


def test_a_placement_counts_as_unapplied_until_its_engine_has_it() -> None:
    burst = placement("worker-2", 3)
    situation = inputs(short(3), free("worker-2", 8), there=ledger(burst))
    assert values(gauges(situation)["unapplied_placements"]) == [0]
    late = RolloutFailure(digest="", state=EngineState.PENDING, message="nothing of it", since=NOW)
    rollouts = Rollouts.of({burst.cluster: ClusterRollouts(ailing={burst.path: late})})
    assert values(gauges(replace(situation, rollouts=rollouts))["unapplied_placements"]) == [1]


@pytest.mark.parametrize(
    ("minutes", "deleted", "engine", "words"),
    [
        (9, False, EngineName.FLUX, "path not found"),
        (
            10,
            False,
            EngineName.FLUX,
            f"path not found; its engine does not remove it: `{REMOVAL}` does, and all that it has applied",
        ),
        (10, True, EngineName.FLUX, "path not found; it is being deleted, and a finalizer of it waits"),
        (10, False, EngineName.ARGOCD, "path not found; its engine does not remove it"),
    ],
    ids=["on its way", "forgotten", "held by a finalizer", "Argo CD"],
)
def test_an_ended_placement_that_is_not_removed_is_counted_and_told(
    minutes: int, deleted: bool, engine: EngineName, words: str
) -> None:
    ended = EngineReport(
        cluster=ClusterName("worker-2"), placement=PlacementName("vllm-2"), digest="", revision="",
        state=EngineState.PENDING, message="path not found", leaving=deleted,
    )  # fmt: skip # a report
    since = {ended.path: NOW - timedelta(minutes=minutes)}
    rollouts = Rollouts.of({ended.cluster: ClusterRollouts(leaving={ended.path: ended}, leaving_since=since)})
    fleet = desired(clusters=(cluster("worker-1"), replace(cluster("worker-2"), engine=engine)))
    situation = replace(inputs(short(0), free("worker-2", 8), wanted=fleet), rollouts=rollouts)
    told = {each.labels["cluster"]: each.value for each in gauges(situation)["cluster_overdue_removals"]}
    assert told == {"worker-1": 0, "worker-2": minutes // 10}
    (row,) = status(snapshot(situation).decision).leaving
    assert (row.name, row.message) == (ended.placement, words)


def test_held_back_replicas_add_up_by_reason() -> None:
    held = Suppressed(workload=VLLM, reason=Reason.NOTHING_FITS, message="nothing fits", replicas=2)
    (told,) = gauges(inputs(short(2)), suppressed=(held,))["workload_held_back_replicas"]
    assert (told.labels["reason"], told.value) == (str(Reason.NOTHING_FITS), 2)


def test_prices_are_those_of_the_moment_and_budgets_name_their_owners() -> None:
    priced = desired(clusters=(cluster("worker-1"), cluster("worker-2", price_per_gpu_hour=2.5)))
    situation = inputs(short(3), free("worker-2", 8), wanted=priced, there=ledger(placement("worker-2", 3)))
    state = BudgetState(
        owner=BudgetOwner(BudgetKind.WORKSPACE, "llm"),
        field="budget.perDay",
        unit="day",
        period="2026-11-20",
        ends_at=NOW,
        limit=100.0,
        spent=81.0,
        unpriced_gpu_hours=0.0,
    )
    told = gauges(replace(situation, budgets=Budgets(by_owner={state.owner: (state,)})))
    assert values(told["dollars_per_hour"]) == [7.5]
    (spent,) = told["budget_spent_dollars"]
    assert (spent.labels, spent.value) == ({"owner_kind": "workspace", "owner": "llm", "period": "day"}, 81.0)


def test_samples_of_a_cluster_are_kept_until_something_there_changes() -> None:
    burst = placement("worker-2", 3)
    there = ledger(burst)
    seen = free("worker-2", 8, bound={burst.name: 1})
    name = ClusterName("worker-2")
    first = cluster_samples(inputs(short(3), seen, there=there), name, 0, None)
    later = inputs(
        short(3), replace(seen, observed_at=NOW + seconds(5), bound={burst.name: 1}), there=there, now=NOW + seconds(5)
    )
    assert cluster_samples(later, name, 0, first) is first
    grown = inputs(short(3), replace(seen, bound={burst.name: 3}), there=there)
    changed = cluster_samples(grown, name, 0, first)
    assert changed is not first
    assert (
        'overspill_burst_bound_replicas{workspace="llm",workload="vllm",cluster="worker-2"} 3.0'
        in (changed.lines[LLM]["burst_bound_replicas"])
    )


def test_metrics_of_later_snapshots_are_those_of_a_new_process() -> None:
    """Whatever is kept between scrapes changes no figure: a change of each kind, one after the other."""
    burst, other = placement("worker-2", 3), placement("worker-3", 1, workload=WorkloadId(LLM, TemplateName("tgi")))
    wanted = desired(workloads=(VLLM, other.workload))
    seen = free("worker-2", 8, bound={burst.name: 1})
    situations = [
        inputs(short(3), seen, wanted=wanted, there=ledger(burst)),
        inputs(short(3), seen, wanted=wanted, there=ledger(burst, other)),
        inputs(short(2), replace(seen, bound={burst.name: 3}), wanted=wanted, there=ledger(burst, other)),
        inputs(short(2), free("worker-3", 4), wanted=wanted, there=ledger(burst, other), now=NOW + seconds(9)),
        inputs(short(0), free("worker-3", 4), wanted=desired(), there=ledger(other)),
    ]
    kept = FleetMetrics()
    for situation in situations:
        for within in (None, {LLM}, {WorkspaceName("vision")}):
            assert kept.text(snapshot(situation), within) == FleetMetrics().text(snapshot(situation), within)


def test_label_of_any_text_is_one_line_of_text() -> None:
    text = 'a"b\\c\x1b[2J\u202ed\u200b\ne\u2028 1\nforged{} 2'
    sample = Gauge(name="x", help="X.", labels=("cluster",)).line([text], 1)
    assert sample.count("\n") == 1
    assert sample.strip().isprintable()
    (family,) = families(f"# TYPE overspill_x gauge\n{sample}")
    assert [(each.labels["cluster"].count("forged"), each.value) for each in family.samples] == [(1, 1.0)]
