"""Approval and refusal of the burst that awaits it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from reconciler.access.rights import AccessRole
from reconciler.api import orders
from reconciler.api.refusal import HttpError
from reconciler.api.security.callers import require_role
from reconciler.core.decide.orders.approve import plan_approval, plan_rejection
from reconciler.core.decide.state.gate import describe_places
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.ledger.proposal_record import proposal_id
from reconciler.errors import InvalidInput
from reconciler.model.approval import BurstProposal
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Plan
from reconciler.model.request import Verb
from reconciler.web.actions.action import Desk, OrderPreview, PageAction, draft_messages
from reconciler.web.actions.form import Form, Given, hidden, read_reason, reason_field
from reconciler.web.viewer import Viewer


def _proposal(viewer: Viewer, given: Given) -> BurstProposal:
    """Return the proposal that is meant; raises HttpError where it is not the viewer's to answer."""
    workspace, _, name = given.get("workload", "").partition("/")
    require_role(viewer.caller, AccessRole.OWNER, WorkspaceName(workspace))
    workload = WorkloadId(WorkspaceName(workspace), TemplateName(name))
    proposal = viewer.snapshot.decision.inputs.ledger.proposals.get(workload)
    if proposal is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"no burst of {workload} awaits an approval")
    return proposal


def _ruling_form(viewer: Viewer, given: Given) -> Form:
    proposal = _proposal(viewer, given)
    shown = hidden("proposal", given.get("proposal", "") or proposal_id(proposal))
    fields = hidden("workload", str(proposal.workload)), shown, reason_field(given)
    return Form(about=str(proposal.workload), fields=fields)


def _rule(verb: Verb, plan: Callable[..., Plan], viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    """Answer the proposal that the page has shown; one that has taken its place is not meant."""
    proposal, reason, author = _proposal(viewer, given), read_reason(given), orders.author(viewer.caller)
    if given.get("proposal", "") not in ("", proposal_id(proposal)):
        raise InvalidInput(f"the proposal of {proposal.workload} has just ended (look at it again)")

    def decide(inputs: PassInput) -> Plan:
        return plan(inputs, proposal=proposal, by=author, reason=reason)

    places, price = describe_places(proposal.placements), proposal.dollars_per_hour
    cost = "" if price is None else f", {price:.2f} $ an hour"
    return OrderPreview(
        order=orders.ruling(proposal, verb, author, reason),
        sentence=f"{places} for {proposal.workload}{cost}: {proposal.reason}; {proposal.renewals}.",
        messages=draft_messages(desk, viewer, decide),
    )


APPROVE = PageAction(
    title="Approve a burst",
    words="The next pass places exactly what is shown here, or says why it cannot.",
    button="Approve it",
    form=_ruling_form,
    preview=partial(_rule, Verb.APPROVE, plan_approval),
)
REJECT = PageAction(
    title="Refuse a burst",
    words="Nothing of it is placed, and its workload is held back until its demand has gone once or the hold ends.",
    button="Refuse it",
    grave=True,
    form=_ruling_form,
    preview=partial(_rule, Verb.REJECT, plan_rejection),
)
