"""Which kinds of signals of one cluster cannot be heard, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from reconciler.adapters.kube.stream import Stream
from reconciler.core.observe.kubernetes.resources import SPOKEN, Watched
from reconciler.model.capacity import SignalFreshness


class Silence:
    """Remembers when each kind of signal was last known as it is.

    What we may not list and watch from the first on is no signal at all: nobody who never gave us that right shall keep
    all that is lent from coming home. What was watched once, or fails without a refusal, is unheard.
    """

    def __init__(self) -> None:
        self._at: dict[Watched, datetime] = {}

    def note(self, streams: Mapping[Watched, Stream], now: datetime) -> None:
        """Take note of what is known now."""
        for resource in SPOKEN:
            stream = streams.get(resource)
            if stream is None:
                self._at.pop(resource, None)
            elif stream.heard and stream.watched:
                self._at[resource] = now - timedelta(seconds=stream.behind)

    def lasting(self, resource: Watched, streams: Mapping[Watched, Stream]) -> bool:
        """Tell whether what a resource said last is kept although its list came to nothing: it is refused by now."""
        return resource in self._at and bool(streams[resource].refusal)

    def unheard(self, streams: Mapping[Watched, Stream]) -> tuple[SignalFreshness, ...]:
        """Tell of each kind that cannot be heard now when it last was."""
        found = []
        for resource, kind in SPOKEN.items():
            stream, at = streams.get(resource), self._at.get(resource)
            if stream is not None and not stream.heard and (at is not None or not stream.refusal):
                found.append(SignalFreshness(signal=kind, at=at, trouble=stream.refusal or stream.trouble))
        return tuple(found)
