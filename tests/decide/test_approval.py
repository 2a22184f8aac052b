"""Bursts that a policy has approved are proposed first, and placed as they were shown or not at all."""

from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.ledger.proposal_record import approval_path, proposal_path, read_proposal, write_proposal
from reconciler.core.observe.demand import next_history
from reconciler.model.action import Action
from reconciler.model.approval import Approval, ApprovalRule, BurstProposal, ProposalEnd
from reconciler.model.capacity import ClusterObservation
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.manifest_source import MadeFrom
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import Change, Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, Distribution, Renewal, StrategyName
from tests.builders.cluster_shares import spread_over
from tests.builders.gangs import JOB
from tests.builders.group_bursts import SET, lacks
from tests.builders.group_bursts import fleet as gang_fleet
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    seconds,
    shape,
    short,
)
from tests.builders.subsets import TIER, fleet, pooled, subset, term

OTHER = WorkloadId(WorkspaceName("llm"), TemplateName("zephyr"))
ALWAYS = ApprovalRule()
CLUSTERS = (
    cluster("worker-1"),
    cluster("worker-2", price_per_gpu_hour=3.0),
    cluster("worker-3", price_per_gpu_hour=2.0),
)


def asking(rule: ApprovalRule = ALWAYS, *, policy: BurstPolicy | None = None, **fields: object) -> Desired:
    return desired(replace(policy or ordering("worker-2", "worker-3"), approval=rule), clusters=CLUSTERS, **fields)


def proposed(made: Plan) -> BurstProposal:
    (change,) = (change for change in made.changes if change.action is Action.PROPOSE)
    return change.proposal


def ended(made: Plan) -> Change:
    (change,) = (change for change in made.changes if change.action is Action.END_PROPOSAL)
    return change


def awaited(proposal: BurstProposal, *, approved: bool = False, there: Ledger | None = None) -> Ledger:
    """The output branch with a proposal, and its approval."""
    path = approval_path(proposal)
    approvals = {path: Approval(path=path, proposal=proposal.shown)} if approved else {}
    return replace(there or ledger(), proposals={proposal.workload: proposal}, approvals=approvals)


def shown(proposal: BurstProposal) -> list[tuple[str, int]]:
    return [(placement.cluster, placement.replicas) for placement in proposal.placements]


def placed(made: Plan) -> list[tuple[str, int]]:
    return [
        (change.placement.cluster, change.placement.replicas)
        for change in made.changes
        if change.action is Action.PLACE
    ]


def kinds(made: Plan) -> list[type]:
    return [change.action for change in made.changes]


def first(*rooms: ClusterObservation, missing: int = 3, wanted: Desired | None = None) -> BurstProposal:
    return proposed(plan(short(missing), *(rooms or (free("worker-2", 8),)), wanted=wanted or asking()))


def test_burst_is_proposed_with_what_would_be_placed_and_its_price() -> None:
    made = plan(short(3), free("worker-2", 2), free("worker-3", 8), wanted=asking())
    proposal = proposed(made)
    assert kinds(made) == [Action.PROPOSE]
    assert shown(proposal) == [("worker-2", 2), ("worker-3", 1)]
    assert (proposal.gpus, proposal.dollars_per_hour) == (3, 8.0)
    assert proposal.placements[0].duration == timedelta(minutes=10)
    assert proposal.until == NOW + timedelta(hours=1)
    assert made.wake_at is not None


def test_workload_awaits_approval_with_its_reason() -> None:
    made = plan(short(3), free("worker-2", 8), wanted=asking())
    (suppressed,) = made.suppressed
    assert suppressed.reason is Reason.AWAITING_APPROVAL
    assert suppressed.replicas == 3
    assert suppressed.message == (
        "3 replicas on worker-2 await approval since 2026-11-20T10:05:00Z until 2026-11-20T11:05:00Z"
        " (`overspill approve llm/vllm`)"
    )


