"""What the product was found to do wrong, each as the shortest story that shows it.

A story returns whether the product does right in it. `test_known_faults` expects those to fail that are not mended yet.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.model.action import Action
from reconciler.model.ids import TemplateName
from reconciler.model.kubernetes.workload_spread import Bound, Subset
from reconciler.model.policy import (
    Availability,
    BurstPolicy,
    Distribution,
    MoveBudget,
    Renewal,
    StrategyName,
)
from tests.builders.cluster_shares import spread_over
from tests.builders.input_entries import changed, entries
from tests.builders.inputs import VLLM, ordering, seconds
from tests.oracle.chains import EVICTING, TOLERATES, spread, term
from tests.oracle.invariants import held, is_departure
from tests.oracle.world import SITES, Pass, Site, Step, Unit, Work, World, lone, play

A, B, C, _ = SITES
IN_ORDER = ordering(A, B, C)
MINUTE = timedelta(minutes=1)


def site(name: str, *nodes: int, **fields: object) -> Site:
    return Site(name=name, nodes=nodes or (8, 8), **fields)


def lacks(missing: int, after: timedelta = MINUTE, **fields: object) -> Step:
    return Step(after=after, missing={0: missing}, **fields)


def where(made: Pass) -> dict[str, int]:
    """Return the replicas on each cluster after a pass."""
    return dict(held(made.after, VLLM))


# What runs once


def _begins_once(unit: Unit) -> bool:
    (made,) = play(lone(unit, IN_ORDER, site(A), site(B), site(C)), lacks(6))
    return len(made.after.placements) == 1


def run_with_fixed_number_begins_once() -> bool:
    """A run whose template has a fixed number of replicas has one copy, however many replicas are missing."""
    return _begins_once(Unit.RUN_COPY)


def _begins_again(unit: Unit) -> bool:
    world = lone(unit, IN_ORDER, site(A), site(B), site(C))
    _, *later = play(world, lacks(2), Step(after=MINUTE), Step(after=10 * MINUTE), Step(after=MINUTE))
    return any(change.action is Action.PLACE for made in later for change in made.plan.changes)


def job_is_not_begun_again() -> bool:
    """A run of several replicas that has had nodes is not begun again since its time is over."""
    return not _begins_again(Unit.WHOLE)


def training_job_is_not_begun_again() -> bool:
    """A training job that has had nodes is not begun again since its time is over."""
    return not _begins_again(Unit.RUN_GANG)


def copy_of_run_is_not_begun_again() -> bool:
    """A run with a fixed number of replicas that has had nodes is not begun again since its time is over."""
    return not _begins_again(Unit.RUN_COPY)


# What may not be there


def _leaves(policy: BurstPolicy, step: Step, unit: Unit = Unit.REPLICA, **fields: object) -> bool:
    """Return whether what stands on the first cluster leaves it after a change of files."""
    world = lone(unit, policy, site(A, **fields), site(B), site(C))
    first, *_, last = play(world, lacks(2), Step(after=MINUTE), step)
    assert A in where(first), "the story begins on the first cluster"
    return A not in where(last)


def new_required_label_is_followed() -> bool:
    """A burst leaves a cluster without a label that its policy starts to require."""
    return _leaves(IN_ORDER, Step(after=MINUTE, policies={0: {"require_labels": {"region": "us"}}}))


def changed_cluster_label_is_followed() -> bool:
    """A burst leaves a cluster that loses a label which its policy requires."""
    policy = replace(IN_ORDER, require_labels={"region": "eu"})
    return _leaves(policy, Step(after=MINUTE, sites={A: {"region": "us"}}))


def evicting_taint_is_followed() -> bool:
    """A burst leaves a cluster that gets a NoExecute taint which it does not tolerate."""
    return _leaves(IN_ORDER, Step(after=MINUTE, sites={A: {"taints": (EVICTING,)}}))


def lost_toleration_is_followed() -> bool:
    """A burst leaves a cluster with a NoExecute taint when its policy does not tolerate it any more."""
    policy = replace(IN_ORDER, tolerations=TOLERATES)
    return _leaves(policy, Step(after=MINUTE, policies={0: {"tolerations": ()}}), taints=(EVICTING,))


def lost_spread_label_is_followed() -> bool:
    """A burst leaves a cluster that loses the label over which its policy spreads."""
    policy = replace(IN_ORDER, distribution=Distribution(spread_constraints=spread_over("region", max_groups=3)))
    return _leaves(policy, Step(after=MINUTE, sites={A: {"region": ""}}))


def lost_subset_term_is_followed() -> bool:
    """Replicas of a subset leave a cluster that its required term does not select any more."""
    subsets = Subset(name="eu", required=term("eu")), Subset(name="us", required=term("us"))
    policy = replace(IN_ORDER, candidates=(), spread=spread("vllm", *subsets))
    return _leaves(policy, Step(after=MINUTE, sites={A: {"region": "us"}}), Unit.SUBSET)


def forbidden_burst_is_not_renewed() -> bool:
    """A burst is not renewed on a cluster without a label that its policy starts to require."""
    policy = replace(IN_ORDER, renew=Renewal.WHILE_NEEDED)
    world = lone(Unit.REPLICA, policy, site(A), site(B), site(C))
    change = Step(after=MINUTE, policies={0: {"require_labels": {"region": "us"}}})
    *_, last = play(world, lacks(2), change, Step(after=7 * MINUTE))
    return not any(made.action is Action.EXTEND and made.after.cluster == A for made in last.plan.changes)


# What a policy guarantees


def _spread(**fields: object) -> BurstPolicy:
    return replace(IN_ORDER, distribution=Distribution(**fields))


def _leaves_draining(policy: BurstPolicy, missing: int, *sites: Site) -> tuple[dict[str, int], dict[str, int]]:
    """Return the replicas on each cluster before and after the last of them that has some drains."""
    world = lone(Unit.REPLICA, policy, *sites)
    before, _ = play(world, lacks(missing), Step(after=MINUTE))
    last = max(where(before))
    (after,) = play(world, Step(after=MINUTE, sites={last: {"availability": Availability.DRAINING}}))
    return where(before), where(after)


def two_groups_outlive_a_drain() -> bool:
    """Replicas that leave a draining cluster go to another group where the policy wants two."""
    sites = site(A), site(B, region="us"), site(C, region="us")
    policy = _spread(spread_constraints=spread_over("region", min_groups=2))
    _, after = _leaves_draining(policy, 4, *sites)
    return len({one.region for one in sites if one.name in after}) == 2


def two_clusters_outlive_a_drain() -> bool:
    """Replicas that leave a draining cluster go to another cluster where the policy wants two."""
    _, after = _leaves_draining(_spread(min_clusters=2), 4, site(A), site(B), site(C))
    return len(after) == 2


def two_groups_outlive_a_loss() -> bool:
    """Replicas that leave a lost cluster go to another group where the policy wants two."""
    sites = site(A), site(B, region="us"), site(C, region="ap")
    world = lone(Unit.REPLICA, _spread(spread_constraints=spread_over("region", min_groups=2)), *sites)
    gone = Step(after=MINUTE, sites={B: {"seen": False}})
    *_, last = play(world, lacks(4), Step(after=MINUTE), gone, Step(after=6 * MINUTE))
    return len(where(last)) == 2


def shares_outlive_a_drain() -> bool:
    """Replicas that leave a draining cluster are divided over the others by the strategy of the policy."""
    _, after = _leaves_draining(_spread(strategy=StrategyName.WEIGHTED), 9, site(A), site(B), site(C))
    return sorted(after.values()) == [4, 5]


def maximum_in_percent_follows_a_drain() -> bool:
    """A maximum in percent is of the replicas that are left when a drain reverts some, in the same pass."""
    half = Bound(number=50, percent=True)
    subsets = Subset(name="eu", required=term("eu"), most=half), Subset(name="us", required=term("us"))
    policy = replace(IN_ORDER, candidates=(), spread=spread("vllm", *subsets))
    world = lone(Unit.SUBSET, policy, site(A), site(B, region="us"))
    draining = Step(after=MINUTE, sites={B: {"availability": Availability.DRAINING}}, missing={0: 8})
    *_, made = play(world, lacks(9), Step(after=MINUTE), draining)
    return decide(replace(made.inputs, ledger=made.after)).changes == ()


def adaptive_spread_keeps_to_the_budget_of_moves() -> bool:
    """An Adaptive WorkloadSpread moves no replicas where moves.maxPerHour is 0."""
    subsets = Subset(name="eu", required=term("eu")), Subset(name="us", required=term("us"))
    adaptive = spread("vllm", *subsets, reschedule=timedelta(seconds=30))
    policy = replace(IN_ORDER, candidates=(), spread=adaptive, moves=MoveBudget(most_per_hour=0))
    world = lone(Unit.SUBSET, policy, site(A), site(B, region="us"))
    full = Step(after=seconds(10), sites={A: {"nodes": ()}})
    passes = play(world, lacks(2), Step(after=MINUTE), full, Step(after=MINUTE), Step(after=MINUTE))
    return not any(is_departure(change) for made in passes for change in made.plan.changes)


# What is given back


def what_has_no_node_is_given_back_first() -> bool:
    """Of a surplus those replicas go first that have no node, and those that run stay."""
    world = lone(Unit.REPLICA, ordering((A, 2), (B, 2)), site(A), site(B))
    _, before = play(world, lacks(4), Step(after=MINUTE))
    full = Step(after=MINUTE, sites={A: {"nodes": ()}}, missing={0: 2})
    *_, after = play(world, full, Step(after=6 * MINUTE))
    runs, stays = before.after.placements, after.after.placements
    return [placement.path for placement in runs.on(B).placements] == list(stays)


# What a decision leaves behind


def decision_writes_nothing_into_its_input() -> bool:
    """Deciding writes nothing into what it is given."""
    world = lone(Unit.REPLICA, IN_ORDER, site(A, 1), site(B, 1))
    world.change(lacks(6))
    inputs = world.inputs()
    before = entries(inputs)
    decide(inputs)
    return not changed(before, entries(inputs))


def unseen_cluster_counts_for_a_maximum() -> bool:
    """Replicas without a node do not go to a third cluster of two, though one of these has just become unseen."""
    bounded = replace(IN_ORDER, distribution=Distribution(max_clusters=2))
    fleet = lone(Unit.REPLICA, bounded, site(A, 4), site(B, 4), site(C, 8))
    filled, waits = lacks(5), lacks(5, seconds(31), sites={A: {"nodes": (1,)}})
    *_, last = play(fleet, filled, lacks(5), waits, lacks(5, sites={B: {"seen": False}}))
    return len(where(last)) == 2


# What `explain` says of a pass


def _takes_what_it_is_said_to(policy: BurstPolicy, missing: int) -> bool:
    (made,) = play(lone(Unit.SET, policy, site(A), site(B)), lacks(missing))
    (placement,) = made.after.placements.values()
    told = {one.cluster: one.refusal for one in explain(VLLM, made.inputs, made.plan).assessments}
    return told[placement.cluster] is None


def set_within_the_limit_of_a_cluster_is_explained() -> bool:
    """A cluster takes as many groups of a set as it may have, and `explain` refuses it for those that it may not."""
    return _takes_what_it_is_said_to(ordering((A, 2), (B, 1)), 5)


def set_within_the_limit_of_its_policy_is_explained() -> bool:
    """A cluster takes all groups that the policy allows, and `explain` refuses it for those that are missing beyond."""
    return _takes_what_it_is_said_to(ordering((A, 3), max_replicas=3), 5)


def cluster_that_takes_a_part_is_explained() -> bool:
    """A cluster whose room two workloads share is not refused for want of room, though both want more of it."""
    first = Work(id=VLLM, unit=Unit.REPLICA, policy=ordering(A))
    second = replace(first, id=VLLM._replace(name=TemplateName("zephyr")))
    (made,) = play(World((site(A, 4),), (first, second)), Step(after=MINUTE, missing={0: 4, 1: 4}))
    assert len(made.after.placements) == 2
    told = (explain(work.id, made.inputs, made.plan) for work in (first, second))
    return all(one.refusal is None for each in told for one in each.assessments)


def bounded_division_beside_others_is_explained() -> bool:
    """A cluster that a bounded division takes, since a more urgent workload has filled another one, is not refused."""
    urgent = Work(id=VLLM, unit=Unit.REPLICA, policy=ordering(A, priority=1))
    bounded = replace(IN_ORDER, name="bounded", distribution=Distribution(max_clusters=1))
    other = Work(id=VLLM._replace(name=TemplateName("zephyr")), unit=Unit.REPLICA, policy=bounded)
    sites = site(A, 4), site(B, 3), site(C, 1)
    (made,) = play(World(sites, (urgent, other)), Step(after=MINUTE, missing={0: 3, 1: 3}))
    assert {each.cluster for each in made.after.placements.values() if each.workload == other.id} == {B}
    told = {one.cluster: one.refusal for one in explain(other.id, made.inputs, made.plan).assessments}
    return told[B] is None
