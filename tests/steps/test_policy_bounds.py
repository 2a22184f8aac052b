"""What may have to be moved or cut back is the same whether it was followed from pass to pass or looked up anew."""

from collections.abc import Collection
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import outside_policy
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import Placements
from tests.builders.inputs import VLLM, cluster, desired, inputs, ordering, placement

LIMITED = desired(
    ordering("worker-2", max_replicas=3),
    clusters=(cluster("worker-1"), cluster("worker-2"), cluster("worker-3")),
)
STEPS = st.lists(st.tuples(st.sampled_from(["worker-2", "worker-3"]), st.integers(0, 5)), min_size=1, max_size=8)


def found(now: PassInput) -> tuple[WorkloadId, ...]:
    return outside_policy(now, WorkingPlan(now))


@given(STEPS)
def test_following_changes_finds_what_looking_anew_finds(steps: list[tuple[str, int]]) -> None:
    now = inputs(wanted=LIMITED)
    anew = inputs(wanted=LIMITED).reach
    placements = now.ledger.placements
    for name, replicas in steps:
        one = placement(name, max(1, replicas))
        placements = placements.changed({one.path: one} if replicas else {}, [] if replicas else [one.path])
        now = replace(now, ledger=replace(now.ledger, placements=placements))
        followed = found(now)
        fresh = replace(now, reach=anew, ledger=replace(now.ledger, placements=Placements(dict(placements))))
        assert followed == found(fresh)
        beyond = any(one.cluster == "worker-3" or one.replicas > 3 for one in placements.values())
        assert followed == ((VLLM,) if beyond else ())
        found(now)  # so that the next step is followed from here


class OvertakenPlacements(Placements):
    """Placements while whose comparison another thread plans another fleet."""

    other: PassInput

    def touched_since(self, earlier: Placements) -> Collection[WorkloadId] | None:
        found(self.other)
        return super().touched_since(earlier)


def test_a_plan_of_another_fleet_in_between_takes_no_workload_away() -> None:
    beyond = placement("worker-3", 1)
    now = inputs(wanted=LIMITED)
    placements = OvertakenPlacements({beyond.path: beyond})
    placements.other = inputs(wanted=desired(clusters=LIMITED.clusters.values()))
    now = replace(now, ledger=replace(now.ledger, placements=placements))
    assert [found(now), found(now), found(now)] == [(VLLM,)] * 3
