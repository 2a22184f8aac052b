"""Where new replicas of a workload can go: its clusters in order, what each offers, and why the others do not.

Capacity is handed out once: what one workload is given in a pass is gone for the next, and so is what replicas need
that were committed earlier and have no node yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core import headcount, lifecycle
from reconciler.core.clashes import Clashes
from reconciler.core.enrolling import Entry
from reconciler.core.fit import Room
from reconciler.core.flight import Flight, flight
from reconciler.core.gprlimits import beyond_limits, within_limits
from reconciler.core.gpushape import gpus_of_pod
from reconciler.core.holding import Reserved, keep_free, reserved, uses
from reconciler.core.narrowing import narrowed
from reconciler.core.needs import Needs, Part
from reconciler.core.reach import Rung
from reconciler.core.seats import Site, seated
from reconciler.core.select import refuse
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.subsets import subset_of
from reconciler.core.told import Told
from reconciler.core.wholes import whole
from reconciler.core.wording import count
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Origin, Placement
from reconciler.model.plan import Choice, Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.request import RequestRecord
from reconciler.model.workload import WorkloadTemplate

MOST = 10**6
"""Asks a cluster for all that it can take, not only for what is missing."""


def why_not(refusals: Iterable[Refusal], otherwise: str) -> tuple[Reason, str]:
    """Say why something waits: for its workspace or policy allows no more of it, else since no cluster has room.

    While one of the clusters lacks nothing but room, that is what it waits for.
    """
    refused = {refusal.reason: refusal for refusal in reversed(tuple(refusals))}
    limited = refused.get(Reason.GPR_LIMIT) or refused.get(Reason.SPREAD_LIMIT)
    if limited is None or Reason.NO_CAPACITY in refused:
        return Reason.NOTHING_FITS, otherwise
    return limited.reason, f"{limited.message} ({limited.remedy})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one cluster can take of a workload now, of replicas that are shaped like this there."""

    rung: Rung
    replicas: int
    shape: ReplicaShape


