"""Where many call at once a pass only receives, and the one that follows does everything else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.ledger.request_record import request_path
from reconciler.daemon import pass_runner
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.orders.order_queue import OrderQueue, OrderResult
from reconciler.daemon.pass_runner import MANY, PassRunner
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.errors import Conflict, OverspillError, Transient
from reconciler.model.ids import CommitId, TemplateName
from reconciler.model.plan import Reason
from reconciler.model.request import Denial, Request, Verb
from reconciler.model.tree import Tips
from tests.builders.passes import QUIET, Passes
from tests.builders.remote import Remote
from tests.builders.requests import deployment, manifests, request
from tests.orders.test_api_orders import creating, order

CROWD = 2 * MANY


class Shop:
    """A daemon's passes with a queue, run by hand."""

    def __init__(self, remote: Remote, repository: GitRepository) -> None:
        self.remote = remote
        self.passes = Passes(repository)
        self.calls: list[str] = []
        self.queue = OrderQueue(self.calls.append)
        self.latest = LatestSnapshot(self.passes.memory.branch)
        self.serve = PassRunner(self.passes.world(), self.passes.memory, self.queue, self.latest)
        self.serve(fetch=True)

    def ask(self, *names: str) -> list[Future[OrderResult]]:
        return [self.queue.submit(creating(asked(name))) for name in names]

    def subjects(self) -> list[str]:
        """Return what was committed, oldest first."""
        return self.remote.git("log", "--format=%s", "--reverse", "placements").splitlines()

    def placed(self) -> set[str]:
        return {placement.workload.name for placement in self.passes.placements()}


@pytest.fixture
def shop(remote: Remote, repository: GitRepository) -> Shop:
    remote.commit("main", QUIET)
    shop = Shop(remote, repository)
    shop.passes.free = {"worker-2": 1000}
    shop.passes.run()
    return shop


def asked(name: str) -> Request:
    """Ask for an object that nobody else asks for."""
    one = deployment()
    assert isinstance(one, dict)
    return request("worker-2", name=name, spec=manifests({**one, "metadata": {"name": name, "namespace": "demo"}}))


def crowd(number: int = CROWD) -> list[str]:
    return [f"job-{one}" for one in range(number)]


def before_each_push(shop: Shop, monkeypatch: pytest.MonkeyPatch, happens: Callable[[int], None]) -> None:
    """Have something happen right before each push, which is told its number."""
    push, pushes = GitRepository.begin_push, []

    def begin_push(self: GitRepository, new: CommitId, **more: object) -> Callable[[], None]:
        pushes.append(new)
        happens(len(pushes))
        return push(self, new, **more)

    monkeypatch.setattr(GitRepository, "begin_push", begin_push)


def test_a_crowd_is_received_in_batches_and_placed_by_the_pass_that_follows(shop: Shop) -> None:
    receipts = shop.ask(*crowd())
    outcome = shop.serve(fetch=False)
    commits = {receipt.result(0).commit for receipt in receipts}
    assert len(commits) == CROWD
    assert commits == set(outcome.commits), "the log tells of every batch"
    assert shop.placed() == set()
    assert shop.calls[-1] == "order", "the pass that places has to follow at once"
    assert set(shop.latest.read().decision.inputs.ledger.requests) == {
        receipt.result(0).answer.workload for receipt in receipts
    }
    shop.serve(fetch=False)
    assert shop.placed() == set(crowd())


def test_the_few_are_received_and_placed_by_one_pass(shop: Shop) -> None:
    shop.ask(*crowd(MANY - 1))
    shop.serve(fetch=False)
    assert shop.placed() == set(crowd(MANY - 1))


def test_of_a_crowd_that_wants_one_name_one_gets_it(shop: Shop) -> None:
    receipts = shop.ask(*["bookinfo"] * CROWD)
    shop.serve(fetch=False)
    assert [receipt.result(0).answer.denial for receipt in receipts] == [None, *[Denial.EXISTS] * (CROWD - 1)]


def test_what_a_batch_received_can_be_deleted_by_the_next(shop: Shop) -> None:
    made = shop.ask(*crowd())
    gone = [shop.queue.submit(order(Verb.DELETE, name)) for name in crowd()]
    shop.serve(fetch=False)
    assert {receipt.result(0).answer.denial for receipt in (*made, *gone)} == {None}
    shop.serve(fetch=False)
    assert shop.placed() == set()
    assert shop.latest.read().decision.inputs.ledger.requests == {}


def test_callers_do_not_keep_everything_else_waiting(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_runner, "LONGEST_RECEIVING", 0.0)
    shop.ask(*crowd())
    shop.serve(fetch=False)
    assert shop.placed() == set(crowd())


