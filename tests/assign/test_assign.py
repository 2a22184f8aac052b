"""A policy's distribution, from the demand to the placements and back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.commits.messages import message
from reconciler.core.explain.workload import explain
from reconciler.core.observe.demand import Sample
from reconciler.model.action import Action
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import (
    Availability,
    BurstPolicy,
    ClusterPreference,
    Desired,
    Distribution,
    SpreadConstraint,
    StrategyName,
)
from reconciler.model.score import ScorerName, ScorerWeight
from tests.builders.cluster_shares import spread_over
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, placement, plan, short
from tests.builders.plans import begun

REGION = "topology.kubernetes.io/region"
FOUR = ("worker-2", "worker-3", "worker-4", "worker-5")
LONG_WANTED = {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=4),)}


def policy(strategy: StrategyName, *candidates: ClusterPreference, **bounds: object) -> BurstPolicy:
    return BurstPolicy(
        name="gpu",
        candidates=candidates or tuple(ClusterPreference(name=ClusterName(name)) for name in FOUR),
        distribution=Distribution(strategy=strategy, **bounds),
    )


def candidate(name: str, **fields: int) -> ClusterPreference:
    return ClusterPreference(name=ClusterName(name), **fields)


def fleet(chosen: BurstPolicy, *, regions: tuple[str, ...] = ("eu", "eu", "us", "us"), **fields: object):
    others = [cluster(name, labels={REGION: region}) for name, region in zip(FOUR, regions, strict=True) if region]
    bare = [cluster(name) for name, region in zip(FOUR, regions, strict=True) if not region]
    return desired(chosen, clusters=(cluster("worker-1"), *others, *bare), **fields)


def placed(made: Plan) -> dict[str, int]:
    return {placement.cluster: placement.replicas for placement in begun(made)}


def kept(made: Plan) -> dict[str, int]:
    gone = {one.placement.cluster: 0 for one in made.changes if one.action is Action.REVERT}
    return gone | {one.after.cluster: one.after.replicas for one in made.changes if one.action is Action.RESIZE}


def roomy(*rooms: int):
    return [free(name, room) for name, room in zip(FOUR, rooms, strict=False)]


def test_weights_decide_whatever_is_free() -> None:
    chosen = policy(StrategyName.WEIGHTED, candidate("worker-2", weight=2), candidate("worker-3"))
    assert placed(plan(short(6), *roomy(8, 100), wanted=fleet(chosen))) == {"worker-2": 4, "worker-3": 2}


def test_balanced_goes_by_what_fits_in_all_and_not_by_what_is_missing() -> None:
    made = plan(short(4), *roomy(4, 12), wanted=fleet(policy(StrategyName.BALANCED)))
    assert placed(made) == {"worker-2": 1, "worker-3": 3}


def test_tiers_are_filled_one_after_the_other_and_the_strategy_divides_within_each() -> None:
    tiers = tuple(ClusterPreference(match_labels={REGION: region}) for region in ("us", "eu"))
    chosen = policy(StrategyName.BALANCED, *tiers, tiers=True)
    made = plan(short(9), *roomy(20, 20, 4, 1), wanted=fleet(chosen))
    assert placed(made) == {"worker-2": 2, "worker-3": 2, "worker-4": 4, "worker-5": 1}
    said = [message(change, source=CommitId("5" * 40)) for change in made.changes]
    assert [text for text in said if "20 of 40 free" in text]
    there = ledger(placement("worker-4", 4), placement("worker-2", 3), placement("worker-3", 2))
    home = plan(short(4), *roomy(20, 20, 4, 1), wanted=fleet(chosen), there=there, history=LONG_WANTED)
    assert kept(home) == {"worker-2": 0, "worker-3": 0}


def test_aggregated_takes_the_one_cluster_that_holds_all() -> None:
    made = plan(short(4), *roomy(3, 6, 5), wanted=fleet(policy(StrategyName.AGGREGATED)))
    assert placed(made) == {"worker-3": 4}


def test_aggregated_fills_what_it_has_begun_before_it_begins_another() -> None:
    there = placement("worker-2", 1)
    seen = [free("worker-2", 3, bound={there.name: 1}), free("worker-3", 8)]
    made = plan(short(3), *seen, wanted=fleet(policy(StrategyName.AGGREGATED)), there=ledger(there))
    assert kept(made) == {"worker-2": 3}
    assert placed(made) == {}


def test_what_runs_stays_where_it_is_and_only_the_difference_is_shared_out() -> None:
    there = placement("worker-2", 4)
    chosen = policy(StrategyName.WEIGHTED, candidate("worker-2"), candidate("worker-3"))
    seen = [free("worker-2", 8, bound={there.name: 4}), free("worker-3", 8)]
    made = plan(short(6), *seen, wanted=fleet(chosen), there=ledger(there))
    assert kept(made) == {}
    assert placed(made) == {"worker-3": 2}


def test_a_minimum_comes_before_the_first_cluster_gets_more() -> None:
    chosen = policy(StrategyName.ORDERED, candidate("worker-2"), candidate("worker-3", min_replicas=2))
    made = plan(short(5), *roomy(8, 8), wanted=fleet(chosen))
    assert placed(made) == {"worker-2": 3, "worker-3": 2}
    assert made.changes[1].choice.because == "Ordered: its minimum of 2"
    assert made.changes[1].refused == ()


def test_a_minimum_alone_places_nothing() -> None:
    chosen = policy(StrategyName.ORDERED, candidate("worker-2", min_replicas=2))
    assert plan(short(0), *roomy(8), wanted=fleet(chosen)).changes == ()


def test_no_more_clusters_than_the_policy_allows_and_it_is_told_which_was_left_out() -> None:
    chosen = policy(StrategyName.ORDERED, max_clusters=2)
    made = plan(short(9), *roomy(2, 3, 1, 1), wanted=fleet(chosen))
    assert placed(made) == {"worker-2": 2, "worker-3": 3}
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.SPREAD_LIMIT, 4)
    two = "policy gpu spreads over 2 clusters at most: worker-2 and worker-3"
    assert held.message == f"{two} (raise spec.distribution.maxClusters of policy gpu)"
    assert {one.cluster: one.message for one in held.refusals} == {
        "worker-4": two,
        "worker-5": two,
    }


def test_each_region_that_there_has_to_be_gets_a_replica() -> None:
    chosen = policy(StrategyName.ORDERED, spread_constraints=spread_over(REGION, min_groups=2))
    assert placed(plan(short(4), *roomy(8, 8, 8, 8), wanted=fleet(chosen))) == {"worker-2": 3, "worker-4": 1}


def test_too_few_regions_get_one_replica_each_and_the_rest_waits() -> None:
    chosen = policy(StrategyName.ORDERED, spread_constraints=spread_over(REGION, min_groups=2))
    made = plan(short(4), *roomy(8, 8, 0, 0), wanted=fleet(chosen))
    assert placed(made) == {"worker-2": 1}
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.SPREAD_LIMIT, 3)
    few = f"policy gpu spreads over 2 values of {REGION} at least, and only 1 can be used"
    way = "free or add such clusters, or lower spec.distribution.spreadConstraint.minGroups"
    assert held.message == f"{few}: until then each has one replica ({way})"


def over(*constraints: SpreadConstraint, zones: tuple[str, ...] = ("a", "a", "b", "c")) -> Desired:
    """Make a fleet whose clusters have a zone each, beside their region, and a policy with these constraints."""
    chosen = policy(StrategyName.ORDERED, spread_constraints=constraints)
    sites = fleet(chosen).clusters.values()
    zone = dict(zip(FOUR, zones, strict=True))
    zoned = (replace(each, labels={**each.labels, "zone": zone.get(each.name, "")}) for each in sites)
    return desired(chosen, clusters=tuple(zoned))


TWO_REGIONS = SpreadConstraint(label=REGION, min_groups=2, place=0)


def test_cluster_that_is_beyond_one_of_several_constraints_is_told_which() -> None:
    wanted = over(TWO_REGIONS, SpreadConstraint(label="zone", max_groups=2, place=1))
    made = plan(short(40), *roomy(8, 8, 8, 8), wanted=wanted)
    assert placed(made) == {"worker-2": 8, "worker-3": 8, "worker-4": 8}
    (held,) = made.suppressed
    (refusal,) = held.refusals
    assert refusal.message == "policy gpu spreads over 2 values of zone at most: worker-2, worker-3 and worker-4"
    assert refusal.remedy == "raise spec.distribution.spreadConstraints[1].maxGroups of policy gpu"


def test_lower_bound_that_another_constraint_leaves_out_of_reach_holds_the_rest_back() -> None:
    zones = SpreadConstraint(label="zone", min_groups=3, place=1)
    wanted = over(SpreadConstraint(label=REGION, max_groups=1, place=0), zones)
    made = plan(short(6), *roomy(8, 8, 8, 8), wanted=wanted)
    assert placed(made) == {"worker-4": 1, "worker-5": 1}
    (held,) = made.suppressed
    assert "spreads over 3 values of zone at least, and only 2 can be used" in held.message
    assert "or lower spec.distribution.spreadConstraints[1].minGroups" in held.message


def test_scores_of_the_policy_choose_between_clusters_that_suffice() -> None:
    chosen = replace(policy(StrategyName.BALANCED, max_clusters=1), scoring=(ScorerWeight(name=ScorerName.PRICE),))
    prices = {"worker-2": 3.0, "worker-3": 2.0, "worker-4": 1.0, "worker-5": 4.0}
    sites = (replace(each, price_per_gpu_hour=prices.get(each.name)) for each in fleet(chosen).clusters.values())
    wanted = desired(chosen, clusters=tuple(sites))
    assert placed(plan(short(4), *roomy(8, 8, 8, 40), wanted=wanted)) == {"worker-4": 4}
    assert placed(plan(short(4), *roomy(8, 8, 2, 40), wanted=wanted)) == {"worker-3": 4}
    assert placed(plan(short(9), *roomy(8, 8, 2, 40), wanted=wanted)) == {"worker-5": 9}


def test_a_cluster_without_the_label_takes_nothing() -> None:
    chosen = policy(StrategyName.ORDERED, spread_constraints=spread_over(REGION, max_groups=1))
    made = plan(short(4), *roomy(8, 8), wanted=fleet(chosen, regions=("", "eu", "", "")))
    assert placed(made) == {"worker-3": 4}
    assert made.changes[0].refused[0].message == f"has no label {REGION}, over which policy gpu spreads"


def test_a_move_stays_within_the_regions_that_there_may_be() -> None:
    chosen = policy(StrategyName.ORDERED, spread_constraints=spread_over(REGION, max_groups=1))
    emptied = cluster("worker-2", labels={REGION: "eu"}, availability=Availability.DRAINING)
    wanted = desired(chosen, clusters=({**fleet(chosen).clusters, emptied.name: emptied}).values())
    two = [placement("worker-2", 2), placement("worker-3", 1)]
    seen = [free("worker-3", 1, bound={two[1].name: 1}), free("worker-4", 8)]
    made = plan(short(3), *seen, wanted=wanted, there=ledger(*two))
    assert not any(one.action is Action.MOVE for one in made.changes)
    alone = plan(short(2), *seen, wanted=wanted, there=ledger(two[0]))
    assert [one.after.cluster for one in alone.changes if one.action is Action.MOVE] == ["worker-4"]


def test_who_is_furthest_above_its_share_gives_back_first() -> None:
    chosen = policy(StrategyName.WEIGHTED, candidate("worker-2", weight=3), candidate("worker-3"))
    there = ledger(placement("worker-2", 3), placement("worker-3", 4))
    made = plan(short(4), *roomy(8, 8), wanted=fleet(chosen), there=there, history=LONG_WANTED)
    assert kept(made) == {"worker-3": 1}


def test_the_fullest_cluster_gives_back_first() -> None:
    there = [placement("worker-2", 4), placement("worker-3", 4)]
    seen = [free("worker-2", 12, bound={there[0].name: 4}), free("worker-3", 0, bound={there[1].name: 4})]
    made = plan(short(4), *seen, wanted=fleet(policy(StrategyName.BALANCED)), there=ledger(*there), history=LONG_WANTED)
    assert kept(made) == {"worker-2": 3, "worker-3": 1}


def test_the_smallest_placement_is_emptied_first() -> None:
    there = ledger(placement("worker-2", 2), placement("worker-3", 5))
    made = plan(short(4), *roomy(8, 8), wanted=fleet(policy(StrategyName.AGGREGATED)), there=there, history=LONG_WANTED)
    assert kept(made) == {"worker-2": 0, "worker-3": 4}


def test_a_region_that_there_has_to_be_keeps_its_last_replica() -> None:
    there = ledger(placement("worker-2", 5), placement("worker-4", 2))
    chosen = policy(StrategyName.ORDERED, spread_constraints=spread_over(REGION, min_groups=2))
    made = plan(short(4), *roomy(8, 8, 8), wanted=fleet(chosen), there=there, history=LONG_WANTED)
    assert kept(made) == {"worker-2": 3, "worker-4": 1}


def test_a_lowered_maximum_of_clusters_moves_nothing_that_runs() -> None:
    there = ledger(*(placement(name, 2) for name in FOUR[:3]))
    chosen = policy(StrategyName.ORDERED, max_clusters=1)
    assert plan(short(6), *roomy(8, 8, 8), wanted=fleet(chosen), there=there).changes == ()


def test_the_commit_says_what_spoke_for_each_cluster() -> None:
    chosen = policy(StrategyName.WEIGHTED, candidate("worker-2", weight=2), candidate("worker-3"))
    first, second = plan(short(6), *roomy(8, 8), wanted=fleet(chosen)).changes
    texts = [" ".join(message(one, source=CommitId("5" * 40)).split()) for one in (first, second)]
    assert "worker-2 chosen: 8 GPUs free, 8 replicas fit, Weighted: weight 2 of 3." in texts[0]
    assert "worker-3 chosen: 8 GPUs free, 8 replicas fit, Weighted: weight 1 of 3." in texts[1]


def test_explain_tells_the_shares_and_what_bounds_them() -> None:
    chosen = policy(StrategyName.BALANCED, max_clusters=2)
    seen = inputs(short(6), *roomy(4, 8, 2), wanted=fleet(chosen))
    told = explain(VLLM, seen, plan(short(6), *roomy(4, 8, 2), wanted=fleet(chosen)))
    assert told.distribution == "Balanced, at most 2 clusters"
    assert "worker-3 would take 4 of what is missing (Balanced: 8 of 12 free)." in told.conclusion
    assert [one.refusal.reason for one in told.assessments if one.cluster == "worker-4"] == [Reason.SPREAD_LIMIT]


def test_explain_refuses_what_is_beyond_a_bound_also_where_nothing_is_missing() -> None:
    chosen, there = policy(StrategyName.ORDERED, max_clusters=1), ledger(placement("worker-2", 3))
    seen = inputs(short(3), *roomy(4, 8), wanted=fleet(chosen), there=there)
    told = explain(VLLM, seen, plan(short(3), *roomy(4, 8), wanted=fleet(chosen), there=there))
    refused = {one.cluster: one.refusal.message for one in told.assessments if one.refusal and one.fits}
    assert refused == {"worker-3": "policy gpu spreads over 1 cluster at most: worker-2"}
    assert told.distribution == "Ordered, at most 1 cluster"
    assert [line for line in told.conclusion if "would take" in line] == []


def test_explain_says_once_which_lower_bound_is_out_of_reach() -> None:
    chosen = policy(StrategyName.ORDERED, spread_constraints=spread_over(REGION, min_groups=3))
    told = explain(
        VLLM,
        inputs(short(6), *roomy(4, 8, 2), wanted=fleet(chosen)),
        plan(short(6), *roomy(4, 8, 2), wanted=fleet(chosen)),
    )
    (line,) = (line for line in told.conclusion if "spreads over 3 values" in line)
    assert line.startswith("Held back, SpreadLimit: ")


def test_explain_names_the_lower_bound_that_so_few_replicas_do_not_reach() -> None:
    """Two replicas have all zones that two can have, and one region of two."""
    zones = SpreadConstraint(label="zone", min_groups=3, place=0)
    wanted = over(zones, SpreadConstraint(label=REGION, min_groups=2, place=1))
    seen = roomy(0, 0, 8, 8)
    told = explain(VLLM, inputs(short(2), *seen, wanted=wanted), plan(short(2), *seen, wanted=wanted))
    lines = [line for line in told.conclusion if "spreads over" in line]
    bound = f"policy gpu spreads over 2 values of {REGION} at least, and "
    assert [line for line in lines if f"{bound}only 1 can be used" in line.replace("Policy", "policy")]
    assert all(bound in line.replace("Policy", "policy") for line in lines)


def test_a_cluster_of_no_weight_is_not_chosen_for_its_room() -> None:
    chosen = policy(
        StrategyName.WEIGHTED,
        candidate("worker-2"),
        candidate("worker-3", weight=0),
        candidate("worker-4"),
        max_clusters=2,
    )
    made = plan(short(6), *roomy(2, 50, 3), wanted=fleet(chosen))
    assert placed(made) == {"worker-2": 2, "worker-4": 3}


def test_where_one_gpr_may_begin_it_is_on_the_cluster_with_the_largest_share() -> None:
    chosen = policy(StrategyName.WEIGHTED, candidate("worker-2"), candidate("worker-3", weight=3))
    limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, most=1)}
    made = plan(short(4), *roomy(8, 8), wanted=fleet(chosen, limits=limits))
    assert placed(made) == {"worker-3": 4}
    assert [one.reason for one in made.changes[0].refused] == [Reason.GPR_LIMIT]
