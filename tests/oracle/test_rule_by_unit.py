"""Each rule by each kind of unit: what stands where after it, and the reason that is told of what waits or stays.

A story plays the same for each unit, from two missing replicas, or one training job, and two clusters with room for
all. A cell has the replicas on both clusters in the end, and the first reason that is told. It is empty where a rule is
not for a unit: labels, limits of policies, approvals and restraints are of bursts, and what is never moved without a
person has no budget of moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.decide.decide import decide
from reconciler.model.approval import ApprovalRule
from reconciler.model.budget import BudgetKind, BudgetOwner, Budgets, BudgetState
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.policy import (
    Availability,
    BurstPolicy,
    ClusterPreference,
    Distribution,
    MoveBudget,
    Renewal,
    SpreadConstraint,
    StrategyName,
)
from reconciler.model.score import ScorerName, ScorerWeight
from tests.builders.gprs import binding, gpr_template, record, request
from tests.builders.inputs import NOW, ordering, seconds
from tests.oracle.chains import EVICTING, spread, term
from tests.oracle.world import SITES, Pass, Site, Step, Unit, World, lone, play

A, B = SITES[:2]
MINUTE = timedelta(minutes=1)


def policy(unit: Unit, **fields: object) -> BurstPolicy:
    """Make a policy of both clusters in order; subsets are a cluster each, and Adaptive.

    Subsets only bound the clusters of a distribution that is more than a strategy, as `fleet.spread.files` reads them.
    """
    made = replace(ordering(A, B), **fields)
    if unit is not Unit.SUBSET:
        return made
    subsets = Subset(name="eu", required=term("eu")), Subset(name="us", required=term("us"))
    divides = spread("vllm", *subsets, reschedule=seconds(30))
    if not made.distribution.is_strategy_alone:
        return replace(made, bounds=divides)
    return replace(made, candidates=(), spread=divides)


def world(unit: Unit, *, room: int = 8, fleet: Mapping[str, object] | None = None, **fields: object) -> World:
    """Make a world of two clusters, the first of which has so many GPUs on each node."""
    sites = Site(name=A, nodes=(room,)), Site(name=B, nodes=(8,), region="us")
    return lone(unit, policy(unit, **fields), *sites, **(fleet or {}))


def lacks(replicas: int = 2) -> Step:
    return Step(after=MINUTE, missing={0: replicas})


def begin(made: World) -> None:
    """Let all of it begin on the first cluster, and have its nodes."""
    first, _ = play(made, lacks(), Step(after=MINUTE))
    assert {placement.cluster for placement in first.after.placements.values()} == {A}


def end(made: Pass) -> str:
    """Say what is where after a pass, and the first reason that it tells."""
    on = [sum(each.replicas for each in made.after.placements.on(name).placements) for name in (A, B)]
    reasons = [str(held.reason) for held in made.plan.suppressed]
    return " ".join([str(on[0]), str(on[1]), *reasons[:1]])


def fits(unit: Unit) -> str:
    """The first cluster has room for one pod."""
    return end(play(world(unit, room=1), lacks())[-1])


def limit(unit: Unit) -> str:
    """Each cluster may have one replica."""
    candidates = tuple(ClusterPreference(name=name, max_replicas=1) for name in (A, B))
    return end(play(world(unit, candidates=candidates), lacks())[-1])


def limit_of_policy(unit: Unit) -> str:
    """The policy allows one replica."""
    return end(play(world(unit, max_replicas=1), lacks())[-1])


def tiers(unit: Unit) -> str:
    """The second cluster has more room, and the first is the first tier."""
    distribution = Distribution(strategy=StrategyName.BALANCED, tiers=True)
    return end(play(world(unit, room=4, distribution=distribution), lacks())[-1])


def constraints(unit: Unit) -> str:
    """Both regions have to have some, and one zone may; what is one unit is not divided for that."""
    regions = SpreadConstraint(label="region", min_groups=2)
    zones = SpreadConstraint(label="zone", max_groups=1)
    return end(play(world(unit, distribution=Distribution(spread_constraints=(regions, zones))), lacks())[-1])


def wait_time(unit: Unit) -> str:
    """The first cluster has room for one pod, and the policy weighs how long all of them wait."""
    scoring = (ScorerWeight(name=ScorerName.WAIT_TIME),)
    return end(play(world(unit, room=1, scoring=scoring), lacks())[-1])


def budget(unit: Unit) -> str:
    """The budget of its workspace is used up."""
    made = world(unit)
    made.change(lacks())
    inputs = made.inputs()
    spent = BudgetState(
        owner=BudgetOwner(BudgetKind.WORKSPACE, "llm"),
        field="budget.perDay",
        unit="day",
        period="2026-11-20",
        ends_at=NOW + timedelta(hours=1),
        limit=1.0,
        spent=1.0,
        unpriced_gpu_hours=0.0,
    )
    inputs = replace(
        inputs,
        budgets=Budgets(
            by_owner={BudgetOwner(BudgetKind.WORKSPACE, work.id.workspace): (spent,) for work in made.works}
        ),
    )
    return end(made.apply(inputs, decide(inputs)))


def expiry(unit: Unit) -> str:
    """The longest time that it may have is over, and it is still missing; what is told is told in any words."""
    made = world(unit, max_duration=10 * MINUTE)
    begin(made)
    a, b, *told = end(play(made, Step(after=10 * MINUTE), Step(after=seconds(1)))[-1]).split()
    return f"{a} {b}{' told' if told else ''}"


def drain(unit: Unit) -> str:
    """The first cluster drains."""
    return _after(unit, Step(after=MINUTE, sites={A: {"availability": Availability.DRAINING}}))


def label(unit: Unit) -> str:
    """The policy starts to require a label that only the second cluster has."""
    return _after(unit, Step(after=MINUTE, policies={0: {"require_labels": {"region": "us"}}}))


def taint(unit: Unit) -> str:
    """The first cluster gets a NoExecute taint."""
    return _after(unit, Step(after=MINUTE, sites={A: {"taints": (EVICTING,)}}))


def cordon(unit: Unit) -> str:
    """The first cluster takes nothing new."""
    return _after(unit, Step(after=MINUTE, sites={A: {"availability": Availability.CORDONED}}))


def loss(unit: Unit) -> str:
    """The first cluster is out of sight for longer than the workerLostTimeout of the policy."""
    return _lost(unit)


def short_loss(unit: Unit) -> str:
    """The first cluster is out of sight for long enough for replicas, and not for what goes whole."""
    return _lost(unit, worker_lost_timeout=None)


def _lost(unit: Unit, **fields: object) -> str:
    made = world(unit, **{"worker_lost_timeout": 5 * MINUTE, **fields})
    play(made, lacks(), Step(after=seconds(1)))
    gone = Step(after=seconds(1), sites={A: {"seen": False}})
    return end(play(made, gone, Step(after=6 * MINUTE))[-1])


def unschedulable(unit: Unit, **fields: object) -> str:
    """Its pods have lost their nodes."""
    made = world(unit, **fields)
    begin(made)
    return end(play(made, Step(after=seconds(1), sites={A: {"nodes": ()}}), Step(after=MINUTE))[-1])


def moves_budget(unit: Unit) -> str:
    """Its pods have lost their nodes, or its cluster if it is a gang, and the policy allows no move."""
    none = MoveBudget(most_per_hour=0)
    return _lost(unit, moves=none) if unit.is_gang else unschedulable(unit, moves=none)


def renewal_when_lost(unit: Unit) -> str:
    """Its time is over on a cluster that has been lost for too long, and no other has room."""
    return _renewed(unit, {A: {"seen": False}, B: {"used": (8,)}})


def renewal_without_nodes(unit: Unit) -> str:
    """Its time is over on a cluster where its pods have lost their nodes, and no other has room."""
    return _renewed(unit, {A: {"nodes": ()}, B: {"used": (8,)}})


def renewal_where_forbidden(unit: Unit) -> str:
    """Its time is over on a cluster that drains, and no other has room."""
    return _renewed(unit, {A: {"availability": Availability.DRAINING}, B: {"used": (8,)}})


def _renewed(unit: Unit, sites: Mapping[ClusterName, Mapping[str, object]]) -> str:
    made = world(unit, renew=Renewal.WHILE_NEEDED, worker_lost_timeout=5 * MINUTE)
    begin(made)
    return end(play(made, Step(after=seconds(1), sites=sites), Step(after=8 * MINUTE), Step(after=3 * MINUTE))[-1])


def surplus(unit: Unit) -> str:
    """One replica less is missing for longer than the scale-down window."""
    return _fewer(unit, 1)


def demand_gone(unit: Unit) -> str:
    """Nothing is missing for longer than the scale-down window; a run that is still held at home goes on."""
    return _fewer(unit, 0)


def hold(unit: Unit) -> str:
    """A person has ended it on the first cluster."""
    return _restrained(unit, RestraintKind.HOLD)


def cool_down(unit: Unit) -> str:
    """It has failed on the first cluster."""
    return _restrained(unit, RestraintKind.COOL_DOWN)


def approval(unit: Unit) -> str:
    """Somebody has to approve it."""
    return end(play(world(unit, approval=ApprovalRule()), lacks())[-1])


def preemption(unit: Unit) -> str:
    """A more urgent request takes the room of what may be evicted: our replicas, and its placements."""
    templates = {"evictable": gpr_template("evictable", A, priority=50, evictable=True)}
    fleet = {"gpr_templates": templates, "bindings": binding({A: "evictable"})}
    made = lone(unit, replace(policy(unit), cool_down=MINUTE), Site(name=A, nodes=(4,)), **fleet)
    first, _ = play(made, lacks(), Step(after=MINUTE))
    assert first.after.placements
    urgent = record(request("urgent", clusters=(A,), ask=GpuAsk(gpus=4), terms=GprTerms(priority=250)), received=NOW)
    made.ledger = replace(made.ledger, requests={**made.ledger.requests, urgent.workload: urgent})
    (last,) = play(made, Step(after=seconds(1)))
    ours = [each for each in last.after.placements.values() if each.workload != urgent.workload]
    theirs = len(last.after.placements) - len(ours)
    return f"{sum(each.replicas for each in ours)} {theirs}"


def _after(unit: Unit, step: Step) -> str:
    made = world(unit)
    begin(made)
    return end(play(made, step)[-1])


def _fewer(unit: Unit, missing: int) -> str:
    made = world(unit)
    begin(made)
    fewer = Step(after=seconds(1), missing={0: missing})
    return end(play(made, fewer, Step(after=6 * MINUTE), Step(after=seconds(1)))[-1])


def _restrained(unit: Unit, kind: RestraintKind) -> str:
    made = world(unit)
    restraint = Restraint(
        kind=kind,
        cluster=A,
        since=NOW,
        until=NOW + timedelta(hours=1),
        reason="as told",
        placement=PlacementName("earlier"),
    )
    made.hold_back(made.works[0].id, restraint)
    return end(play(made, lacks())[-1])


Story = Callable[[Unit], str]
UNITS = (Unit.REPLICA, Unit.COPY, Unit.WHOLE, Unit.RUN_COPY, Unit.SET, Unit.RUN_GANG, Unit.SUBSET, Unit.REQUEST)
TOO_FEW, SPENT, ASKS, STAYS = "0 0 PolicyLimit", "0 0 OverBudget", "0 0 AwaitingApproval", "2 0 ClusterLost"
FULL, UNFIT, NO_MOVE = "0 0 NothingFits", "2 0 NoCapacity", "2 0 MoveBudget"
TABLE: Mapping[Story, tuple[str, ...]] = {
    # each replica, copies, a run, a run of fixed size, groups, a training job, subsets, a request
    fits: ("1 1", "0 2", "0 2", "0 2", "0 2", "0 1", "1 1", "0 2"),
    limit: ("1 1", FULL, FULL, FULL, "1 0 ClusterLimit", "1 0", "", ""),
    limit_of_policy: ("1 0 PolicyLimit", TOO_FEW, TOO_FEW, TOO_FEW, "1 0 PolicyLimit", "1 0", "1 0 PolicyLimit", ""),
    tiers: ("2 0", "2 0", "2 0", "2 0", "2 0", "1 0", "2 0", ""),
    constraints: ("1 1", "2 0", "2 0", "2 0", "2 0", "1 0", "1 1", ""),
    wait_time: ("0 2", "0 2", "0 2", "0 2", "0 2", "0 1", "1 1", ""),
    budget: (SPENT,) * 8,
    expiry: ("2 0", "2 0", "0 0 told", "0 0 told", "2 0", "0 0 told", "2 0", "0 0"),
    drain: ("0 2", "0 2", "0 2", "0 2", "0 2", "0 1", "0 2", "0 2"),
    label: ("0 2", "0 2", "0 2", "0 2", "0 2", "0 1", "0 2", ""),
    taint: ("0 2", "0 2", "0 2", "0 2", "0 2", "0 1", "0 2", "0 2"),
    cordon: ("2 0", "2 0", "2 0", "2 0", "2 0", "1 0", "2 0", "2 0"),
    loss: ("0 2", "0 2", STAYS, STAYS, "0 2", "0 1", "0 2", "2 0"),
    short_loss: ("0 2", "0 2", STAYS, STAYS, "2 0", "1 0", "0 2", "2 0"),
    unschedulable: ("0 2", "0 2", "2 0", "2 0", "0 2", "1 0", "0 2", "2 0"),
    moves_budget: (NO_MOVE, NO_MOVE, "", "", NO_MOVE, "1 0 MoveBudget", NO_MOVE, ""),
    renewal_when_lost: (STAYS, STAYS, STAYS, STAYS, STAYS, "1 0 ClusterLost", STAYS, "0 0"),
    renewal_without_nodes: (UNFIT, UNFIT, "2 0", "2 0", UNFIT, "1 0", UNFIT, "0 0"),
    renewal_where_forbidden: (*(FULL,) * 7, "0 0"),
    surplus: ("1 0", "2 0", "2 0", "2 0", "1 0", "1 0", "1 0", ""),
    demand_gone: ("0 0", "0 0", "2 0", "2 0", "0 0", "1 0", "0 0", "2 0"),
    hold: ("0 2", "0 2", "0 2", "0 2", "0 2", "0 1", "0 2", ""),
    cool_down: ("0 2", "0 2", "0 2", "0 2", "0 2", "0 1", "0 2", ""),
    approval: (ASKS, ASKS, ASKS, ASKS, ASKS, ASKS, ASKS, "2 0"),
    preemption: ("0 1",) * 8,
}  # fmt: skip # a table, a row a line
"""What each rule makes of each unit, in the order of `UNITS`."""


def cells() -> Iterator[Any]:
    for story, row in TABLE.items():
        for unit, expected in zip(UNITS, row, strict=True):
            if expected:
                yield pytest.param(story, unit, expected, id=f"{story.__name__}-{unit.name}")


@pytest.mark.parametrize(("story", "unit", "expected"), [*cells()])
def test_rule_is_held_for_the_unit(story: Story, unit: Unit, expected: str) -> None:
    assert story(unit) == expected
