"""What leaves a cluster is assigned with what stays, so that the shares and bounds of a policy outlive a loss."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import FrameType

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.ledger import lifecycle
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import (
    Availability,
    BurstPolicy,
    Cluster,
    Desired,
    Distribution,
    MoveBudget,
    Renewal,
    StrategyName,
)
from reconciler.model.workload import WorkloadRef
from tests.builders import group_bursts
from tests.builders.cluster_shares import spread_over
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, ordering, placement, shape, short

HOUR = timedelta(hours=1)
REGION = "topology.kubernetes.io/region"
WEIGHTED = Distribution(strategy=StrategyName.WEIGHTED)
BALANCED = Distribution(strategy=StrategyName.BALANCED)
TWO_REGIONS = Distribution(strategy=StrategyName.BALANCED, spread_constraints=spread_over(REGION, min_groups=2))
TWO_CLUSTERS = Distribution(min_clusters=2)
GONE = ("drained", "lost", "no longer named", "labels", "tainted")


def there(name: str, replicas: int, **fields: object) -> Placement:
    return placement(name, replicas, created=NOW - HOUR, lasting=2 * HOUR, **fields)


def region(name: str, of: str, **fields: object) -> Cluster:
    return cluster(name, labels={REGION: of, "tier": "gpu"}, **fields)


def leaving(why: str, wanted: Desired, name: str = "worker-2") -> Desired:
    """Change files so that a cluster may keep nothing; nothing of them where it is lost."""
    clusters, policy, left = dict(wanted.clusters), wanted.policies[VLLM], ClusterName(name)
    if why == "drained":
        clusters[left] = replace(clusters[left], availability=Availability.DRAINING)
    elif why == "tainted":
        clusters[left] = replace(clusters[left], taints=(Taint(key="dedicated", effect="NoExecute"),))
    elif why == "labels":
        clusters[left] = replace(clusters[left], labels={**clusters[left].labels, "tier": "cpu"})
        policy = replace(policy, require_labels={"tier": "gpu"})
    elif why == "no longer named":
        kept = tuple(candidate for candidate in policy.candidates if candidate.name != left)
        policy = replace(policy, candidates=kept)
    return replace(wanted, clusters=clusters, policies={VLLM: policy})


def decided(why: str, wanted: Desired, there: Ledger, *seen: ClusterObservation) -> Plan:
    """Decide once worker-2 may keep nothing, with every replica still missing at home."""
    total = sum(each.replicas for each in there.placements.values())
    home = short(total, since=NOW - HOUR)
    made = inputs(home, *seen, wanted=leaving(why, wanted), there=there)
    return decide(replace(made, lost={ClusterName("worker-2"): NOW - HOUR} if why == "lost" else {}))


def after(before: Ledger, made: Plan) -> Mapping[str, int]:
    """Count the replicas of each cluster once a plan is carried out."""
    standing = dict(before.placements.items())
    for change in made.changes:
        if change.before is not None:
            standing.pop(change.before.path)
        if change.after is not None:
            standing[change.after.path] = change.after
    counts = Counter[str]()
    for each in standing.values():
        counts[each.cluster] += each.replicas
    return counts


def fleet(policy: BurstPolicy, *clusters: Cluster) -> Desired:
    return desired(policy, clusters=(region("worker-1", "eu"), *clusters))


@pytest.mark.parametrize("why", GONE)
@pytest.mark.parametrize("distribution", [WEIGHTED, BALANCED])
def test_shares_are_divided_over_the_clusters_that_are_left(why: str, distribution: Distribution) -> None:
    names = ("worker-2", "worker-3", "worker-4")
    wanted = fleet(ordering(*names, distribution=distribution), *(region(name, "eu") for name in names))
    before = ledger(*(there(name, 3) for name in names))
    seen = [] if why == "lost" else [free("worker-2", 8)]
    made = decided(why, wanted, before, *seen, free("worker-3", 9), free("worker-4", 9))
    assert sorted(after(before, made).values()) == [4, 5]


@pytest.mark.parametrize("why", GONE)
@pytest.mark.parametrize("distribution", [TWO_REGIONS, TWO_CLUSTERS])
def test_replicas_go_where_they_keep_two_regions_or_clusters(why: str, distribution: Distribution) -> None:
    clusters = region("worker-2", "eu"), region("worker-3", "us"), region("worker-4", "ap")
    wanted = fleet(ordering("worker-2", "worker-3", "worker-4", distribution=distribution), *clusters)
    before = ledger(there("worker-2", 3), there("worker-3", 3))
    made = decided(why, wanted, before, free("worker-3", 20), free("worker-4", 9))
    counts = after(before, made)
    assert sum(counts.values()) == 6
    assert counts.keys() == {"worker-3", "worker-4"}


@pytest.mark.parametrize("why", GONE)
def test_where_one_region_is_left_all_go_there_and_the_commit_says_what_is_not_kept(why: str) -> None:
    clusters = region("worker-2", "eu"), region("worker-3", "us")
    wanted = fleet(ordering("worker-2", "worker-3", distribution=TWO_REGIONS), *clusters)
    before = ledger(there("worker-2", 3), there("worker-3", 3))
    made = decided(why, wanted, before, free("worker-3", 20))
    assert after(before, made) == {"worker-3": 6}
    (moved,) = made.changes
    assert moved.action is Action.MOVE
    assert "spreads over 2 values of topology.kubernetes.io/region at least, and only 1 can be used" in moved.detail


@pytest.mark.parametrize(("missing", "arrive"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)])
def test_as_many_replicas_leave_two_lost_clusters_as_both_together_are_needed_for(missing: int, arrive: int) -> None:
    names = ("worker-2", "worker-3", "worker-4")
    wanted = fleet(ordering(*names), *(region(name, "eu") for name in names))
    before = ledger(there("worker-2", 2), there("worker-3", 2))
    seen = inputs(short(missing, since=NOW - HOUR), free("worker-4", 8), wanted=wanted, there=before)
    lost = {ClusterName(name): NOW - HOUR for name in names[:2]}
    assert after(before, decide(replace(seen, lost=lost))).get("worker-4", 0) == arrive


@pytest.mark.parametrize("why", GONE[2:])
def test_what_files_no_longer_allow_is_reverted_where_nothing_else_has_room_and_never_renewed(why: str) -> None:
    policy = ordering("worker-2", "worker-3", renew=Renewal.WHILE_NEEDED)
    wanted = fleet(policy, region("worker-2", "eu"), region("worker-3", "eu"))
    before = ledger(placement("worker-2", 3, created=NOW - timedelta(minutes=9)))
    assert [change.action for change in decided("lost", wanted, before, free("worker-3", 0)).changes] == [Action.EXTEND]
    (ended,) = decided(why, wanted, before, free("worker-2", 8), free("worker-3", 0)).changes
    assert ended.action is Action.REVERT
    assert ended.why is EndReason.POLICY


@pytest.mark.parametrize("why", ["drained", "no longer named", "labels", "tainted"])
@pytest.mark.parametrize("held", ["by a person", "for a cool-down", "by an unreadable file"])
def test_what_files_no_longer_allow_arrives_nowhere_while_its_workload_is_held_back_everywhere(
    why: str, held: str
) -> None:
    kind = RestraintKind.HOLD if held == "by a person" else RestraintKind.COOL_DOWN
    restraint = Restraint(
        kind=kind,
        cluster=None,
        since=NOW,
        until=NOW + HOUR,
        reason="vllm-1 was ended by Ada",
        placement=PlacementName("vllm-1"),
    )
    before = ledger(there("worker-2", 2))
    if held == "by an unreadable file":
        before = replace(before, blocked=frozenset({VLLM}))
    else:
        before = replace(before, restraints={VLLM: (restraint,)})
    wanted = fleet(ordering("worker-2", "worker-3"), region("worker-2", "eu"), region("worker-3", "us"))
    made = decided(why, wanted, before, short(2), free("worker-2", 8), free("worker-3", 8))
    (change,) = made.changes
    assert change.action is Action.REVERT
    words = "cannot be read" if held == "by an unreadable file" else "held back everywhere: vllm-1 was ended by Ada"
    assert words in change.detail


def test_what_files_no_longer_allow_moves_while_nobody_sees_the_primary() -> None:
    wanted = fleet(ordering("worker-2", "worker-3"), region("worker-2", "eu"), region("worker-3", "eu"))
    seen = free("worker-2", 8), free("worker-3", 8)
    (moved,) = decide(inputs(*seen, wanted=leaving("drained", wanted), there=ledger(there("worker-2", 3)))).changes
    assert (moved.action, moved.placement.cluster) == (Action.MOVE, "worker-3")


def test_as_many_replicas_as_have_room_leave_a_drained_cluster_and_the_rest_ends() -> None:
    wanted = fleet(ordering("worker-2", "worker-3"), region("worker-2", "eu"), region("worker-3", "eu"))
    before = there("worker-2", 3)
    ended, begun = decided("drained", wanted, ledger(before), free("worker-2", 8), free("worker-3", 2)).changes
    assert ended.action is Action.REVERT
    assert begun.action is Action.PLACE
    assert (begun.placement.replicas, begun.placement.expires_at) == (2, before.expires_at)


def test_a_taint_that_pods_or_the_policy_tolerate_evicts_nothing_and_noschedule_keeps_what_runs() -> None:
    wanted = fleet(ordering("worker-2", "worker-3"), region("worker-2", "eu"), region("worker-3", "eu"))
    seen = free("worker-2", 8), free("worker-3", 8)
    tolerates = (Toleration(key="dedicated", operator="Exists"),)
    pods = ledger(there("worker-2", 3, shape=shape(tolerations=tolerates)))
    assert decided("tainted", wanted, pods, *seen).changes == ()
    own = fleet(ordering("worker-2", "worker-3", tolerations=tolerates), *wanted.clusters.values())
    assert decided("tainted", own, ledger(there("worker-2", 3)), *seen).changes == ()
    soft = replace(wanted.clusters[ClusterName("worker-2")], taints=(Taint(key="dedicated", effect="NoSchedule"),))
    kept = replace(wanted, clusters={**wanted.clusters, soft.name: soft})
    assert decided("stays", kept, ledger(there("worker-2", 3)), *seen).changes == ()


def test_a_run_that_goes_whole_counts_no_gpr_of_a_cluster_without_room_for_it() -> None:
    wanted = fleet(ordering("worker-2", "worker-3"), region("worker-2", "eu"), region("worker-3", "eu"))
    once = replace(wanted.templates[VLLM], runs_once=True)
    limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, most=1)}
    wanted = replace(wanted, templates={VLLM: once}, limits=limits)
    home = short(3, running=0, since=NOW - HOUR, held=True)
    (begun,) = decide(inputs(home, free("worker-2", 2), free("worker-3", 8), wanted=wanted)).changes
    assert begun.action is Action.PLACE
    assert begun.placement.cluster == "worker-3"


def held_in_one_region(*seen: ClusterObservation, moves: int = 6) -> Plan:
    """Decide about six replicas that a loss has left in one region, once another is there again."""
    clusters = region("worker-2", "eu"), region("worker-3", "us"), region("worker-4", "us")
    policy = ordering(
        "worker-2", "worker-3", "worker-4", distribution=TWO_REGIONS, moves=MoveBudget(most_per_hour=moves)
    )
    return decided("stays", fleet(policy, *clusters), ledger(there("worker-3", 6)), *seen)


def test_one_replica_moves_to_a_second_region_as_soon_as_it_has_room() -> None:
    made = held_in_one_region(free("worker-2", 9), free("worker-3", 9), free("worker-4", 9))
    shrunk, begun = made.changes
    assert shrunk.action is Action.RESIZE
    assert begun.action is Action.PLACE
    assert (shrunk.after.cluster, shrunk.after.replicas) == ("worker-3", 5)
    assert (begun.placement.cluster, begun.placement.replicas) == ("worker-2", 1)
    detail = "policy gpu spreads over 2 values of topology.kubernetes.io/region at least, and it has 1"
    assert shrunk.detail == detail
    assert shrunk.restraint is not None
    assert (shrunk.restraint.move, shrunk.restraint.until) == (True, NOW)
    assert made.suppressed == ()


def test_a_bound_that_cannot_be_held_is_told_and_moves_nothing_within_the_same_region() -> None:
    made = held_in_one_region(free("worker-2", 0), free("worker-3", 9), free("worker-4", 9))
    assert made.changes == ()
    (told,) = made.suppressed
    assert (told.reason, told.replicas) == (Reason.BOUND_UNMET, 1)
    assert told.message.startswith(
        "policy gpu spreads over 2 values of topology.kubernetes.io/region at least, and it has 1, and no other cluster"
    )
    assert held_in_one_region(free("worker-2", 9), moves=0).suppressed[0].reason is Reason.MOVE_BUDGET


@pytest.mark.parametrize("kept", ["by the budget of moves", "by a hold", "by an unseen primary"])
def test_a_bound_that_is_not_held_is_told_whatever_keeps_it_from_being_restored(kept: str) -> None:
    clusters = region("worker-2", "eu"), region("worker-3", "us")
    most = 0 if kept == "by the budget of moves" else 6
    policy = ordering("worker-2", "worker-3", distribution=TWO_REGIONS, moves=MoveBudget(most_per_hour=most))
    wanted, before = fleet(policy, *clusters), ledger(there("worker-3", 6))
    hold = Restraint(
        kind=RestraintKind.HOLD,
        cluster=None,
        since=NOW,
        until=NOW + HOUR,
        reason="vllm-1 was ended by Ada",
        placement=PlacementName("vllm-1"),
    )
    if kept == "by a hold":
        before = replace(before, restraints={VLLM: (hold,)})
    home = [] if kept == "by an unseen primary" else [short(6, since=NOW - HOUR)]
    made = decide(inputs(*home, free("worker-2", 9), free("worker-3", 9), wanted=wanted, there=before))
    assert made.changes == ()
    (told,) = (held for held in made.suppressed if held.reason is Reason.BOUND_UNMET)
    assert told.message == f"policy {policy.name} spreads over 2 values of {REGION} at least, and it has 1"


@pytest.mark.parametrize(
    ("distribution", "allowed"),
    [
        (Distribution(max_clusters=1), "1 cluster"),
        (Distribution(spread_constraints=spread_over(REGION, max_groups=1)), f"1 value of {REGION}"),
    ],
    ids=["maxClusters", "maxGroups"],
)
def test_what_stands_on_more_than_its_policy_allows_by_now_stays_and_is_told(
    distribution: Distribution, allowed: str
) -> None:
    clusters = region("worker-2", "eu"), region("worker-3", "us")
    policy = ordering("worker-2", "worker-3", distribution=distribution)
    before = ledger(there("worker-2", 3), there("worker-3", 3))
    made = decided("stays", fleet(policy, *clusters), before, free("worker-2", 9), free("worker-3", 9))
    assert made.changes == ()
    (told,) = made.suppressed
    assert (told.reason, told.replicas) == (Reason.BOUND_UNMET, 1)
    assert told.message.startswith(f"policy {policy.name} spreads over {allowed} at most, and it has 2")


def test_telling_bounds_costs_no_more_for_each_workload_where_there_are_many() -> None:
    def calls(number: int) -> int:
        many = [WorkloadId(VLLM.workspace, TemplateName(f"vllm-{place}")) for place in range(number)]
        policy = ordering("worker-2", distribution=Distribution(max_clusters=1))
        wanted = desired(workloads=many, policies=dict.fromkeys(many, policy), clusters=(cluster("worker-2"),))
        missing = tuple(seen for each in many for seen in short(1, workload=each).workloads)
        given = inputs(replace(short(1), workloads=missing), free("worker-2", 0), wanted=wanted)
        counted = 0

        def count_call(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event == "call"

        sys.setprofile(count_call)
        try:
            assert len(decide(given).suppressed) == number
        finally:
            sys.setprofile(None)
        return counted

    assert calls(200) < 5 * calls(50)


def test_set_that_stands_on_two_clusters_of_a_region_moves_for_no_bound() -> None:
    clusters = region("worker-1", "eu"), region("worker-2", "us"), region("worker-3", "us"), region("worker-4", "eu")
    policy = ordering("worker-2", "worker-3", "worker-4", distribution=TWO_REGIONS)
    wanted = group_bursts.fleet(group_bursts.SET, policy=policy, clusters=clusters)
    before = ledger(group_bursts.burst("worker-2", lasting=HOUR), group_bursts.burst("worker-3", lasting=HOUR))
    full = free("worker-2"), free("worker-3"), free("worker-4", *[8] * 8)
    assert decide(inputs(group_bursts.lacks(8), *full, wanted=wanted, there=before)).changes == ()


@pytest.mark.parametrize(("minutes", "goes"), [(30, False), (61, True)])
def test_cluster_that_was_lost_is_tried_again_for_a_bound_after_an_hour_and_the_refusal_says_so(
    minutes: int, goes: bool
) -> None:
    wanted = fleet(
        ordering("worker-2", "worker-3", distribution=TWO_REGIONS), region("worker-2", "eu"), region("worker-3", "us")
    )
    stays, ago = there("worker-3", 6), NOW - timedelta(minutes=minutes)
    left = lifecycle.move_restraint(there("worker-2", 3), ago, reason="it was lost", rest=timedelta(minutes=15))
    assert left is not None
    before = ledger(stays, restraints={VLLM: (left,)})
    made = decided("stays", wanted, before, free("worker-2", 9), free("worker-3", 9))
    assert bool(made.changes) is goes
    if not goes:
        (held,) = made.suppressed
        assert [refusal.message for refusal in held.refusals if refusal.cluster == "worker-2"] == [
            "it moved away from there at 2026-11-20T09:35:00Z, and moves back after 1h at the earliest (for a bound)"
        ]


def test_bounds_on_two_labels_are_restored_by_the_cluster_that_mends_both() -> None:
    sites = {"worker-2": ("eu", "a"), "worker-3": ("eu", "b"), "worker-4": ("us", "a"), "worker-5": ("us", "b")}
    both = spread_over(REGION, min_groups=2) + spread_over("zone", min_groups=2)
    clusters = (cluster(name, labels={REGION: of, "zone": zone}) for name, (of, zone) in sites.items())
    wanted = fleet(ordering(*sites, distribution=Distribution(spread_constraints=both)), *clusters)
    before, seen = ledger(there("worker-2", 6)), [free(name, 9) for name in sites]
    assert after(before, decided("stays", wanted, before, *seen)) == {"worker-2": 5, "worker-5": 1}
    made = decided("stays", wanted, before, *seen[:3])
    assert after(before, made) == {"worker-2": 5, "worker-3": 1}
    (held,) = (held for held in made.suppressed if held.reason is Reason.BOUND_UNMET)
    assert held.message == f"policy gpu spreads over 2 values of {REGION} at least, and it has 1"


def test_a_bound_is_restored_once_and_what_then_stands_stays() -> None:
    clusters = region("worker-2", "eu"), region("worker-3", "us")
    wanted = fleet(ordering("worker-2", "worker-3", distribution=TWO_REGIONS), *clusters)
    settled = ledger(there("worker-2", 1), there("worker-3", 5))
    made = decided("stays", wanted, settled, free("worker-2", 9), free("worker-3", 9))
    assert (made.changes, made.suppressed) == ((), ())


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (9, {"worker-3": 3, "worker-2": 2}),
        (2, {"worker-3": 3, "worker-2": 2}),
        (1, {"worker-3": 4, "worker-2": 1}),
        (0, {"worker-3": 3, "worker-4": 2}),
    ],
)
def test_cluster_is_given_up_for_a_second_region_where_the_policy_allows_no_third_cluster(
    room: int, expected: Mapping[str, int]
) -> None:
    clusters = region("worker-2", "eu"), region("worker-3", "us"), region("worker-4", "us")
    two = Distribution(spread_constraints=spread_over(REGION, min_groups=2), max_clusters=2)
    wanted = fleet(ordering("worker-2", "worker-3", "worker-4", distribution=two), *clusters)
    before = ledger(there("worker-3", 3), there("worker-4", 2))
    made = decided("stays", wanted, before, free("worker-2", room), free("worker-3", 1), free("worker-4", 9))
    assert after(before, made) == expected
    assert bool(made.suppressed) is (room == 0)


def test_first_burst_that_reaches_too_few_regions_says_so_though_all_of_it_is_placed() -> None:
    clusters = region("worker-2", "us"), region("worker-3", "us")
    both = Distribution(spread_constraints=spread_over(REGION, min_groups=2), min_clusters=2)
    wanted = fleet(ordering("worker-2", "worker-3", distribution=both), *clusters)
    made = decide(inputs(short(2, since=NOW - HOUR), free("worker-2", 8), free("worker-3", 8), wanted=wanted))
    assert [change.action for change in made.changes] == [Action.PLACE, Action.PLACE]
    detail = "policy gpu spreads over 2 values of topology.kubernetes.io/region at least, and it has 1"
    assert [(told.reason, told.message) for told in made.suppressed] == [(Reason.BOUND_UNMET, detail)]


@pytest.mark.parametrize("why", ["drained", "labels", "tainted"])
def test_surplus_is_taken_first_from_where_replicas_may_not_stay(why: str) -> None:
    wanted = fleet(ordering("worker-2", "worker-3", max_replicas=3), region("worker-2", "eu"), region("worker-3", "eu"))
    served = there("worker-3", 3)
    before = ledger(there("worker-2", 3), served)
    full = free("worker-3", 0, bound={served.name: 3}, ready={served.name: 3})
    made = decided(why, wanted, before, free("worker-2", 8), full)
    assert after(before, made) == {"worker-3": 3}


def test_policy_that_divides_moves_within_the_last_gpr_of_its_workspace() -> None:
    limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, most=1)}
    names = ("worker-2", "worker-3", "worker-4")
    wanted = fleet(ordering(*names, distribution=WEIGHTED), *(region(name, "eu") for name in names))
    before = there("worker-2", 3)
    for why in ("lost", "drained"):
        (moved,) = decided(
            why, replace(wanted, limits=limits), ledger(before), free("worker-3", 8), free("worker-4", 8)
        ).changes
        assert moved.action is Action.MOVE
        assert moved.after.expires_at == before.expires_at


@pytest.mark.parametrize(("minutes", "moved"), [(60, {"worker-4": 6}), (50, {"worker-4": 6}), (1, {"worker-4": 3})])
def test_region_that_is_lost_as_a_whole_is_left_for_another_where_there_may_be_one(
    minutes: int, moved: dict[str, int]
) -> None:
    """A cluster that has been lost for a minute keeps its replicas for now, and holds up no others."""
    clusters = region("worker-2", "us"), region("worker-3", "us"), region("worker-4", "ap")
    one = Distribution(spread_constraints=spread_over(REGION, max_groups=1))
    wanted = fleet(ordering("worker-2", "worker-3", "worker-4", distribution=one), *clusters)
    before = ledger(there("worker-2", 3), there("worker-3", 3))
    made = inputs(short(6, since=NOW - HOUR), free("worker-4", 20), wanted=wanted, there=before)
    lost = {ClusterName("worker-2"): NOW - HOUR, ClusterName("worker-3"): NOW - timedelta(minutes=minutes)}
    stays = {"worker-3": 3} if minutes < 5 else {}
    assert after(before, decide(replace(made, lost=lost))) == {**stays, **moved}


def test_copy_goes_only_where_all_that_its_template_deploys_by_now_has_room() -> None:
    wanted = fleet(ordering("worker-2", "worker-3"), region("worker-2", "eu"), region("worker-3", "eu"))
    four = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], copy=4)})
    before = ledger(there("worker-2", 3))
    assert decided("lost", four, before, free("worker-3", 3)).changes == ()
    assert after(before, decided("lost", four, before, free("worker-3", 4))) == {"worker-3": 3}


def test_cluster_that_was_left_for_a_bound_may_be_gone_back_to_at_once() -> None:
    wanted = fleet(
        ordering("worker-3", "worker-2", distribution=TWO_CLUSTERS), region("worker-2", "eu"), region("worker-3", "eu")
    )
    stays = there("worker-3", 5)
    note = lifecycle.move_restraint(stays, NOW - timedelta(minutes=1))
    assert note is not None
    before = ledger(there("worker-2", 1), stays, restraints={VLLM: (note,)})
    made = decided("lost", wanted, before, free("worker-3", 9))
    assert after(before, made) == {"worker-3": 6}


def test_workloads_of_one_policy_are_kept_off_the_clusters_of_their_own_spreads() -> None:
    other = WorkloadId(VLLM.workspace, TemplateName("alpha"))
    wanted = desired(
        ordering("worker-2", "worker-3"),
        clusters=(region("worker-1", "eu"), region("worker-2", "eu"), region("worker-3", "us")),
        workloads=(VLLM, other),
    )
    policies = {
        workload: replace(
            policy,
            bounds=WorkloadSpread(
                namespace="demo",
                name=workload.name,
                group="apps",
                target=WorkloadRef(namespace="demo", name=workload.name),
                subsets=(Subset(name="only", required=Requirements(labels=(requirement,))),),
            ),
        )
        for (workload, policy), requirement in zip(
            sorted(wanted.policies.items()),
            (Requirement(key=REGION, operator="In", values=(value,)) for value in ("eu", "us")),
            strict=True,
        )
    }
    order = ClusterOrder(replace(wanted, policies=policies))
    assert [order.allowed(workload) for workload in sorted(policies)] == [{"worker-2"}, {"worker-3"}]
