"""Orders wait at the queue until a pass has carried them out, and none waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import pytest

from reconciler.core.commits.write import RenderedPlan
from reconciler.core.decide.state.order import Order
from reconciler.daemon.orders.order_queue import OrderQueue, OrderResult
from reconciler.daemon.reconcile import Outcome
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import CommitId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Plan
from reconciler.model.request import Answer, Denial, Verb
from reconciler.model.tree import Commit, Identity
from tests.builders.inputs import placement
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

ADA = Identity(name="Ada", email="ada@example.com")
FIRST, SECOND = CommitId("a" * 40), CommitId("b" * 40)


def order(name: str = "bookinfo") -> Order:
    return Order(number=0, verb=Verb.DELETE, name=name, workspace=WorkspaceName("llm"), author=ADA, within=None)


def revert(one: Placement) -> Change:
    return Change(action=Action.REVERT, before=one, why=EndReason.REQUESTED, detail="by Ada")


def outcome(*changes: Change, answers: dict[int, Answer], commits: tuple[CommitId, ...] = ()) -> Outcome:
    """Make what a pass comes to: all its changes written, one commit each."""
    decision = Passes(MemoryRepository(SOURCE_FILES)).look()
    decision = replace(decision, plan=Plan(changes=changes, answers=answers), tips=replace(decision.tips, output=FIRST))
    return Outcome(
        decision=decision, rendered=RenderedPlan(commits=(), changes=changes, suppressed=()), commits=commits
    )


def agreeing(*, commits: tuple[CommitId, ...] = ()) -> Callable[[tuple[Order, ...]], Outcome]:
    """Answer every order with its name, and change nothing."""
    return lambda orders: outcome(answers={one.number: Answer(message=one.name) for one in orders}, commits=commits)


class Calls:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def __call__(self, reason: str) -> None:
        self.reasons.append(reason)


def serve(queue: OrderQueue, attempt: Callable[[tuple[Order, ...]], Outcome]) -> None:
    """Run a pass with everything that waits."""
    batch = queue.take()
    with batch.at_stake():
        came_to = attempt(batch.orders)
    batch.answer(came_to)


def failing(error: Exception) -> Callable[[tuple[Order, ...]], Outcome]:
    def attempt(_orders: tuple[Order, ...]) -> Outcome:
        raise error

    return attempt


def test_order_wakes_the_loop_and_is_answered_by_the_next_pass() -> None:
    calls = Calls()
    queue = OrderQueue(calls)
    receipt = queue.submit(order())
    assert calls.reasons == ["order"]
    serve(queue, agreeing())
    assert receipt.result(0) == OrderResult(answer=Answer(message="bookinfo"), commit=FIRST)


def test_one_pass_carries_all_orders_that_wait_each_with_a_number_of_its_own() -> None:
    queue = OrderQueue(Calls())
    receipts = [queue.submit(order(f"job-{number}")) for number in range(50)]
    serve(queue, agreeing())
    assert [one.result(0).answer.message for one in receipts] == [f"job-{number}" for number in range(50)]


def test_receipt_names_the_commit_of_the_change_that_carries_the_order() -> None:
    queue = OrderQueue(Calls())
    receipt = queue.submit(order())
    changes = revert(placement("worker-2")), revert(placement("worker-3"))

    def attempt(orders: tuple[Order, ...]) -> Outcome:
        return outcome(*changes, answers={orders[0].number: Answer(change=1)}, commits=(FIRST, SECOND))

    serve(queue, attempt)
    assert receipt.result(0).commit == SECOND


def steered(written: tuple[Change, ...]) -> OrderResult:
    """Order the reverts of two placements of which these are written."""
    queue = OrderQueue(Calls())
    receipt = queue.submit(order())
    changes = revert(placement("worker-2")), revert(placement("worker-3"))

    def attempt(orders: tuple[Order, ...]) -> Outcome:
        made = outcome(*changes, answers={orders[0].number: Answer(change=1, first=0)}, commits=(FIRST, SECOND))
        commits = tuple(Commit(message="revert", author=ADA, at=made.decision.inputs.now) for _ in written)
        rendered = replace(made.rendered, changes=written, commits=commits)
        return replace(made, rendered=rendered, commits=(FIRST, SECOND)[: len(written)])

    serve(queue, attempt)
    return receipt.result(0)


def test_revert_that_is_written_without_its_words_is_carried_out() -> None:
    result = steered((revert(placement("worker-2")), replace(revert(placement("worker-3")), detail="")))
    assert (result.answer.denial, result.commit) == (None, SECOND)
    assert result.carried is not None
    assert result.carried.commits == (FIRST, SECOND)


def test_revert_that_could_not_be_written_is_named_to_its_caller() -> None:
    result = steered((revert(placement("worker-2")),))
    assert result.answer.denial is Denial.BUG
    assert [problem.path for problem in result.answer.problems] == [placement("worker-3").id]
    assert "; 1 other change of this call is done" in str(result.answer.problems[0])


def test_commit_that_begins_the_branch_is_nobodys_receipt() -> None:
    queue = OrderQueue(Calls())
    receipt = queue.submit(order())
    change = revert(placement())

    def attempt(orders: tuple[Order, ...]) -> Outcome:
        return outcome(change, answers={orders[0].number: Answer(change=0)}, commits=(FIRST, SECOND))

    serve(queue, attempt)
    assert receipt.result(0).commit == SECOND


def test_order_that_changes_nothing_is_answered_with_where_the_branch_stands_after_the_push() -> None:
    queue = OrderQueue(Calls())
    receipt = queue.submit(order())

    def attempt(orders: tuple[Order, ...]) -> Outcome:
        answers = {orders[0].number: Answer(denial=Denial.EXISTS)}
        return outcome(revert(placement()), answers=answers, commits=(SECOND,))

    serve(queue, attempt)
    assert receipt.result(0).commit == SECOND


def test_conflict_leaves_the_orders_to_the_next_try_with_those_that_came_meanwhile() -> None:
    queue = OrderQueue(Calls())
    first = queue.submit(order("first"))
    with pytest.raises(Conflict):
        serve(queue, failing(Conflict("moved")))
    second = queue.submit(order("second"))
    serve(queue, agreeing())
    assert [one.result(0).answer.message for one in (first, second)] == ["first", "second"]


@pytest.mark.parametrize("error", [Transient("away"), InvalidInput("main is missing"), KeyError("a bug")])
def test_pass_that_fails_fails_its_orders_and_only_those(error: Exception) -> None:
    queue = OrderQueue(Calls())
    failed = queue.submit(order("failed"))
    with pytest.raises(type(error)):
        serve(queue, failing(error))
    assert failed.exception(0) is error
    later = queue.submit(order("later"))
    serve(queue, agreeing())
    assert later.result(0).answer.message == "later"


def test_pass_that_forgets_an_order_fails_it() -> None:
    queue = OrderQueue(Calls())
    receipt = queue.submit(order())
    with pytest.raises(KeyError):
        serve(queue, lambda _orders: outcome(answers={}))
    assert isinstance(receipt.exception(0), KeyError)


def test_order_is_taken_back_before_a_pass_has_begun_with_it_and_not_after() -> None:
    queue = OrderQueue(Calls())
    early, late = queue.submit(order("early")), queue.submit(order("late"))
    assert early.cancel()
    seen: list[str] = []

    def attempt(orders: tuple[Order, ...]) -> Outcome:
        seen.extend(one.name for one in orders)
        assert not late.cancel()
        return agreeing()(orders)

    serve(queue, attempt)
    assert seen == ["late"]
    assert late.result(0).answer.message == "late"


def test_no_more_orders_wait_than_a_pass_may_take() -> None:
    queue = OrderQueue(Calls(), most=2)
    waiting: list[Future[OrderResult]] = [queue.submit(order()), queue.submit(order())]
    with pytest.raises(Transient, match="2 orders are waiting already"):
        queue.submit(order())
    serve(queue, agreeing())
    assert queue.submit(order()) not in waiting


def test_closed_desk_fails_what_waits_and_takes_nothing_more() -> None:
    queue = OrderQueue(Calls())
    receipt = queue.submit(order())
    with pytest.raises(Conflict):
        serve(queue, failing(Conflict("moved")))
    queue.close()
    assert isinstance(receipt.exception(0), Transient)
    with pytest.raises(Transient, match="stopping"):
        queue.submit(order())
