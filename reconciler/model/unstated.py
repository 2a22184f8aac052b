"""What a pod leaves to the cluster that makes it: requests that it does not state, and a runtime that costs more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from reconciler.model.units import Quantity

Amounts: TypeAlias = tuple[tuple[str, Quantity], ...]
"""Amounts by resource, sorted by name: hashable, and the same object for the pods of one template."""


class Unstated(NamedTuple):
    """What admission may add to a pod where it is made.

    Of its `containers`, those that run side by side, so many request nothing of a resource as `silent` says, and all of
    them of a resource that is not named there. `defaults` are what a LimitRange has given them already, and `overhead`
    is what its `runtime_class` has: both are part of its requests. What is requested of the pod as a whole (1.34) stays
    as it is, and of that so much is to `spare` as its containers request less.
    """

    runtime_class: str = ""
    overhead: Amounts = ()
    containers: int = 0
    silent: tuple[tuple[str, int], ...] = ()
    defaults: Amounts = ()
    spare: Amounts = ()

    def lacking(self, resource: str) -> int:
        """Count the containers that request nothing of a resource."""
        return dict(self.silent).get(resource, self.containers)


def sorted_amounts(found: Mapping[str, Quantity]) -> Amounts:
    """Return amounts as they are kept here, without those of nothing."""
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))
