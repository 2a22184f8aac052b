"""The world as it would be at another moment if nothing in it changed: what ``--at`` looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.capacity import Observed
from reconciler.model.policy import Desired
from reconciler.model.signal import SignalFreshness
from reconciler.ports import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class StillClock:
    """A clock that stands at one moment (a `ports.Clock`)."""

    at: datetime

    def now(self) -> datetime:
        """Return that moment."""
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class StillView:
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
