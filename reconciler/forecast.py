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
"""Moments between now and ``--at`` at which a pass is simulated."""


def view_at(world: World, memory: Memory, at: datetime | None) -> View:
    """Observe the world now or, with `at`, as it would be then if nothing changed.

    Two passes let the windows measure how long demand has lasted: a value that is the same now and then counts as
    steady. Schedules are not, so there is a pass at each begin and end of a planned burst on the way.
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
    """List the begins and ends of planned bursts before `at`, as far back as a window reaches from there."""
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
    """The observations of a view as if they were the same at a later time (a `ports.ClusterView`).

    Observations and signals that are fresh now count as fresh then. The times of others stay: files of another moment
    can be examined with ``--at`` that moment. Missing replicas stay missing, since the same time.
    """

    view: ClusterView
    now: datetime
    fresh: timedelta
    """The age up to which an observation or a signal counts as fresh."""
    later: timedelta
    """The time from now to then."""

    def follow(self, desired: Desired) -> None:
        """Pass the fleet on to the view."""
        self.view.follow(desired)

    def observe(self) -> Observed:
        """Return the newest observation of each cluster with its new time."""
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
        """Move the time of a signal that is fresh now."""
        if freshness.at is None or abs(self.now - freshness.at) > self.fresh:
            return freshness
        return replace(freshness, at=freshness.at + self.later)