def test_proposal_takes_no_room_from_others() -> None:
    policies = {VLLM: replace(ordering("worker-2"), approval=ALWAYS, priority=9), OTHER: ordering("worker-2")}
    wanted = desired(workloads=(VLLM, OTHER), policies=policies, clusters=CLUSTERS)
    primary = short(3)
    both = replace(primary, workloads=(*primary.workloads, *short(3, workload=OTHER).workloads))
    made = plan(both, free("worker-2", 3), wanted=wanted)
    assert placed(made) == [("worker-2", 3)]
    assert proposed(made).workload == VLLM


def test_proposal_that_stands_changes_nothing() -> None:
    made = plan(short(3), free("worker-2", 8), wanted=asking(), there=awaited(first()))
    assert made.changes == ()
    assert made.wake_at == NOW + timedelta(hours=1)


def test_approved_burst_is_placed_as_shown_and_its_proposal_ends_before() -> None:
    proposal = first()
    there = awaited(proposal, approved=True)
    made = plan(short(3), free("worker-2", 8), wanted=asking(), there=there, now=NOW)
    assert kinds(made) == [Action.END_PROPOSAL, Action.PLACE]
    assert placed(made) == [("worker-2", 3)]
    assert (ended(made).why, ended(made).approvals) == (ProposalEnd.APPROVED, tuple(there.approvals))


def test_approved_burst_goes_where_it_was_shown_although_a_better_cluster_is_free() -> None:
    proposal = first(free("worker-2"), free("worker-3", 8))
    assert shown(proposal) == [("worker-3", 3)]
    there = awaited(proposal, approved=True)
    made = plan(short(3), free("worker-2", 8), free("worker-3", 8), wanted=asking(), there=there)
    assert placed(made) == [("worker-3", 3)]


def test_approved_burst_over_two_clusters_tells_of_neither_that_it_was_full() -> None:
    rooms = free("worker-2", 1), free("worker-3", 2)
    there = awaited(first(*rooms), approved=True)
    made = plan(short(3), *rooms, wanted=asking(), there=there)
    assert placed(made) == [("worker-2", 1), ("worker-3", 2)]
    assert [change.refused for change in made.changes if change.action is Action.PLACE] == [(), ()]


def test_approved_burst_is_not_divided_with_who_has_less_of_its_share() -> None:
    usual = ordering("worker-2")
    policies = {VLLM: replace(usual, approval=ALWAYS), OTHER: usual}
    wanted = desired(clusters=CLUSTERS, workloads=(VLLM, OTHER), policies=policies)
    lacking = (short(3).workloads[0], short(9, workload=OTHER, since=NOW - seconds(40)).workloads[0])
    primary, room = replace(short(3), workloads=lacking), free("worker-2", 5)
    there = awaited(first(), approved=True)
    assert placed(plan(primary, room, wanted=wanted, there=there)) == [("worker-2", 3), ("worker-2", 2)]


def test_more_that_is_missing_is_proposed_after_what_was_approved() -> None:
    there = awaited(first(), approved=True)
    made = plan(short(5), free("worker-2", 8), wanted=asking(), there=there)
    assert placed(made) == [("worker-2", 3)]
    placement_made = next(change.placement for change in made.changes if change.action is Action.PLACE)
    later = plan(short(5), free("worker-2", 5), wanted=asking(), there=ledger(placement_made))
    (grown,) = proposed(later).placements
    assert (grown.replicas, grown.beside) == (2, 3)


def test_approved_growth_is_a_resize() -> None:
    there = ledger(placement("worker-2", 3))
    proposal = proposed(plan(short(5), free("worker-2", 8), wanted=asking(), there=there))
    made = plan(short(5), free("worker-2", 8), wanted=asking(), there=awaited(proposal, approved=True, there=there))
    assert kinds(made) == [Action.END_PROPOSAL, Action.RESIZE]


