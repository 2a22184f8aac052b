"""A subset of a StatefulSet is a range of ordinals: two clusters of one would make pods of the same names."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.decide.decide import decide
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_spread import Bound
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason, Refusal
from reconciler.model.policy import Availability, ClusterPreference
from tests.builders.inputs import VLLM, free, inputs, ledger, plan, short
from tests.builders.plans import begun
from tests.builders.subsets import (
    CLUSTERS,
    OWN,
    RENTED,
    fleet,
    kept,
    named,
    numbered,
    out,
    stands,
    subset,
    term,
    wanted_before,
)


def runs(placement: Placement, room: int) -> ClusterObservation:
    """Observe a cluster where all of a placement runs, with room for so many more."""
    return replace(free(placement.cluster, room), bound={placement.name: placement.replicas})


def refusals(made: Plan) -> list[Refusal]:
    """List all refusals of a plan."""
    return [
        *(refusal for one in made.suppressed for refusal in one.refusals),
        *(refusal for one in made.changes if one.action is Action.PLACE for refusal in one.refused),
    ]


def test_a_subset_of_a_stateful_set_begins_on_one_cluster_and_the_others_are_refused() -> None:
    seen = [free("worker-2", 2), free("worker-3", 3), free("worker-4", 9)]
    made = plan(short(9), *seen, wanted=numbered(replace(OWN, most=Bound(number=8)), RENTED))
    assert out(made) == {"worker-3/own": 3, "worker-4/rented": 6}
    (told,) = {one for one in refusals(made) if one.reason is Reason.TAKEN}
    assert (told.cluster, told.subset) == ("worker-2", "own")
    assert told.message == (
        "StatefulSet vllm has the ordinals of subset own on worker-3, and two clusters would have the same"
    )
    assert told.remedy == (
        "give it a subset of its own in WorkloadSpread demo/pools, with a maxReplicas in each before it"
    )
    assert out(plan(short(5), *seen[:2], wanted=fleet(replace(OWN, most=None)))) == {
        "worker-3/own": 3,
        "worker-2/own": 2,
    }


def test_a_subset_of_a_stateful_set_of_openkruise_has_one_cluster_too() -> None:
    wanted = numbered(replace(OWN, most=Bound(number=8)), RENTED)
    policy = wanted.policies[VLLM]
    assert policy.spread is not None
    kruise = replace(policy, spread=replace(policy.spread, group="apps.kruise.io"))
    made = plan(short(9), free("worker-2", 2), free("worker-3", 3), wanted=replace(wanted, policies={VLLM: kruise}))
    assert out(made) == {"worker-3/own": 3}
    assert Reason.TAKEN in {one.reason for one in refusals(made)}


def test_a_subset_of_a_stateful_set_grows_where_it_is_and_nowhere_else() -> None:
    there = stands("worker-2", 1, "own")
    for room, has in ((1, [("worker-2/own", 2)]), (0, [])):
        seen = short(5), runs(there, room), free("worker-3", 9)
        made = decide(inputs(*seen, wanted=numbered(OWN), there=ledger(there)))
        assert (out(made), kept(made)) == ({}, has)


def test_the_ordinals_of_a_subset_that_the_primary_is_in_are_on_the_primary() -> None:
    wanted = numbered(subset("all", most=6), subset("rented", term(tier="rented")))
    made = plan(short(3), free("worker-3", 9), free("worker-4", 9), wanted=wanted)
    assert out(made) == {"worker-4/rented": 3}
    assert {one.message for one in refusals(made) if one.subset == "all"} >= {
        "StatefulSet vllm has the ordinals of subset all on worker-1, and two clusters would have the same"
    }


def test_what_no_subset_takes_of_a_stateful_set_waits() -> None:
    wanted = numbered(OWN, candidates=(ClusterPreference(name=ClusterName("worker-4")),))
    made = plan(short(5), free("worker-2", 1), free("worker-4", 9), wanted=wanted)
    assert out(made) == {"worker-2/own": 1}
    assert "StatefulSet vllm has no ordinals for what is in no subset" in [one.message for one in refusals(made)]


def test_a_stateful_set_leaves_a_cluster_that_is_emptied_for_another_of_its_subset_as_a_whole() -> None:
    clusters = tuple(
        replace(one, availability=Availability.DRAINING) if one.name == "worker-2" else one for one in CLUSTERS
    )
    there = stands("worker-2", 2, "own")
    seen = short(3), runs(there, 0), free("worker-3", 9), free("worker-4", 0)
    past = wanted_before(3)
    made = decide(inputs(*seen, wanted=numbered(OWN, clusters=clusters), there=ledger(there), history=past))
    (move,) = [one for one in made.changes if one.action is Action.MOVE]
    assert (move.before.where, move.after.where) == ("worker-2/own", "worker-3/own")


HOME, AWAY = subset("home", term(tier="home"), most=2), subset("away", named("worker-3"), most=3)
FOUR = subset("own", named("worker-2"), most=4)


def spread_before() -> list[Placement]:
    """Return what eight replicas come to where `home` has two ordinals, `own` four and `away` the next three."""
    made = plan(
        short(6, running=2), free("worker-2", 9), free("worker-3", 9), wanted=numbered(HOME, FOUR, AWAY, RENTED)
    )
    placed = begun(made)
    assert [(one.where, one.first_ordinal, one.replicas) for one in placed] == [
        ("worker-2/own", 2, 4),
        ("worker-3/away", 6, 2),
    ]
    return placed


def test_what_runs_keeps_its_ordinals_when_the_subsets_before_it_change() -> None:
    there = spread_before()
    seen = [short(7, running=2), *(runs(one, 9) for one in there)]
    for subsets in ((HOME, replace(FOUR, most=Bound(number=1)), AWAY), (HOME, AWAY), (HOME, AWAY, FOUR)):
        wanted = numbered(*subsets, RENTED)
        resized = [
            one.after for one in plan(*seen, wanted=wanted, there=ledger(*there)).changes if one.action is Action.RESIZE
        ]
        assert {(one.where, one.first_ordinal) for one in resized} <= {("worker-2/own", 2), ("worker-3/away", 6)}
        assert ("worker-3/away", 3) in [(one.where, one.replicas) for one in resized]


def test_a_subset_takes_no_ordinal_that_another_was_given_before_the_spread_changed() -> None:
    there = spread_before()
    seen = short(9, running=2), *(runs(one, 9) for one in there), free("worker-4", 9)
    more = numbered(HOME, replace(FOUR, most=Bound(number=6)), replace(AWAY, most=Bound(number=2)), RENTED)
    made = plan(*seen, wanted=more, there=ledger(*there))
    assert kept(made) == []
    assert out(made) == {"worker-4/rented": 3}
    told = "StatefulSet vllm has ordinal 6 on worker-3/away since before WorkloadSpread demo/pools changed"
    assert told in [one.message for one in refusals(made)]
    fewer = numbered(HOME, replace(FOUR, most=Bound(number=2)), replace(AWAY, most=Bound(number=2)), RENTED)
    again = plan(*seen, wanted=fewer, there=ledger(*there))
    assert kept(again) == [("worker-2/own", 2)]
    told = "StatefulSet vllm has ordinal 6 on worker-3/away since before WorkloadSpread demo/pools changed"
    assert out(again) == {}
    assert told in [one.message for one in refusals(again)]


def test_a_subset_grows_up_to_the_ordinals_that_another_has() -> None:
    own, away = spread_before()
    there = ledger(replace(own, replicas=2), away)
    seen = short(7, running=2), runs(replace(own, replicas=2), 9), runs(away, 9)
    made = plan(*seen, wanted=numbered(HOME, replace(FOUR, most=Bound(number=6)), RENTED), there=there)
    assert kept(made) == [("worker-2/own", 4)]
