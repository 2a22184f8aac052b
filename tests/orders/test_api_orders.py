"""What callers of the API order is carried out by the rules of EGS's states, and answered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.api.routes import placements
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.order import Order
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.egs.resource import rest_document
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import GprTerms
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired, Workspace
from reconciler.model.request import Answer, Asker, Denial, Ended, Provisioning, Request, RequestRecord, Verb
from reconciler.model.tree import Identity
from reconciler.model.workload import DeletionPolicy
from tests.builders.inputs import NOW, desired, free, inputs, ledger, placement
from tests.builders.requests import BOOKINFO, LASTING, deployment, holds, manifests, placed, record, request, wants

ADA = Identity(name="Ada", email="ada@example.com")
LLM = WorkspaceName("llm")
BEGAN = NOW - timedelta(minutes=1)
HOUR = timedelta(hours=1)


def body(asked: Request, **changed: object) -> RequestDraft:
    draft = placements.read_create({**rest_document(asked), **changed})
    assert isinstance(draft, RequestDraft), draft
    return draft


def change(**fields: object) -> RequestDraft:
    draft = placements.read_update(fields)
    assert isinstance(draft, RequestDraft), draft
    return draft


def order(verb: Verb, name: str = "bookinfo", **fields: object) -> Order:
    made = Order(number=1, verb=verb, name=name, workspace=LLM, author=ADA, within=None)
    draft = fields.get("draft")
    given = draft.fields_set if isinstance(draft, RequestDraft) else frozenset[str]()
    return replace(made, **{"given": given, **fields})


def creating(asked: Request, **fields: object) -> Order:
    return order(Verb.CREATE, asked.name, draft=body(asked), **fields)


def carried(*orders: Order, wanted: Desired | None = None, there: Ledger | None = None) -> Plan:
    """Carry orders out, on three clusters with room."""
    seen = inputs(
        free("worker-1", 8), free("worker-2", 8), free("worker-3", 8), wanted=wanted or wants(), there=there or holds()
    )
    return decide(
        replace(seen, orders=tuple(replace(one, number=number) for number, one in enumerate(orders, start=1)))
    )


def recorded(plan: Plan) -> RequestRecord:
    """Return the last record that a plan leaves of its only request."""
    *_, last = (change.record for change in plan.changes if change.record is not None)
    return last


def answered(*orders: Order, **fields: object) -> Answer:
    return carried(*orders, **fields).answers[1]


def kinds(of: Plan) -> list[str]:
    return [change.action for change in of.changes]


def asked_by_api(asked: Request, **fields: object):
    return record(asked, asker=Asker.API, **fields)


def waiting(asked: Request, **fields: object) -> Ledger:
    return holds(asked_by_api(asked, **fields))


def running(asked: Request) -> Ledger:
    return holds(asked_by_api(asked, began_at=BEGAN), placed=[placed("worker-2")])


def test_what_is_created_is_placed_in_the_same_pass():
    plan = carried(creating(request("worker-2"), key="sha256-1"))
    receive, place = plan.changes
    assert receive.action is Action.RECEIVE
    assert (receive.author, receive.record.asker, receive.record.author) == (ADA, Asker.API, "Ada")
    assert receive.record.key == "sha256-1"
    assert place.action is Action.PLACE
    assert plan.answers == {1: Answer(change=0, workload=BOOKINFO)}


def test_a_name_that_is_taken_is_refused():
    answer = answered(creating(request("worker-3")), there=waiting(request("worker-2")))
    assert (answer.denial, answer.message) == (Denial.EXISTS, "llm/bookinfo already exists")


def test_a_name_that_a_file_asks_for_is_taken():
    assert answered(creating(request("worker-3")), wanted=wants(request("worker-2"))).denial is Denial.EXISTS


def test_of_two_that_want_one_name_the_first_gets_it():
    plan = carried(creating(request("worker-2")), creating(request("worker-3")))
    assert [plan.answers[number].denial for number in (1, 2)] == [None, Denial.EXISTS]


def test_the_same_name_in_another_workspace_is_free():
    other = replace(request("worker-2"), workspace=WorkspaceName("vision"))
    wanted = wants()
    spaces = {**wanted.workspaces, other.workspace: replace(wanted.workspaces[LLM], name=other.workspace)}
    plan = carried(
        creating(other, workspace=None), wanted=replace(wanted, workspaces=spaces), there=waiting(request("worker-2"))
    )
    assert plan.answers[1].denial is None


def test_the_same_call_again_is_answered_like_the_first_and_changes_nothing():
    once = creating(request("worker-2"), key="sha256-1")
    received = recorded(carried(once))
    changed = replace(received, changed_at=NOW + HOUR, request=replace(received.request, redistributes=False))
    for there in (holds(received, placed=[placed("worker-2")]), holds(changed)):
        plan = carried(once, there=there)
        assert plan.answers[1] == Answer(workload=BOOKINFO, since=NOW)
        assert "Receive" not in kinds(plan)


def test_the_same_call_twice_in_one_pass_is_carried_out_once():
    asked = creating(request("worker-2"), key="sha256-1")
    plan = carried(asked, asked)
    assert kinds(plan) == ["Receive", "Place"]
    assert plan.answers[1] == plan.answers[2]


@pytest.mark.parametrize("runs", [True, False], ids=["placed", "waiting"])
@pytest.mark.parametrize(
    "other",
    [
        body(request("worker-3")),
        body(request("worker-2", name="other")),
        body(request("worker-2"), gprDetails={"requeueOnFailure": False}),
        body(request("worker-2", spec=manifests(deployment(replicas=7)))),
    ],
    ids=["clusters", "name", "requeue", "objects"],
)
def test_a_key_makes_one_request_of_one_body(other: RequestDraft, runs: bool):
    first = carried(creating(request("worker-2"), key="sha256-1"))
    received = recorded(first)
    there = holds(received, placed=[placed("worker-2")]) if runs else holds(replace(received, began_at=None))
    plan = carried(order(Verb.CREATE, other.name, draft=other, key="sha256-1"), there=there)
    assert plan.answers[1].denial is Denial.KEY_REUSED
    assert "Receive" not in kinds(plan)


def test_what_is_not_admitted_says_which_fields():
    answer = answered(order(Verb.CREATE, draft=body(request("worker-2"), clusters=["worker-9"])))
    assert answer.denial is Denial.INVALID
    assert [problem.field for problem in answer.problems] == ["clusters[0]"]


def test_what_waits_may_be_changed_whole():
    plan = carried(order(Verb.UPDATE, draft=change(clusters=["worker-3"])), there=waiting(request("worker-2")))
    amend, place = plan.changes
    assert amend.action is Action.AMEND
    assert (amend.author, amend.detail) == (ADA, "asked for by Ada: clusterNames")
    assert place.action is Action.PLACE
    assert place.placement.cluster == "worker-3"
    assert plan.answers[1].change == 0


def test_a_change_that_leaves_a_step_without_its_entry_is_refused():
    draft = change(steps=[{"name": "ghost", "type": "manifest"}])
    answer = answered(order(Verb.UPDATE, draft=draft), there=waiting(request("worker-2")))
    assert (answer.denial, [problem.field for problem in answer.problems]) == (Denial.INVALID, ["steps[0].name"])


def test_what_is_placed_may_be_given_another_end_and_deletion_policy():
    draft = change(burstDuration="1h", deletionPolicy="Retain", clusters=["worker-2"])
    amend, extend = carried(order(Verb.UPDATE, draft=draft), there=running(request("worker-2"))).changes
    assert amend.action is Action.AMEND
    assert extend.action is Action.EXTEND
    assert (extend.author, extend.after.expires_at) == (ADA, BEGAN + timedelta(hours=1))
    assert extend.after.deletion_policy is DeletionPolicy.RETAIN


def test_nothing_else_of_what_is_placed_may_change():
    draft = change(clusters=["worker-3"], burstDuration="1h")
    plan = carried(order(Verb.UPDATE, draft=draft), there=running(request("worker-2")))
    assert plan.changes == ()
    assert plan.answers[1].denial is Denial.INVALID_UPDATE
    assert plan.answers[1].message == "clusters cannot change: it has its placement"


@pytest.mark.parametrize("status", [Provisioning.COMPLETED, Provisioning.FAILED])
def test_nothing_of_what_is_over_may_change(status: Provisioning):
    ended = Ended(status=status, at=NOW, message="over")
    there = waiting(request("worker-2"), ended=ended)
    plan = carried(order(Verb.UPDATE, draft=change(burstDuration="1h")), there=there)
    assert (plan.changes, plan.answers[1].denial) == ((), Denial.INVALID_UPDATE)


def test_name_and_workspace_never_change():
    draft = change(name="other", workspaceName="llm")
    answer = answered(order(Verb.UPDATE, draft=draft), there=waiting(request("worker-2")))
    assert (answer.denial, [problem.field for problem in answer.problems]) == (Denial.INVALID_UPDATE, ["name"])


def test_an_update_that_says_what_is_so_already_changes_nothing():
    draft = change(burstDuration="15m")
    plan = carried(order(Verb.UPDATE, draft=draft), there=running(request("worker-2")))
    assert (plan.changes, plan.answers[1]) == ((), Answer(workload=BOOKINFO))


def test_what_is_deleted_is_reverted_and_forgotten_in_the_name_of_the_caller():
    plan = carried(order(Verb.DELETE), there=running(request("worker-2")))
    revert, forgotten = plan.changes
    assert revert.action is Action.REVERT
    assert (revert.author, revert.why, revert.detail) == (ADA, EndReason.REQUESTED, "deleted by Ada")
    assert forgotten.action is Action.FORGET
    assert plan.answers[1].change == 1


def test_a_name_that_was_deleted_is_free_again():
    asked = request("worker-2")
    plan = carried(order(Verb.DELETE), creating(asked), there=running(asked))
    assert kinds(plan) == ["Revert", "Forget", "Receive", "Place"]


@pytest.mark.parametrize("status", [Provisioning.COMPLETED, Provisioning.FAILED])
def test_strict_callers_may_not_delete_what_has_been_provisioned(status: Provisioning):
    over = waiting(request("worker-2"), ended=Ended(status=status, at=NOW, message="over"))
    for there in (running(request("worker-2")), over):
        assert answered(order(Verb.DELETE, strict=True), there=there).denial is Denial.DELETION_RESTRICTED
    plan = carried(order(Verb.DELETE, strict=True), there=waiting(request("worker-2")))
    assert kinds(plan) == ["Forget"]


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.DELETE])
def test_what_a_file_asks_for_is_changed_there(verb: Verb):
    asked = replace(request("worker-2"), path="asked.yaml", line=3)
    there = holds(record(request("worker-2"), began_at=BEGAN), placed=[placed("worker-2")])
    answer = answered(order(verb, draft=change(burstDuration="1h")), wanted=wants(asked), there=there)
    assert answer.denial is Denial.INVALID
    assert "asked.yaml:3" in answer.message
    assert "pull request" in answer.message


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.DELETE])
def test_what_is_not_there_is_missing(verb: Verb):
    assert answered(order(verb, draft=change(burstDuration="1h"))).denial is Denial.MISSING


def test_nobody_finds_what_is_not_among_their_workspaces():
    elsewhere = order(Verb.DELETE, workspace=None, within=frozenset({WorkspaceName("vision")}))
    assert answered(elsewhere, there=waiting(request("worker-2"))).denial is Denial.MISSING


def test_a_name_that_two_workspaces_have_needs_the_workspace():
    wanted, other = wants(), WorkspaceName("vision")
    spaces = {**wanted.workspaces, other: Workspace(name=other, primary=ClusterName("worker-1"), clusters=())}
    asked = request("worker-2")
    there = holds(asked_by_api(asked), asked_by_api(replace(asked, workspace=other)))
    answer = answered(order(Verb.DELETE, workspace=None), wanted=replace(wanted, workspaces=spaces), there=there)
    assert (answer.denial, answer.message) == (
        Denial.INVALID,
        "bookinfo may be llm/bookinfo and vision/bookinfo (say which workspace)",
    )


def test_a_record_that_cannot_be_read_is_in_the_way_of_its_name_alone():
    there = holds(blocked=frozenset({BOOKINFO}))
    plan = carried(creating(request("worker-2")), creating(request("worker-2", name="other")), there=there)
    assert [plan.answers[number].denial for number in (1, 2)] == [Denial.INVALID, None]


def test_a_burst_may_be_given_another_end_and_nothing_else():
    one = placement("worker-2")
    longer, other = change(burstDuration="30m"), change(deletionPolicy="Retain")
    seen = {"wanted": desired(), "there": ledger(one)}
    (extend,) = carried(order(Verb.UPDATE, one.name, draft=longer), **seen).changes
    assert extend.action is Action.EXTEND
    assert (extend.author, extend.after.expires_at) == (ADA, one.created_at + timedelta(minutes=30))
    assert answered(order(Verb.UPDATE, one.name, draft=other), **seen).denial is Denial.INVALID_UPDATE


def test_a_burst_may_be_deleted_and_is_held_back():
    one = placement("worker-2")
    (revert,) = carried(order(Verb.DELETE, one.name), wanted=desired(), there=ledger(one)).changes
    assert revert.action is Action.REVERT
    assert revert.author == ADA
    assert revert.restraint is not None
    assert answered(order(Verb.DELETE, one.name, strict=True), wanted=desired(), there=ledger(one)).denial is (
        Denial.DELETION_RESTRICTED
    )


def test_a_placement_of_a_request_is_named_by_its_request():
    one = placed("worker-2")
    answer = answered(order(Verb.DELETE, one.name), there=running(request("worker-2")))
    assert (answer.denial, "name bookinfo" in answer.message) == (Denial.INVALID, True)


def test_what_could_not_be_read_again_is_not_taken():
    metadata = {**deployment()["metadata"], "annotations": {"x": "x" * 2**21}}
    huge = request("worker-2", spec=manifests({**deployment(), "metadata": metadata}))
    answer = answered(order(Verb.CREATE, draft=replace(body(request("worker-2")), spec=huge.spec)))
    assert answer.denial is Denial.INVALID
    assert "over 1 MiB" in answer.message


def test_a_shorter_end_that_has_passed_closes_it():
    plan = carried(order(Verb.UPDATE, draft=change(burstDuration="30s")), there=running(request("worker-2")))
    assert kinds(plan) == ["Amend", "Revert", "Close"]
    close = plan.changes[-1]
    assert close.action is Action.CLOSE
    assert plan.answers[1].denial is None


LAPSED = NOW - LASTING - timedelta(minutes=1)


@pytest.fixture
def lapsed() -> Ledger:
    """Hold a request whose time was over a minute ago, before any pass has seen it."""
    return holds(asked_by_api(request("worker-2"), began_at=LAPSED), placed=[placed("worker-2", created=LAPSED)])


def test_an_end_that_is_moved_just_after_it_has_passed_is_the_one_that_counts(lapsed: Ledger):
    amend, extend = carried(order(Verb.UPDATE, draft=change(burstDuration="2h")), there=lapsed).changes
    assert amend.action is Action.AMEND
    assert extend.action is Action.EXTEND
    assert extend.after.expires_at == LAPSED + timedelta(hours=2)


def test_what_is_deleted_just_after_its_end_is_reverted_once(lapsed: Ledger):
    assert kinds(carried(order(Verb.DELETE), there=lapsed)) == ["Revert", "Forget"]


def test_a_burst_is_given_another_end_or_deleted_just_after_it_has_passed():
    one = placement("worker-2", created=LAPSED)
    longer = carried(
        order(Verb.UPDATE, one.name, draft=change(burstDuration="1h")), wanted=desired(), there=ledger(one)
    )
    assert kinds(longer) == ["Extend"]
    assert kinds(carried(order(Verb.DELETE, one.name), wanted=desired(), there=ledger(one))) == ["Revert"]


def test_orders_are_carried_out_by_priority_only_once_they_are_received():
    low, high = request("worker-2", name="low"), request("worker-2", name="high", terms=GprTerms(priority=200))
    spec = manifests(deployment(8), lasting=LASTING)
    plan = carried(*(creating(replace(one, spec=spec)) for one in (low, high)))
    assert kinds(plan) == ["Receive", "Receive", "Place"]
    assert next(one.placement.workload.name for one in plan.changes if one.action is Action.PLACE) == "high"
