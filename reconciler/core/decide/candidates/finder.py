"""Where new replicas of a workload can go: its clusters in order, what each offers, and why the others do not.

What a request that waits has been told, so that all that are like it can be told the same.

Thousands of requests that wait are of a few kinds. Of each kind one is tried on each cluster; for the others what came
of it holds until something has changed that it could depend on. Nothing of this outlives its pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.capacity.admission_defaults import brought
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.decide.candidates.filter import refuse
from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.gang_start import GangStart
from reconciler.core.decide.candidates.gpr_limits import beyond_limits, within_limits
from reconciler.core.decide.candidates.object_conflicts import ObjectConflicts
from reconciler.core.decide.candidates.reservations import uses
from reconciler.core.decide.state.enrolment import EnrolledRequest
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.placement_subset import Site, seated
from reconciler.core.spread.subset_pods import subset_of
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Choice, Reason, Refusal, Suppressed
from reconciler.model.policy import BurstPolicy
from reconciler.model.prerequisites import Prerequisite
from reconciler.model.request import RequestRecord
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count

_OF_ALL = frozenset(
    {
        Reason.UNKNOWN_CLUSTER,
        Reason.NOT_IN_WORKSPACE,
        Reason.CORDONED,
        Reason.UNSEEN,
        Reason.UNHEALTHY,
        Reason.NO_CAPACITY,
        Reason.GPR_LIMIT,
    }
)
"""Reasons that name nothing of the request itself."""


class RefusalCache:
    """What this pass has told requests of each kind. What is told `at` one state of things does not hold at another."""

    def __init__(self) -> None:
        self._refusals: dict[tuple[Hashable, ClusterName], tuple[Hashable, Refusal]] = {}
        self._suppressed: dict[Hashable, tuple[Hashable, Suppressed]] = {}

    def refusal(self, kind: Hashable, cluster: ClusterName, at: Hashable) -> Refusal | None:
        """Return why a cluster refuses requests of a kind, where that is known."""
        known = self._refusals.get((kind, cluster))
        return known[1] if known is not None and known[0] == at else None

    def refuse(self, kind: Hashable, refusal: Refusal, at: Hashable) -> None:
        """Note why a cluster has refused a request of a kind, where that is so for all of them."""
        if refusal.reason in _OF_ALL:
            self._refusals[kind, refusal.cluster] = at, refusal

    def suppressed(self, kind: Hashable, at: Hashable) -> Suppressed | None:
        """Return what was noted of a request of a kind that has found no room anywhere."""
        known = self._suppressed.get(kind)
        return known[1] if known is not None and known[0] == at else None

    def suppress(self, kind: Hashable, suppressed: Suppressed, at: Hashable) -> None:
        """Note that a request of a kind finds no room anywhere, if all of them are refused as it is."""
        if all(refusal.reason in _OF_ALL for refusal in suppressed.refusals):
            self._suppressed[kind] = at, suppressed


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
    """What one cluster can take of a workload now, of replicas that are shaped like this there.

    It has room for all of that or, of a gang with a minimum, for the pods that it can `start` with.
    """

    candidate: Candidate
    replicas: int
    shape: ReplicaShape
    start: GangStart | None = None


class CandidateFinder:
    """What clusters can take of workloads in one pass."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Begin with all that was observed free."""
        self._inputs = inputs
        self._desired = inputs.desired
        self._observed = inputs.observed
        self._now = inputs.now
        self._working_plan = working_plan
        self.rooms = FleetCapacity(inputs, working_plan)
        self.clashes = ObjectConflicts(inputs, working_plan)
        self._engines = tuple(sorted({cluster.engine for cluster in self._desired.clusters.values()}))
        self.told = RefusalCache()
        self._idle: dict[WorkspaceName, tuple[Hashable, list[RequestRecord]]] = {}

    @property
    def inputs(self) -> PassInput:
        """What is decided on."""
        return self._inputs

    def order(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """Return the clusters that a workload may go to, in order."""
        return self._inputs.reach.order(workload)

    def held(self, workload: WorkloadId) -> Counter[ClusterName]:
        """Count the replicas that each cluster has of a workload."""
        held = Counter[ClusterName]()
        for placement in self._working_plan.of(workload):
            held[placement.cluster] += placement.replicas
        return held

    def seated(self, workload: WorkloadId, policy: BurstPolicy) -> Counter[Site]:
        """Count the replicas that each cluster has of a workload for each subset; of none for the empty one."""
        return seated(self._working_plan.of(workload), policy, self._desired.clusters)

    def here(self, workload: WorkloadId, policy: BurstPolicy, candidate: Candidate) -> int:
        """Count the replicas that a cluster has of a workload, or a subset's part of it."""
        if policy.spread is not None:
            return self.seated(workload, policy)[candidate.site]
        return self.held(workload)[candidate.cluster]

    def shaped(
        self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate, shape: ReplicaShape
    ) -> ReplicaShape:
        """Return the shape that a replica has on a cluster, as it is written for its subset."""
        shape = brought(shape, (one.manifest for one in template.spec.manifests))
        found = subset_of(policy.spread, candidate.subset) if policy.spread is not None and candidate.subset else None
        if found is None:
            return shape
        cluster, drafts = self._desired.clusters[candidate.cluster], self._inputs.reach.drafts
        return drafts.shape(template, policy, found, cluster, shape, now=self._now)

    def needed(self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate) -> tuple[Prerequisite, ...]:
        """Return what a cluster must have first for a workload, or for a subset's part of it."""
        found = subset_of(policy.spread, candidate.subset) if policy.spread is not None and candidate.subset else None
        if found is None:
            return template.prerequisites
        cluster, drafts = self._desired.clusters[candidate.cluster], self._inputs.reach.drafts
        return drafts.needed(template, policy, found, cluster, now=self._now)

    def assess(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        candidate: Candidate,
        wanted: int,
        *,
        more: int = 0,
    ) -> Offer | Refusal:
        """Say what one cluster offers of a workload, or why it offers nothing.

        `more` are the clusters that are about to take some of it beside those that have some.
        """
        answer = self._assess(
            template, policy, self.shaped(template, policy, candidate, shape), candidate, wanted, more=more
        )
        return replace(answer, subset=candidate.subset) if candidate.subset and isinstance(answer, Refusal) else answer

    def _assess(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        candidate: Candidate,
        wanted: int,
        *,
        more: int,
    ) -> Offer | Refusal:
        workload, name = template.workload, candidate.cluster
        refusal = refuse(
            self._inputs,
            workload,
            name,
            shape=shape,
            restraints=self._working_plan.restraints(workload),
            needed=self.needed(template, policy, candidate),
            subset=candidate.subset,
        )
        if refusal is not None:
            return refusal
        here = self.here(workload, policy, candidate)
        limited = None
        if not here:
            limited = self.clashes.refusal(workload, name)
            limited = limited or self.limited(workload.workspace, name, shape, more=more)
        first = wanted if workload.request else here + 1
        limited = limited or beyond_limits(self._inputs, workload, name, shape, first)
        if limited is not None:
            return limited
        candidate = within_limits(self._inputs, workload, candidate, shape)
        if candidate.limit is not None:
            wanted = min(wanted, candidate.limit - here)
            if wanted <= 0:
                return Refusal(
                    cluster=name,
                    reason=Reason.CLUSTER_LIMIT,
                    message=f"has {here} of at most {count(candidate.limit, 'replica')}",
                    remedy=f"raise its maxReplicas in policy {policy.name}",
                )
        room = self.rooms.room(name, workload.workspace)
        fits = room.count(shape, wanted)
        if not fits:
            flying = self._working_plan.in_flight(name)
            going = sum(pods for _, pods in flying.going)
            waiting = f"; {count(flying.total, 'replica')} in flight taken off" if flying.total else ""
            waiting += f"; {count(going, 'pod')} of bursts that have ended taken off" if going else ""
            return Refusal(
                cluster=name,
                reason=Reason.NO_CAPACITY,
                message=f"{room.shortfall(shape)}{waiting}",
                remedy=room.remedy(shape),
            )
        return Offer(candidate=candidate, replicas=fits, shape=room.admitted(shape))

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
        held = self._working_plan.held_by(workspace) + len(unused) + more - begins
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
        own, now = self.rooms.reservations().of.get(workspace, []), self._working_plan.position
        known = self._idle.get(workspace)
        if known is None or known[0] != now:
            clusters = {one.cluster for one in own if one.cluster is not None}
            there = [placement for cluster in sorted(clusters) for placement in self._working_plan.on(cluster)]
            known = self._idle[workspace] = now, [record for record, used in uses(own, there) if not used]
        return known[1]

    def state(self, cluster: ClusterName, workspace: WorkspaceName | None = None) -> Hashable:
        """Return what is another after each change on which it can depend what a cluster gives to a workspace."""
        held: Hashable = 0
        if workspace is not None and workspace in self._desired.limits:
            unused = self._unused(workspace)
            held = self._working_plan.held_by(workspace), len(unused), any(one.cluster == cluster for one in unused)
        return self.rooms.moment(cluster), held

    def kind(self, entry: EnrolledRequest) -> Hashable:
        """Return what is equal for requests of which each cluster says the same."""
        clusters, pods = [candidate.cluster for candidate in self.order(entry.workload)], entry.needs.parts
        shapes = [part.shape for part in pods]
        kept_out = self.rooms.hindered(clusters, shapes)
        return entry.kind(self._engines, helm=self._observed.helm), kept_out, self.rooms.given(clusters, shapes)

    def moment(self) -> Hashable:
        """Return what is another after each change that this pass has decided on, wherever it is."""
        return self._working_plan.position, self.rooms.handed

    def choice(self, offer: Offer, shape: ReplicaShape, workspace: WorkspaceName) -> Choice:
        """Record what spoke for a cluster at the moment it was taken."""
        cluster = self._desired.clusters[offer.candidate.cluster]
        room = self.rooms.room(cluster.name, workspace)
        return Choice(
            cluster=cluster.name,
            rank=offer.candidate.rank,
            fits=room.count(shape, MOST),
            free=room.free(shape),
            price_per_gpu_hour=cluster.price_per_gpu_hour,
            limit=offer.candidate.limit,
            subset=offer.candidate.subset,
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
        return lifecycle.begun(
            template, policy, self._desired, self._now, cluster=cluster, replicas=replicas, shape=shape, subset=subset
        )

    def next_change(self, workload: WorkloadId) -> datetime | None:
        """Tell when any of its clusters could take more by time alone: a restraint ends, or replicas time out."""
        moments = [restraint.until for restraint in self._working_plan.restraints(workload)]
        flights = (self._working_plan.in_flight(one.cluster).until for one in self._inputs.reach.order(workload))
        return min((*moments, *(until for until in flights if until is not None)), default=None)

    def offers(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        wanted: int,
        refusals: list[Refusal],
    ) -> Iterator[Offer]:
        """Yield what clusters offer, in order, each beside what those before it would begin."""
        begun = 0
        for candidate in self._inputs.reach.order(template.workload):
            answer = self.assess(template, policy, shape, candidate, wanted, more=begun)
            if isinstance(answer, Refusal):
                refusals.append(answer)
            else:
                begun += not self.here(template.workload, policy, candidate)
                yield answer
