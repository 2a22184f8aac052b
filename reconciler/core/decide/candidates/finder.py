"""The clusters that can take replicas of a workload: ordered by scorers, filtered, and with what fits in each.

Refusals are cached within a pass. Thousands of waiting requests are of a few kinds: the first of each kind is tried on
each cluster, and its refusals hold for the others until something changes that they could depend on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from reconciler.core.capacity.admission_defaults import with_included_runtime_class
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.decide.candidates.filter import refuse
from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.gpr_limits import beyond_limits, within_limits
from reconciler.core.decide.candidates.object_conflicts import ObjectConflicts
from reconciler.core.decide.candidates.reservations import uses
from reconciler.core.decide.candidates.scorers import ranked
from reconciler.core.decide.state.enrolment import EnrolledRequest
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.placement_subset import replicas_by_subset
from reconciler.core.spread.subset_pods import subset_of
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.plan import Choice, Reason, Refusal, Suppressed
from reconciler.model.policy import BurstPolicy
from reconciler.model.request import RequestRecord
from reconciler.model.workload import WorkloadTemplate
from reconciler.model.workload_spread import Subset
from reconciler.text.wording import count

_SHARED = frozenset(
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
"""Reasons that name nothing of the request itself, so that they hold for all requests of its kind."""


class RefusalCache:
    """The refusals of this pass by kind of request. A refusal `at` one state of the plan does not hold at another."""

    def __init__(self) -> None:
        self._refusals: dict[tuple[Hashable, ClusterName], tuple[Hashable, Refusal]] = {}
        self._suppressed: dict[Hashable, tuple[Hashable, Suppressed]] = {}

    def refusal(self, kind: Hashable, cluster: ClusterName, at: Hashable) -> Refusal | None:
        """Return why a cluster refuses requests of a kind, where that has been found out."""
        entry = self._refusals.get((kind, cluster))
        return entry[1] if entry is not None and entry[0] == at else None

    def refuse(self, kind: Hashable, refusal: Refusal, at: Hashable) -> None:
        """Note why a cluster has refused a request, where the reason holds for all of its kind."""
        if refusal.reason in _SHARED:
            self._refusals[kind, refusal.cluster] = at, refusal

    def suppressed(self, kind: Hashable, at: Hashable) -> Suppressed | None:
        """Return what was noted of a request of a kind that no cluster has room for."""
        entry = self._suppressed.get(kind)
        return entry[1] if entry is not None and entry[0] == at else None

    def suppress(self, kind: Hashable, suppressed: Suppressed, at: Hashable) -> None:
        """Note that no cluster has room for a request, if every refusal holds for all of its kind."""
        if all(refusal.reason in _SHARED for refusal in suppressed.refusals):
            self._suppressed[kind] = at, suppressed


MOST = 10**6
"""More replicas than any cluster holds: asks for all that it can take, not only for those that are missing."""


def why_not(refusals: Iterable[Refusal], otherwise: str) -> tuple[Reason, str]:
    """Return the reason why a workload waits and its message: a limit of its workspace or policy, else no room.

    While one of the clusters lacks nothing but room, the workload waits for room: `otherwise` is the message then.
    """
    refused = {refusal.reason: refusal for refusal in reversed(tuple(refusals))}
    limited = refused.get(Reason.GPR_LIMIT) or refused.get(Reason.SPREAD_LIMIT)
    if limited is None or Reason.NO_CAPACITY in refused:
        return Reason.NOTHING_FITS, otherwise
    return limited.reason, f"{limited.message} ({limited.remedy})"


class CandidateFinder:
    """Answers which clusters can take replicas in one pass, and how many."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Begin with all capacity that was observed free."""
        self._inputs = inputs
        self._desired = inputs.desired
        self._observed = inputs.observed
        self._now = inputs.now
        self._working_plan = working_plan
        self.capacity = FleetCapacity(inputs, working_plan)
        self.conflicts = ObjectConflicts(inputs, working_plan)
        self._engines = tuple(sorted({cluster.engine for cluster in self._desired.clusters.values()}))
        self.refusals = RefusalCache()
        self._orders: dict[int, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]] = {}
        self._idle: dict[WorkspaceName, tuple[Hashable, list[RequestRecord]]] = {}

    @property
    def inputs(self) -> PassInput:
        """The input of the pass."""
        return self._inputs

    def order(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """Return the clusters that a workload may use, the highest score first; equal orders are scored once."""
        order = self._inputs.reach.order(workload)
        if id(order) not in self._orders:
            self._orders[id(order)] = order, ranked(self._inputs, workload)
        return self._orders[id(order)][1]

    def held_by_cluster(self, workload: WorkloadId) -> Counter[ClusterName]:
        """Count the replicas that each cluster has of a workload."""
        held = Counter[ClusterName]()
        for placement in self._working_plan.of(workload):
            held[placement.cluster] += placement.replicas
        return held

    def held_by_subset(self, workload: WorkloadId, policy: BurstPolicy) -> Counter[ClusterSubset]:
        """Count the replicas of a workload by cluster and subset; the subset is empty for those in none."""
        return replicas_by_subset(self._working_plan.of(workload), policy, self._desired.clusters)

    def held_here(self, workload: WorkloadId, policy: BurstPolicy, candidate: Candidate) -> int:
        """Count the replicas that a cluster has of a workload, or a subset's part of it."""
        if policy.spread is not None:
            return self.held_by_subset(workload, policy)[candidate.key]
        return self.held_by_cluster(workload)[candidate.cluster]

    def shaped(
        self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate, shape: ReplicaShape
    ) -> ReplicaShape:
        """Return the shape that a replica has on a cluster, as it is written for its subset."""
        shape = with_included_runtime_class(shape, (item.manifest for item in template.spec.manifests))
        subset = self._subset(policy, candidate)
        if subset is None:
            return shape
        cluster, drafts = self._desired.clusters[candidate.cluster], self._inputs.reach.drafts
        return drafts.shape(template, policy, subset, cluster, shape, now=self._now)

    def prerequisites(
        self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate
    ) -> tuple[Prerequisite, ...]:
        """Return the objects that a cluster must have before a workload, or a subset's part of it, can run there."""
        subset = self._subset(policy, candidate)
        if subset is None:
            return template.prerequisites
        cluster, drafts = self._desired.clusters[candidate.cluster], self._inputs.reach.drafts
        return drafts.needed(template, policy, subset, cluster, now=self._now)

    def assess(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        candidate: Candidate,
        replicas: int,
        *,
        more_gprs: int = 0,
    ) -> Candidate | Refusal:
        """Filter one candidate and count what fits: return it with `shape`, `fits` and `room`, or why it takes nothing.

        `room` is at most `replicas`. `more_gprs` are the GPRs that are about to begin beside those that have begun.
        """
        shape = self.shaped(template, policy, candidate, shape)
        answer = self._filtered(template, policy, shape, candidate, replicas, more_gprs=more_gprs)
        if isinstance(answer, Candidate):
            answer = self._fitted(template, policy, shape, answer, replicas)
        return replace(answer, subset=candidate.subset) if candidate.subset and isinstance(answer, Refusal) else answer

    def _filtered(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        candidate: Candidate,
        replicas: int,
        *,
        more_gprs: int,
    ) -> Candidate | Refusal:
        """Return a candidate that nothing but its capacity and limit bounds, or why it takes nothing."""
        workload, cluster = template.workload, candidate.cluster
        refusal = refuse(
            self._inputs,
            workload,
            cluster,
            shape=shape,
            restraints=self._working_plan.restraints(workload),
            needed=self.prerequisites(template, policy, candidate),
            subset=candidate.subset,
        )
        here = self.held_here(workload, policy, candidate)
        if refusal is None and not here:
            refusal = self.conflicts.refusal(workload, cluster)
            refusal = refusal or self.limited(workload.workspace, cluster, shape, more_gprs=more_gprs)
        first = replicas if workload.request else here + 1
        return refusal or beyond_limits(self._inputs, workload, cluster, shape, first) or candidate

    def _fitted(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        candidate: Candidate,
        replicas: int,
    ) -> Candidate | Refusal:
        """Return a candidate with the replicas that it can take, within its limit; or why it can take none."""
        workload = template.workload
        candidate = within_limits(self._inputs, workload, candidate, shape)
        if candidate.limit is not None:
            here = self.held_here(workload, policy, candidate)
            replicas = min(replicas, candidate.limit - here)
            if replicas <= 0:
                return Refusal(
                    cluster=candidate.cluster,
                    reason=Reason.CLUSTER_LIMIT,
                    message=f"has {here} of at most {count(candidate.limit, 'replica')}",
                    remedy=f"raise its maxReplicas in policy {policy.name}",
                )
        room = self.capacity.room(candidate.cluster, workload.workspace)
        fits = room.count(shape, MOST)
        if fits:
            return replace(candidate, shape=room.admitted(shape), fits=fits, room=min(fits, replicas))
        in_flight = self._working_plan.in_flight(candidate.cluster)
        ended = sum(pods for _, pods in in_flight.going)
        waiting = f"; {count(in_flight.total, 'replica')} in flight taken off" if in_flight.total else ""
        waiting += f"; {count(ended, 'pod')} of bursts that have ended taken off" if ended else ""
        return Refusal(
            cluster=candidate.cluster,
            reason=Reason.NO_CAPACITY,
            message=f"{room.shortfall(shape)}{waiting}",
            remedy=room.remedy(shape),
        )

    @staticmethod
    def _subset(policy: BurstPolicy, candidate: Candidate) -> Subset | None:
        """Return the subset that a candidate's replicas are for, if any."""
        return subset_of(policy.spread, candidate.subset) if policy.spread is not None and candidate.subset else None

    def limited(
        self, workspace: WorkspaceName, cluster: ClusterName, shape: ReplicaShape | None = None, *, more_gprs: int = 0
    ) -> Refusal | None:
        """Refuse a cluster where a workspace has as many GPRs as it may; None where it may have another one.

        `more_gprs` that are about to begin count. A reservation counts until placements use it, and then they do
        instead; a placement with a `shape` would begin to use one.
        """
        limits = self._desired.limits.get(workspace)
        if limits is None:
            return None
        unused = self._unused(workspace)
        begins = shape is not None and gpus_of_pod(shape) > 0 and any(record.cluster == cluster for record in unused)
        held = self._working_plan.gprs(workspace) + len(unused) + more_gprs - begins
        if held < limits.most:
            return None
        return Refusal(
            cluster=cluster,
            reason=Reason.GPR_LIMIT,
            message=f"workspace {workspace} has {held} of at most {count(limits.most, 'GPR')}",
            remedy="raise spec.maxGPRs of its WorkspacePolicy, or wait until one ends",
        )

    def _unused(self, workspace: WorkspaceName) -> list[RequestRecord]:
        """List the reservations of a workspace that no placement uses."""
        own, position = self.capacity.reservations().of.get(workspace, []), self._working_plan.position
        entry = self._idle.get(workspace)
        if entry is None or entry[0] != position:
            clusters = {record.cluster for record in own if record.cluster is not None}
            placements = [placement for cluster in sorted(clusters) for placement in self._working_plan.on(cluster)]
            entry = self._idle[workspace] = position, [record for record, used in uses(own, placements) if not used]
        return entry[1]

    def state(self, cluster: ClusterName, workspace: WorkspaceName | None = None) -> Hashable:
        """Return a value that changes whenever the room of a cluster for a workspace may have changed."""
        held: Hashable = 0
        if workspace is not None and workspace in self._desired.limits:
            unused = self._unused(workspace)
            here = any(record.cluster == cluster for record in unused)
            held = self._working_plan.gprs(workspace), len(unused), here
        return self.capacity.moment(cluster), held

    def kind(self, entry: EnrolledRequest) -> Hashable:
        """Return a value that is equal for requests that every cluster gives the same answer."""
        clusters, pods = [candidate.cluster for candidate in self.order(entry.workload)], entry.needs.parts
        shapes = [part.shape for part in pods]
        anti_affinity = self.capacity.hindered(clusters, shapes)
        return entry.kind(self._engines, helm=self._observed.helm), anti_affinity, self.capacity.given(clusters, shapes)

    def moment(self) -> Hashable:
        """Return a value that changes with every change that this pass decides on, on any cluster."""
        return self._working_plan.position, self.capacity.handed

    def choice(self, candidate: Candidate, workspace: WorkspaceName) -> Choice:
        """Record a candidate as it is taken, with what is free there of the resources that its replicas request."""
        cluster = self._desired.clusters[candidate.cluster]
        return Choice(
            cluster=candidate.cluster,
            rank=candidate.rank,
            fits=candidate.fits,
            free=self.capacity.room(candidate.cluster, workspace).free(candidate.shape),
            price_per_gpu_hour=cluster.price_per_gpu_hour,
            limit=candidate.limit,
            because=candidate.because,
            subset=candidate.subset,
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
        return lifecycle.new_placement(
            template, policy, self._desired, self._now, cluster=cluster, replicas=replicas, shape=shape, subset=subset
        )

    def next_change(self, workload: WorkloadId) -> datetime | None:
        """Return when time alone may make room: a restraint ends, or replicas in flight time out."""
        moments = [restraint.until for restraint in self._working_plan.restraints(workload)]
        flights = (self._working_plan.in_flight(candidate.cluster).until for candidate in self.order(workload))
        return min((*moments, *(until for until in flights if until is not None)), default=None)

    def find(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        missing: int,
        refusals: list[Refusal],
    ) -> Iterator[Candidate]:
        """Yield the candidates with room for missing replicas, in order, and add the others to the refusals.

        Each one counts the GPRs that those before it would begin. A cluster that is not asked for is not assessed.
        """
        begun = 0
        for candidate in self.order(template.workload):
            answer = self.assess(template, policy, shape, candidate, missing, more_gprs=begun)
            if isinstance(answer, Refusal):
                refusals.append(answer)
            else:
                begun += not self.held_here(template.workload, policy, candidate)
                yield answer
