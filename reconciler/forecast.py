"""The world at another moment if nothing in it changed, as the commands with ``--at`` show it.

Called by the actions of the command line. Time moves, and nothing is fetched or written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.observe.demand import next_signal_change
from reconciler.daemon.reconcile import Memory, View, World, look
from reconciler.model.capacity import Observed
from reconciler.model.policy import Desired
from reconciler.model.signal import SignalFreshness
from reconciler.ports import ClusterView

_MAX_CHANGES = 100
"""Moments that are looked at on the way to another one."""


def view_at(world: World, memory: Memory, at: datetime | None) -> View:
    """Look at the world now or, with `at`, as it would be then if everything stayed as it is seen now.

    Looking twice lets the windows see how long things have been so: what is steady from now to then counts as watched.
    What people have planned is not steady, so each begin and end of it on the way is looked at too.
    """
    view = look(world, memory)
    if at is None:
        return view
    fresh = view.desired.fleet.observation_max_age
    ahead = view
    for moment in (*_burst_changes(view, at), at):
        seen = ForecastView(view=world.clusters, now=view.now, fresh=fresh, later=moment - view.now)
        still = replace(world, clock=FixedClock(at=moment), clusters=seen)
        ahead = look(still, memory, fetch=False)
    return ahead


def _burst_changes(view: View, at: datetime) -> list[datetime]:
    """List the moments before `at` at which a planned burst begins or ends, as far back as a window looks at then."""
    policies = view.reach.scheduled()
    windows = [policy.scale_down_window for policy in policies]
    moment = max(view.now, at - max(windows, default=timedelta()))
    turns = [moment] if view.now < moment < at else []
    while len(turns) < _MAX_CHANGES and (turn := next_signal_change(policies, moment)) is not None and turn < at:
        turns.append(turn)
        moment = turn
    return turns


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedClock:
    """A clock that stands at one moment (a `ports.Clock`)."""

    at: datetime

    def now(self) -> datetime:
        """Return that moment."""
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastView:
    """What a view sees now, as if it were seen just so `later` (a `ports.ClusterView`).

    Of what is fresh now, seen or heard within `fresh` of `now`, the time moves along, so that it counts as fresh then.
    What was seen at another time stays there: files that tell of a moment can be looked at with ``--at`` that
    moment. Replicas that wait go on waiting: since when is left as it is.
    """

    view: ClusterView
    now: datetime
    fresh: timedelta
    later: timedelta

    def follow(self, desired: Desired) -> None:
        """Let the view that is looked through know."""
        self.view.follow(desired)

    def observe(self) -> Observed:
        """Return the newest observation of each cluster, moved."""
        seen = self.view.observe()
        clusters = {
            name: replace(
                observation,
                observed_at=observation.observed_at + self.later,
                stale=tuple(self._moved(freshness) for freshness in observation.stale),
            )
            if abs(self.now - observation.observed_at) <= self.fresh
            else observation
            for name, observation in seen.clusters.items()
        }
        freshness = {
            workload: tuple(self._moved(answer) for answer in answers) for workload, answers in seen.freshness.items()
        }
        return replace(seen, clusters=clusters, freshness=freshness)

    def _moved(self, freshness: SignalFreshness) -> SignalFreshness:
        """Move the last answer of a signal that is fresh now."""
        if freshness.at is None or abs(self.now - freshness.at) > self.fresh:
            return freshness
        return replace(freshness, at=freshness.at + self.later)