@pytest.mark.parametrize(
    ("room", "missing", "wanted", "why"),
    [
        pytest.param(free("worker-2", 2), 3, asking(), "room for 2 of 3 replicas", id="room is gone"),
        pytest.param(free("worker-2", 8), 1, asking(), "1 of its 3 replicas is missing", id="less is missing"),
        pytest.param(free("worker-2", 8), 0, asking(), "nothing is missing", id="nothing is missing"),
        pytest.param(
            free("worker-2", 8),
            3,
            asking(policy=ordering("worker-3")),
            "does not burst there any more",
            id="the policy leaves the cluster",
        ),
        pytest.param(
            free("worker-2", 8),
            3,
            replace(
                asking(),
                clusters={
                    **asking().clusters,
                    ClusterName("worker-2"): cluster("worker-2", price_per_gpu_hour=4.0),
                },
            ),
            "4.00 $/GPU-h on worker-2, and 3.00 $/GPU-h were shown",
            id="the price has risen",
        ),
        pytest.param(
            free("worker-2", 8),
            3,
            asking(policy=ordering("worker-2", max_duration=timedelta(minutes=5))),
            "5m on worker-2, and 10m were shown",
            id="it would last otherwise",
        ),
        pytest.param(
            free("worker-2", 8),
            3,
            asking(policy=ordering("worker-2", max_replicas=2)),
            "2 replicas of 3 may be placed",
            id="the policy allows less",
        ),
    ],
)
def test_what_was_approved_and_is_not_what_was_shown_any_more_is_not_placed(
    room: ClusterObservation, missing: int, wanted: Desired, why: str
) -> None:
    made = plan(short(missing), room, wanted=wanted, there=awaited(first(), approved=True))
    assert placed(made) == []
    assert ended(made).why is ProposalEnd.NOT_PLACED
    assert why in ended(made).detail


@pytest.mark.parametrize(
    ("bounds", "why", "copies"),
    [
        ({"max_clusters": 1}, "policy ordered spreads over 1 cluster at most: worker-2", False),
        ({"max_clusters": 1}, "policy ordered spreads over 1 cluster at most: worker-2", True),
        ({"min_clusters": 3}, "policy ordered spreads over 3 clusters at least, and only 2 can be used", False),
        (
            {"spread_constraints": spread_over("region", max_groups=1)},
            "policy ordered spreads over 1 value of region at most: worker-2",
            True,
        ),
        (
            {"spread_constraints": spread_over("zone", min_groups=2)},
            "policy ordered spreads over 2 values of zone at least, and only 1 can be used",
            True,
        ),
    ],
    ids=["maxClusters", "maxClusters of copies", "minClusters", "maxGroups of copies", "minGroups of copies"],
)
def test_what_was_approved_and_is_beyond_the_bounds_of_the_policy_by_now_is_not_placed(
    bounds: dict[str, object], why: str, *, copies: bool
) -> None:
    labelled = (
        cluster("worker-1"),
        cluster("worker-2", labels={"region": "eu", "zone": "a"}),
        cluster("worker-3", labels={"region": "us", "zone": "a"}),
    )
    rooms, policy = (free("worker-2", 3), free("worker-3", 3)), ordering("worker-2", "worker-3", name="ordered")
    asks = replace(asking(policy=policy), clusters={each.name: each for each in labelled})
    if copies:
        asks = replace(asks, templates={VLLM: replace(asks.templates[VLLM], copy=3, uses_replicas=False)})
    proposal = first(*rooms, missing=6, wanted=asks)
    assert shown(proposal) == [("worker-2", 3), ("worker-3", 3)]
    bounded = replace(asks.policies[VLLM], distribution=Distribution(**bounds))
    wanted = replace(asks, policies={VLLM: bounded})
    made = plan(short(6), *rooms, wanted=wanted, there=awaited(proposal, approved=True))
    assert placed(made) == []
    assert ended(made).why is ProposalEnd.NOT_PLACED
    assert why in ended(made).detail


def test_replicas_beyond_what_was_approved_are_told_and_proposed_next() -> None:
    there = awaited(first(), approved=True)
    made = plan(short(5), free("worker-2", 8), wanted=asking(), there=there)
    assert placed(made) == [("worker-2", 3)]
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.AWAITING_APPROVAL, 2)
    assert made.wake_at == NOW + timedelta(seconds=1)


