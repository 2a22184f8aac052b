"""What to change now: the whole decision, as one pure function of what is wanted, what is there, and what was seen.

The order of the steps is the order of the commits. What people did and ask for comes first, then what ends, then what
comes home, then what moves, then what goes out. Each step sees the placements as the steps before it leave them.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.api_orders import carry_out
from reconciler.core.decide.steps.close_requests import close_what_is_over
from reconciler.core.decide.steps.end import end_what_has_lapsed, end_what_is_not_wanted, move_what_may_not_stay
from reconciler.core.decide.steps.failed import end_what_has_failed
from reconciler.core.decide.steps.follow_requests import follow_files
from reconciler.core.decide.steps.idle import end_what_is_idle
from reconciler.core.decide.steps.lost_cluster import move_what_is_lost
from reconciler.core.decide.steps.manual_changes import respect_people
from reconciler.core.decide.steps.place_requests import requests_that_wait
from reconciler.core.decide.steps.pod_template_update import take_up_other_pods
from reconciler.core.decide.steps.preempt import Evictions
from reconciler.core.decide.steps.queue import serve
from reconciler.core.decide.steps.reschedule import move_on_what_finds_no_node
from reconciler.core.decide.steps.reserve import end_reservations, reservations_that_wait
from reconciler.core.decide.steps.scale_down import give_back_what_is_not_needed
from reconciler.core.decide.steps.scale_up import bursts_that_wait
from reconciler.core.observe.demand import next_signal_change
from reconciler.model.plan import Plan, Suppressed


def decide(inputs: PassInput) -> Plan:
    """Decide what to change, what not to and why, and when to look again. Same inputs, same plan."""
    inputs = inputs.enrolling(inputs.ledger.requests)
    working_plan = WorkingPlan(inputs)
    respect_people(inputs, working_plan)
    carry_out(inputs, working_plan)
    follow_files(inputs, working_plan)
    inputs = inputs.enrolling(working_plan.requests_now())
    finder = CandidateFinder(inputs, working_plan)
    end_what_has_lapsed(inputs, working_plan)
    end_what_has_failed(inputs, working_plan)
    end_what_is_idle(inputs, working_plan)
    end_what_is_not_wanted(inputs, working_plan)
    give_back_what_is_not_needed(inputs, working_plan)
    move_what_may_not_stay(inputs, working_plan, finder)
    take_up_other_pods(inputs, working_plan, finder)
    move_on_what_finds_no_node(inputs, working_plan, finder)
    move_what_is_lost(inputs, working_plan, finder)
    close_what_is_over(inputs, working_plan)
    end_reservations(inputs, working_plan)
    inputs = inputs.enrolling(working_plan.requests_now())
    waiting = [
        *bursts_that_wait(inputs, working_plan, finder),
        *requests_that_wait(inputs, working_plan, finder),
        *reservations_that_wait(inputs, working_plan, finder),
    ]
    serve(waiting, Evictions(inputs=inputs, working_plan=working_plan, finder=finder).after)
    working_plan.look_again(next_signal_change(inputs.reach.scheduled(), inputs.now))
    return working_plan.plan()


def receive(inputs: PassInput, held: tuple[Suppressed, ...]) -> Plan:
    """Decide only what callers order, and leave everything else to the pass that has to follow.

    `held` is what the last whole pass held back, which goes for all that is not changed here. What people did comes
    first all the same: a commit of ours on top would hide it.
    """
    inputs = inputs.enrolling(inputs.ledger.requests)
    working_plan = WorkingPlan(inputs)
    respect_people(inputs, working_plan)
    carry_out(inputs, working_plan)
    plan = working_plan.plan()
    changed = {answer.workload for answer in plan.answers.values() if answer.change is not None}
    still = (one for one in held if one.workload not in changed)
    return replace(plan, suppressed=(*plan.suppressed, *still), wake_at=inputs.now)


def sweep(inputs: PassInput) -> Plan:
    """Decide only what needs the output branch alone: respect what people did, and end what has lapsed."""
    working_plan = WorkingPlan(inputs)
    respect_people(inputs, working_plan)
    end_what_has_lapsed(inputs, working_plan)
    return working_plan.plan()
