"""What a workload has elsewhere, shared out again: as if nothing stood, and left alone by every later pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.distribution import ClusterShare, share_out
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.capacity import PendingPods
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Change, Plan
from reconciler.model.policy import Availability, BurstPolicy, ClusterPreference, Distribution, StrategyName
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
    seconds,
    shape,
    short,
)

NAMES = ("worker-2", "worker-3", "worker-4", "worker-5")
BALANCED = Distribution(strategy=StrategyName.BALANCED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cluster: how many replicas it holds in all, how many of them it has, and what the policy says of it."""

    room: int
    has: int
    weight: int
    least: int


@st.composite
def cells(draw: st.DrawFn) -> dict[str, Cell]:
    made = {}
    for name in NAMES[: draw(st.integers(1, 4))]:
        room = draw(st.integers(0, 9))
        made[name] = Cell(
            room=room,
            has=draw(st.integers(0, room)),
            weight=draw(st.integers(1, 4)),
            least=draw(st.integers(0, 3)),
        )
    return made


STRATEGIES = st.sampled_from([Distribution(strategy=strategy) for strategy in StrategyName])


def sharing(there: Mapping[str, Cell], distribution: Distribution) -> BurstPolicy:
    candidates = tuple(
        ClusterPreference(name=ClusterName(name), weight=cell.weight, min_replicas=cell.least)
        for name, cell in there.items()
    )
    return BurstPolicy(name="gpu", candidates=candidates, distribution=distribution)


def seen(there: Mapping[str, Cell], distribution: Distribution, working_plan: Ledger) -> PassInput:
    """See the clusters with what stands there running, and the rest of their room free."""
    has = counts(working_plan)
    missing = sum(has.values())
    observed = [
        free(name, cell.room - has[name], bound={one.name: one.replicas for one in working_plan.placements.values()})
        for name, cell in there.items()
    ]
    clusters = (cluster("worker-1"), *(cluster(name) for name in there))
    wanted = desired(sharing(there, distribution), clusters=clusters)
    return inputs(short(missing), *observed, wanted=wanted, there=working_plan)


def begun(there: Mapping[str, Cell]) -> Ledger:
    return ledger(*(placement(name, cell.has) for name, cell in there.items() if cell.has))


def counts(working_plan: Ledger) -> Counter[str]:
    found = Counter[str]()
    for one in working_plan.placements.values():
        found[one.cluster] += one.replicas
    return found


def after(working_plan: Ledger, plan: Plan) -> Ledger:
    """Let a rebalancing stand."""
    there = dict(working_plan.placements)
    for change in plan.changes:
        if change.after is None:
            del there[change.placement.path]
        else:
            there[change.after.path] = change.after
    return ledger(*there.values())


def targets(there: Mapping[str, Cell]) -> list[ClusterShare]:
    return [
        ClusterShare(
            cluster=ClusterName(name),
            rank=rank,
            most=cell.room,
            capacity=cell.room,
            least=cell.least,
            weight=cell.weight,
        )
        for rank, (name, cell) in enumerate(there.items(), start=1)
    ]


@given(cells(), STRATEGIES)
def test_shared_out_anew_is_shared_out_from_nothing(there: dict[str, Cell], distribution: Distribution) -> None:
    total = sum(cell.has for cell in there.values())
    from_nothing = share_out(total, targets(there), distribution)
    working_plan = begun(there)
    made = after(working_plan, rebalance(seen(there, distribution, working_plan), VLLM, by="Ann"))
    assert counts(made) == from_nothing.counts


@given(cells(), STRATEGIES)
def test_the_total_stays_and_never_more_than_fits_comes_to_a_cluster(
    there: dict[str, Cell], distribution: Distribution
) -> None:
    working_plan = begun(there)
    made = counts(after(working_plan, rebalance(seen(there, distribution, working_plan), VLLM, by="Ann")))
    assert made.total() == counts(working_plan).total()
    assert all(made[name] <= cell.room for name, cell in there.items())


@given(cells(), STRATEGIES)
def test_no_commit_has_more_replicas_than_there_were(there: dict[str, Cell], distribution: Distribution) -> None:
    working_plan = begun(there)
    plan, total = rebalance(seen(there, distribution, working_plan), VLLM, by="Ann"), counts(working_plan).total()
    for number in range(len(plan.changes)):
        assert counts(after(working_plan, Plan(changes=plan.changes[:number]))).total() <= total


@given(cells(), STRATEGIES)
def test_what_was_rebalanced_has_nothing_to_rebalance(there: dict[str, Cell], distribution: Distribution) -> None:
    working_plan = begun(there)
    made = after(working_plan, rebalance(seen(there, distribution, working_plan), VLLM, by="Ann"))
    assert rebalance(seen(there, distribution, made), VLLM, by="Ann") == Plan()


