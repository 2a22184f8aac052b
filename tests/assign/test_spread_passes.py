"""Whole passes over random spreads: what holds whatever the subsets, the pools and what stands are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.spread.placement_subset import replicas_by_subset
from reconciler.model.action import Action
from reconciler.model.ids import PlacementName
from reconciler.model.kubernetes.workload_spread import Bound, Subset
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired
from tests.builders.examples import examples
from tests.builders.inputs import VLLM, inputs, ledger, short
from tests.builders.subsets import fleet, named, numbered, pooled, stands, term, wanted_before

NAMES = ("a", "b", "c")
NUMBERS = st.builds(Bound, number=st.integers(0, 6))
PERCENTAGES = st.builds(Bound, number=st.sampled_from([10, 20, 33, 50, 100]), percent=st.just(True))
TERMS = (None, term(pool="x"), term(pool="y"), term(tier="own"), named("worker-2"), named("worker-4"))


@dataclass(frozen=True, kw_only=True)
class Case:
    wanted: Desired
    rooms: dict[str, dict[str, int]]
    there: tuple[Placement, ...]
    missing: int

    def seen(self, there: tuple[Placement, ...] | None = None) -> PassInput:
        """Observe what is free, with all that stood at first on nodes of its own."""
        now = self.there if there is None else there
        bound = {one.name: one.replicas for one in self.there}
        clusters = [replace(pooled(name, **rooms), bound=bound) for name, rooms in self.rooms.items()]
        return inputs(
            short(self.missing),
            *clusters,
            wanted=self.wanted,
            there=ledger(*now),
            history=wanted_before(self.missing),
        )


@st.composite
def cases(
    draw: st.DrawFn,
    make: Callable[..., Desired] = partial(fleet, pools=True),
    bounds: st.SearchStrategy[Bound | None] = st.none() | NUMBERS | PERCENTAGES,
) -> Case:
    subsets = []
    for name in draw(st.permutations(NAMES))[: draw(st.integers(1, 3))]:
        most = draw(bounds)
        least = draw(st.integers(0, 3 if most is None or most.percent else min(3, most.number)))
        subsets.append(Subset(name=name, required=draw(st.sampled_from(TERMS)), most=most, least=least))
    rooms = {
        cluster: {pool: draw(st.integers(0, 4)) for pool in ("x", "y")}
        for cluster in ("worker-2", "worker-3", "worker-4")
    }
    there = []
    for number in range(draw(st.integers(0, 3))):
        cluster, subset = draw(st.sampled_from([*rooms])), draw(st.sampled_from(["", *NAMES, "gone"]))
        made = stands(cluster, draw(st.integers(1, 4)), subset)
        if all((one.cluster, one.subset) != (cluster, subset) for one in there):
            there.append(replace(made, name=PlacementName(f"vllm-{number}")))
    return Case(wanted=make(*subsets), rooms=rooms, there=tuple(there), missing=draw(st.integers(0, 12)))


def after(there: tuple[Placement, ...], plan: Plan) -> tuple[Placement, ...]:
    """Let a plan be carried out."""
    stands_now = {one.path: one for one in there}
    for change in plan.changes:
        if change.action is Action.REVERT:
            del stands_now[change.placement.path]
        if change.action in (Action.RESIZE, Action.MOVE):
            del stands_now[change.before.path]
            stands_now[change.after.path] = change.after
        if change.action is Action.PLACE:
            stands_now[change.placement.path] = change.placement
    return tuple(stands_now.values())


@given(cases())
def test_nothing_new_is_more_than_fits_than_is_wanted_or_than_a_subset_may_hold(case: Case) -> None:
    seen = case.seen()
    now = after(case.there, decide(seen))
    before, has = Counter[str](), Counter[str]()
    for counts, placements in ((before, case.there), (has, now)):
        for one in placements:
            counts[one.cluster] += one.replicas
    for cluster, rooms in case.rooms.items():
        assert has[cluster] <= before[cluster] + sum(rooms.values())
    assert has.total() <= max(before.total(), case.missing)
    policy = case.wanted.policies[VLLM]
    counted = replicas_by_subset(now, policy, case.wanted.clusters)
    for quota in quotas(seen, VLLM, has.total()):
        of_subset = sum(replicas for (_, name), replicas in counted.items() if name == quota.subset.name)
        assert quota.elsewhere is None or of_subset <= quota.elsewhere


@given(cases())
def test_a_second_pass_finds_nothing_left_to_do(case: Case) -> None:
    plan = decide(case.seen())
    now = after(case.there, plan)
    if any(one.action is Action.REVERT for one in plan.changes):
        return  # what has come home rests first
    assert decide(case.seen(now)).changes == ()


@examples(4)
@given(cases(bounds=PERCENTAGES))
def test_percentages_that_shrink_as_replicas_come_home_leave_no_more_to_give_back(case: Case) -> None:
    fewer = replace(case, missing=case.missing // 3)
    now = after(fewer.there, decide(fewer.seen()))
    again = after(now, decide(fewer.seen(now)))
    has = {one.path: one.replicas for one in again}
    assert all(has.get(one.path, 0) >= one.replicas for one in now)


@given(cases())
def test_no_two_placements_of_a_subset_begin_on_one_cluster(case: Case) -> None:
    now = after(case.there, decide(case.seen()))
    begun = Counter((one.cluster, one.subset) for one in now if one not in case.there)
    assert all(number == 1 for number in begun.values())
    assert WorkingPlan(case.seen(now)).replicas(VLLM) == sum(one.replicas for one in now)


@given(cases(numbered, NUMBERS | st.none()))
def test_a_subset_of_a_stateful_set_never_begins_on_a_second_cluster(case: Case) -> None:
    policy, clusters = case.wanted.policies[VLLM], case.wanted.clusters
    before = replicas_by_subset(case.there, policy, clusters)
    has = replicas_by_subset(after(case.there, decide(case.seen())), policy, clusters)
    for place in has.keys() - before.keys():
        assert [other for other in has if other[1] == place[1]] == [place]
        assert place[1]
