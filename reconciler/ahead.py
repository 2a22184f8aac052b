"""What commands look at: the world as it is now or, with `--at`, as it would be at another moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.adapters.what_if import StillClock, StillView
from reconciler.core.observe.demand import next_signal_change
from reconciler.daemon.reconcile import Memory, View, World, look

_MOST_TURNS = 100
"""Moments that are looked at on the way to another one."""


def look_ahead(world: World, memory: Memory, at: datetime | None) -> View:
    """Look at the world now or, with `at`, as it would be then if everything stayed as it is seen now.

    Looking twice lets the windows see how long things have been so: what is steady from now to then counts as watched.
    What people have planned is not steady, so each begin and end of it on the way is looked at too.
    """
    view = look(world, memory)
    if at is None:
        return view
    fresh = view.desired.fleet.observation_max_age
    ahead = view
    for moment in (*_turns(view, at), at):
        seen = StillView(view=world.clusters, now=view.now, fresh=fresh, later=moment - view.now)
        still = replace(world, clock=StillClock(at=moment), clusters=seen)
        ahead = look(still, memory, fetch=False)
    return ahead


def _turns(view: View, at: datetime) -> list[datetime]:
    """List the moments before `at` at which a planned burst begins or ends, as far back as a window looks at then."""
    policies = view.reach.scheduled()
    windows = [policy.scale_down_window for policy in policies]
    moment = max(view.now, at - max(windows, default=timedelta()))
    turns = [moment] if view.now < moment < at else []
    while len(turns) < _MOST_TURNS and (turn := next_signal_change(policies, moment)) is not None and turn < at:
        turns.append(turn)
        moment = turn
    return turns