@pytest.mark.parametrize(("seen", "end"), [(False, None), (True, ProposalEnd.NOT_PLACED)], ids=["unseen", "full"])
def test_a_bound_that_what_stands_is_beyond_ends_no_approved_burst_and_hides_no_reason(
    end: ProposalEnd | None, *, seen: bool
) -> None:
    wanted = asking(policy=ordering("worker-2", "worker-3", distribution=Distribution(max_clusters=1)))
    stands = ledger(placement("worker-2", 2), placement("worker-3", 2))
    proposal = proposed(plan(short(6), free("worker-2", 8), free("worker-3", 0), wanted=wanted, there=stands))
    there = awaited(proposal, approved=True, there=stands)
    rooms = [free("worker-3", 0), *([free("worker-2", 0)] if seen else [])]
    made = plan(short(6), *rooms, wanted=wanted, there=there)
    assert Reason.BOUND_UNMET in {held.reason for held in made.suppressed}
    assert [change.why for change in made.changes] == ([] if end is None else [end])
    assert all(change.detail.startswith("worker-2: needs 1 GPU on one node") for change in made.changes)


def test_what_can_be_placed_instead_is_proposed_in_the_same_pass() -> None:
    made = plan(
        short(3), free("worker-2", 1), free("worker-3", 8), wanted=asking(), there=awaited(first(), approved=True)
    )
    assert kinds(made) == [Action.END_PROPOSAL, Action.PROPOSE]
    assert shown(proposed(made)) == [("worker-2", 1), ("worker-3", 2)]


def test_lower_price_is_no_obstacle() -> None:
    cheap = replace(
        asking(), clusters={**asking().clusters, ClusterName("worker-2"): cluster("worker-2", price_per_gpu_hour=1.0)}
    )
    made = plan(short(3), free("worker-2", 8), wanted=cheap, there=awaited(first(), approved=True))
    assert placed(made) == [("worker-2", 3)]


def test_approved_burst_waits_for_a_cluster_that_is_out_of_sight() -> None:
    made = plan(short(3), wanted=asking(), there=awaited(first(), approved=True))
    assert made.changes == ()
    (suppressed,) = made.suppressed
    assert suppressed.reason is Reason.AWAITING_APPROVAL
    assert "are approved until" in suppressed.message


def test_proposal_lapses_and_its_workload_is_held() -> None:
    later = NOW + timedelta(hours=1)
    made = plan(short(3, at=later), free("worker-2", 8, at=later), wanted=asking(), there=awaited(first()), now=later)
    assert kinds(made) == [Action.END_PROPOSAL]
    assert ended(made).why is ProposalEnd.TIMED_OUT
    restraint = ended(made).restraint
    assert restraint is not None
    assert (restraint.kind, restraint.cluster, restraint.until) == (
        RestraintKind.HOLD,
        None,
        later + timedelta(hours=1),
    )
    assert [suppressed.reason for suppressed in made.suppressed] == [Reason.HELD]


def test_approval_that_is_seen_after_its_time_is_proposed_anew() -> None:
    later = NOW + timedelta(hours=1)
    there = awaited(first(), approved=True)
    made = plan(short(3, at=later), free("worker-2", 8, at=later), wanted=asking(), there=there, now=later)
    assert kinds(made) == [Action.END_PROPOSAL, Action.PROPOSE]
    assert ended(made).why is ProposalEnd.NOT_PLACED


def test_proposal_whose_demand_is_gone_for_the_window_is_withdrawn() -> None:
    wanted, there = asking(policy=ordering("worker-2", scale_down_window=seconds(60))), awaited(first())
    seen = inputs(short(3), free("worker-2", 8), wanted=wanted, there=there)
    history, kept = next_history(seen.demands), None
    for second in (10, 40, 80):
        at = NOW + seconds(second)
        seen = inputs(short(0, at=at), free("worker-2", 8, at=at), wanted=wanted, there=there, now=at, history=history)
        history, kept = next_history(seen.demands), decide(seen)
        if second < 80:
            assert kept.changes == ()
    assert kept is not None
    assert ended(kept).why is ProposalEnd.WITHDRAWN


def test_policy_that_asks_no_more_places_at_once() -> None:
    made = plan(short(3), free("worker-2", 8), wanted=desired(clusters=CLUSTERS), there=awaited(first()))
    assert kinds(made) == [Action.END_PROPOSAL, Action.PLACE]
    assert ended(made).why is ProposalEnd.WITHDRAWN


