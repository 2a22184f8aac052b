"""Where it goes what streams bring."""

from __future__ import annotations

from typing import Protocol

from reconciler.core.observe.kubernetes.resources import Watched
from reconciler.model.workload import Json


class Sink(Protocol):
    """Takes what a stream brings."""

    def page(self, resource: Watched, items: list[Json], seen: set[str]) -> None:
        """Take a page of a list, and add what it names to `seen`."""
        ...

    def listed(self, resource: Watched, seen: set[str]) -> None:
        """Take note that a list is complete: what it does not name is gone."""
        ...

    def event(self, resource: Watched, type_: str, raw: Json) -> None:
        """Take one change."""
        ...

    def heard(self) -> None:
        """Take note that the cluster gave a sign of life."""
        ...
