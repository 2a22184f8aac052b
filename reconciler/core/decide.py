"""What to change now: the whole decision, as one pure function of what is wanted, what is there, and what was seen.

The order of the steps is the order of the commits. What people did and ask for comes first, then what ends, then what
comes home, then what moves, then what goes out. Each step sees the placements as the steps before it leave them.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.carrying import carry_out
from reconciler.core.ending import end_what_has_lapsed, end_what_is_not_wanted, move_what_may_not_stay
from reconciler.core.evicting import Evictions
from reconciler.core.failing import end_what_has_failed
from reconciler.core.growth import Growth
from reconciler.core.idling import end_what_is_idle
from reconciler.core.lending import bursts_that_wait
from reconciler.core.losing import move_what_is_lost
from reconciler.core.people import respect_people
from reconciler.core.placing import requests_that_wait
from reconciler.core.queueing import serve
from reconciler.core.releasing import close_what_is_over
from reconciler.core.requests import follow_files
from reconciler.core.rescheduling import move_on_what_finds_no_node
from reconciler.core.reserving import end_reservations, reservations_that_wait
from reconciler.core.retaking import take_up_other_pods
from reconciler.core.returning import give_back_what_is_not_needed
from reconciler.core.schedule import next_turn
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.model.plan import Plan, Suppressed


def decide(situation: Situation) -> Plan:
    """Decide what to change, what not to and why, and when to look again. Same inputs, same plan."""
    situation = situation.enrolling(situation.ledger.requests)
    standing = Standing(situation)
    respect_people(situation, standing)
    carry_out(situation, standing)
    follow_files(situation, standing)
    situation = situation.enrolling(standing.requests_now())
    growth = Growth(situation, standing)
    end_what_has_lapsed(situation, standing)
    end_what_has_failed(situation, standing)
    end_what_is_idle(situation, standing)
    end_what_is_not_wanted(situation, standing)
    give_back_what_is_not_needed(situation, standing)
    move_what_may_not_stay(situation, standing, growth)
    take_up_other_pods(situation, standing, growth)
    move_on_what_finds_no_node(situation, standing, growth)
    move_what_is_lost(situation, standing, growth)
    close_what_is_over(situation, standing)
    end_reservations(situation, standing)
    situation = situation.enrolling(standing.requests_now())
    waiting = [
        *bursts_that_wait(situation, standing, growth),
        *requests_that_wait(situation, standing, growth),
        *reservations_that_wait(situation, standing, growth),
    ]
    serve(waiting, Evictions(situation=situation, standing=standing, growth=growth).after)
    standing.look_again(next_turn(situation.reach.scheduled(), situation.now))
    return standing.plan()


def receive(situation: Situation, held: tuple[Suppressed, ...]) -> Plan:
    """Decide only what callers order, and leave everything else to the pass that has to follow.

    `held` is what the last whole pass held back, which goes for all that is not changed here. What people did comes
    first all the same: a commit of ours on top would hide it.
    """
    situation = situation.enrolling(situation.ledger.requests)
    standing = Standing(situation)
    respect_people(situation, standing)
    carry_out(situation, standing)
    plan = standing.plan()
    changed = {answer.workload for answer in plan.answers.values() if answer.change is not None}
    still = (one for one in held if one.workload not in changed)
    return replace(plan, suppressed=(*plan.suppressed, *still), wake_at=situation.now)


def sweep(situation: Situation) -> Plan:
    """Decide only what needs the output branch alone: respect what people did, and end what has lapsed."""
    standing = Standing(situation)
    respect_people(situation, standing)
    end_what_has_lapsed(situation, standing)
    return standing.plan()