def test_settled_proposal_without_room_is_replaced_by_what_has_room() -> None:
    there = awaited(first())
    soon, later = NOW + timedelta(minutes=4), NOW + timedelta(minutes=5)
    for moment, expected in ((soon, []), (later, [Action.END_PROPOSAL, Action.PROPOSE])):
        rooms = free("worker-2", 1, at=moment), free("worker-3", 8, at=moment)
        made = plan(short(3, at=moment), *rooms, wanted=asking(), there=there, now=moment)
        assert kinds(made) == expected
    assert ended(made).why is ProposalEnd.REPLACED
    assert shown(proposed(made)) == [("worker-2", 1), ("worker-3", 2)]


def test_settled_proposal_stands_where_nothing_else_has_room() -> None:
    later = NOW + timedelta(minutes=5)
    made = plan(short(3, at=later), free("worker-2", at=later), wanted=asking(), there=awaited(first()), now=later)
    assert made.changes == ()
    assert [suppressed.reason for suppressed in made.suppressed] == [Reason.AWAITING_APPROVAL]


def test_settled_proposal_of_more_than_is_missing_is_replaced() -> None:
    later = NOW + timedelta(minutes=5)
    made = plan(short(2, at=later), free("worker-2", 8, at=later), wanted=asking(), there=awaited(first()), now=later)
    assert kinds(made) == [Action.END_PROPOSAL, Action.PROPOSE]
    assert shown(proposed(made)) == [("worker-2", 2)]


def test_approval_without_its_proposal_is_removed() -> None:
    proposal = first()
    there = replace(awaited(proposal, approved=True), proposals={})
    made = plan(short(0), free("worker-2", 8), wanted=asking(), there=there)
    assert kinds(made) == [Action.END_PROPOSAL]
    assert ended(made).why is ProposalEnd.TOO_LATE


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        pytest.param(ApprovalRule(above_gpus=3), False, id="at so many GPUs"),
        pytest.param(ApprovalRule(above_gpus=2), True, id="above so many GPUs"),
        pytest.param(ApprovalRule(above_dollars_per_hour=9), False, id="at so much money"),
        pytest.param(ApprovalRule(above_dollars_per_hour=8.99), True, id="above so much money"),
        pytest.param(ApprovalRule(clusters=(ClusterName("worker-3"),)), False, id="to another cluster"),
        pytest.param(ApprovalRule(clusters=(ClusterName("worker-2"),)), True, id="to that cluster"),
    ],
)
def test_rule_says_what_is_approved(rule: ApprovalRule, *, asked: bool) -> None:
    made = plan(short(3), free("worker-2", 8), wanted=asking(rule))
    assert kinds(made) == ([Action.PROPOSE] if asked else [Action.PLACE])


def test_bound_counts_what_the_workload_has_elsewhere() -> None:
    there = ledger(placement("worker-3", 3))
    made = plan(short(4), free("worker-2", 8), wanted=asking(ApprovalRule(above_gpus=3)), there=there)
    assert shown(proposed(made)) == [("worker-2", 1)]


def test_unknown_price_counts_as_more() -> None:
    wanted = desired(replace(ordering("worker-2"), approval=ApprovalRule(above_dollars_per_hour=1000)))
    assert kinds(plan(short(3), free("worker-2", 8), wanted=wanted)) == [Action.PROPOSE]


def test_two_workloads_are_proposed_in_one_pass() -> None:
    wanted = asking(workloads=(VLLM, OTHER))
    primary = short(3)
    both = replace(primary, workloads=(*primary.workloads, *short(3, workload=OTHER).workloads))
    made = plan(both, free("worker-2", 4), wanted=wanted)
    assert kinds(made) == [Action.PROPOSE, Action.PROPOSE]


def test_burst_that_was_approved_moves_to_no_cluster_by_itself() -> None:
    there = ledger(placement("worker-2", 3))
    draining = asking(policy=ordering("worker-3"))
    made = plan(short(3), free("worker-2", 8), free("worker-3", 8), wanted=draining, there=there)
    assert not any(change.action is Action.MOVE for change in made.changes)


def test_decision_is_the_same_for_the_same_input() -> None:
    seen = inputs(short(3), free("worker-2", 2), free("worker-3", 8), wanted=asking())
    assert decide(seen) == decide(seen)


