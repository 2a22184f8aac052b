"""The world at another moment if nothing in it changed, or as somebody supposes it to be.

Called by the actions of the command line, for ``--at`` and ``--what-if``. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.observe.demand import next_signal_change
from reconciler.core.observe.supposition import Supposition, suppose
from reconciler.daemon.reconcile import Memory, PassDecision, World, observe_and_decide, read_input
from reconciler.model.capacity import Observed
from reconciler.model.policy import Desired
from reconciler.model.signal import SignalFreshness
from reconciler.ports import ClusterView

_MAX_CHANGES = 100
"""Moments between now and ``--at`` at which a pass is simulated."""


def decision_at(world: World, memory: Memory, at: datetime | None) -> PassDecision:
    """Observe the world now or, with `at`, as it would be then if nothing changed.

    Two passes let the windows measure how long demand has lasted: a value that is the same now and then counts as
    steady. Schedules are not, so there is a pass at each begin and end of a planned burst on the way.
    """
    decision = observe_and_decide(world, memory)
    if at is None:
        return decision
    fresh = decision.inputs.desired.fleet.observation_max_age
    ahead = decision
    for moment in (*_burst_changes(decision, at), at):
        seen = PreviewView(
            view=world.clusters, now=decision.inputs.now, fresh=fresh, later=moment - decision.inputs.now
        )
        still = replace(world, clock=FixedClock(at=moment), clusters=seen, uptime=None)
        ahead = observe_and_decide(still, memory, fetch=False)
    return ahead


def suppose_world(
    world: World, memory: Memory, suppositions: Sequence[Supposition]
) -> tuple[World, Memory, tuple[str, ...]]:
    """Return the world with suppositions, what a process there remembers, and each supposition as a question.

    Raises InvalidInput for a name that does not exist.
    """
    inputs = read_input(world, replace(memory), world.repository.fetch(), ())
    supposed = suppose(inputs.observed, inputs.desired, suppositions, inputs.now)
    view = SupposedView(view=world.clusters, suppositions=suppositions, now=inputs.now, desired=inputs.desired)
    lost = {**memory.lost, **supposed.lost}
    return replace(world, clusters=view), replace(memory, lost=lost), supposed.questions


def _burst_changes(decision: PassDecision, at: datetime) -> list[datetime]:
    """List the begins and ends of planned bursts before `at`, as far back as a window reaches from there."""
    policies = decision.inputs.reach.scheduled()
    windows = [policy.scale_down_window for policy in policies]
    moment = max(decision.inputs.now, at - max(windows, default=timedelta()))
    turns = [moment] if decision.inputs.now < moment < at else []
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


@dataclass(slots=True, kw_only=True)
class SupposedView:
    """The observations of a view with suppositions (a `ports.ClusterView`)."""

    view: ClusterView
    suppositions: Sequence[Supposition]
    now: datetime
    desired: Desired

    def follow(self, desired: Desired) -> None:
        """Pass the fleet on to the view, and suppose by its policies."""
        self.desired = desired
        self.view.follow(desired)

    def observe(self) -> Observed:
        """Return the newest observation of each cluster with what is supposed of it."""
        return suppose(self.view.observe(), self.desired, self.suppositions, self.now).observed


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewView:
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
                stale=tuple(self._move_time(freshness) for freshness in observation.stale),
                unread=tuple(replace(unread, at=self._later(unread.at)) for unread in observation.unread),
            )
            if abs(self.now - observation.observed_at) <= self.fresh
            else observation
            for name, observation in seen.clusters.items()
        }
        freshness = {
            workload: tuple(self._move_time(answer) for answer in answers)
            for workload, answers in seen.freshness.items()
        }
        return replace(seen, clusters=clusters, freshness=freshness)

    def _move_time(self, freshness: SignalFreshness) -> SignalFreshness:
        """Move the time of a signal that is fresh now."""
        return replace(freshness, at=self._later(freshness.at))

    def _later(self, at: datetime | None) -> datetime | None:
        """Move a time that is fresh now."""
        return at if at is None or abs(self.now - at) > self.fresh else at + self.later
