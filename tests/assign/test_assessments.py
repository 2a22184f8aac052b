"""A plan keeps the assessments of the workloads that `decide` is asked to keep them of, as their turns made them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import explain
from reconciler.model.approval import ApprovalRule
from reconciler.model.cluster import ScalableNodes
from reconciler.model.ids import TemplateName
from reconciler.model.plan import Assessment, Reason, WorkloadAssessment
from reconciler.model.policy import BurstPolicy, Distribution, StrategyName
from tests.builders.inputs import VLLM, cluster, desired, free, gpus, inputs, ledger, ordering, placement, short
from tests.builders.requests import deployment, holds, manifests, record, request, wants
from tests.builders.subsets import fleet, subset, term

OTHER = VLLM._replace(name=TemplateName("zephyr"))


def beside_urgent(policy: BurstPolicy, *sizes: int, missing: int = 3) -> PassInput:
    """Let the more urgent VLLM miss three replicas, which worker-2 alone takes, beside OTHER with a policy."""
    urgent = short(3)
    home = replace(urgent, workloads=urgent.workloads + short(missing, workload=OTHER).workloads)
    seen = (free(f"worker-{number}", size) for number, size in enumerate(sizes, start=2))
    policies = {VLLM: ordering("worker-2", priority=1), OTHER: replace(policy, name="other")}
    return inputs(home, *seen, wanted=desired(workloads=(VLLM, OTHER), policies=policies))


def assigned(told: WorkloadAssessment) -> list[tuple[str, int]]:
    return [(candidate.cluster, candidate.replicas) for candidate in told.assigned]


def kept(given: PassInput) -> WorkloadAssessment:
    plan = decide(given, keep=(OTHER,))
    return plan.assessments[OTHER]


def verdicts(assessments: tuple[Assessment, ...]) -> dict[str, Reason | int]:
    """Return what fits on each cluster, or the reason of its refusal."""
    return {each.where: each.fits if each.refusal is None else each.refusal.reason for each in assessments}


def test_plan_keeps_no_assessment_that_it_was_not_asked_for() -> None:
    given = beside_urgent(ordering("worker-2"), 4)
    plan = decide(given)
    assert plan.assessments == {}
    kept_one = decide(given, keep=(OTHER,))
    assert (list(kept_one.assessments), replace(kept_one, assessments={})) == ([OTHER], plan)


def test_room_that_an_earlier_turn_has_taken_is_not_free() -> None:
    found, *_ = kept(beside_urgent(ordering("worker-2"), 4)).candidates
    assert (found.fits, found.free, found.refusal) == (1, gpus(1), None)


def test_cluster_that_an_earlier_turn_has_filled_names_who_did() -> None:
    told = kept(beside_urgent(ordering("worker-2", "worker-3"), 3, 8))
    assert verdicts(told.candidates) == {"worker-2": Reason.NO_CAPACITY, "worker-3": 8}
    refusal = told.candidates[0].refusal
    assert refusal is not None
    assert refusal.message.endswith(", after what llm/vllm takes in this pass")


def test_division_within_bounds_counts_what_an_earlier_turn_has_taken() -> None:
    bounded = replace(ordering("worker-2", "worker-3"), distribution=Distribution(max_clusters=1))
    told = kept(beside_urgent(bounded, 4, 3))
    assert verdicts(told.candidates) == {"worker-2": Reason.SPREAD_LIMIT, "worker-3": 3}
    assert assigned(told) == [("worker-3", 3)]


def test_workload_that_misses_nothing_sees_what_all_turns_have_left() -> None:
    found, *_ = kept(beside_urgent(ordering("worker-2"), 4, missing=0)).candidates
    assert found.fits == 1


def test_workload_that_waits_for_its_window_sees_what_all_turns_have_left() -> None:
    balanced = Distribution(strategy=StrategyName.BALANCED)
    waits = replace(ordering("worker-2", "worker-3"), distribution=balanced, scale_up_window=timedelta(hours=1))
    told = kept(beside_urgent(waits, 4, 3))
    assert verdicts(told.candidates) == {"worker-2": 1, "worker-3": 3}
    assert assigned(told) == [
        ("worker-2", 1),
        ("worker-3", 2),
    ]


def test_burst_that_awaits_approval_is_assessed_for_what_is_missing() -> None:
    told = kept(beside_urgent(replace(ordering("worker-2", "worker-3"), approval=ApprovalRule()), 4, 8))
    assert verdicts(told.candidates) == {"worker-2": 1, "worker-3": 8}
    assert assigned(told) == [
        ("worker-2", 1),
        ("worker-3", 2),
    ]


def test_cluster_whose_room_is_shared_has_room_for_no_more_than_the_share() -> None:
    first = short(4)
    home = replace(first, workloads=first.workloads + short(4, workload=OTHER).workloads)
    wanted = desired(workloads=(VLLM, OTHER), policies=dict.fromkeys((VLLM, OTHER), ordering("worker-2")))
    plan = decide(inputs(home, free("worker-2", 4), wanted=wanted), keep=(VLLM, OTHER))
    found = [assessment.candidates[0] for assessment in plan.assessments.values()]
    assert [(each.fits, each.refusal) for each in found] == [(2, None), (2, None)]


def test_cluster_that_takes_more_by_nodes_to_come_has_room_for_what_it_takes() -> None:
    nodes = ScalableNodes(labels={}, taints=(), allocatable=gpus(8), most=9, delay=timedelta(minutes=5))
    scaling = cluster("worker-2", autoscaling=(nodes,))
    wanted = desired(ordering("worker-2"), clusters=(cluster("worker-1"), scaling))
    given = inputs(short(3), free("worker-2", 1), wanted=wanted)
    assessment = decide(given, keep=(VLLM,)).assessments[VLLM]
    assert verdicts(assessment.candidates) == {"worker-2": 3}
    assert [candidate.replicas for candidate in assessment.assigned] == [3]


def test_request_sees_what_an_earlier_request_has_taken() -> None:
    first, second = (
        record(request("worker-2", name=name, spec=manifests(deployment() | {"metadata": {"name": name}})))
        for name in ("abacus", "bookinfo")
    )
    given = inputs(free("worker-2", 3), wanted=wants(first.request, second.request), there=holds(first, second))
    given = given.with_requests(given.ledger.requests)
    (found,) = explain_request(second, given, decide(given)).assessments
    assert found.refusal is not None
    assert found.refusal.message.endswith(f", after what {first.workload} takes in this pass")


def test_clusters_of_subsets_come_before_those_of_none() -> None:
    seen = inputs(short(1), free("worker-2", 8), wanted=fleet(subset("own", term(tier="own"))))
    ranks = [each.rank for each in explain(VLLM, seen, decide(seen)).assessments]
    assert None in ranks
    assert ranks == sorted(ranks, key=lambda rank: rank or len(ranks))


def test_cluster_that_the_policy_leaves_out_has_its_remedy_where_the_others_are_full() -> None:
    bounded = replace(ordering("worker-2", "worker-3"), distribution=Distribution(max_clusters=1))
    there = ledger(placement("worker-2", 1))
    seen = inputs(short(5), free("worker-2", 2, bound={}), free("worker-3", 8), wanted=desired(bounded), there=there)
    told = explain(VLLM, seen, decide(seen)).conclusion
    assert any(line.startswith("To use worker-3: raise spec.distribution.maxClusters") for line in told)