def test_yes_of_a_person_is_no_placement_by_itself() -> None:
    assert Action.APPROVE not in kinds(plan(short(3), free("worker-2", 8), wanted=asking()))


def test_nothing_is_placed_without_its_yes_however_many_take_each_others_room() -> None:
    """Each proposal leaves its room to the next workload, which has to be approved as well."""
    workloads = tuple(WorkloadId(WorkspaceName("llm"), TemplateName(f"model-{number}")) for number in range(9))
    policies = {
        workload: replace(ordering("worker-2"), approval=ALWAYS, priority=number)
        for number, workload in enumerate(workloads)
    }
    wanted = desired(workloads=workloads, policies=policies, clusters=CLUSTERS)
    primary = short(3, workload=workloads[0])
    all_short = replace(primary, workloads=tuple(short(3, workload=name).workloads[0] for name in workloads))
    there, rounds = ledger(), 0
    while True:
        made = plan(all_short, free("worker-2", 3), wanted=wanted, there=there)
        assert set(kinds(made)) <= {Action.PROPOSE}
        if not made.changes:
            break
        rounds += 1
        new = {change.proposal.workload: change.proposal for change in made.changes if change.action is Action.PROPOSE}
        there = replace(there, proposals={**there.proposals, **new})
    assert set(there.proposals) == set(workloads)
    assert rounds > 1


def test_source_update_that_raises_gpus_above_the_bound_waits_for_an_approval() -> None:
    wanted = asking(ApprovalRule(above_gpus=4), policy=ordering("worker-2"))
    fields = dict.fromkeys((field.name for field in dataclass_fields(MadeFrom)), "")
    before, now = (MadeFrom(**{**fields, "digest": digest}) for digest in ("a", "b"))
    template = replace(wanted.templates[VLLM], made_from=now)
    there = ledger(placement("worker-2", 3, made_from=before))
    made = plan(
        short(3, replica=shape(8)),
        free("worker-2", 8, 8),
        wanted=replace(wanted, templates={VLLM: template}),
        there=there,
    )
    assert made.changes == ()
    assert [suppressed.reason for suppressed in made.suppressed] == [Reason.AWAITING_APPROVAL]


@pytest.mark.parametrize("missing", [0, 2])
def test_stale_signal_throws_no_yes_away(missing: int) -> None:
    seen = inputs(short(missing), free("worker-2", 8), wanted=asking(), there=awaited(first(), approved=True))
    demand = seen.demands[VLLM]
    assert isinstance(demand, Demand)
    stale = demand._replace(stale=("the queue was last read 10m ago",))
    assert decide(replace(seen, demands={VLLM: stale})).changes == ()


@pytest.mark.parametrize("duration", [seconds(90.5), seconds(0.5)])
def test_duration_with_part_seconds_is_placed_as_it_was_shown(duration: timedelta) -> None:
    wanted = asking()
    template = wanted.templates[VLLM]
    template = replace(template, spec=replace(template.spec, burst_duration=duration))
    wanted = replace(wanted, templates={VLLM: template})
    proposal = first(wanted=wanted)
    kept = read_proposal(write_proposal(proposal), proposal_path(VLLM))
    made = plan(short(3), free("worker-2", 8), wanted=wanted, there=awaited(kept, approved=True))
    assert placed(made) == [("worker-2", 3)]


def test_two_subsets_that_were_approved_for_one_cluster_share_its_room() -> None:
    own = term(**{TIER: "own"})
    clusters = (cluster("worker-1", labels={TIER: "home"}), cluster("worker-2", labels={TIER: "own"}))
    subsets = (subset("home", term(**{TIER: "home"}), most=5), subset("a", own, most=2), subset("b", own))
    wanted = fleet(*subsets, pools=True, clusters=clusters, approval=ALWAYS)
    proposal = proposed(plan(short(4), free("worker-2", 8), wanted=wanted))
    assert [(placement.subset, placement.replicas) for placement in proposal.placements] == [("a", 2), ("b", 2)]
    made = plan(short(4), free("worker-2", 3), wanted=wanted, there=awaited(proposal, approved=True))
    assert placed(made) == []


