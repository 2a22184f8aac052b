"""Replicas that have no node in a cluster and will take room there, as soon as there is some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.ledger import lifecycle
from reconciler.core.observe.rollouts import Rollouts
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.policy import BurstPolicy

_DEFAULTS = BurstPolicy(name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """The pods in one cluster that have no node yet."""

    replicas: tuple[tuple[Placement, int], ...]
    """Replicas in flight of each placement."""
    total: int
    """The sum of `replicas`."""
    until: datetime | None
    """The first moment at which some of them stop counting by time alone."""
    going: tuple[tuple[ReplicaShape, int], ...]
    """Pods of placements that have ended, with their shapes where these are known."""


def flight(
    placements: Iterable[Placement],
    seen: ClusterObservation | None,
    rollouts: Rollouts,
    policies: Mapping[WorkloadId, BurstPolicy],
    now: datetime,
    *,
    delay: timedelta = timedelta(),
) -> InFlight:
    """Count the replicas without a node in a cluster; `placements` are those of the cluster.

    What its engine has called healthy had all its nodes, whether or not its pods can be told apart. But a pod that is
    seen to wait takes the next room there is, however old its placement is: it may have lost its node. `delay` is the
    time in which the autoscaler of the cluster adds a node.
    """
    pending_pods = dict(seen.pending_pods) if seen else {}
    waiting, moments = [], []
    for placement in placements:
        missing = (
            replica_count.pending_replicas(placement, seen) if seen and pending_pods.pop(placement.name, None) else 0
        )
        if not rollouts.has_arrived(placement):
            timeout = (policies.get(placement.workload) or _DEFAULTS).in_flight_timeout + delay
            unseen = lifecycle.in_flight(placement, replica_count.bound_replicas(placement, seen), timeout, now)
            if unseen > missing:
                moments.append(placement.changed_at + timeout)
                missing = unseen
        if missing:
            waiting.append((placement, missing))
    return InFlight(
        replicas=tuple(waiting),
        total=sum(missing for _, missing in waiting),
        until=min(moments, default=None),
        going=tuple((pods.shape, pods.replicas) for pods in pending_pods.values() if pods.shape is not None),
    )
