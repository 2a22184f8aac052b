"""The decision of one pass, as a pure function: what to change, what not to and why, and when to look again.

These rules hold of every plan, whatever the fleet is and whatever kinds of workload are in it. Random chains of passes
in `tests/oracle` try each of them:

1. The same input gives the same plan, and a decision writes nothing into its input: what it works out from files alone,
   such as the order of clusters, is in the memory of the passes. Neither that memory nor the assessments that a caller
   asks for change the plan.
2. Nothing begins, grows or arrives beyond the free capacity of a cluster, a limit (policy, cluster, subset, GPR) or a
   budget, nor where files, taints, health or a restraint keep newcomers out.
3. No workload gets more replicas elsewhere than its primary misses. What it has beyond that stays until it has been
   surplus for all of `scaleDown.window`, or ends.
4. Units stay whole: a copy, a gang and a run have one cluster each (docs/decisions/0036).
5. What runs once has one placement at most, and time alone never begins it a second time (docs/decisions/0038).
6. Nothing outlives its `expires_at`. Expiries are decided first and need no view of any cluster.
7. What the files no longer allow on a cluster leaves it in the same pass, and is never renewed there. What would leave
   for another cause (a lost cluster, pods without a node, a bound) and has room nowhere else stays, and is renewed as
   anything that is needed: it may serve still, or again, and nothing would come in its place.
8. Replicas that cannot run where they are leave at most `moves.maxPerHour` times within an hour.
9. Lower bounds (`minClusters`, `minGroups`) hold for standing and new replicas together, or the plan says that they
   do not.
10. Demand that is not met stands in `Plan.suppressed`, with its reason and the clusters that were refused.
11. An exception that nothing foresaw costs its own workload the decision, and no other.

A pass over one burst, for example: `llm/vllm` misses three replicas on worker-1 and has one on worker-2, which has
just got a NoExecute taint. `move_excluded` lets that replica leave, and `relocate` puts it on worker-3. Then the turn
of `llm/vllm` comes: two replicas are still missing, worker-2 is refused as Tainted, and worker-3 has room for them. The
plan is a Move and a Resize, in this order, which become two commits.

The order of the steps is the order of the commits: manual changes and orders first, then placements that end, scale
down, move, and at last those that begin. Each step sees the placements as the steps before it leave them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.approval import propose_bursts, settle_gates, settle_proposals, uses_approval
from reconciler.core.decide.assign.assessments import kept_turn
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.orders.api_orders import carry_out_orders
from reconciler.core.decide.state.gate import NO_GATES, Bursts, Gates
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.core.decide.state.working_plan import Frozen, WorkingPlan
from reconciler.core.decide.steps.burst_turns import burst_turns
from reconciler.core.decide.steps.close_requests import close_finished
from reconciler.core.decide.steps.end import end_expired, end_unwanted
from reconciler.core.decide.steps.excluded import move_excluded
from reconciler.core.decide.steps.failed import end_failed
from reconciler.core.decide.steps.follow_requests import follow_request_files
from reconciler.core.decide.steps.idle import end_idle
from reconciler.core.decide.steps.lost_cluster import leave_lost_clusters
from reconciler.core.decide.steps.lower_bounds import restore_lower_bounds, tell_unmet_bounds
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.decide.steps.mass_deletion import hold_deleted
from reconciler.core.decide.steps.place_requests import request_turns
from reconciler.core.decide.steps.pod_template_update import update_pod_templates
from reconciler.core.decide.steps.preempt import Preemption
from reconciler.core.decide.steps.renew import renew_needed, wake_to_renew
from reconciler.core.decide.steps.reserve import end_reservations, reservation_turns
from reconciler.core.decide.steps.scale_down import follow_subset_maximums, scale_down
from reconciler.core.decide.steps.source_update import update_to_sources
from reconciler.core.decide.steps.succeeded import end_succeeded
from reconciler.core.decide.steps.unschedulable import move_unschedulable
from reconciler.core.decide.turns.fair_share import FairShares
from reconciler.core.decide.turns.queue import InOrder, Rule, ToQuota, Turn
from reconciler.core.fleet.spread.drafts import SubsetDrafts
from reconciler.core.observe.demand import next_signal_change
from reconciler.errors import Bug
from reconciler.model.ids import WorkloadId
from reconciler.model.plan import Plan, Reason, Suppressed

_ROUNDS = 5
"""Times that a pass is decided anew without the workloads of which a decision failed; nearly always once is enough."""


def decide(inputs: PassInput, memory: PassMemory | None = None, *, keep: Collection[WorkloadId] = ()) -> Plan:
    """Decide a whole pass. The same input gives the same plan, and is left as it is.

    A `memory` of the passes before spares work and changes no plan; only one decision at a time may have it. The plan
    has the assessments of the workloads to `keep` them of, each as its turn has made it.

    A workload of which no decision can be made, since an exception that nothing foresaw gets in the way, keeps its
    placements until they expire; the pass is decided anew without it, as if it had not begun with it. Orders alike.
    """
    memory = PassMemory() if memory is None else memory
    inputs = memory.own(inputs)
    drafts = SubsetDrafts(inputs.drafted, inputs.fleet, inputs.reach.patched, inputs.now)
    decide_turns = partial(_decide_turns, inputs, memory, drafts=drafts, keep=keep)
    plan = settle_gates(inputs, decide_turns) if uses_approval(inputs) else decide_turns(NO_GATES)[0]
    return replace(plan, drafted=drafts.drafted())


def _decide_turns(
    inputs: PassInput, memory: PassMemory, gates: Gates, *, drafts: SubsetDrafts, keep: Collection[WorkloadId]
) -> tuple[Plan, Bursts]:
    in_order = InOrder()
    decided = _decide(inputs, partial(_decide_all, rule=in_order), memory, gates, drafts=drafts, keep=keep)
    if not in_order.quotas:
        return decided
    to_quota = partial(_decide_all, rule=ToQuota(in_order.quotas))
    return _decide(inputs, to_quota, memory, gates, drafts=drafts, keep=keep)


def _decide(
    inputs: PassInput,
    steps: Callable[[WorkingPlan], None],
    memory: PassMemory,
    gates: Gates = NO_GATES,
    *,
    drafts: SubsetDrafts | None = None,
    keep: Collection[WorkloadId] = (),
) -> tuple[Plan, Bursts]:
    """Decide, again with those frozen of which a decision has failed, until none fails any more.

    Where others fail in each round, placements that have expired end, and nothing else is decided.
    """
    bugs: dict[Bug, None] = {}
    frozen: Frozen = {}
    for _ in range(_ROUNDS):
        working_plan = WorkingPlan(inputs, frozen, gates, memory=memory, drafts=drafts, keep=keep)
        steps(working_plan)
        failed = {about: bug for about, bug in working_plan.bugs.items() if about not in frozen}
        if not failed:
            return working_plan.plan(), working_plan.bursts
        frozen = {**frozen, **failed}
        bugs.update(dict.fromkeys((*failed.values(), *working_plan.plan().bugs)))
    swept = sweep(inputs)
    return replace(swept, bugs=tuple(dict.fromkeys((*bugs, *swept.bugs)))), {}


def _decide_all(working_plan: WorkingPlan, rule: Rule) -> None:
    _note_frozen(working_plan)
    _follow_people(working_plan.inputs, working_plan)
    settle_proposals(working_plan.inputs, working_plan)
    finder = CandidateFinder(working_plan.inputs, working_plan)
    _end_and_move(working_plan.inputs, working_plan, finder)
    _begin(working_plan.inputs, working_plan, finder, rule)


def _note_frozen(working_plan: WorkingPlan) -> None:
    """Note of each frozen workload why nothing is decided on it."""
    for workload, bug in working_plan.frozen.items():
        if isinstance(workload, WorkloadId):
            message = f"{bug.summary}; its placements stay as they are until they expire"
            working_plan.suppress(Suppressed(workload=workload, reason=Reason.BUG, message=message))


def _follow_people(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """1. Take in the changes that people made by hand, by the API and by files."""
    follow_manual_changes(inputs, working_plan)
    carry_out_orders(inputs, working_plan)
    follow_request_files(inputs, working_plan)


def _end_and_move(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """2. End, shrink and move placements, then close the requests that have none left."""
    end_expired(inputs, working_plan)
    end_succeeded(inputs, working_plan)
    end_failed(inputs, working_plan)
    end_idle(inputs, working_plan)
    end_unwanted(inputs, working_plan)
    hold_deleted(inputs, working_plan)
    scale_down(inputs, working_plan)
    move_excluded(inputs, working_plan, finder)
    update_pod_templates(inputs, working_plan, finder)
    update_to_sources(inputs, working_plan)
    leave_lost_clusters(inputs, working_plan, finder)
    move_unschedulable(inputs, working_plan, finder)
    restore_lower_bounds(inputs, working_plan, finder)
    follow_subset_maximums(inputs, working_plan)
    close_finished(inputs, working_plan)
    end_reservations(inputs, working_plan)


def _begin(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, rule: Rule) -> None:
    """3. Place bursts, requests and reservations, the most urgent first; renew what is needed, or give its room on."""
    shares = FairShares(inputs, working_plan)
    waiting = [
        *burst_turns(inputs, working_plan, finder, shares),
        *request_turns(inputs, working_plan, finder),
        *reservation_turns(inputs, working_plan, finder),
    ]
    preemption = Preemption(
        inputs=inputs, working_plan=working_plan, finder=finder, shares=FairShares(inputs, working_plan)
    )
    rule.serve(
        waiting,
        partial(_make_room, working_plan, preemption),
        lambda turn: working_plan.decide(turn.workload, turn.take),
        working_plan,
        shares,
    )
    _complete_assessments(working_plan, finder)
    propose_bursts(inputs, working_plan)
    tell_unmet_bounds(inputs, working_plan, finder)
    renew_needed(inputs, working_plan, finder, waiting)
    wake_to_renew(inputs, working_plan)
    change = attempt(Seam.SIGNAL, "schedules", lambda: next_signal_change(inputs.reach.scheduled(), inputs.now))
    if isinstance(change, Bug):
        working_plan.note_bug(change)
    else:
        working_plan.wake_at_signal(change)


def _complete_assessments(working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Assess the workloads that have had no turn, and add the shares, of those whose assessments the plan keeps."""
    kept, shares = working_plan.kept, FairShares(working_plan.inputs, working_plan)
    for workload in sorted(kept.workloads):
        if workload not in kept.assessments:
            working_plan.decide(workload, kept_turn(working_plan, finder, workload, lambda: None))
        if workload in kept.assessments:
            share = working_plan.decide(workload, partial(shares.where_short, workload))
            kept.assessments[workload] = replace(kept.assessments[workload], share=share)