def test_two_subsets_that_were_approved_for_one_cluster_fit_as_they_were_found() -> None:
    any_node, one_node = subset("any", term(tier="rented"), most=1), subset("picky", term(tier="rented", pool="x"))
    wanted = fleet(any_node, one_node, pools=True, approval=ALWAYS)
    rented = pooled("worker-4", x=1, y=1)
    proposal = proposed(plan(short(2), rented, wanted=wanted))
    assert [(placement.subset, placement.replicas) for placement in proposal.placements] == [("any", 1), ("picky", 1)]
    made = plan(short(2), rented, wanted=wanted, there=awaited(proposal, approved=True))
    assert placed(made) == [("worker-4", 1), ("worker-4", 1)]


def test_yes_to_a_burst_that_is_not_renewed_places_none_that_is() -> None:
    proposal = proposed(plan(short(3), free("worker-2", 8), wanted=asking()))
    renewed = replace(ordering("worker-2", "worker-3"), renew=Renewal.WHILE_NEEDED, max_duration=timedelta(days=30))
    made = plan(short(3), free("worker-2", 8), wanted=asking(policy=renewed), there=awaited(proposal, approved=True))
    assert placed(made) == []
    assert "it was shown that it is not renewed" in ended(made).detail


def asking_for_a_gang() -> Desired:
    made = gang_fleet(JOB, reads_replicas=False)
    policies = {workload: replace(policy, approval=ALWAYS) for workload, policy in made.policies.items()}
    return replace(made, policies=policies)


def gang_proposal() -> BurstProposal:
    return proposed(plan(lacks(5, running=0), free("worker-2", *(8,) * 5), wanted=asking_for_a_gang()))


def test_approved_gang_of_which_more_is_missing_is_proposed_again() -> None:
    policy = replace(ordering("worker-2"), approval=ALWAYS)
    room, wanted = free("worker-2", *(8,) * 8), gang_fleet(SET, policy=policy)
    there = awaited(proposed(plan(lacks(4), room, wanted=wanted)), approved=True)
    made = plan(lacks(8), room, wanted=wanted, there=there)
    assert kinds(made) == [Action.END_PROPOSAL, Action.PROPOSE]
    assert shown(proposed(made)) == [("worker-2", 2)]


def test_approved_gang_waits_for_a_cluster_that_is_out_of_sight() -> None:
    there = awaited(gang_proposal(), approved=True)
    made = plan(lacks(5, running=0), free("worker-3", 8), wanted=asking_for_a_gang(), there=there)
    assert made.changes == ()
    assert [suppressed.reason for suppressed in made.suppressed] == [Reason.AWAITING_APPROVAL]


def test_settled_proposal_of_a_gang_without_room_is_replaced_by_what_has_room() -> None:
    later, there = NOW + timedelta(minutes=5), awaited(gang_proposal())
    rooms = free("worker-2", 8, at=later), free("worker-3", *(8,) * 5, at=later)
    made = plan(lacks(5, running=0, at=later), *rooms, wanted=asking_for_a_gang(), there=there, now=later)
    assert kinds(made) == [Action.END_PROPOSAL, Action.PROPOSE]
    assert shown(proposed(made)) == [("worker-3", 1)]


def test_approved_gang_without_room_says_why_of_its_cluster() -> None:
    there = awaited(gang_proposal(), approved=True)
    rooms = free("worker-2", 8), free("worker-3", *(8,) * 5)
    made = plan(lacks(5, running=0), *rooms, wanted=asking_for_a_gang(), there=there)
    assert kinds(made) == [Action.END_PROPOSAL, Action.PROPOSE]
    assert ended(made).detail.startswith("worker-2: ")


def test_rebalance_begins_nothing_where_an_approval_is_needed() -> None:
    balanced = replace(ordering("worker-2", "worker-3"), distribution=Distribution(strategy=StrategyName.BALANCED))
    wanted = asking(ApprovalRule(clusters=frozenset({ClusterName("worker-3")})), policy=balanced)
    there = ledger(placement("worker-2", 4))
    made = rebalance(
        inputs(short(4), free("worker-2", 8), free("worker-3", 8), wanted=wanted, there=there), VLLM, by="Ada"
    )
    assert not [change for change in made.changes if change.action is Action.PLACE]