@given(cells(), STRATEGIES)
def test_no_later_pass_undoes_it(there: dict[str, Cell], distribution: Distribution) -> None:
    working_plan = begun(there)
    before = seen(there, distribution, working_plan)
    made = after(working_plan, rebalance(before, VLLM, by="Ann"))
    assert decide(replace(before, ledger=made)).changes == ()  # at once, while the pods are where they were
    assert decide(seen(there, distribution, made)).changes == ()


def test_what_gives_up_replicas_comes_first_and_holds_nothing_back() -> None:
    policy = ordering("worker-2", "worker-3", "worker-4", distribution=BALANCED)
    there = ledger(placement("worker-2", 6), placement("worker-3", 2))
    running = {one.name: one.replicas for one in there.placements.values()}
    full, half = free("worker-2", 0, bound=running), free("worker-3", 4, bound=running)
    plan = made(policy, there, full, half, free("worker-4", 4))
    assert [(change.action, where(change)) for change in plan.changes] == [
        ("Resize", ("worker-2", 3)),
        ("Resize", ("worker-3", 3)),
        ("Place", ("worker-4", 2)),
    ]
    assert all(getattr(change, "restraint", None) is None for change in plan.changes)


def test_every_change_says_who_asked_for_it_and_what_each_cluster_had_and_gets() -> None:
    there = ledger(placement("worker-3", 4))
    plan = made(ordering("worker-2", "worker-3"), there, free("worker-2", 4), free("worker-3", 0), reason="it is near.")
    end, begin = plan.changes
    assert end.action is Action.REVERT
    assert begin.action is Action.PLACE
    assert end.why is EndReason.REQUESTED
    assert end.detail == "rebalanced by Ann: worker-3 had 4 of 4 replicas and gets none; it is near"
    (left,) = there.placements.values()
    assert begin.detail == (
        "rebalanced by Ann: worker-2 had none of 4 replicas and gets 4;"
        f" it ends when {left.name} on worker-3 would have; it is near"
    )


def test_a_new_placement_ends_with_the_first_of_those_that_gave_it_up() -> None:
    soon = placement("worker-3", 2, lasting=timedelta(minutes=5))
    later = placement("worker-4", 2, created=NOW - seconds(30), lasting=timedelta(minutes=30))
    plan = made(
        ordering("worker-2"), ledger(soon, later), free("worker-2", 4), free("worker-3", 0), free("worker-4", 0)
    )
    (begin,) = (change.placement for change in plan.changes if change.action is Action.PLACE)
    assert (begin.created_at, begin.expires_at, begin.changed_at) == (soon.created_at, soon.expires_at, NOW)


def test_a_new_placement_ends_where_a_person_set_the_end_of_the_one_that_it_replaces() -> None:
    fixed = placement("worker-3", 2, lasting=timedelta(minutes=5), fixed_end=True)
    plan = made(ordering("worker-2"), ledger(fixed), free("worker-2", 4), free("worker-3", 0))
    (begin,) = (change.placement for change in plan.changes if change.action is Action.PLACE)
    assert (begin.expires_at, begin.fixed_end) == (fixed.expires_at, True)


def test_a_placement_that_grows_or_shrinks_keeps_its_end() -> None:
    there = ledger(placement("worker-2", 6), placement("worker-3", 2, lasting=timedelta(minutes=30)))
    policy = ordering("worker-2", "worker-3", distribution=BALANCED)
    plan = made(policy, there, free("worker-2", 0), free("worker-3", 4))
    assert plan.changes
    for change in plan.changes:
        assert change.action is Action.RESIZE
        assert change.after.expires_at == change.before.expires_at


def test_a_cluster_that_is_being_emptied_gives_up_all() -> None:
    draining = cluster("worker-2", availability=Availability.DRAINING)
    wanted = desired(clusters=(cluster("worker-1"), draining, cluster("worker-3")))
    plan = made(None, ledger(placement("worker-2", 3)), free("worker-2", 8), free("worker-3", 8), wanted=wanted)
    assert [where(change) for change in plan.changes] == [("worker-2", 3), ("worker-3", 3)]
    assert "gets none (it is Draining)" in plan.changes[0].detail


def test_full_cluster_keeps_as_many_that_tolerate_its_noexecute_taint_as_without_the_taint() -> None:
    pods = shape(tolerations=(Toleration(key="dedicated", operator="Exists"),))
    stays = placement("worker-2", 2, shape=pods)
    there = ledger(stays, placement("worker-3", 2, shape=pods))
    seen = short(4, replica=pods), free("worker-2", 0, bound={stays.name: 2}), free("worker-3", 8)
    policy = ordering("worker-2", "worker-3", distribution=BALANCED)

    def rebalanced(*taints: Taint) -> Counter[str]:
        clusters = cluster("worker-1"), cluster("worker-2", taints=taints), cluster("worker-3")
        wanted = desired(policy, clusters=clusters)
        return counts(after(there, rebalance(inputs(*seen, wanted=wanted, there=there), VLLM, by="Ann")))

    evicting = Taint(key="dedicated", effect="NoExecute")
    assert rebalanced(evicting) == rebalanced() == {"worker-2": 1, "worker-3": 3}


