"""Questions wait for each other in a bounded number, and none is answered without a pass or after the end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from reconciler.core.commits.write import RenderedPlan
from reconciler.daemon.answers.desk import MOST_WAITING, PlanQuestion
from reconciler.daemon.answers.history import HistorySelection, SelectedHistory, describe_end, read_history
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.errors import Transient
from reconciler.model.action import Action
from reconciler.model.bounds import TEMPLATE_ROUNDS
from reconciler.model.ids import CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.plan import Plan
from reconciler.model.tree import LoggedCommit
from tests.builders.changes import HISTORY, OURS
from tests.builders.desk import answer_desk
from tests.builders.passes import SOURCE_FILES, Passes
from tests.daemon.test_failing_templates import FAILS, fleet, template
from tests.fakes.memory_repository import MemoryRepository


@pytest.fixture
def passes() -> Passes:
    return Passes(MemoryRepository(SOURCE_FILES))


@pytest.fixture
def repository(passes: Passes) -> MemoryRepository:
    assert isinstance(passes.repository, MemoryRepository)
    return passes.repository


def test_more_questions_than_may_wait_are_put_off(passes: Passes, repository: MemoryRepository) -> None:
    latest = LatestSnapshot(passes.memory.branch)
    latest.post(passes.run())
    desk = answer_desk(latest, repository)
    begun, go_on = threading.Event(), threading.Event()

    def select(_: Snapshot) -> HistorySelection:
        begun.set()
        assert go_on.wait(60)
        return HistorySelection(limit=1)

    with ThreadPoolExecutor(max_workers=MOST_WAITING + 2) as pool:
        first = pool.submit(desk.history, select)
        assert begun.wait(60)
        others = [pool.submit(desk.history, lambda _: HistorySelection(limit=1)) for _ in range(MOST_WAITING + 1)]
        wait(others, return_when=FIRST_COMPLETED)  # while the first has its turn, only one that is refused ends
        go_on.set()
        outcomes = [other.exception(60) for other in others]
    assert first.exception() is None
    assert sum(isinstance(outcome, Transient) for outcome in outcomes) == 1


def test_before_the_first_pass_and_after_the_end_nothing_is_answered(
    passes: Passes, repository: MemoryRepository
) -> None:
    latest = LatestSnapshot(passes.memory.branch)
    desk = answer_desk(latest, repository)
    with pytest.raises(Transient, match="no pass has ended well yet"):
        desk.plan(PlanQuestion())
    latest.post(passes.run())
    assert desk.plan(PlanQuestion()).rendered.commits == ()
    desk.close()
    with pytest.raises(Transient, match="no more questions are answered"):
        desk.plan(PlanQuestion())


def test_plan_is_that_of_the_next_pass_behind_failing_templates() -> None:
    passes = fleet(TEMPLATE_ROUNDS.most, FAILS)
    passes.repository.person("source", {"b.yaml": template("b")})
    passes.names, passes.missing, passes.free = (*passes.names, "b"), 1, {"worker-2": 2}
    latest = LatestSnapshot(passes.memory.branch)
    latest.post(passes.run_once())
    received = replace(latest.read().decision, plan=Plan(changes=(), suppressed=()))
    rendered = RenderedPlan(commits=(), changes=(), suppressed=())
    latest.post(Outcome(decision=received, rendered=rendered, commits=()))  # of orders alone
    planned = answer_desk(latest, passes.repository, passes).plan(PlanQuestion()).rendered
    done = passes.run_once().rendered
    assert [change.action for change in planned.changes] == [Action.PLACE]
    assert [change.placement.workload for change in planned.changes] == [
        change.placement.workload for change in done.changes
    ]


class LongLog(MemoryRepository):
    """A branch of a thousand commits, and the numbers of them that were asked for."""

    def __init__(self) -> None:
        super().__init__(SOURCE_FILES)
        self.sizes: list[int] = []

    def log(self, tip: CommitId, *, limit: int) -> Sequence[LoggedCommit]:
        self.sizes.append(limit)
        return [HISTORY[0]] * min(limit, 1000)


def test_mistyped_placement_costs_one_look_at_the_newest_commits() -> None:
    repository = LongLog()

    def read(selection: HistorySelection) -> SelectedHistory:
        return read_history(repository, OURS, Ledger(commit=CommitId("tip")), selection)

    assert describe_end(read, HistorySelection(limit=1, name="typo")) == ""
    assert repository.sizes == [200]
