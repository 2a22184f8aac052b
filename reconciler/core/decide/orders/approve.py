"""Answers of people to proposals: a yes on the output branch, and a no that holds the workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.approval import refusal_hold
from reconciler.core.decide.state.gate import describe_places
from reconciler.core.decide.state.order import Order, Ruling
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.ledger.proposal_record import approvals_of, proposal_id
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.approval import BurstProposal, ProposalEnd
from reconciler.model.ids import WorkloadId
from reconciler.model.plan import Change, Plan
from reconciler.model.request import Verb
from reconciler.model.tree import Identity
from reconciler.text.spelling import closest
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, join_names


def find_proposal(proposals: Mapping[WorkloadId, BurstProposal], text: str) -> BurstProposal:
    """Find the proposal of a workload by its name: ``llm/vllm``, or ``vllm`` where only one workspace has it.

    Raises InvalidInput listing what is proposed if none matches.
    """
    known = sorted(proposals)
    matches = [workload for workload in known if text in (str(workload), workload.name)]
    if len(matches) == 1:
        return proposals[matches[0]]
    if matches:
        raise InvalidInput(f"{text!r} is in several workspaces; name one of {join_names(map(str, matches))}")
    if not known:
        raise InvalidInput(f"no burst of {text!r} awaits an approval: nothing is proposed")
    near = closest(text, (name for workload in known for name in (str(workload), workload.name)))
    hint = f"did you mean {near}?" if near else f"proposed are: {join_names(map(str, known))}"
    raise InvalidInput(f"no burst of {text!r} awaits an approval ({hint})")


def plan_approval(inputs: PassInput, proposal: BurstProposal, *, by: Identity, reason: str) -> Plan:
    """Approve a proposal; the next pass places it as it was shown. Raises InvalidInput as `approval` does."""
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # a commit of ours on top would hide it from every later pass
    working_plan.change(approval(working_plan, proposal, by=by, reason=reason))
    return Plan(changes=working_plan.plan().changes)


def plan_rejection(inputs: PassInput, proposal: BurstProposal, *, by: Identity, reason: str) -> Plan:
    """Refuse a proposal, and hold its workload. Raises InvalidInput as `rejection` does."""
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # as above
    working_plan.change(rejection(working_plan, proposal, by=by, reason=reason))
    return Plan(changes=working_plan.plan().changes)


def approval(working_plan: WorkingPlan, proposal: BurstProposal, *, by: Identity, reason: str) -> Change:
    """Make a person's yes. Raises InvalidInput for a proposal that has lapsed, or is approved already."""
    _refuse_settled(working_plan, proposal, "approving")
    return Change(action=Action.APPROVE, proposal=proposal, detail=_words("approved", by, reason), author=by)


def rejection(working_plan: WorkingPlan, proposal: BurstProposal, *, by: Identity, reason: str) -> Change:
    """Make a person's no, and the hold that follows it. Raises InvalidInput for a proposal that is approved already."""
    _refuse_settled(working_plan, proposal, "refusing")
    words = _words("refused", by, reason)
    restraint = refusal_hold(working_plan.inputs, proposal, words)
    return Change(
        action=Action.END_PROPOSAL,
        proposal=proposal,
        why=ProposalEnd.REFUSED,
        detail=words,
        restraint=restraint,
        author=by,
    )


def rule_on_order(inputs: PassInput, working_plan: WorkingPlan, order: Order, ruling: Ruling) -> None:
    """Carry out what an API caller, or the host of the fleet repository, says of a proposal.

    Raises InvalidInput where it is not proposed any more.
    """
    proposal = inputs.ledger.proposals.get(ruling.workload)
    ended = working_plan.proposal_ended(ruling.workload)
    if proposal is None or ended or ruling.proposal not in ("", proposal_id(proposal)):
        raise InvalidInput(f"the proposal of {ruling.workload} has just ended (look at it again)")
    if order.verb is Verb.APPROVE:
        working_plan.change(approval(working_plan, proposal, by=order.author, reason=ruling.reason))
        working_plan.wake(inputs.now + timedelta(seconds=1))  # the pass that places it
    elif order.verb is Verb.REJECT:
        working_plan.change(rejection(working_plan, proposal, by=order.author, reason=ruling.reason))
    else:
        after = replace(
            proposal,
            pull_request=ruling.pull_request or proposal.pull_request,
            foreign=ruling.foreign or proposal.foreign,
        )
        if after != proposal:
            working_plan.change(Change(action=Action.PROPOSE, proposal=after, proposal_before=proposal))


def _refuse_settled(working_plan: WorkingPlan, proposal: BurstProposal, doing: str) -> None:
    inputs = working_plan.inputs
    subject = f"{doing} {proposal.workload} ({describe_places(proposal.placements)})"
    if proposal.until <= inputs.now:
        raise InvalidInput(f"{subject}: it stood until {format_time(proposal.until)} only (wait for the next proposal)")
    if approvals_of(inputs.ledger, proposal) or working_plan.proposal_approved(proposal.workload):
        raise InvalidInput(f"{subject}: it is approved already, and the next pass places it")


def _words(done: str, by: Identity, reason: str) -> str:
    words = f"{done} by {by.name}"
    return f"{words}: {as_clause(reason)}" if as_clause(reason) else words