@pytest.mark.parametrize("blind", [True, False], ids=["unseen", "cordoned"])
def test_a_cluster_that_takes_nothing_new_gets_no_more_than_it_has(*, blind: bool) -> None:
    there = ledger(placement("worker-2", 2), placement("worker-3", 4))
    away = cluster("worker-2", availability=Availability.ACTIVE if blind else Availability.CORDONED)
    wanted = desired(clusters=(cluster("worker-1"), away, cluster("worker-3")))
    observed = [free("worker-3", 2)] if blind else [free("worker-2", 8), free("worker-3", 2)]
    assert made(None, there, *observed, wanted=wanted) == Plan()


def test_replicas_that_wait_for_a_node_where_there_is_none_go_elsewhere() -> None:
    stuck = placement("worker-2", 3, created=NOW - timedelta(minutes=5))
    there = ledger(stuck)
    pending_pods = {stuck.name: PendingPods(shape=stuck.shape, replicas=2)}
    full = free("worker-2", 0, bound={stuck.name: 1}, pending_pods=pending_pods)
    plan = made(ordering("worker-2", "worker-3"), there, full, free("worker-3", 4))
    assert counts(after(there, plan)) == {"worker-2": 1, "worker-3": 2}


def test_the_most_gprs_of_a_workspace_are_counted_after_what_ends() -> None:
    there = ledger(placement("worker-4", 4))
    limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, most=1)}
    wanted = desired(ordering("worker-2", "worker-3", distribution=BALANCED), limits=limits)
    plan = made(None, there, free("worker-2", 4), free("worker-3", 8), wanted=wanted)
    assert counts(after(there, plan)) == {"worker-3": 4}


def test_what_has_lapsed_ends_and_is_not_shared_out() -> None:
    over = placement("worker-3", 2, created=NOW - timedelta(hours=1))
    there = ledger(over, placement("worker-4", 3))
    policy = ordering("worker-2", "worker-3", "worker-4", cool_down=timedelta())
    plan = made(policy, there, free("worker-2", 9), free("worker-3", 0), free("worker-4", 0))
    assert [change.why for change in plan.changes if change.action is Action.REVERT] == [
        EndReason.EXPIRED,
        EndReason.REQUESTED,
    ]
    assert counts(after(there, plan)) == {"worker-2": 3}


def test_nothing_is_written_for_a_workload_that_has_nothing_elsewhere() -> None:
    assert made(None, ledger(), free("worker-2", 8), free("worker-3", 8)) == Plan()


@pytest.mark.parametrize(
    ("strategy", "refused"),
    [(StrategyName.ORDERED, {"worker-2"}), (StrategyName.BALANCED, {"worker-2", "worker-5"})],
)
def test_in_order_only_clusters_before_the_chosen_one_explain_it(strategy: StrategyName, refused: set[str]) -> None:
    full, free_room, held = (Cell(room=room, has=has, weight=1, least=0) for room, has in ((0, 0), (4, 0), (2, 2)))
    there = {"worker-2": full, "worker-3": free_room, "worker-4": held, "worker-5": full}
    made = rebalance(seen(there, Distribution(strategy=strategy), begun(there)), VLLM, by="Ann")
    (begins,) = (change for change in made.changes if change.after is not None and change.after.cluster == "worker-3")
    assert {refusal.cluster for refusal in begins.refused} == refused


def test_replicas_without_a_place_are_refused_and_nothing_is_lost() -> None:
    policy = ordering("worker-2", ("worker-3", 1))
    with pytest.raises(
        InvalidInput, match=r"1 of its 4 replicas would have a place within policy gpu.*worker-2: needs"
    ):
        made(policy, ledger(placement("worker-3", 4)), free("worker-2", 0), free("worker-3", 0))


def test_a_workload_that_is_held_back_everywhere_is_refused() -> None:
    held = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=None,
        since=NOW,
        until=NOW + seconds(60),
        reason="it ended",
        placement=placement().name,
    )
    there = ledger(placement("worker-3", 4), restraints={VLLM: (held,)})
    with pytest.raises(InvalidInput, match="held back everywhere: it ended"):
        made(None, there, free("worker-2", 8))


def test_a_cluster_that_only_a_broken_file_takes_away_is_left_alone() -> None:
    there = ledger(placement("worker-4", 4))
    with pytest.raises(InvalidInput, match="not every file can be read"):
        made(None, there, free("worker-2", 8), wanted=desired(incomplete=True))


def made(policy: BurstPolicy | None, there: Ledger, *observed: object, wanted: object = None, reason: str = "") -> Plan:
    names = ("worker-1", "worker-2", "worker-3", "worker-4")
    fleet = wanted or desired(policy, clusters=[cluster(name) for name in names])
    missing = counts(there).total()
    seen = inputs(short(missing), *observed, wanted=fleet, there=there)
    return rebalance(seen, VLLM, by="Ann", reason=reason)


def where(change: Change) -> tuple[str, int]:
    return change.placement.cluster, change.placement.replicas
