"""Approval: a burst that a person has to approve is proposed first, and placed as it was shown or not at all.

A pass is decided as if nothing had to be approved, then anew with what has to be as proposals: so a proposal shows what
would be placed, and takes room from nobody (docs/decisions/0030-bursts-are-approved-in-git.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.state.gate import (
    Bursts,
    Gate,
    Gates,
    GateState,
    describe_places,
    is_as_shown,
    is_dearer,
    needs_approval,
    proposed_placements,
)
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.ledger import lifecycle
from reconciler.core.ledger.proposal_record import approvals_of
from reconciler.core.observe.demand import UnseenPrimary, next_peak_change, peak_missing
from reconciler.model.action import Action
from reconciler.model.approval import BurstProposal, ProposalEnd, ProposedPlacement
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Change, Plan, Reason, ReasonTraits, Shortage, Suppressed
from reconciler.model.policy import BurstPolicy, Renewal
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, conjugate, count, sanitize

SETTLED = timedelta(minutes=5)
"""Time for which a proposal stands unless its demand goes or it is answered, so that a reviewer reads what stays."""
LEAST_HOLD = timedelta(minutes=5)
"""Time without another proposal after a refusal, where the policy holds for less."""
_MOST_CAUSES = 3
_ROUNDS = 5
"""Times that a pass is decided anew since something has to be approved first; nearly always once is enough."""


def uses_approval(inputs: PassInput) -> bool:
    """Tell whether a policy asks for approval, or the ledger has a proposal or an approval."""
    ledger = inputs.ledger
    return bool(ledger.proposals or ledger.approvals or inputs.reach.asks_approval())


def _gates_at_first(inputs: PassInput) -> Gates:
    """Return the gates of the proposals on the output branch: open, closed, or at their end."""
    return {workload: _gate(inputs, proposal) for workload, proposal in inputs.ledger.proposals.items()}


def _gate(inputs: PassInput, proposal: BurstProposal) -> Gate:
    workload, desired, now = proposal.workload, inputs.desired, inputs.now
    policy, demand = desired.policies.get(workload), inputs.demands.get(workload)
    approvals = approvals_of(inputs.ledger, proposal)
    gate = Gate(proposal=proposal, approvals=approvals)
    # 1. Its time is over.
    if proposal.until <= now:
        time = format_time(proposal.until)
        if approvals:
            return gate.ended(ProposalEnd.NOT_PLACED, f"it was approved, and stood until {time} only")
        why = f"nobody approved it until {time}"
        return gate.ended(ProposalEnd.TIMED_OUT, why, refusal_hold(inputs, proposal, why))
    # 2. No policy asks for its approval any more.
    if policy is None and not inputs.absence_counts:
        return gate
    if policy is None:
        return gate.ended(ProposalEnd.WITHDRAWN, "no policy lets it burst any more")
    if policy.approval is None:
        return gate.ended(ProposalEnd.WITHDRAWN, f"policy {policy.name} asks for no approval any more")
    # 3. It is held back, as by a person who ended a burst of it.
    held = next(
        (
            restraint
            for restraint in inputs.ledger.restraints.get(workload, ())
            if restraint.cluster is None and restraint.kind is not RestraintKind.TURN and now < restraint.until
        ),
        None,
    )
    if held is not None:
        return gate.ended(ProposalEnd.WITHDRAWN, f"it is held back: {as_clause(held.reason)}")
    # 4. Its demand has gone, or nobody sees it.
    if isinstance(demand, UnseenPrimary) or demand is None:
        return replace(gate, why="" if demand is None else demand.message)
    if demand.stale:
        return replace(gate, why=demand.stale[0])
    placed = inputs.ledger.placements.of(workload).replicas
    if demand.missing <= placed:
        return _unneeded(inputs, gate, demand, policy, placed)
    # 5. Less is missing than was shown.
    missing = demand.missing - placed
    if missing < proposal.replicas:
        verb = conjugate(missing, "is")
        why = f"{missing} of its {count(proposal.replicas, 'replica')} {verb} missing on {demand.primary} now"
        if approvals:
            return gate.ended(ProposalEnd.NOT_PLACED, why)
        settled = now >= proposal.proposed_at + SETTLED
        return replace(gate, state=GateState.TRIAL if settled else GateState.WAITING, why=why)
    # 6. It is approved, or waits.
    return replace(gate, state=GateState.OPEN if approvals else GateState.WAITING)


def _unneeded(inputs: PassInput, gate: Gate, demand: Demand, policy: BurstPolicy, placed: int) -> Gate:
    """Withdraw a proposal whose demand has been gone for the scale-down window; what is approved is not awaited."""
    why = f"nothing is missing on {demand.primary} any more"
    if gate.approvals:
        return gate.ended(ProposalEnd.NOT_PLACED, why)
    peak = peak_missing(demand, policy.scale_down_window, inputs.seen_at(demand))
    if peak is None or peak > placed:
        return gate
    return gate.ended(ProposalEnd.WITHDRAWN, why)


def refusal_hold(inputs: PassInput, proposal: BurstProposal, why: str) -> Restraint:
    """Hold a workload whose proposal was refused, or answered by nobody, off all clusters."""
    policy = inputs.desired.policies.get(proposal.workload) or BurstPolicy(name="")
    return Restraint(
        kind=RestraintKind.HOLD,
        cluster=None,
        since=inputs.now,
        until=inputs.now + max(policy.hold, LEAST_HOLD),
        reason=f"its burst was not approved: {why}",
        placement=lifecycle.placement_name(proposal.workload, proposal.placements[0].cluster, proposal.proposed_at),
    )


def settle_gates(inputs: PassInput, decide: Callable[[Gates], tuple[Plan, Bursts]]) -> Plan:
    """Decide a pass, anew until nothing is placed that has to be approved first.

    In the first round it shows; what then goes to others in its place may have to be approved too. In the last round
    all that may need an approval waits for the next pass.
    """
    gates = _gates_at_first(inputs)
    for _ in range(_ROUNDS):
        plan, bursts = decide(gates)
        after = _review(inputs, gates, plan, bursts)
        if after == gates:
            return plan
        gates = after
    return decide(_all_closed(inputs, gates))[0]


def _all_closed(inputs: PassInput, gates: Gates) -> Gates:
    """Return gates by which nothing is placed that may need an approval: the next pass goes on from here."""
    stays = (GateState.NEW, GateState.ENDED)
    closed = {
        workload: gate if gate.state in stays else replace(gate, state=GateState.TRIED)
        for workload, gate in gates.items()
    }
    for workload, policy in inputs.desired.policies.items():
        gate = closed.get(workload)
        if policy.approval is not None and (gate is None or not gate.state.is_closed):
            closed[workload] = _next_pass(inputs, workload, gate)
    return closed


def _next_pass(inputs: PassInput, workload: WorkloadId, before: Gate | None) -> Gate:
    """Return the gate of a workload on which this pass has not come to a decision, beside the end of a proposal."""
    soon = inputs.now + timedelta(seconds=1)
    proposal = BurstProposal(
        workload=workload, policy="", proposed_at=inputs.now, until=soon, reason="", renewals="", placements=()
    )
    return Gate(proposal=proposal, state=GateState.TRIED, before=before)


def settle_proposals(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """End the proposals whose end this pass decides, and remove approvals of what is proposed no more."""
    for workload, gate in sorted(working_plan.gates.items(), key=lambda entry: entry[0]):
        ended = _ended(gate)
        if ended is None or working_plan.proposal_ended(workload):
            continue
        working_plan.change(
            Change(
                action=Action.END_PROPOSAL,
                proposal=ended.proposal,
                why=ended.end or ProposalEnd.REPLACED,
                detail=ended.why,
                approvals=ended.approvals,
                restraint=ended.restraint,
            )
        )
    for path, approval in inputs.ledger.approvals.items():
        proposal = inputs.ledger.proposals.get(approval.proposal.workload)
        if proposal is None or proposal.shown != approval.proposal:
            why = "what it approves is not proposed any more"
            end = Change(
                action=Action.END_PROPOSAL,
                proposal=approval.proposal,
                why=ProposalEnd.TOO_LATE,
                detail=why,
                approvals=(path,),
            )
            working_plan.change(end)


def _ended(gate: Gate) -> Gate | None:
    """Return the gate of a proposal that this pass ends, with the reason."""
    # 1. It is placed.
    if gate.state is GateState.OPEN:
        return gate.ended(ProposalEnd.APPROVED, "it is placed as it was shown")
    # 2. Another one takes its place.
    ended = gate.before or gate
    if gate.before is not None and ended.state is not GateState.ENDED:
        return ended.ended(ProposalEnd.REPLACED, ended.why)
    # 3. It ends by itself.
    return ended if ended.state is GateState.ENDED else None


def propose_bursts(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Propose what this pass found to need approval, and wake when a proposal lapses."""
    for workload, gate in sorted(working_plan.gates.items(), key=lambda entry: entry[0]):
        if gate.state is GateState.NEW and not working_plan.proposal_ended(workload, but_replaced=True):
            working_plan.change(Change(action=Action.PROPOSE, proposal=gate.proposal))
        if gate.state is not GateState.ENDED:
            working_plan.wake(gate.proposal.until)
            _wake_to_withdraw(inputs, working_plan, workload)


