"""How well the replicas of placements serve, by the pods and the reports of their clusters.

Whatever gives up some of several replicas asks here which of them are missed least, and goes by its own order only
among equals. It decides which replicas go, never how many: so no pass places again what goes for being on its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.model.placement import Placement
from reconciler.text.wording import join_names


class Serving(NamedTuple):
    """Replicas by how well they serve. Each number includes those before it; the last are all replicas."""

    ready: int
    # With a node.
    bound: int
    # On a cluster that is seen and healthy.
    seen: int
    # On a cluster that files still allow.
    allowed: int
    all: int

    @property
    def is_mixed(self) -> bool:
        """Whether some replicas serve better than others."""
        return any(0 < replicas < self.all for replicas in self)

    @property
    def parts(self) -> tuple[float, ...]:
        """The parts of all replicas that serve so well, as a sort key: what serves least comes first."""
        return tuple(replicas / self.all for replicas in self) if self.all else ()

    def keeping(self, stays: int) -> Serving:
        """Return the replicas that stay when those that serve least have gone."""
        return Serving(*(min(stays, replicas) for replicas in self))


def serving(inputs: PassInput, placement: Placement) -> Serving:
    """Count the replicas of a placement by how well they serve.

    A version that its engine has called healthy had all its nodes, also where its pods cannot be counted; without a
    word about readiness, replicas with a node count as ready unless the engine says otherwise.
    """
    cluster, replicas, rollouts = placement.cluster, placement.replicas, inputs.rollouts
    if inputs.exclusion(placement) is not None:  # what may not stay goes first of all
        return Serving(0, 0, 0, 0, replicas)
    seen = inputs.observed.clusters.get(cluster)
    if seen is None or not seen.healthy or unseen(inputs.desired.fleet, inputs.observed, cluster, inputs.now):
        return Serving(0, 0, 0, replicas, replicas)
    bound = replica_count.bound_replicas(placement, seen)
    if rollouts.has_arrived(placement):
        bound = max(bound, replicas - replica_count.pending_replicas(placement, seen))
    ready = replica_count.ready_replicas(placement, seen)
    if ready is None:
        ready = 0 if rollouts.is_healthy(placement) is False else bound
    return Serving(min(ready, bound, replicas), min(bound, replicas), replicas, replicas, replicas)


def add_up(parts: Iterable[Serving]) -> Serving:
    """Add up the replicas of several placements."""
    return Serving(*map(sum, zip(Serving(0, 0, 0, 0, 0), *parts, strict=True)))


def describe_given_up(before: Serving, stays: int) -> str:
    """Describe how little the replicas serve that a placement gives up; empty where all of them are ready."""
    after = before.keeping(stays)
    ready, bound, seen, allowed, everything = (had - has for had, has in zip(before, after, strict=True))
    parts = [
        (everything - allowed, "may not stay there", "may not stay there"),
        (allowed - seen, "is unseen", "are unseen"),
        (seen - bound, "has no node", "have no node"),
        (bound - ready, "is not ready", "are not ready"),
    ]
    words = [
        f"{number}{' of those that go' if not index else ''} {single if number == 1 else several}"
        for index, (number, single, several) in enumerate(part for part in parts if part[0])
    ]
    return join_names(words)