def _make_room(working_plan: WorkingPlan, preemption: Preemption, turn: Turn) -> tuple[Turn, ...]:
    """Evict for a workload that has found no room in its turn, and return the turns of the evicted."""
    if not preemption.may_evict():
        return ()
    return working_plan.decide(turn.workload, partial(preemption.make_room, turn)) or ()


def receive(inputs: PassInput, held: tuple[Suppressed, ...]) -> Plan:
    """Decide only the orders of callers, and leave everything else to the pass that has to follow.

    `held` is what the last whole pass suppressed, which stays so for all workloads that are not changed here. Manual
    changes come first all the same: a later commit would hide them.
    """
    memory = PassMemory()
    plan, _ = _decide(memory.own(inputs), _receive, memory)
    changed = {answer.workload for answer in plan.answers.values() if answer.change is not None}
    still = (suppressed for suppressed in held if suppressed.workload not in changed)
    return replace(plan, suppressed=(*plan.suppressed, *still), wake_at=inputs.now)


def _receive(working_plan: WorkingPlan) -> None:
    inputs = working_plan.inputs
    _note_frozen(working_plan)
    follow_manual_changes(inputs, working_plan)
    carry_out_orders(inputs, working_plan)


def sweep(inputs: PassInput) -> Plan:
    """Decide only what needs the output branch alone: follow manual changes, and end expired placements."""
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)
    end_expired(inputs, working_plan)
    return replace(working_plan.plan(), bugs=(*working_plan.bugs.values(), *working_plan.other_bugs))