def _wake_to_withdraw(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> None:
    demand, policy = inputs.demands.get(workload), inputs.desired.policies.get(workload)
    if isinstance(demand, Demand) and policy is not None and not demand.missing:
        working_plan.wake(next_peak_change(demand, policy.scale_down_window, inputs.seen_at(demand)))


def _review(inputs: PassInput, gates: Gates, plan: Plan, bursts: Bursts) -> Gates:
    """Return the gates for which the pass is to be decided anew; equal ones where it stands."""
    of_missing = [entry for entry in plan.suppressed if not entry.reason.has(ReasonTraits.OF_STANDING)]
    held = {entry.workload: entry for entry in of_missing if entry.reason is not Reason.SCALE_UP_WINDOW}
    held |= {entry.workload: entry for entry in of_missing if entry.reason is Reason.AWAITING_APPROVAL}
    after = dict(gates)
    for workload, gate in gates.items():
        made, suppressed = bursts.get(workload, ()), held.get(workload)
        match gate.state:
            case GateState.OPEN:
                after[workload] = _checked(inputs, gate, made, suppressed)
            case GateState.TRIAL:
                after[workload] = _tried(inputs, gate, workload, made)
            case GateState.WAITING:
                after[workload] = _reconsidered(inputs, gate, suppressed)
            case _:
                pass
    for workload, placed in bursts.items():
        before = gates.get(workload)
        if (before is None or before.state is GateState.ENDED) and _needs(inputs, workload, placed):
            after[workload] = _new_gate(inputs, workload, placed, before)
    return after


def _needs(inputs: PassInput, workload: WorkloadId, made: Sequence[Change]) -> bool:
    """Tell whether what a turn has placed has to be approved first."""
    policy = inputs.desired.policies.get(workload)
    rule = None if policy is None else policy.approval
    return bool(made) and rule is not None and needs_approval(inputs, rule, made)


def _new_gate(inputs: PassInput, workload: WorkloadId, made: Sequence[Change], before: Gate | None) -> Gate:
    proposal = _proposal(inputs, workload, inputs.desired.policies[workload], made)
    return Gate(proposal=proposal, state=GateState.NEW, before=before)


def _checked(inputs: PassInput, gate: Gate, made: Sequence[Change], suppressed: Suppressed | None) -> Gate:
    """Keep a gate open whose turn has placed what was shown; else end its proposal with the reason, or let it wait."""
    now, shown, policy = (
        proposed_placements(inputs, made),
        gate.proposal,
        inputs.desired.policies.get(gate.proposal.workload),
    )
    # 1. It would last otherwise than was shown.
    renewals = shown.renewals if policy is None else _renewals(inputs, shown.workload, policy)
    if renewals != shown.renewals:
        why = f"{renewals}, and it was shown that {shown.renewals}"
        return gate.ended(ProposalEnd.NOT_PLACED, why)
    # 2. It is placed.
    if is_as_shown(shown.placements, now):
        return gate
    # 3. A cluster is out of sight, or charts are being rendered, which may be over in a minute.
    refusals = () if suppressed is None else suppressed.refusals
    if not made and refusals and all(refusal.reason.has(ReasonTraits.PASSING) for refusal in refusals):
        return replace(gate, state=GateState.TRIED, why=as_clause(refusals[0].message))
    # 4. It cannot be placed, or is another burst now.
    why = "nothing can be placed now" if suppressed is None else as_clause(suppressed.message)
    if refusals:
        first = refusals[0]
        why = f"{first.where}: {as_clause(first.message)}{f' ({first.remedy})' if first.remedy else ''}"
    if made:
        why = f"what would be placed now is not what was shown: {describe_difference(gate.proposal.placements, now)}"
    return gate.ended(ProposalEnd.NOT_PLACED, why)


def _tried(inputs: PassInput, gate: Gate, workload: WorkloadId, made: Sequence[Change]) -> Gate:
    """Propose what a trial would place; the proposal stands where that is nothing else."""
    stands = replace(gate, state=GateState.TRIED)
    now = proposed_placements(inputs, made)
    if not made or now == gate.proposal.placements:
        return stands
    if _needs(inputs, workload, made):
        return _new_gate(inputs, workload, made, stands)
    why = "what can be placed now needs no approval"
    return stands.ended(ProposalEnd.WITHDRAWN, why)


def _reconsidered(inputs: PassInput, gate: Gate, suppressed: Suppressed | None) -> Gate:
    """Try what else could be proposed than a proposal that cannot be placed as it stands."""
    settled = inputs.now >= gate.proposal.proposed_at + SETTLED
    if suppressed is None or not suppressed.refusals or not settled or gate.approvals:
        return gate
    return replace(gate, state=GateState.TRIAL, why=f"now {as_clause(suppressed.refusals[0].message)}")


def _proposal(inputs: PassInput, workload: WorkloadId, policy: BurstPolicy, made: Sequence[Change]) -> BurstProposal:
    if policy.approval is None:
        raise AssertionError("only what needs approval is proposed")
    return BurstProposal(
        workload=workload,
        policy=policy.name,
        proposed_at=inputs.now,
        until=inputs.now + policy.approval.stands_for,
        reason=_reason(next((change.shortage for change in made if change.shortage is not None), None), made[0].detail),
        renewals=_renewals(inputs, workload, policy),
        placements=proposed_placements(inputs, made),
    )


def _reason(shortage: Shortage | None, detail: str) -> str:
    if shortage is None:
        return sanitize(detail)
    causes = [*shortage.causes, *shortage.asks][:_MOST_CAUSES]
    waited = f" for {format_duration(shortage.waited)}" if shortage.waited else ""
    why = f": {', '.join(causes)}" if causes else ""
    missing, spare = shortage.replicas - shortage.spare, shortage.spare
    beforehand = f", and {spare} wanted beforehand" if missing and spare else ""
    if not missing:
        return sanitize(f"{count(spare, 'replica')} wanted beforehand for {shortage.primary}{why}")
    return sanitize(f"{count(missing, 'replica')} missing on {shortage.primary}{waited}{beforehand}{why}")


def _renewals(inputs: PassInput, workload: WorkloadId, policy: BurstPolicy) -> str:
    longest = lifecycle.longest_duration(policy, inputs.desired.limits.get(workload.workspace))
    template = inputs.desired.templates[workload]
    if lifecycle.renewal(template, policy) is Renewal.NEVER:
        return "it is not renewed"
    most = f", {format_duration(longest)} in all at most" if longest is not None else ""
    return f"it is renewed while it {'runs' if template.runs_once else 'is needed'}{most}"


def describe_difference(shown: Sequence[ProposedPlacement], now: Sequence[ProposedPlacement]) -> str:
    """Say in what placements differ from what was shown."""
    by_place = {(placement.cluster, placement.subset): placement for placement in shown}
    for placement in now:
        before = by_place.get((placement.cluster, placement.subset))
        if before is None or (before.replicas, before.beside) != (placement.replicas, placement.beside):
            break
        if is_dearer(before.price_per_gpu_hour, placement.price_per_gpu_hour):
            return f"{_price(placement)} on {placement.where}, and {_price(before)} were shown"
        if before.gpus != placement.gpus:
            return f"{count(placement.gpus, 'GPU')} on {placement.where}, and {before.gpus} were shown"
        if before.duration != placement.duration and not placement.beside:
            lasts = format_duration(placement.duration)
            return f"{lasts} on {placement.where}, and {format_duration(before.duration)} were shown"
    return f"{describe_places(now)}, and {describe_places(shown)} were shown"


def _price(placement: ProposedPlacement) -> str:
    price = placement.price_per_gpu_hour
    return "an unknown price" if price is None else f"{price:.2f} $/GPU-h"
