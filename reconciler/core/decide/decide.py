"""The decision of one pass, as a pure function: what to change, what not to and why, and when to look again.

The order of the steps is the order of the commits: manual changes and orders first, then placements that end, scale
down, move, and at last those that begin. Each step sees the placements as the steps before it leave them.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.api_orders import carry_out_orders
from reconciler.core.decide.steps.close_requests import close_finished
from reconciler.core.decide.steps.end import end_expired, end_unwanted, move_banned
from reconciler.core.decide.steps.failed import end_failed
from reconciler.core.decide.steps.follow_requests import follow_request_files
from reconciler.core.decide.steps.idle import end_idle
from reconciler.core.decide.steps.lost_cluster import leave_lost_clusters
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.decide.steps.place_requests import request_turns
from reconciler.core.decide.steps.pod_template_update import update_pod_templates
from reconciler.core.decide.steps.preempt import Preemption
from reconciler.core.decide.steps.queue import serve
from reconciler.core.decide.steps.reschedule import reschedule_unschedulable
from reconciler.core.decide.steps.reserve import end_reservations, reservation_turns
from reconciler.core.decide.steps.scale_down import scale_down
from reconciler.core.decide.steps.scale_up import burst_turns
from reconciler.core.observe.demand import next_signal_change
from reconciler.model.plan import Plan, Suppressed


def decide(inputs: PassInput) -> Plan:
    """Decide a whole pass. The same input gives the same plan."""
    inputs = inputs.enrolling(inputs.ledger.requests)
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)
    carry_out_orders(inputs, working_plan)
    follow_request_files(inputs, working_plan)
    inputs = inputs.enrolling(working_plan.requests_now())
    finder = CandidateFinder(inputs, working_plan)
    end_expired(inputs, working_plan)
    end_failed(inputs, working_plan)
    end_idle(inputs, working_plan)
    end_unwanted(inputs, working_plan)
    scale_down(inputs, working_plan)
    move_banned(inputs, working_plan, finder)
    update_pod_templates(inputs, working_plan, finder)
    reschedule_unschedulable(inputs, working_plan, finder)
    leave_lost_clusters(inputs, working_plan, finder)
    close_finished(inputs, working_plan)
    end_reservations(inputs, working_plan)
    inputs = inputs.enrolling(working_plan.requests_now())
    waiting = [
        *burst_turns(inputs, working_plan, finder),
        *request_turns(inputs, working_plan, finder),
        *reservation_turns(inputs, working_plan, finder),
    ]
    serve(waiting, Preemption(inputs=inputs, working_plan=working_plan, finder=finder).make_room)
    working_plan.wake_at_signal(next_signal_change(inputs.reach.scheduled(), inputs.now))
    return working_plan.plan()


def receive(inputs: PassInput, held: tuple[Suppressed, ...]) -> Plan:
    """Decide only the orders of callers, and leave everything else to the pass that has to follow.

    `held` is what the last whole pass suppressed, which stays so for all workloads that are not changed here. Manual
    changes come first all the same: a later commit would hide them.
    """
    inputs = inputs.enrolling(inputs.ledger.requests)
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)
    carry_out_orders(inputs, working_plan)
    plan = working_plan.plan()
    changed = {answer.workload for answer in plan.answers.values() if answer.change is not None}
    still = (suppressed for suppressed in held if suppressed.workload not in changed)
    return replace(plan, suppressed=(*plan.suppressed, *still), wake_at=inputs.now)


def sweep(inputs: PassInput) -> Plan:
    """Decide only what needs the output branch alone: follow manual changes, and end expired placements."""
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)
    end_expired(inputs, working_plan)
    return working_plan.plan()