class Growth:
    """The room of every cluster while one pass hands it out. A cluster that nobody asks for is never looked at."""

    def __init__(self, situation: Situation, standing: Standing) -> None:
        """Begin with all that was observed free."""
        self._situation = situation
        self._desired = situation.desired
        self._observed = situation.observed
        self._now = situation.now
        self._standing = standing
        self.clashes = Clashes(situation, standing)
        self._rooms: dict[ClusterName, Room] = {}
        self._handed: Counter[ClusterName] = Counter()
        self._views: dict[tuple[ClusterName, WorkspaceName | None], tuple[Hashable, Room]] = {}
        self._reserved: tuple[int, Reserved] | None = None
        self._engines = tuple(sorted({cluster.engine for cluster in self._desired.clusters.values()}))
        self.told = Told()
        self._evicted: dict[ClusterName, tuple[tuple[Placement, ReplicaShape], ...]] = {}
        self._idle: dict[WorkspaceName, tuple[Hashable, list[RequestRecord]]] = {}

    @property
    def situation(self) -> Situation:
        """What is decided on."""
        return self._situation

    def order(self, workload: WorkloadId) -> tuple[Rung, ...]:
        """Return the clusters that a workload may go to, in order."""
        return self._situation.reach.order(workload)

    def held(self, workload: WorkloadId) -> Counter[ClusterName]:
        """Count the replicas that each cluster has of a workload."""
        held = Counter[ClusterName]()
        for placement in self._standing.of(workload):
            held[placement.cluster] += placement.replicas
        return held

    def needs(self, placement: Placement) -> Needs | None:
        """Return what a placement takes that went out whole; None where its replicas are all there is to it."""
        if placement.workload.request:
            enrolment = self._situation.enrolment
            entry = enrolment.entries.get(placement.workload) if enrolment is not None else None
            return entry.needs if entry is not None else None
        template = self._desired.templates.get(placement.workload)
        found = whole(template, self._desired.kinds) if template is not None else None
        if found is None:
            return None
        needed, policy = found.of(placement.replicas), self._desired.policies.get(placement.workload)
        if policy is None or not placement.subset or placement.cluster not in self._desired.clusters:
            return needed
        rung = Rung(cluster=placement.cluster, rank=0, limit=None, subset=placement.subset)
        return needed.shaped(lambda shape: self.shaped(policy, rung, shape))

    def domains(self, cluster: ClusterName, key: str) -> int:
        """Count the topology domains of a label that what stands on a cluster wants for itself."""
        there = (self.needs(placement) for placement in self._standing.on(cluster))
        wanted = [one for needed in there if needed is not None for one in needed.domains]
        return sum(len(one.units) for one in wanted if one.key == key)

    def seated(self, workload: WorkloadId, policy: BurstPolicy) -> Counter[Site]:
        """Count the replicas that each cluster has of a workload for each subset; of none for the empty one."""
        return seated(self._standing.of(workload), policy, self._desired.clusters)

    def here(self, workload: WorkloadId, policy: BurstPolicy, rung: Rung) -> int:
        """Count the replicas that a cluster has of a workload, or a subset's part of it."""
        if policy.spread is not None:
            return self.seated(workload, policy)[rung.site]
        placements = self._standing.of(workload)
        return sum(placement.replicas for placement in placements if placement.cluster == rung.cluster)

    def shaped(self, policy: BurstPolicy, rung: Rung, shape: ReplicaShape) -> ReplicaShape:
        """Return the shape that a replica has on a cluster: what its subset asks for beside its own."""
        found = subset_of(policy.spread, rung.subset) if policy.spread is not None and rung.subset else None
        return shape if found is None else narrowed(shape, found, self._desired.clusters[rung.cluster])

    def _whole(self, placement: Placement) -> tuple[Part, ...]:
        """Return the parts of what went out whole, as a leader and its workers; nothing where there is but one."""
        needed = self.needs(placement)
        return needed.parts if needed is not None and (needed.others or placement.subset) else ()

    def assess(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        rung: Rung,
        wanted: int,
        *,
        more: int = 0,
    ) -> Offer | Refusal:
        """Say what one cluster offers of a workload, or why it offers nothing.

        `more` are the clusters that are about to take some of it beside those that have some.
        """
        if not rung.subset:
            return self._assess(template, policy, shape, rung, wanted, more=more)
        answer = self._assess(template, policy, self.shaped(policy, rung, shape), rung, wanted, more=more)
        return replace(answer, subset=rung.subset) if isinstance(answer, Refusal) else answer

    def _assess(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        rung: Rung,
        wanted: int,
        *,
        more: int,
    ) -> Offer | Refusal:
        workload, name = template.workload, rung.cluster
        refusal = refuse(
            self._situation,
            workload,
            name,
            shape=shape,
            restraints=self._standing.restraints(workload),
            subset=rung.subset,
        )
        if refusal is not None:
            return refusal
        here = self.here(workload, policy, rung)
        limited = None
        if not here:
            limited = self.clashes.refusal(workload, name)
            limited = limited or self.limited(workload.workspace, name, shape, more=more)
        first = wanted if workload.request else here + 1
        limited = limited or beyond_limits(self._situation, workload, name, shape, first)
        if limited is not None:
            return limited
        rung = within_limits(self._situation, workload, rung, shape)
        if rung.limit is not None:
            wanted = min(wanted, rung.limit - here)
            if wanted <= 0:
                return Refusal(
                    cluster=name,
                    reason=Reason.CLUSTER_LIMIT,
                    message=f"has {here} of at most {count(rung.limit, 'replica')}",
                    remedy=f"raise its maxReplicas in policy {policy.name}",
                )
        room = self.room(name, workload.workspace)
        fits = room.count(shape, wanted)
        if not fits:
            flying = self._standing.in_flight(name)
            going = sum(homeless.replicas for homeless in flying.going)
            waiting = f"; {count(flying.total, 'replica')} in flight taken off" if flying.total else ""
            waiting += f"; {count(going, 'pod')} of bursts that have ended taken off" if going else ""
            return Refusal(
                cluster=name,
                reason=Reason.NO_CAPACITY,
                message=f"{room.shortfall(shape)}{waiting}",
                remedy="free or add nodes there",
            )
        return Offer(rung=rung, replicas=fits, shape=shape)

    def limited(
        self, workspace: WorkspaceName, cluster: ClusterName, shape: ReplicaShape | None = None, *, more: int = 0
    ) -> Refusal | None:
        """Say that a workspace has as many GPRs as it may, counting `more` that are about to begin; None if it may.

        A reservation counts as long as nothing uses it, and then what does. What has a `shape` would begin to.
        """
        limits = self._desired.limits.get(workspace)
        if limits is None:
            return None
        unused = self._unused(workspace)
        begins = shape is not None and gpus_of_pod(shape) > 0 and any(one.cluster == cluster for one in unused)
        held = self._standing.held_by(workspace) + len(unused) + more - begins
        if held < limits.most:
            return None
        return Refusal(
            cluster=cluster,
            reason=Reason.GPR_LIMIT,
            message=f"workspace {workspace} has {held} of at most {count(limits.most, 'GPR')}",
            remedy="raise spec.maxGPRs of its WorkspacePolicy, or wait until one ends",
        )

    def _unused(self, workspace: WorkspaceName) -> list[RequestRecord]:
        """List the reservations of a workspace of which it uses nothing."""
        own, now = self._reservations().of.get(workspace, []), self._standing.position
        known = self._idle.get(workspace)
        if known is None or known[0] != now:
            clusters = {one.cluster for one in own if one.cluster is not None}
            there = [placement for cluster in sorted(clusters) for placement in self._standing.on(cluster)]
            known = self._idle[workspace] = now, [record for record, used in uses(own, there) if not used]
        return known[1]

    def room(
        self,
        cluster: ClusterName,
        workspace: WorkspaceName | None,
        *,
        without: Sequence[Placement] = (),
        newcomer: ReplicaShape | None = None,
    ) -> Room:
        """Return what is free in a cluster for a workspace, less what is in flight and what this pass has handed out.

        What others have reserved is not free; without a workspace all are others. `without` tells what a `newcomer`
        would surely have if some placements, and their pods, were not there. Pods of a placement that has ended take
        what they ask for until they are gone, also those without a node.
        """
        leaving = [(one, newcomer) for one in without] if newcomer is not None else []
        there = self._reservations().on.get(cluster, ())
        held = [one for one in there if one.request.workspace != workspace]
        if leaving or not held:
            room = self._without(cluster, leaving) if leaving else self._all(cluster)
            return self._less(room, held, without, cluster) if held else room
        view = cluster, workspace if len(held) < len(there) else None
        now, known = self.state(cluster), self._views.get(view)
        if known is None or known[0] != now:
            known = self._views[view] = now, self._less(self._all(cluster), held, (), cluster)
        return known[1]

    def state(self, cluster: ClusterName, workspace: WorkspaceName | None = None) -> Hashable:
        """Return what is another after each change on which it can depend what a cluster gives to a workspace."""
        held: Hashable = 0
        if workspace is not None and workspace in self._desired.limits:
            unused = self._unused(workspace)
            held = self._standing.held_by(workspace), len(unused), any(one.cluster == cluster for one in unused)
        return self._handed[cluster], self._standing.moved(cluster), self._standing.holdings, held

    def kind(self, entry: Entry) -> Hashable:
        """Return what is equal for requests of which each cluster says the same."""
        return entry.kind(self._engines, helm=self._observed.helm)

    def moment(self) -> Hashable:
        """Return what is another after each change that this pass has decided on, wherever it is."""
        return self._standing.position, self._handed.total()

    def _less(
        self, room: Room, held: Iterable[RequestRecord], without: Iterable[Placement], cluster: ClusterName
    ) -> Room:
        """Return a room without what is reserved in it."""
        paths = {one.path for one in without}
        left = [one for one in self._standing.on(cluster) if one.path not in paths]
        room = room.copy()
        keep_free(room, held, left, self._observed.clusters[cluster])
        return room

    def _reservations(self) -> Reserved:
        """Sort what is reserved, anew when any of it has changed."""
        holdings = self._standing.holdings
        if self._reserved is None or self._reserved[0] != holdings:
            self._reserved = holdings, Reserved(reserved(self._situation, self._standing))
        return self._reserved[1]

    def _all(self, cluster: ClusterName) -> Room:
        """Return what is free whoever asks."""
        if cluster not in self._rooms:
            self._rooms[cluster] = self._without(cluster, ())
        return self._rooms[cluster]

    def _without(self, cluster: ClusterName, leaving: Iterable[tuple[Placement, ReplicaShape]]) -> Room:
        """Work out what is free if some placements are not there. All that this pass has handed out is in flight."""
        left = (*self._evicted.get(cluster, ()), *leaving)
        seen, gone = self._observed.clusters[cluster], {one.path: one for one, _ in left}
        room = Room(seen)
        alike: dict[Hashable, tuple[ReplicaShape, ReplicaShape, int]] = {}
        for placement, newcomer in left:
            key = placement.shape.likeness, newcomer.likeness
            *_, replicas = alike.get(key, (0,))
            alike[key] = placement.shape, newcomer, replicas + headcount.bound(placement, seen)
        for shape, newcomer, replicas in alike.values():
            room.vacate(shape, replicas, newcomer)
        flying = self._flight(cluster, gone) if gone else self._standing.in_flight(cluster)
        for placement, replicas in flying.replicas:
            whole = self._whole(placement) if replicas >= placement.replicas else ()  # nothing of it has come yet
            for part in whole:
                room.take(*part.room)
            if not whole:
                room.take(placement.shape, replicas)
        for homeless in flying.going:
            room.take(homeless.shape, homeless.replicas)
        return room

    def evict(self, cluster: ClusterName, leaving: Iterable[Placement], newcomer: ReplicaShape) -> None:
        """Count the room of placements as free: they are ended for a newcomer."""
        self._evicted[cluster] = (*self._evicted.get(cluster, ()), *((one, newcomer) for one in leaving))
        self._rooms.pop(cluster, None)
        self._handed[cluster] += 1

    def _flight(self, cluster: ClusterName, gone: Mapping[str, Placement]) -> Flight:
        """Find what is in flight in a cluster where some placements, and their pods, are not counted."""
        seen, names = self._observed.clusters[cluster], {one.name for one in gone.values()}
        homeless = {name: waiting for name, waiting in seen.homeless.items() if name not in names}
        left = (one for one in self._standing.on(cluster) if one.path not in gone)
        situation = self._situation
        return flight(left, replace(seen, homeless=homeless), situation.rollouts, self._desired.policies, self._now)

    def take(self, cluster: ClusterName, shape: ReplicaShape, replicas: int) -> None:
        """Hand out room to replicas that have just been decided on."""
        self._all(cluster).take(shape, replicas)
        self._handed[cluster] += 1

    def choice(self, offer: Offer, shape: ReplicaShape, workspace: WorkspaceName) -> Choice:
        """Record what spoke for a cluster at the moment it was taken."""
        cluster = self._desired.clusters[offer.rung.cluster]
        room = self.room(cluster.name, workspace)
        return Choice(
            cluster=cluster.name,
            rank=offer.rung.rank,
            fits=room.count(shape, MOST),
            free=room.free(shape),
            price_per_gpu_hour=cluster.price_per_gpu_hour,
            limit=offer.rung.limit,
            subset=offer.rung.subset,
        )

    def placement(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        cluster: ClusterName,
        replicas: int,
        *,
        subset: str = "",
    ) -> Placement:
        """Make a new placement that begins now."""
        return Placement(
            name=lifecycle.placement_name(template.workload, cluster, self._now, subset),
            cluster=cluster,
            workload=template.workload,
            replicas=replicas,
            created_at=self._now,
            changed_at=self._now,
            expires_at=self._now + lifecycle.duration(template, policy, self._desired.limits.get(template.workspace)),
            engine=self._desired.clusters[cluster].engine,
            policy=policy.name,
            deletion_policy=template.spec.deletion_policy,
            source_commit=self._desired.commit,
            template_version=lifecycle.version(template),
            namespace=template.namespace,
            target_namespace="",
            shape=shape,
            origin=Origin.REQUEST if template.request else Origin.BURST,
            subset=subset,
        )

    def next_change(self, workload: WorkloadId) -> datetime | None:
        """Tell when any of its clusters could take more by time alone: a restraint ends, or replicas time out."""
        moments = [restraint.until for restraint in self._standing.restraints(workload)]
        for rung in self._situation.reach.order(workload):
            until = self._standing.in_flight(rung.cluster).until
            moments += () if until is None else (until,)
        return min(moments, default=None)

    def offers(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        wanted: int,
        refusals: list[Refusal],
        *,
        begun: int = 0,
    ) -> Iterator[Offer]:
        """Yield what clusters offer, in order; `begun` are the placements that come on top of those that stand."""
        for rung in self._situation.reach.order(template.workload):
            answer = self.assess(template, policy, shape, rung, wanted, more=begun)
            if isinstance(answer, Refusal):
                refusals.append(answer)
            else:
                begun += not self.here(template.workload, policy, rung)
                yield answer
