"""A WorkloadSpread, from the demand to the placements and back: subsets in order, over clusters and pools of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.commits.messages import message
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import given_up
from reconciler.core.explain.workload import explain
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import PodRule, PodRules, Taint, Toleration
from reconciler.model.kubernetes.workload_spread import Bound, PreferredTerm
from reconciler.model.plan import Reason
from reconciler.model.policy import Availability, BurstPolicy, ClusterPreference, Distribution, StrategyName
from tests.builders.gprs import binding, gpr_template
from tests.builders.inputs import (
    NOW,
    VLLM,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    shape,
    short,
    template,
)
from tests.builders.subsets import (
    CLUSTERS,
    OWN,
    POOL,
    RENTED,
    TIER,
    fleet,
    kept,
    named,
    out,
    pooled,
    stands,
    subset,
    term,
    unknown_pods,
    wanted_before,
)


def test_subsets_are_filled_in_order_each_as_far_as_its_maximum_over_all_its_clusters() -> None:
    made = plan(short(7), free("worker-2", 3), free("worker-3", 8), free("worker-4", 8), wanted=fleet(OWN, RENTED))
    assert out(made) == {"worker-3/own": 4, "worker-4/rented": 3}


def test_clusters_of_a_subset_are_taken_by_preferred_terms_then_by_room_then_by_name() -> None:
    liked = replace(OWN, most=None, preferred=(PreferredTerm(weight=10, term=named("worker-2")),))
    seen = [free("worker-2", 1), free("worker-3", 8)]
    assert out(plan(short(3), *seen, wanted=fleet(liked))) == {"worker-2/own": 1, "worker-3/own": 2}
    assert out(plan(short(3), *seen, wanted=fleet(replace(OWN, most=None)))) == {"worker-3/own": 3}
    alike = [free("worker-2", 8), free("worker-3", 8)]
    assert out(plan(short(3), *alike, wanted=fleet(replace(OWN, most=None)))) == {"worker-2/own": 3}


DIVIDED = {
    StrategyName.ORDERED: {"worker-3/own": 6},
    StrategyName.BALANCED: {"worker-2/own": 2, "worker-3/own": 4},
    StrategyName.WEIGHTED: {"worker-2/own": 3, "worker-3/own": 3},
    StrategyName.AGGREGATED: {"worker-3/own": 6},
}


@pytest.mark.parametrize("strategy", StrategyName)
def test_strategy_of_the_policy_divides_within_a_subset(strategy: StrategyName) -> None:
    wanted = fleet(replace(OWN, most=None), RENTED, distribution=Distribution(strategy=strategy))
    seen = [free("worker-2", 4), free("worker-3", 8), free("worker-4", 8)]
    made = plan(short(6), *seen, wanted=wanted)
    assert out(made) == DIVIDED[strategy]
    said = {"", f"{strategy} within subset own"}
    assert {each.choice.because for each in made.changes if each.action is Action.PLACE} <= said
    over = plan(short(15), *seen, wanted=wanted)
    assert out(over) == {"worker-2/own": 4, "worker-3/own": 8, "worker-4/rented": 3}


def test_strategy_gives_back_within_a_subset_after_the_last_subset_has() -> None:
    there = [stands("worker-2", 4, "own"), stands("worker-3", 4, "own"), stands("worker-4", 2, "rented")]
    wanted = fleet(replace(OWN, most=None), RENTED, distribution=Distribution(strategy=StrategyName.BALANCED))
    seen = [
        free(each.cluster, 8 if each.cluster == "worker-3" else 0, bound={each.name: each.replicas}) for each in there
    ]
    made = plan(short(6), *seen, wanted=wanted, there=ledger(*there), history=wanted_before(6))
    assert dict(kept(made)) == {"worker-4/rented": 0, "worker-2/own": 2}
    (told,) = (each.detail for each in made.changes if each.action is Action.RESIZE)
    assert "the last subset gives back first, and in it the fullest cluster gives back first" in told


def test_preferred_terms_go_before_the_strategy() -> None:
    liked = replace(OWN, most=None, preferred=(PreferredTerm(weight=10, term=named("worker-2")),))
    wanted = fleet(liked, distribution=Distribution(strategy=StrategyName.BALANCED))
    made = plan(short(6), free("worker-2", 4), free("worker-3", 8), wanted=wanted)
    assert out(made) == {"worker-2/own": 4, "worker-3/own": 2}


def test_weight_of_nothing_takes_no_replicas_of_a_subset_and_gives_back_what_it_has() -> None:
    weights = (
        ClusterPreference(name=ClusterName("worker-2"), weight=0),
        ClusterPreference(name=ClusterName("worker-3")),
    )
    strategy = Distribution(strategy=StrategyName.WEIGHTED)
    wanted = fleet(replace(OWN, most=None), candidates=weights, distribution=strategy)
    assert out(plan(short(3), free("worker-2", 8), free("worker-3", 2), wanted=wanted))["worker-3/own"] == 2
    there = [stands("worker-2", 3, "own"), stands("worker-3", 3, "own")]
    seen = [free(each.cluster, 8, bound={each.name: 3}) for each in there]
    made = plan(short(2), *seen, wanted=wanted, there=ledger(*there), history=wanted_before(2))
    assert dict(kept(made)) == {"worker-2/own": 0, "worker-3/own": 2}


def test_a_preferred_label_of_nodes_counts_where_a_node_has_it() -> None:
    liked = replace(OWN, most=None, preferred=(PreferredTerm(weight=10, term=term(pool="h100")),))
    made = plan(short(2), free("worker-2", 9), pooled("worker-3", h100=4), wanted=fleet(liked))
    assert out(made) == {"worker-3/own": 2}


def test_a_preferred_label_counts_no_more_once_its_node_has_another() -> None:
    liked = replace(OWN, most=None, preferred=(PreferredTerm(weight=10, term=term(pool="h100")),))
    for pool, chosen in (("h100", "worker-3"), ("a100", "worker-2"), ("h100", "worker-3")):
        seen = [free("worker-2", 9), pooled("worker-3", **{pool: 4})]
        assert out(plan(short(2), *seen, wanted=fleet(liked))) == {f"{chosen}/own": 2}


def test_a_preferred_label_is_a_nodes_own_before_it_is_its_pools_or_its_clusters() -> None:
    liked = replace(OWN, most=None, preferred=(PreferredTerm(weight=10, term=term(tier="fast", pool="h100")),))
    pool = Pool(name="h100", nodes=(Node(name="n", free=gpus(4), labels={TIER: "fast"}),), labels={POOL: "h100"})
    worker_3 = replace(free("worker-3"), pools=(pool,))
    assert out(plan(short(2), free("worker-2", 9), worker_3, wanted=fleet(liked))) == {"worker-3/own": 2}


def test_a_term_that_no_cluster_meets_makes_its_subset_unavailable_and_not_all() -> None:
    made = plan(short(2), free("worker-2", 8), wanted=fleet(subset("gone", term(tier="sold"))))
    assert out(made) == {}
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.NOTHING_FITS, 2)


def test_two_pools_of_one_cluster_are_two_placements() -> None:
    h100, a100 = subset("h100", term(pool="h100"), most=2), subset("a100", term(pool="a100"))
    wanted = fleet(h100, a100, pools=True)
    made = plan(short(5), pooled("worker-2", h100=4, a100=4), wanted=wanted)
    assert out(made) == {"worker-2/h100": 2, "worker-2/a100": 3}
    first, second = (one.placement for one in made.changes if one.action is Action.PLACE)
    assert first.name != second.name
    assert first.shape.node_terms == (term(pool="h100"),)


def test_two_pools_share_the_nodes_that_both_may_use() -> None:
    any_node, h100 = subset("any", named("worker-2"), most=3), subset("h100", term(pool="h100"))
    made = plan(short(9), pooled("worker-2", h100=4), wanted=fleet(any_node, h100, pools=True))
    assert out(made) == {"worker-2/any": 3, "worker-2/h100": 1}


def test_a_minimum_of_a_later_pool_has_its_room_before_the_first_one_gets_more() -> None:
    any_node, h100 = subset("any", named("worker-2")), subset("h100", term(pool="h100"), least=2)
    made = plan(short(9), pooled("worker-2", h100=4), wanted=fleet(any_node, h100, pools=True))
    assert out(made) == {"worker-2/any": 2, "worker-2/h100": 2}


def test_two_subsets_do_not_both_make_what_has_one_name_on_a_cluster() -> None:
    h100, a100 = subset("h100", term(pool="h100"), most=2), subset("a100", term(pool="a100"))
    made = plan(short(5), pooled("worker-2", h100=4, a100=4), wanted=fleet(h100, a100))
    assert out(made) == {"worker-2/h100": 2}
    (held,) = made.suppressed
    (refused,) = [one for one in held.refusals if one.reason is Reason.TAKEN]
    assert (refused.where, refused.message) == (
        "worker-2/a100",
        "Deployment demo/vllm is made there for subset h100",
    )


def test_the_nodes_that_a_subset_requires_are_beside_those_that_the_workload_does() -> None:
    zones = tuple(term(zone=zone) for zone in ("a", "b"))
    replica = replace(short(1).workloads[0].shape, node_terms=zones)
    node = Node(name="n", free=gpus(4), labels={POOL: "h100", "zone": "b"})
    seen = ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=(Pool(name="p", nodes=(node,)),))
    made = plan(short(1, replica=replica), seen, wanted=fleet(subset("h100", term(pool="h100"))))
    assert made.changes[0].placement.shape.node_terms == (term(zone="a", pool="h100"), term(zone="b", pool="h100"))


def test_what_a_subset_tolerates_opens_tainted_clusters_and_nodes_to_it() -> None:
    taint = Taint(key="spot", value="true")
    clusters = (*CLUSTERS[:3], replace(CLUSTERS[3], taints=(taint,)))
    seen = free("worker-4", 4, taints=(taint,))
    assert out(plan(short(1), seen, wanted=fleet(RENTED, clusters=clusters))) == {}
    tolerant = replace(RENTED, tolerations=(Toleration(key="spot", operator="Exists"),))
    assert out(plan(short(1), seen, wanted=fleet(tolerant, clusters=clusters))) == {"worker-4/rented": 1}


def test_a_patch_of_the_node_selector_narrows_what_fits() -> None:
    patched = replace(RENTED, patch={"spec": {"nodeSelector": {POOL: "h100"}}})
    made = plan(short(5), pooled("worker-4", h100=2, a100=9), wanted=fleet(patched))
    assert out(made) == {"worker-4/rented": 2}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"containers": [{"name": "vllm", "resources": {"limits": {}}}]}, "the resources of containers vllm"),
        ({"nodeSelector": {"$patch": "replace"}}, "spec.nodeSelector by a directive"),
        ({"topologySpreadConstraints": []}, "spec.topologySpreadConstraints"),
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"$retainKeys": ["containers"]}, "spec by a directive"),
        ({"nodeSelector": {TIER: None}}, "spec.nodeSelector.tier"),
        (
            {"initContainers": [{"name": "fetch", "restartPolicy": "Always"}]},
            "the restartPolicy of initContainers fetch",
        ),
    ],
)
def test_a_patch_of_pods_that_are_not_known_beforehand_fits_nowhere_and_says_so(spec: object, why: str) -> None:
    patched = replace(RENTED, patch={"spec": spec})
    seen = short(1, replica=shape(node_selector={TIER: "rented"}))
    made = plan(seen, free("worker-4", 8), wanted=unknown_pods(fleet(patched)))
    assert out(made) == {}
    (refused,) = (one for one in made.suppressed[0].refusals if one.cluster == "worker-4")
    assert refused.message == f"subset rented patches {why}, which cannot be counted here"
    assert refused.remedy == "change what its pods, or the patch of its subset, ask for"


VLLM_PODS = Requirement(key="app", operator="In", values=("vllm",))
ALONE = PodRules(
    labels=(("app", "vllm"), ("role", "server")),
    apart=(PodRule(key="kubernetes.io/hostname", selector=(VLLM_PODS,)),),
)
"""No two of them on a node."""


def test_a_patch_of_a_label_that_pods_are_kept_apart_by_fits_nowhere_and_says_so() -> None:
    patched = replace(RENTED, patch={"metadata": {"labels": {"app": "other"}}})
    made = plan(short(1, replica=shape(rules=ALONE)), free("worker-4", 8), wanted=fleet(patched))
    assert out(made) == {}
    assert made.suppressed[0].refusals[0].message == (
        "subset rented patches metadata.labels.app, which rules about its pods go by"
    )


def test_a_patch_of_any_other_label_leaves_the_rules_about_its_pods_as_they_are() -> None:
    labels = {"role": "spare", "new": "yes"}
    patched = replace(RENTED, patch={"metadata": {"labels": labels, "annotations": None}})
    seen = free("worker-4", 4, 4)
    nodes = [replace(one, labels={"kubernetes.io/hostname": one.name}, pods=()) for one in seen.pools[0].nodes]
    seen = replace(seen, pools=(replace(seen.pools[0], nodes=tuple(nodes)),))
    (placed,) = plan(short(3, replica=shape(rules=ALONE)), seen, wanted=fleet(patched)).changes
    assert placed.action is Action.PLACE
    assert placed.placement.replicas == 2
    assert placed.placement.shape.rules is not None
    assert dict(placed.placement.shape.rules.labels) == {"app": "vllm", "role": "spare", "new": "yes"}


def test_percentages_are_of_all_replicas_wherever_they_are_and_rounded_up() -> None:
    half = replace(OWN, most=Bound(number=30, percent=True))
    made = plan(short(6, running=5), free("worker-2", 9), free("worker-4", 9), wanted=fleet(half, RENTED))
    assert out(made) == {"worker-2/own": 4, "worker-4/rented": 2}  # 30 % of 11 are 3.3


def test_what_no_subset_takes_waits_and_it_is_told_which_maximum_to_raise() -> None:
    made = plan(short(6), free("worker-2", 8), wanted=fleet(OWN))
    assert out(made) == {"worker-2/own": 4}
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.SPREAD_LIMIT, 2)
    over = "subset own comes to 4 of at most 4 replicas"
    assert held.message == f"{over} (raise maxReplicas of subset own in WorkloadSpread demo/pools)"


def test_what_no_subset_takes_goes_to_the_clusters_of_the_policy_and_comes_home_first() -> None:
    wanted = fleet(OWN, candidates=(ClusterPreference(name=ClusterName("worker-4"), max_replicas=2),))
    seen = [free("worker-2", 8), free("worker-4", 8)]
    assert out(plan(short(9), *seen, wanted=wanted)) == {"worker-2/own": 4, "worker-4": 2}
    there = ledger(stands("worker-2", 4, "own"), stands("worker-4", 2))
    made = plan(short(3), *seen, wanted=wanted, there=there, history=wanted_before(3))
    assert kept(made) == [("worker-4", 0), ("worker-2/own", 3)]


def test_replicas_come_home_from_the_last_subset_and_minimums_stay() -> None:
    own, rented = replace(OWN, least=1), replace(RENTED, least=1)
    there = ledger(stands("worker-2", 2, "own"), stands("worker-3", 2, "own"), stands("worker-4", 4, "rented"))
    seen = [free(one, 9) for one in ("worker-2", "worker-3", "worker-4")]
    made = plan(short(5), *seen, wanted=fleet(own, rented), there=there, history=wanted_before(5))
    assert kept(made) == [("worker-4/rented", 1)]
    made = plan(short(3), *seen, wanted=fleet(own, rented), there=there, history=wanted_before(3))
    assert kept(made) == [("worker-4/rented", 1), ("worker-3/own", 0)]


def test_what_is_in_no_subset_any_more_stays_and_comes_home_first() -> None:
    there = ledger(stands("worker-4", 2, "rented"), stands("worker-2", 2, "own"))
    seen = [free("worker-2", 9), free("worker-4", 9)]
    renamed = fleet(subset("other", term(tier="rented")), OWN)
    assert plan(short(4), *seen, wanted=renamed, there=there).changes == ()
    made = plan(short(3), *seen, wanted=renamed, there=there, history=wanted_before(3))
    assert kept(made) == [("worker-4/rented", 1)]


def test_changing_the_order_moves_nothing() -> None:
    there = ledger(stands("worker-4", 2, "rented"), stands("worker-2", 2, "own"))
    seen = [free("worker-2", 9), free("worker-4", 9)]
    assert plan(short(4), *seen, wanted=fleet(RENTED, OWN), there=there).changes == ()


def test_replicas_leave_a_cluster_that_their_subset_no_longer_requires() -> None:
    there = ledger(stands("worker-3", 2, "own"))
    only = fleet(subset("own", named("worker-2")))
    moved, grown = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=only, there=there).changes
    assert moved.action is Action.MOVE
    assert moved.detail == "worker-3: not in subset own of WorkloadSpread demo/pools any more"
    assert grown.action is Action.RESIZE
    assert (grown.after.where, grown.after.replicas) == ("worker-2/own", 4)


def test_a_maximum_that_is_lowered_is_carried_out_at_once() -> None:
    there = ledger(stands("worker-2", 3, "own"), stands("worker-3", 3, "own"))
    seen = [free(one, 9) for one in ("worker-2", "worker-3", "worker-4")]
    made = plan(short(6), *seen, wanted=fleet(OWN, RENTED), there=there)
    assert kept(made) == [("worker-3/own", 1)]
    assert made.changes[0].detail == "subset own of WorkloadSpread demo/pools may have 4"


def test_a_percentage_waits_for_the_scale_down_window_as_the_replicas_themselves_do() -> None:
    half = replace(OWN, most=Bound(number=50, percent=True))
    there = ledger(stands("worker-2", 4, "own"), stands("worker-4", 2, "rented"))
    seen = [free(one, 9) for one in ("worker-2", "worker-4")]
    made = plan(short(1, running=2), *seen, wanted=fleet(half, RENTED), there=there, history=wanted_before(9))
    assert kept(made) == []


def test_what_comes_home_leaves_each_subset_with_its_percentage_of_what_is_left() -> None:
    tiers = Requirements(labels=(Requirement(key=TIER, operator="In", values=("home", "own")),))
    wanted, seen = fleet(subset("near", tiers, most="50%"), RENTED), (free("worker-2", 9), free("worker-4", 9))
    there = ledger(stands("worker-2", 2, "near"), stands("worker-4", 6, "rented"))  # near: 7 of 13, 5 of them at home
    made = plan(short(4, running=5), *seen, wanted=wanted, there=there, history=wanted_before(4))
    assert sorted(kept(made)) == [("worker-2/near", 0), ("worker-4/rented", 4)]  # near: 5 of 9


def test_what_a_percentage_of_what_is_left_takes_away_comes_home_before_what_is_in_no_subset() -> None:
    tiers = Requirements(labels=(Requirement(key=TIER, operator="In", values=("home", "own")),))
    wanted, seen = fleet(subset("near", tiers, most="50%"), RENTED), [free(f"worker-{one}", 9) for one in (2, 3, 4)]
    there = ledger(stands("worker-2", 2, "near"), stands("worker-3", 4, "gone"), stands("worker-4", 2, "rented"))
    made = plan(short(4, running=5), *seen, wanted=wanted, there=there, history=wanted_before(4))
    assert sorted(kept(made)) == [("worker-2/near", 0), ("worker-3/gone", 2)]  # near: 5 of 9, all of them at home


def test_where_percentages_shrink_together_by_more_than_comes_home_the_rest_goes_to_another_subset() -> None:
    fifths = [subset(name, named(name), most="20%") for name in ("worker-2", "worker-3")]
    wanted, seen = fleet(*fifths, RENTED), [free(f"worker-{one}", 9) for one in (2, 3, 4)]
    there = ledger(stands("worker-2", 3, "worker-2"), stands("worker-3", 3, "worker-3"))  # 20 % of 11 each
    made = plan(short(5, running=5), *seen, wanted=wanted, there=there, history=wanted_before(5))
    assert kept(made) == [("worker-3/worker-3", 2), ("worker-2/worker-2", 2)]  # 20 % of 10 each
    assert out(made) == {"worker-4/rented": 1}


def test_what_was_placed_before_there_was_a_spread_counts_for_the_subset_that_it_could_be_of() -> None:
    there = ledger(stands("worker-2", 3))
    seen = [free("worker-2", 9), free("worker-4", 9)]
    made = plan(short(6), *seen, wanted=fleet(OWN, RENTED), there=there)
    assert kept(made) == [("worker-2/own", 4)]
    assert out(made) == {"worker-4/rented": 2}


def test_without_a_spread_any_more_its_placements_are_those_of_their_clusters() -> None:
    there = ledger(stands("worker-2", 3, "own"))
    made = plan(short(5), free("worker-2", 9), wanted=desired(ordering("worker-2")), there=there)
    assert kept(made) == [("worker-2", 5)]


def test_what_has_to_leave_a_cluster_goes_to_another_one_as_far_as_its_subset_may_hold_it() -> None:
    emptied = replace(CLUSTERS[3], availability=Availability.DRAINING)
    wanted = fleet(OWN, RENTED, clusters=(*CLUSTERS[:3], emptied))
    there = stands("worker-4", 2, "rented")
    (made,) = plan(short(2), free("worker-2", 9), wanted=wanted, there=ledger(there)).changes
    assert made.action is Action.MOVE
    assert (made.after.where, made.after.replicas) == ("worker-2/own", 2)
    beside = stands("worker-2", 3, "own")
    full = plan(short(5), free("worker-2", 9), wanted=wanted, there=ledger(there, beside))
    left, grown = full.changes
    assert left.action is Action.REVERT
    assert grown.action is Action.RESIZE
    assert (grown.after.where, grown.after.replicas) == ("worker-2/own", 4)


def test_what_runs_on_the_primary_counts_for_its_subset() -> None:
    first = subset("near", Requirements(labels=(Requirement(key=TIER, operator="In", values=("home", "own")),)), most=7)
    made = plan(short(4, running=5), free("worker-2", 9), free("worker-4", 9), wanted=fleet(first, RENTED))
    assert out(made) == {"worker-2/near": 2, "worker-4/rented": 2}


def test_what_the_primary_itself_has_room_for_within_its_subset_is_not_lent() -> None:
    home = subset("home", term(tier="home"), most=6)
    full = short(4, running=5)
    primary = replace(full, pools=free("worker-1", 3).pools)
    made = plan(primary, free("worker-4", 9), wanted=fleet(home, RENTED))
    assert out(made) == {"worker-4/rented": 3}
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.SPREAD_LIMIT, 1)
    made = plan(primary, free("worker-4", 9), wanted=fleet(RENTED, home))
    assert out(made) == {"worker-4/rented": 4}


def test_what_the_primary_has_above_its_maximum_is_only_told() -> None:
    seen, wanted = (short(1, running=8), free("worker-4", 9)), fleet(subset("home", term(tier="home"), most=5), RENTED)
    made = plan(*seen, wanted=wanted)
    assert out(made) == {"worker-4/rented": 1}
    told = explain(VLLM, inputs(*seen, wanted=wanted), made).conclusion
    assert "worker-1 runs 8 of subset home, which may have 5: what runs there is left alone." in told


def test_a_subset_that_cannot_be_written_is_no_reason_to_leave_the_others_out() -> None:
    others = named(*(one.name for one in CLUSTERS[1:]))
    first, second = (subset(name, others, most=2) for name in ("first", "second"))
    wanted = fleet(first, second, pools=True)
    seen = inputs(short(4), *(free(one.name, 4) for one in CLUSTERS[1:]), wanted=wanted)
    failures = {(VLLM, f"{one.name}/first"): "its patch cannot be merged" for one in CLUSTERS[1:3]}
    one_left = replace(seen, unwritable=given_up(seen, failures))
    assert out(decide(one_left)) == {"worker-4/first": 2, "worker-2/second": 2}
    failures |= {(VLLM, "worker-4/first"): "its patch cannot be merged"}
    none_left = replace(seen, unwritable=given_up(seen, failures))
    made = decide(none_left)
    assert out(made) == {"worker-2/second": 2}
    remedies = {one.remedy for one in made.changes[0].refused if one.reason is Reason.NOT_RENDERED}
    assert remedies == {"mend the template, or what its subset changes"}


def test_who_gives_way_is_on_nodes_that_the_subset_may_use() -> None:
    other = WorkloadId(VLLM.workspace, TemplateName("other"))
    there = [
        placement("worker-2", 1, workload=other, shape=shape(2, node_selector={POOL: pool})) for pool in ("a", "b")
    ]
    there = [replace(one, name=PlacementName(f"other-{number}")) for number, one in enumerate(there)]
    pools = tuple(
        Pool(name=pool, nodes=(Node(name=pool, free=gpus(0), allocatable=gpus(2)),), labels={POOL: pool})
        for pool in ("a", "b")
    )
    bound = {one.name: 1 for one in there}
    seen = ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=pools, bound=bound)
    made = fleet(subset("b", term(pool="b"), most=1))
    wanted = replace(
        made,
        templates={VLLM: replace(made.templates[VLLM], gpr_templates=("high",)), other: template(other)},
        policies={**made.policies, other: BurstPolicy(name="low")},
        gpr_templates={
            "low": replace(gpr_template(priority=20, evictable=True), name="low"),
            "high": replace(gpr_template(priority=250), name="high"),
        },
        bindings=binding({"worker-2": "low"}, "high"),
    )
    decided = plan(short(2), seen, wanted=wanted, there=ledger(*there))
    assert kept(decided) == [("worker-2", 0)]
    assert decided.changes[0].placement.shape.node_selector == {POOL: "b"}
    assert out(decided) == {"worker-2/b": 1}


def test_explain_tells_each_subset_of_a_cluster_apart() -> None:
    h100, a100 = subset("h100", term(pool="h100"), most=2), subset("a100", term(pool="a100"))
    seen = short(5), pooled("worker-2", h100=4, a100=4)
    wanted = fleet(h100, a100, pools=True)
    told = explain(VLLM, inputs(*seen, wanted=wanted), plan(*seen, wanted=wanted))
    assert told.distribution == "WorkloadSpread demo/pools, in order: h100 (at most 2), a100"
    assert [(one.where, one.fits) for one in told.assessments if one.cluster == "worker-2"] == [
        ("worker-2/h100", 4),
        ("worker-2/a100", 4),
    ]
    assert "worker-2/h100 would take 2 of what is missing (subset h100 then has 2 of at most 2)." in told.conclusion


def test_explain_refuses_no_cluster_that_it_says_would_take_some() -> None:
    seen, wanted = (short(5), free("worker-2", 2), free("worker-3", 4), free("worker-4", 4)), fleet(OWN, RENTED)
    told = explain(VLLM, inputs(*seen, wanted=wanted), plan(*seen, wanted=wanted))
    verdicts = {one.where: one.refusal.message if one.refusal else "" for one in told.assessments}
    assert verdicts["worker-3/own"] == ""
    assert verdicts["worker-2/own"] == "subset own comes to 4 of at most 4 replicas"
    assert "worker-3/own would take 4 of what is missing (subset own then has 4 of at most 4)." in told.conclusion


def test_explain_refuses_what_would_take_no_more_also_where_nothing_is_missing() -> None:
    seen = (short(4), free("worker-2", 9), free("worker-4", 9))
    wanted = fleet(subset("none", named("worker-4"), most=0), OWN, RENTED)
    there = ledger(stands("worker-2", 4, "own"))
    told = explain(VLLM, inputs(*seen, wanted=wanted, there=there), plan(*seen, wanted=wanted, there=there))
    verdicts = {one.where: one.refusal.message if one.refusal else "" for one in told.assessments}
    assert verdicts["worker-4/none"] == "subset none has 0 of at most 0 replicas"
    assert verdicts["worker-2/own"] == "subset own has 4 of at most 4 replicas"
    assert verdicts["worker-4/rented"] == ""
    assert [line for line in told.conclusion if "would take" in line] == []


def test_explain_tells_what_each_subset_has_to_hold() -> None:
    seen, wanted = (short(1),), fleet(replace(OWN, least=1), replace(RENTED, least=2))
    told = explain(VLLM, inputs(*seen, wanted=wanted), plan(*seen, wanted=wanted))
    assert told.distribution == "WorkloadSpread demo/pools, in order: own (at least 1, at most 4), rented (at least 2)"


def test_explain_lists_the_clusters_of_a_subset_as_they_are_filled_the_roomiest_first() -> None:
    seen, wanted = (short(3), free("worker-2", 2), free("worker-3", 4), free("worker-4", 4)), fleet(OWN, RENTED)
    made = plan(*seen, wanted=wanted)
    assert out(made) == {"worker-3/own": 3}
    told = explain(VLLM, inputs(*seen, wanted=wanted), made)
    assert [(one.rank, one.where) for one in told.assessments][:2] == [(1, "worker-3/own"), (2, "worker-2/own")]


def test_the_commit_names_the_subset_and_why_the_one_before_it_took_no_more() -> None:
    made = plan(short(7), free("worker-2", 5), free("worker-4", 8), wanted=fleet(OWN, RENTED))
    first, second = (message(one, source=CommitId("5" * 40)) for one in made.changes)
    assert first.startswith("burst(llm/vllm): 4 replicas on worker-2/own for 10m\n")
    assert "worker-2/own chosen: 5 GPUs free, 5 replicas fit, subset own then has 4 of at most 4." in " ".join(
        first.split()
    )
    assert "\nOverspill-Subset: own\n" in first
    assert "worker-2/own refused: subset own comes to 4 of at most 4 replicas" in " ".join(second.split())
