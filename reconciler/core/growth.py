"""Where new replicas of a workload can go: its clusters in order, what each offers, and why the others do not.

Capacity is handed out once: what one workload is given in a pass is gone for the next, and so is what replicas need
that were committed earlier and have no node yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconciler.core import lifecycle
from reconciler.core.distribute import Offer, Share, ordered
from reconciler.core.fit import Room
from reconciler.core.reach import Rung
from reconciler.core.select import refuse
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.wording import count
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Choice, Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate

MOST = 10**6
"""Asks a cluster for all that it can take, not only for what is missing."""


class Growth:
    """The room of every cluster while one pass hands it out. A cluster that nobody asks for is never looked at."""

    def __init__(self, situation: Situation, standing: Standing) -> None:
        """Begin with all that was observed free."""
        self._situation = situation
        self._desired = situation.desired
        self._observed = situation.observed
        self._now = situation.now
        self._standing = standing
        self._rooms: dict[ClusterName, Room] = {}

    def spread(
        self, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, wanted: int
    ) -> tuple[tuple[Share, ...], tuple[Refusal, ...]]:
        """Share out `wanted` replicas over the clusters in order, and return the refusals met on the way."""
        refusals: list[Refusal] = []
        shares = ordered(wanted, self._offers(template, policy, shape, wanted, refusals))
        return shares, tuple(refusals)

    def elsewhere(
        self, template: WorkloadTemplate, policy: BurstPolicy, placement: Placement
    ) -> tuple[Offer | None, tuple[Refusal, ...]]:
        """Find the first cluster that takes a placement whole, as it is; a move never splits one."""
        refusals: list[Refusal] = []
        for offer in self._offers(template, policy, placement.shape, placement.replicas, refusals):
            if offer.replicas >= placement.replicas and offer.rung.cluster != placement.cluster:
                return offer, tuple(refusals)
        return None, tuple(refusals)

    def assess(
        self, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, rung: Rung, wanted: int
    ) -> Offer | Refusal:
        """Say what one cluster offers of a workload, or why it offers nothing."""
        workload, name = template.workload, rung.cluster
        refusal = refuse(
            self._situation,
            workload,
            name,
            shape=shape,
            restraints=self._standing.restraints(workload),
        )
        if refusal is not None:
            return refusal
        if rung.limit is not None:
            here = sum(placement.replicas for placement in self._standing.of(workload) if placement.cluster == name)
            wanted = min(wanted, rung.limit - here)
            if wanted <= 0:
                return Refusal(
                    cluster=name,
                    reason=Reason.CLUSTER_LIMIT,
                    message=f"has {here} of at most {count(rung.limit, 'replica')}",
                    remedy=f"raise its maxReplicas in policy {policy.name}",
                )
        room = self.room(name)
        fits = room.count(shape, wanted)
        if not fits:
            flight = self._standing.in_flight(name)
            going = sum(homeless.replicas for homeless in flight.going)
            waiting = f"; {count(flight.total, 'replica')} in flight taken off" if flight.total else ""
            waiting += f"; {count(going, 'pod')} of bursts that have ended taken off" if going else ""
            return Refusal(
                cluster=name,
                reason=Reason.NO_CAPACITY,
                message=f"{room.shortfall(shape)}{waiting}",
                remedy="free or add nodes there",
            )
        return Offer(rung=rung, replicas=fits)

    def room(self, cluster: ClusterName) -> Room:
        """Return what is free in a cluster, less what is in flight and what this pass has handed out.

        Pods of a placement that has ended take what they ask for until they are gone, also those without a node.
        """
        if cluster not in self._rooms:
            room = Room(self._observed.clusters[cluster])
            flight = self._standing.in_flight(cluster)
            for placement, replicas in flight.replicas:
                room.take(placement.shape, replicas)
            for homeless in flight.going:
                room.take(homeless.shape, homeless.replicas)
            self._rooms[cluster] = room
        return self._rooms[cluster]

    def take(self, cluster: ClusterName, shape: ReplicaShape, replicas: int) -> None:
        """Hand out room to replicas that have just been decided on."""
        self.room(cluster).take(shape, replicas)

    def choice(self, offer: Offer, shape: ReplicaShape) -> Choice:
        """Record what spoke for a cluster at the moment it was taken."""
        cluster = self._desired.clusters[offer.rung.cluster]
        room = self.room(cluster.name)
        return Choice(
            cluster=cluster.name,
            rank=offer.rung.rank,
            fits=room.count(shape, MOST),
            free=room.free(shape),
            price_per_gpu_hour=cluster.price_per_gpu_hour,
            limit=offer.rung.limit,
        )

    def placement(
        self, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, cluster: ClusterName, replicas: int
    ) -> Placement:
        """Make a new placement that begins now."""
        return Placement(
            name=lifecycle.placement_name(template.workload, cluster, self._now),
            cluster=cluster,
            workload=template.workload,
            replicas=replicas,
            created_at=self._now,
            changed_at=self._now,
            expires_at=self._now + lifecycle.duration(template, policy),
            engine=self._desired.clusters[cluster].engine,
            policy=policy.name,
            deletion_policy=template.spec.deletion_policy,
            source_commit=self._desired.commit,
            template_version=lifecycle.version(template),
            namespace=template.namespace,
            target_namespace="",
            shape=shape,
        )

    def next_change(self, workload: WorkloadId) -> datetime | None:
        """Tell when any of its clusters could take more by time alone: a restraint ends, or replicas time out."""
        moments = [restraint.until for restraint in self._standing.restraints(workload)]
        for rung in self._situation.reach.order(workload):
            until = self._standing.in_flight(rung.cluster).until
            moments += () if until is None else (until,)
        return min(moments, default=None)

    def _offers(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        wanted: int,
        refusals: list[Refusal],
    ) -> Iterator[Offer]:
        for rung in self._situation.reach.order(template.workload):
            answer = self.assess(template, policy, shape, rung, wanted)
            if isinstance(answer, Refusal):
                refusals.append(answer)
            else:
                yield answer
