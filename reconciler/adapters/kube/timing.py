"""Times of watches: time-outs, back-offs, and delays that gather changes."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming(Backoff):
    """Times in seconds, and the size of pages."""

    connect: float = 10  # time-out of a connection
    answer: float = 60  # time-out of a whole answer
    silence: float = 90
    """A watch without an event for so long is dead or mute: API servers send a bookmark each minute. Not much longer,
    since an observation may be two minutes old unless the Fleet says otherwise."""
    watch: float = 290  # after which the server is asked to end a watch
    steady: float = 3  # a watch that ends sooner counts as a failure
    beat: float = 5  # between two heartbeats
    first_backoff: float = 0.5  # after a first failure
    longest_backoff: float = 60  # however many follow
    absent: float = 60  # before a resource that was not served is tried again
    demand: float = 0.2  # delay of a pass after a change of demand
    capacity: float = 3  # and after a change of capacity
    page: int = 200  # objects of a page