def test_no_push_carries_more_than_half_of_all_who_are_there(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    late = [f"late-{one}" for one in range(30)]

    def come(number: int) -> None:
        if number == 1:
            shop.ask(*late)

    before_each_push(shop, monkeypatch, come)
    shop.ask(*crowd(20))
    outcome = shop.serve(fetch=False)
    assert len(outcome.commits) == 50
    assert outcome.pushes == 3, "of 10, then of 25 as 40 wait and 10 are under way, then of the 15 that are left"


def test_branch_that_moves_between_two_batches_costs_nobody_the_place(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody(number: int) -> None:
        if number == 2:
            shop.remote.commit("placements", {"notes.md": "ours\n"})

    before_each_push(shop, monkeypatch, somebody)
    receipts = shop.ask(*crowd())
    first = shop.serve(fetch=False)
    assert 0 < len(first.commits) < CROWD
    assert sum(receipt.done() for receipt in receipts) == len(first.commits)
    shop.serve(fetch=False)
    assert [receipt.result(0).answer.denial for receipt in receipts] == [None] * CROWD
    shop.serve(fetch=False)
    assert shop.placed() == set(crowd())
    assert len(shop.subjects()) == len(set(shop.subjects())), "nothing was done twice"


def test_first_of_many_that_want_one_name_gets_it_though_the_branch_moves(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody(number: int) -> None:
        if number == 1:
            shop.remote.commit("placements", {"notes.md": "ours\n"})

    before_each_push(shop, monkeypatch, somebody)
    receipts = shop.ask(*["bookinfo"] * CROWD)
    with pytest.raises(Conflict):
        shop.serve(fetch=False)
    shop.serve(fetch=True)
    assert [receipt.result(0).answer.denial for receipt in receipts] == [None, *[Denial.EXISTS] * (CROWD - 1)]


def test_a_bug_in_telling_of_one_batch_fails_that_batch_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    post, posts = LatestSnapshot.post, []

    def broken(self: LatestSnapshot, outcome: Outcome) -> None:
        posts.append(outcome)
        if len(posts) == 1:
            raise ZeroDivisionError
        post(self, outcome)

    monkeypatch.setattr(LatestSnapshot, "post", broken)
    receipts = shop.ask(*crowd())
    with pytest.raises(ZeroDivisionError):
        shop.serve(fetch=False)
    failed = [isinstance(receipt.exception(0), ZeroDivisionError) for receipt in receipts]
    assert failed == [True] * (CROWD // 2) + [False] * (CROWD // 2)
    tip = shop.remote.git("rev-parse", "placements")
    assert {receipt.result(0).commit for receipt in receipts[CROWD // 2 :]} >= {tip}


def test_remote_that_is_away_is_told_to_all_that_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_repository: GitRepository) -> Tips:
        raise Transient("away")

    monkeypatch.setattr(GitRepository, "fetch", away)
    receipts = shop.ask(*crowd())
    with pytest.raises(Transient):
        shop.serve(fetch=True)
    assert {type(receipt.exception(0)) for receipt in receipts} == {Transient}


def test_push_that_fails_fails_the_batch_under_way_and_the_one_decided_on_top(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(number: int) -> None:
        if number == 1:
            shop.remote.git("config", "receive.maxInputSize", "1")

    before_each_push(shop, monkeypatch, broken)
    receipts = shop.ask(*crowd())
    with pytest.raises(OverspillError):
        shop.serve(fetch=False)
    assert all(isinstance(receipt.exception(0), OverspillError) for receipt in receipts)
    shop.remote.git("config", "--unset", "receive.maxInputSize")
    again = shop.ask(*crowd())
    shop.serve(fetch=True)
    assert [receipt.result(0).answer.denial for receipt in again] == [None] * CROWD, "nothing of it was there"


def test_a_bug_in_carrying_out_one_order_costs_its_caller_alone(shop: Shop) -> None:
    receipts = shop.ask(*crowd())
    broken = replace(creating(asked("late")), draft=0)
    failed = shop.queue.submit(broken)
    shop.serve(fetch=False)
    shop.serve(fetch=True)
    assert failed.result(0).answer.denial is Denial.BUG
    workloads = [receipt.result(0).answer.workload for receipt in receipts]
    assert shop.placed() == {workload.name for workload in workloads if workload is not None}


def test_what_people_did_is_seen_before_a_crowd_is_received(shop: Shop) -> None:
    shop.ask("bookinfo")
    shop.serve(fetch=False)
    (placement,) = shop.passes.placements()
    shop.remote.commit("placements", {f"{placement.path}/placement.yaml": None})
    shop.ask(*crowd())
    shop.serve(fetch=True)
    assert any(subject.startswith("Revert") for subject in shop.subjects()), shop.subjects()


def test_readers_are_told_what_the_last_whole_pass_held_back(shop: Shop) -> None:
    shop.passes.free = {"worker-2": 0}
    shop.passes.run_once()
    shop.ask("bookinfo")
    shop.serve(fetch=False)
    shop.ask(*crowd())
    outcome: Outcome = shop.serve(fetch=False)
    assert [one.reason for one in outcome.plan.suppressed] == [Reason.NOTHING_FITS]
    assert shop.latest.read().held


def test_nobody_is_told_what_held_back_a_request_that_a_crowd_has_deleted(shop: Shop) -> None:
    shop.passes.free = {"worker-2": 0}
    shop.passes.run_once()
    shop.ask("bookinfo")
    shop.serve(fetch=False)
    shop.queue.submit(order(Verb.DELETE, "bookinfo"))
    shop.ask(*crowd())
    assert shop.serve(fetch=False).plan.suppressed == ()
    assert shop.latest.read().held == {}


def test_record_that_takes_the_place_of_a_directory_takes_its_problems_away(shop: Shop) -> None:
    (first,) = shop.ask("first")
    shop.serve(fetch=False)
    workload = first.result(0).answer.workload
    assert workload is not None
    path = request_path(workload._replace(name=TemplateName("bookinfo")))
    shop.remote.commit("placements", {f"{path}/notes.yaml": "ours: 1\n"})
    shop.serve(fetch=True)
    assert shop.latest.read().decision.inputs.ledger.problems
    shop.ask("bookinfo")
    shop.serve(fetch=False)
    followed = shop.latest.read().decision.inputs.ledger
    assert followed.problems == BranchReader(shop.passes.repository).ledger(followed.commit).problems
