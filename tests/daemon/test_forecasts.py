"""Forecasts through whole passes: asked for by a policy's file, remembered in git, recorded, and given back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.core.commits.trailers import Trailer
from reconciler.core.explain.workload import explain
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.source import SourceReader
from reconciler.lab.replay import Replay, Replayed
from reconciler.model.action import Action
from reconciler.model.demand import Demand
from reconciler.model.plan import Change
from reconciler.text.timestamps import format_time
from tests.builders.inputs import VLLM
from tests.builders.passes import SOURCE_FILES, START, Passes
from tests.builders.recorded_passes import Kept
from tests.fakes.memory_repository import OURS, MemoryRepository

FORESIGHTED = {
    **SOURCE_FILES,
    "template.yaml": SOURCE_FILES["template.yaml"].replace("burstDuration: 10m", "burstDuration: 3h"),
    "policies.yaml": SOURCE_FILES["policies.yaml"]
    + "  maxReplicas: 4\n  signals: [{name: usual, forecast: {method: SameTimeYesterday}}]\n",
}
HOUR = 3600.0


class Days(Passes):
    """Passes of days on each of which five replicas are missing for an hour, from an hour after their beginning on."""

    def spend(self, hours: float, *, busy: bool = True) -> list[Outcome]:
        """Run a pass each five minutes."""
        outcomes = []
        for _ in range(round(12 * hours)):
            since = (self.moment - START) % timedelta(days=1)
            self.missing = 5 if busy and timedelta(hours=1) <= since < timedelta(hours=2) else 0
            self.since = self.moment - since + timedelta(hours=1)
            outcomes.append(self.run_once())
            self.advance(300)
        return outcomes


@pytest.fixture
def days() -> Days:
    made = Days(MemoryRepository(FORESIGHTED))
    made.recording = Kept()
    made.spend(24)
    return made


def begun(outcomes: list[Outcome]) -> list[tuple[Change, str]]:
    return [
        (change, format_time(outcome.decision.inputs.now)[11:16])
        for outcome in outcomes
        for change in outcome.plan.changes
        if change.action is Action.PLACE
    ]


def test_replicas_of_yesterday_are_placed_before_they_are_missing(days: Days) -> None:
    ((burst, at),) = begun(days.spend(3))
    assert at == "10:50"
    assert burst.placement.replicas == 4, "the policy bounds what is foreseen"
    assert burst.shortage is not None
    assert burst.shortage.asks == (
        (
            "forecast usual foresees 5 missing until 2026-11-21T11:05:00Z, as at this time yesterday;"
            " none of its forecasts could be judged so far"
        ),
    )


def test_a_process_that_starts_anew_learns_the_past_from_commits(days: Days) -> None:
    days.restart()
    ((burst, at),) = begun(days.spend(3))
    assert (at, burst.placement.replicas) == ("10:50", 4)


def test_commits_carry_what_was_missing_until_then(days: Days) -> None:
    tip = days.repository.tips().output
    assert tip is not None
    last, *_ = days.repository.log(tip)
    assert Trailer.DEMAND.read(last) == "2026-11-20T10:00:00Z 0 +60m 5 +125m 0"


def test_replicas_that_did_not_come_are_given_back(days: Days) -> None:
    outcomes = days.spend(3, busy=False)
    assert [at for _, at in begun(outcomes)] == ["10:50"]
    changes = [change for outcome in outcomes for change in outcome.plan.changes]
    assert changes[-1].action is Action.REVERT
    assert days.placements() == []
    following = days.spend(21, busy=False) + days.spend(3, busy=False)
    assert begun(following) == [], "what was only foreseen is not foreseen again"


def test_recorded_passes_with_a_forecast_are_decided_the_same_again(days: Days) -> None:
    days.spend(2)
    assert isinstance(days.recording, Kept)
    repository = days.repository
    replay = Replay(repository, SourceReader(repository), BranchReader(repository), OURS)
    again = [*replay.run(days.recording.records[-30:])]
    assert all(isinstance(each, Replayed) and each.parting is None for each in again)


def test_a_primary_that_is_not_seen_from_the_first_pass_on_holds_up_nothing() -> None:
    blind = Days(MemoryRepository(FORESIGHTED))
    blind.blind = frozenset({"worker-1"})
    (first,) = blind.spend(1 / 12)
    assert not first.bugs
    blind.blind = frozenset()
    (second,) = blind.spend(1 / 12)
    (demand,) = second.decision.inputs.demands.values()
    assert isinstance(demand, Demand)
    assert [level.missing for level in demand.past] == [0]


def test_explain_tells_of_a_forecast_that_asks_for_nothing(days: Days) -> None:
    days.spend(0.5)
    asking = days.look()
    conclusion = explain(VLLM, asking.inputs, asking.plan).conclusion
    assert conclusion[-1] == "Forecast usual foresees 0 missing until 2026-11-21T10:45:00Z, no more than now."


def test_policies_that_do_not_look_back_remember_and_write_nothing() -> None:
    plain = Days(MemoryRepository(SOURCE_FILES))
    plain.spend(3)
    assert plain.memory.past == {}
    tip = plain.repository.tips().output
    assert tip is not None
    assert not any(Trailer.DEMAND.among(commit) for commit in plain.repository.log(tip))
