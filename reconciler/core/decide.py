"""What to change now: the whole decision, as one pure function of what is wanted, what is there, and what was seen.

The order of the steps is the order of the commits. What people did comes first, then what ends, then what moves, then
what comes home, then what goes out. Each step sees the placements as the steps before it leave them.
"""

from __future__ import annotations

from reconciler.core.ending import end_what_has_lapsed, move_what_may_not_stay
from reconciler.core.failing import end_what_has_failed
from reconciler.core.growth import Growth
from reconciler.core.lending import place_what_is_missing
from reconciler.core.people import respect_people
from reconciler.core.returning import give_back_what_is_not_needed
from reconciler.core.schedule import next_turn
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.model.plan import Plan


def decide(situation: Situation) -> Plan:
    """Decide what to change, what not to and why, and when to look again. Same inputs, same plan."""
    standing = Standing(situation)
    growth = Growth(situation, standing)
    respect_people(situation, standing)
    end_what_has_lapsed(situation, standing)
    end_what_has_failed(situation, standing)
    move_what_may_not_stay(situation, standing, growth)
    give_back_what_is_not_needed(situation, standing)
    place_what_is_missing(situation, standing, growth)
    standing.look_again(next_turn(situation.reach.scheduled(), situation.now))
    return standing.plan()


def sweep(situation: Situation) -> Plan:
    """Decide only what needs the output branch alone: respect what people did, and end what has lapsed."""
    standing = Standing(situation)
    respect_people(situation, standing)
    end_what_has_lapsed(situation, standing)
    return standing.plan()
