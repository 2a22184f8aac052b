"""The clusters that can take replicas of a workload: ordered by scorers, filtered, and with what fits in each.

Thousands of waiting workloads cost no more than their kinds: the first of each kind is tried on each cluster, and the
answers hold for the others until the plan changes in something that they could depend on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TypeVar

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.admission_defaults import with_included_runtime_class
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.gpu_slices import gpu_slices, recorded_shape
from reconciler.core.capacity.scalable_nodes import addable_nodes
from reconciler.core.capacity.shared_topology import DomainShortage, assign_shared_domains, describe_shared_domains
from reconciler.core.cost.prices import price_of
from reconciler.core.decide.candidates.filter import refuse
from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.gang_fit import count_gang_replicas
from reconciler.core.decide.candidates.gpr_limits import beyond_limits, within_limits
from reconciler.core.decide.candidates.gpr_quota import GprQuota
from reconciler.core.decide.candidates.gpr_terms import has_gpr_templates
from reconciler.core.decide.candidates.kind_answers import KindAnswers
from reconciler.core.decide.candidates.object_conflicts import ObjectConflicts
from reconciler.core.decide.candidates.object_quotas import ObjectQuotas
from reconciler.core.decide.candidates.replica_domains import replica_domains
from reconciler.core.decide.candidates.scorers import SCORERS, Ranking
from reconciler.core.decide.state.enrolment import EnrolledRequest
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import divided_gang
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.engines import engine
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.placement_subset import replicas_by_subset
from reconciler.errors import Bug
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import ClusterSubset, Placement, RestraintKind
from reconciler.model.plan import PODS_UNTRIED, PODS_UNTRIED_REMEDY, Choice, Reason, ReasonTraits, Refusal, Suppressed
from reconciler.model.policy import BurstPolicy, SetDivision
from reconciler.model.units import Resources, format_duration
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import as_clause, conjugate, count


class RefusalCache:
    """The refusals of this pass by kind of request. A refusal `at` one state of the plan does not hold at another."""

    def __init__(self) -> None:
        self._refusals: dict[tuple[Hashable, ClusterName], tuple[Hashable, Refusal]] = {}
        self._suppressed: dict[Hashable, tuple[Hashable, Suppressed]] = {}
        self._why_not: dict[int, tuple[tuple[Refusal, ...], Reason, str]] = {}

    def refusal(self, kind: Hashable, cluster: ClusterName, at: Hashable) -> Refusal | None:
        """Return why a cluster refuses requests of a kind; None where no request of the kind has been tried there."""
        entry = self._refusals.get((kind, cluster))
        return entry[1] if entry is not None and entry[0] == at else None

    def refuse(self, kind: Hashable, refusal: Refusal, at: Hashable) -> None:
        """Cache the refusal of a request if its reason holds for all requests of its kind."""
        if refusal.reason.has(ReasonTraits.OF_KIND):
            self._refusals[kind, refusal.cluster] = at, refusal

    def suppressed(self, kind: Hashable, at: Hashable) -> Suppressed | None:
        """Return the suppression of a request of a kind that no cluster has room for."""
        entry = self._suppressed.get(kind)
        return entry[1] if entry is not None and entry[0] == at else None

    def suppress(self, kind: Hashable, suppressed: Suppressed, at: Hashable) -> None:
        """Cache that no cluster has room for a request if every refusal holds for all requests of its kind."""
        if all(refusal.reason.has(ReasonTraits.OF_KIND) for refusal in suppressed.refusals):
            self._suppressed[kind] = at, suppressed

    def why_not(self, refusals: tuple[Refusal, ...], otherwise: str) -> tuple[Reason, str]:
        """Return what `why_not` does; all that share the very same refusals share the answer."""
        entry = self._why_not.get(id(refusals))
        if entry is None:
            entry = self._why_not[id(refusals)] = refusals, *why_not(refusals, "")
        _, reason, message = entry
        return reason, otherwise if reason is Reason.NOTHING_FITS else message


T = TypeVar("T")

_NONE_ADDED = Resources()
_LIMITS = tuple(reason for reason in Reason if reason.has(ReasonTraits.IS_LIMIT))
_NO_REFUSALS: Mapping[ClusterSubset, Refusal] = MappingProxyType({})

MOST = 10**6
"""More replicas than any cluster holds: asks for all that it can take, not only for those that are missing."""


def why_not(refusals: Iterable[Refusal], otherwise: str) -> tuple[Reason, str]:
    """Return the reason why a workload waits and its message: a limit, or that all clusters are held, else no room.

    Of several limits the first one of `Reason` counts.
    While one of the clusters lacks nothing but room, the workload waits for room: `otherwise` is the message then.
    """
    refusals = tuple(refusals)
    refused = {refusal.reason: refusal for refusal in reversed(refusals)}
    if refused and refused.keys() <= {Reason.HELD, Reason.COOLING_DOWN}:
        reason = Reason.HELD if Reason.HELD in refused else Reason.COOLING_DOWN
        first = refused[reason]
        number = len(refusals) - 1
        others = f"; so {conjugate(number, 'is')} {count(number, 'other cluster')}" if number else ""
        return reason, f"{first.where} is held back: {first.message} ({first.remedy}){others}"
    limited = next((refused[reason] for reason in _LIMITS if reason in refused), None)
    if limited is None or Reason.NO_CAPACITY in refused:
        return Reason.NOTHING_FITS, otherwise
    return limited.reason, f"{limited.message} ({limited.remedy})"


def describe_first_remedy(refusals: Iterable[Refusal]) -> str:
    """Add to a message what would open the first cluster that something can be done about; empty for none."""
    first = next((refusal for refusal in refusals if refusal.remedy), None)
    return "" if first is None else f"; {first.where}: {as_clause(first.message)} ({first.remedy})"


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
        self.object_quotas = ObjectQuotas(inputs, working_plan)
        self._engines = tuple(sorted({cluster.engine for cluster in self._desired.clusters.values()}))
        self.refusals = RefusalCache()
        self._kinds: dict[WorkloadId, int | None] = {}
        """The number of what files say of each burst; None where its answers are its own."""
        self._likenesses: dict[WorkloadId, tuple[ReplicaShape, ReplicaShape, int]] = {}
        """The last shape of each burst, with the RuntimeClass that it brings along, and the number of its likeness."""
        self._answers: dict[tuple[Hashable, bool], KindAnswers] = {}
        self._room_by_cluster: dict[Hashable, tuple[Hashable, Mapping[ClusterName, int] | None]] = {}
        self._first_untried: dict[WorkloadId, int] = {}
        self.unwritten = frozenset(workload for workload, _ in inputs.unwritable)
        self._ranking = Ranking(inputs, working_plan, self.capacity)
        self.gprs = GprQuota(inputs, working_plan, self.capacity)

    @property
    def inputs(self) -> PassInput:
        """The input of the pass."""
        return self._inputs

    def order(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """Return the clusters that a workload may use, the highest score first.

        While nodes that autoscalers may add count, the clusters of the shortest delay come first, unless a spread
        orders its subsets, or the policy weighs the time to ready or the wait.
        """
        candidates, policy = self._ranking.order(workload), self._desired.policies[workload]
        timed = any(SCORERS[scorer.name].weighs_delay for scorer in policy.scoring)
        if not self.capacity.is_grown or policy.subsets or timed:
            return candidates
        return tuple(sorted(candidates, key=lambda candidate: self._shortest_delay(candidate.cluster)))

    def _shortest_delay(self, cluster: ClusterName) -> timedelta:
        described, seen = self._desired.clusters.get(cluster), self._observed.clusters.get(cluster)
        if described is None or seen is None:
            return timedelta.max
        return min((nodes.delay for nodes, _ in addable_nodes(described, seen)), default=timedelta.max)

    def describe_growth(self, cluster: ClusterName, shape: ReplicaShape) -> str:
        """Tell that a pod waits for a node which the autoscaler of its cluster adds; empty where it does not."""
        with self.capacity.grown():
            nodes = self.capacity.first_growth(cluster, shape)
        if nodes is None:
            return ""
        kind = "spot nodes" if nodes.is_spot else "nodes"
        return f"on {kind} that {nodes.adding} adds in about {format_duration(nodes.delay)}"

    def describe_held(self, cluster: ClusterName, shape: ReplicaShape) -> str:
        """Tell which NodePools hold nodes for such a pod back, each after a semicolon; empty for none."""
        return self.capacity.describe_held(cluster, shape)

    def may_grow(self, workload: WorkloadId) -> bool:
        """Tell whether the autoscaler of a cluster that a workload may use may add a node."""
        if not self.capacity.growing_clusters:
            return False
        order = self._inputs.reach.order(workload) if workload in self._desired.policies else ()
        return any(candidate.cluster in self.capacity.growing_clusters for candidate in order)

    def held(self, workload: WorkloadId) -> Counter[ClusterSubset]:
        """Count the replicas of a workload by cluster and subset; the subset is empty for those in none."""
        policy = self._desired.policies[workload]
        return replicas_by_subset(self._working_plan.of(workload), policy, self._desired.clusters)

    def shaped(
        self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate, shape: ReplicaShape
    ) -> ReplicaShape:
        """Return the shape that a replica has on a cluster, as it is written for its subset."""
        shape = with_included_runtime_class(shape, (item.manifest for item in template.spec.manifests))
        subset = policy.subset(candidate.subset)
        if template.patches:
            shape = self._inputs.reach.patched.shape(template, self._desired.clusters[candidate.cluster], shape)
        if subset is None:
            return shape
        cluster = self._desired.clusters[candidate.cluster]
        return self._working_plan.drafts.shape(template, policy, subset, cluster, seen=shape)

    def prerequisites(
        self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate
    ) -> tuple[Prerequisite, ...]:
        """Return the objects that a cluster must have before a workload, or a subset's part of it, can run there."""
        subset = policy.subset(candidate.subset)
        if subset is None and not template.patches:
            return template.prerequisites
        cluster = self._desired.clusters[candidate.cluster]
        if subset is None:
            return self._inputs.reach.patched.prerequisites(template, cluster)
        return self._working_plan.drafts.needed(template, policy, subset, cluster)

    def assess(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        candidate: Candidate,
        replicas: int,
        *,
        more_gprs: int = 0,
        whole: int = 0,
    ) -> Candidate | Refusal:
        """Filter a candidate and count what fits: return it with `shape`, `fits` and `room`, or its refusal.

        `room` is at most `replicas`. `more_gprs` are the GPRs that are about to begin beside those that have begun.
        Groups of a set that is divided fit with all of their pods. Of what goes whole these are the main pods of all
        replicas that it has there then, which are its `whole`: one GPR has all of them or none.
        """
        workload = template.workload

        def look() -> Candidate | Refusal:
            untried = self._refuse_untried(template, policy, candidate)
            if untried is not None:
                return untried
            written, here = self.shaped(template, policy, candidate, shape), self.held(workload)[candidate.key]
            needed = self.prerequisites(template, policy, candidate)
            refusal = self._refuse(workload, candidate, written, needed, here=here, more_gprs=more_gprs)
            refusal = refusal or beyond_limits(self._inputs, workload, candidate.cluster, written, whole or here + 1)
            answer = refusal or self._fit(workload, policy, candidate, written, replicas, here=here, whole=bool(whole))
            if isinstance(answer, Refusal) and candidate.subset:
                return replace(answer, subset=candidate.subset)
            return answer

        return self.contained(candidate, look)

    def _refuse_untried(self, template: WorkloadTemplate, policy: BurstPolicy, candidate: Candidate) -> Refusal | None:
        """Refuse a subset whose pods one of the next passes renders, and all after it.

        The first subsets are the cheapest, and replicas stay where they are. Callers ask in order.
        """
        subset, workload = policy.subset(candidate.subset), template.workload
        if subset is not None and candidate.rank < self._first_untried.get(workload, MOST):
            cluster = self._desired.clusters[candidate.cluster]
            if self._working_plan.drafts.is_untried(template, policy, subset, cluster):
                self._first_untried[workload] = candidate.rank
        if candidate.rank < self._first_untried.get(workload, MOST):
            return None
        return Refusal(
            cluster=candidate.cluster,
            subset=candidate.subset,
            reason=Reason.UNTRIED,
            message=PODS_UNTRIED,
            remedy=PODS_UNTRIED_REMEDY,
        )

    def assess_domains(self, workload: WorkloadId, candidate: Candidate, replicas: int) -> Candidate | Refusal:
        """Return a candidate whose topology domains hold the replicas of a workload that runs once, or why not.

        The candidate has room for them.
        """
        wanted = replica_domains(self._inputs, workload, candidate.shape, replicas)
        if not wanted:
            return candidate
        if not isinstance(wanted, DomainShortage):
            room = self.capacity.room(candidate.cluster, workload.workspace)
            answer = assign_shared_domains(room, wanted, [(candidate.shape, replicas)])
            if not isinstance(answer, DomainShortage):
                return candidate._replace(because=describe_shared_domains(wanted))
            wanted = answer
        return Refusal(
            cluster=candidate.cluster,
            subset=candidate.subset,
            reason=Reason.NO_CAPACITY,
            message=wanted.message,
            remedy=wanted.remedy,
        )

    def assess_alike(
        self,
        kind: tuple[Hashable, ...] | None,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        *,
        candidate: Candidate,
        replicas: int,
        more_gprs: int = 0,
    ) -> Candidate | Refusal:
        """Assess a candidate as `assess` does, or give the answer that others of the same `kind` have got there."""
        if kind is None:
            return self.assess(template, policy, shape, candidate, replicas, more_gprs=more_gprs)
        answers = self._answers_of(kind, template.workload)
        answer = self._ask(answers, answers.positions[candidate.cluster], template, policy, shape)
        return _at_most(answer, replicas)

    def answers(
        self, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, *, more_gprs: int = 0
    ) -> KindAnswers:
        """Return what all clusters answer a burst, each by itself, with all the room that they have.

        `more_gprs` are the GPRs that begin beside it, less those that end; they are bounded for none of a kind.
        """
        workload, strategy = template.workload, policy.distribution.strategy
        candidates, kind = self.order(workload), self.burst_kind(template, shape)
        if kind is None:
            own = KindAnswers(candidates, strategy)
            for position, candidate in enumerate(candidates):
                own.put(position, self.assess(template, policy, shape, candidate, MOST, more_gprs=more_gprs))
            return own
        answers = self._answers_of(kind, workload)
        self._count_again(answers, template, shape)
        asked = [(position, self._ask(answers, position, template, policy, shape)) for position in answers.due]
        # A bug is no answer to others.
        return answers.with_answers(asked) if answers.due else answers

    def _count_again(self, answers: KindAnswers, template: WorkloadTemplate, shape: ReplicaShape) -> None:
        """Count what fits on clusters of which nothing but the room may have changed; the full ones stay due.

        It is `_fit` without limits, which no kind has. After a bug all stay due, and each is asked by itself.
        """
        workspace, (written, _) = template.workspace, self._likeness(template.workload, template, shape)

        def fitting() -> list[tuple[int, Candidate]]:
            found, candidates, room_on = [], answers.candidates, self.capacity.room
            for position in filter(answers.passes, answers.due):
                candidate = candidates[position]
                room = room_on(candidate.cluster, workspace)
                fits = room.count(written, MOST)
                if fits:
                    found.append((position, candidate.with_room(room.admitted(written), fits, fits)))
            return found

        counted = attempt(Seam.CANDIDATE, template.workload, fitting)
        if not isinstance(counted, Bug):
            for position, candidate in counted:
                answers.put(position, candidate)

    def _answers_of(self, kind: tuple[Hashable, ...], workload: WorkloadId) -> KindAnswers:
        """Return what clusters have answered bursts of a kind, as far as that still holds."""
        key = kind, self.capacity.is_grown
        answers = self._answers.get(key)
        if answers is None:
            strategy = self._desired.policies[workload].distribution.strategy
            answers = self._answers[key] = KindAnswers(self.order(workload), strategy, kind)
        answers.follow(self.capacity)
        return answers

    def _ask(
        self,
        answers: KindAnswers,
        position: int,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
    ) -> Candidate | Refusal:
        """Return what a candidate answers bursts of a kind; it is asked where no answer of it holds."""
        answer = answers.answer(position)
        if answer is not None:
            return answer
        candidate = answers.candidates[position]
        if answers.passes(position):
            written, _ = self._likeness(template.workload, template, shape)  # a kind has neither patches nor subsets
            answer = self.contained(
                candidate, lambda: self._fit(template.workload, policy, candidate, written, MOST, here=0)
            )
        else:
            answer = self._asked_before(answers.kind, candidate.cluster)
            if answer is None:
                answer = self.assess(template, policy, shape, candidate, MOST)
                self._keep(answers.kind, answer)
        if isinstance(answer, Candidate) or answer.reason is not Reason.BUG:  # which each burst has to meet by itself
            answers.put(position, answer)
        return answer

    def room_by_cluster(
        self, kind: tuple[Hashable, ...], template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape
    ) -> Mapping[ClusterName, int] | None:
        """Return the replicas of a kind that each cluster holds, of those where nothing but room may be lacking.

        None where a candidate has no weight, and thus not all of its room may be used.
        """
        now, entry = self.moment(), self._room_by_cluster.get(kind)
        if entry is None or entry[0] != now:
            room = None
            if all(candidate.weight for candidate in self.order(template.workload)):
                answers = self.answers(template, policy, shape)
                refused = {refusal.cluster: refusal.reason for refusal in answers.refusals()}
                if Reason.BUG not in refused.values():
                    room = {cluster: candidate.fits for cluster, candidate in answers.able.items()}
                    room |= {cluster: 0 for cluster, reason in refused.items() if reason is Reason.NO_CAPACITY}
            entry = self._room_by_cluster[kind] = now, room
        return entry[1]

    def _asked_before(self, kind: tuple[Hashable, ...], cluster: ClusterName) -> Refusal | None:
        """Return the refusal of an earlier pass, if nothing that a cluster's room is counted from has changed since."""
        basis = self.capacity.basis(cluster)
        return None if basis is None else self._working_plan.memory.refusal(kind[1:], cluster, basis)

    def _keep(self, kind: tuple[Hashable, ...], answer: Candidate | Refusal) -> None:
        """Keep for later passes that a cluster has no room for bursts of a kind."""
        if isinstance(answer, Candidate) or answer.reason is not Reason.NO_CAPACITY:
            return
        basis = self.capacity.basis(answer.cluster)
        if basis is not None:
            self._working_plan.memory.keep(kind[1:], answer, basis)

    def contained(self, candidate: Candidate, look: Callable[[], T | Refusal]) -> T | Refusal:
        """Look at one candidate behind the bulkhead: one that cannot be assessed is refused, and the next is taken."""
        answer = attempt(Seam.CANDIDATE, candidate.cluster, look)
        if not isinstance(answer, Bug):
            return answer
        self._working_plan.note_bug(answer)
        return Refusal(cluster=candidate.cluster, reason=Reason.BUG, message=answer.summary, subset=candidate.subset)

    def _refuse(
        self,
        workload: WorkloadId,
        candidate: Candidate,
        shape: ReplicaShape,
        needed: tuple[Prerequisite, ...],
        *,
        here: int,
        more_gprs: int,
    ) -> Refusal | None:
        """Return why a candidate takes nothing, whatever is free there; `here` are the replicas that it has."""
        cluster, record = candidate.cluster, self._working_plan.requests.get(workload)
        if record is not None and cluster in record.avoids:
            message, remedy = "it failed there, was idle there, or was ended there", "ask for it again to try again"
            return Refusal(cluster=cluster, reason=Reason.AVOIDED, message=message, remedy=remedy)
        refusal = refuse(
            self._inputs,
            workload,
            cluster,
            shape=shape,
            restraints=self._working_plan.restraints(workload),
            needed=needed,
            subset=candidate.subset,
        )
        if refusal is None and not here:
            refusal = self.conflicts.refusal(workload, cluster)
            refusal = refusal or self.gprs.refusal(workload.workspace, cluster, shape, more_gprs=more_gprs)
            refusal = refusal or self.object_quotas.refusal(workload, cluster)
        return refusal

    def _fit(
        self,
        workload: WorkloadId,
        policy: BurstPolicy,
        candidate: Candidate,
        shape: ReplicaShape,
        replicas: int,
        *,
        here: int,
        whole: bool = False,
    ) -> Candidate | Refusal:
        """Return a candidate with the replicas that it can take, within its limit; or why it can take none."""
        candidate = candidate if whole else within_limits(self._inputs, workload, candidate, shape)
        if candidate.limit is not None:
            replicas = min(replicas, candidate.limit - here)
            if replicas <= 0:
                return Refusal(
                    cluster=candidate.cluster,
                    reason=Reason.CLUSTER_LIMIT,
                    message=f"has {here} of at most {count(candidate.limit, 'replica')}",
                    remedy=f"raise its maxReplicas in policy {policy.name}",
                )
        room = self.capacity.room(candidate.cluster, workload.workspace)
        gang = None if whole else divided_gang(self._inputs, workload)
        if gang is not None:
            counted = count_gang_replicas(self._inputs, self.capacity, workload.workspace, candidate, gang, here=here)
            if isinstance(counted, Refusal):
                return counted
            return candidate.with_room(room.admitted(shape), counted, min(counted, replicas))
        fits = room.count(shape, MOST)
        if fits:
            return candidate.with_room(room.admitted(shape), fits, min(fits, replicas))
        in_flight = self._working_plan.in_flight(candidate.cluster)
        ended = sum(pods for _, pods in in_flight.going)
        waiting = f"; {count(in_flight.total, 'replica')} on their way counted" if in_flight.total else ""
        waiting += f"; {count(ended, 'pod')} of bursts that have ended counted" if ended else ""
        held = self.capacity.held_growth(candidate.cluster, shape)
        return Refusal(
            cluster=candidate.cluster,
            reason=Reason.NO_CAPACITY,
            message=f"{room.shortfall(shape)}{waiting}{self.describe_held(candidate.cluster, shape)}",
            remedy=held[0].remedy if held else room.remedy(shape),
        )

    def state(self, cluster: ClusterName, workspace: WorkspaceName | None = None) -> Hashable:
        """Return a value that changes whenever the room of a cluster for a workspace may have changed."""
        return self.capacity.moment(cluster), self.gprs.state(cluster, workspace)

    def kind(self, entry: EnrolledRequest) -> Hashable:
        """Return a value that is equal for requests that every cluster gives the same answer."""
        clusters, pods = [candidate.cluster for candidate in self.order(entry.workload)], entry.needs.parts
        shapes = [part.shape for part in pods]
        anti_affinity = self.capacity.repelling_domains(clusters, shapes)
        return (
            self._working_plan.memory.request_kind(entry, self._engines, helm=self._observed.helm),
            anti_affinity,
            self.capacity.admission(clusters, shapes),
            self.object_quotas.likeness(entry.workload),
        )

    def burst_kind(self, template: WorkloadTemplate, shape: ReplicaShape) -> tuple[Hashable, ...] | None:
        """Return a value that is equal for bursts that each cluster gives the same answer; None where they are its own.

        They are its own where they depend on what the workload has on the cluster, on its restraints, or on objects of
        its own: see `assess`. Requests, which come and go, have their `kind`: numbers of kinds are kept for long.
        """
        workload = template.workload
        if workload not in self._kinds:
            by_files = self._kind_by_files(template)
            self._kinds[workload] = None if by_files is None else self._working_plan.memory.number(by_files)
        kind, restraints = self._kinds[workload], self._working_plan.restraints(workload)
        has_own = (
            kind is None
            or workload in self.unwritten
            or (restraints and any(restraint.cluster is not None for restraint in restraints))
            or self.conflicts.may_refuse_burst(workload)
            or self.object_quotas.may_refuse(workload)
        )
        if has_own:
            return None
        own, likeness = self._likeness(workload, template, shape)
        clusters = self._inputs.reach.named(workload) if self.capacity.has_admission or own.who else ()
        return (
            id(self._ranking.order(workload)),  # which the ranking keeps; `order` may be of this moment alone
            kind,
            likeness,
            self.capacity.repelling_domains(clusters, [own]) if own.who else None,
            self.capacity.admission(clusters, [own]),
        )

    def _likeness(
        self, workload: WorkloadId, template: WorkloadTemplate, shape: ReplicaShape
    ) -> tuple[ReplicaShape, int]:
        """Return the shape of a burst with the RuntimeClass that it brings along, and the number of its likeness."""
        kept = self._likenesses
        entry = kept.get(workload)
        if entry is None or entry[0] is not shape:
            own = with_included_runtime_class(shape, (item.manifest for item in template.spec.manifests))
            entry = kept[workload] = shape, own, self._working_plan.memory.number(("likeness", own.likeness))
        return entry[1:]

    def _kind_by_files(self, template: WorkloadTemplate) -> Hashable | None:
        """Return what files alone say of how clusters answer a burst; None where its answers are its own."""
        workload, desired = template.workload, self._desired
        policy, workspace = desired.policies[workload], desired.workspaces[template.workspace]
        if (
            policy.subsets
            or policy.sets is not SetDivision.WHOLE
            or template.patches
            or template.unread
            or self.gprs.may_refuse(workspace.name)
            or self._inputs.reach.lowest_limit(workload) is not None
            or has_gpr_templates(workload, self._inputs)
        ):
            return None
        refusals = (engine(name).refusals(template.spec, workspace, helm=self._observed.helm) for name in self._engines)
        return id(policy), workspace.name, template.prerequisites, tuple(refusals)

    def moment(self) -> Hashable:
        """Return a value that changes with every change that this pass decides on, on any cluster."""
        return self._working_plan.position, self.capacity.changes, self.capacity.is_grown

    def choice(self, candidate: Candidate, workspace: WorkspaceName, room: ClusterCapacity | None = None) -> Choice:
        """Record the choice of a candidate, with the free amounts of the resources that its replicas request.

        `room` is what its cluster has for the workspace now, if that is known.
        """
        cluster, growth, addable = self._desired.clusters[candidate.cluster], "", _NONE_ADDED
        room = room or self.capacity.room(candidate.cluster, workspace)
        free = room.free(candidate.shape)
        if self.capacity.is_grown:
            growth, all_free = self.describe_growth(candidate.cluster, candidate.shape), free
            with self.capacity.grown(growth=False):
                free = self.capacity.room(candidate.cluster, workspace).free(candidate.shape)
            addable = all_free.minus(free) if growth else addable
        return Choice(
            cluster=candidate.cluster,
            rank=candidate.rank,
            fits=candidate.fits,
            free=free,
            addable=addable,
            price_per_gpu_hour=price_of(cluster, candidate.shape, self._now),
            limit=candidate.limit,
            because="; ".join(filter(None, (candidate.because, growth))) if growth else candidate.because,
            slices=gpu_slices(self._observed.clusters.get(candidate.cluster), candidate.shape),
            subset=candidate.subset,
            scores=candidate.scores,
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
        """Make a new placement that begins now; it is paid for by what its cluster gives for a GPU."""
        return lifecycle.new_placement(
            template,
            policy,
            self._desired,
            self._now,
            cluster=cluster,
            replicas=replicas,
            shape=recorded_shape(shape, self._observed.clusters.get(cluster)),
            subset=subset,
            began_at=self._inputs.began_at(template.workload, cluster, subset),
        )

    def next_change(self, workload: WorkloadId) -> datetime | None:
        """Return when time alone may make room: a restraint ends, or replicas in flight time out."""
        restraints = self._working_plan.restraints(workload)
        moments = [restraint.until for restraint in restraints if restraint.kind is not RestraintKind.TURN]
        flights = (self._working_plan.in_flight(candidate.cluster).until for candidate in self.order(workload))
        return min((*moments, *(until for until in flights if until is not None)), default=None)

    def find(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        missing: int,
        refusals: list[Refusal],
        *,
        ended: int = 0,
        closed: Mapping[ClusterSubset, Refusal] = _NO_REFUSALS,
    ) -> Iterator[Candidate]:
        """Yield the candidates with room for missing replicas, in order, and add the others to the refusals.

        Each one counts the GPRs that those before it would begin, less those that have `ended` for these replicas. A
        cluster that is not asked for is not assessed, nor is one that is `closed` to them. Nothing may be decided
        before the last one is taken.
        """
        begun, workload = -ended, template.workload
        candidates, kind = self.order(workload), self.burst_kind(template, shape)
        answers = None if kind is None else self._answers_of(kind, workload)
        for position, candidate in enumerate(candidates):
            answer: Candidate | Refusal
            if candidate.key in closed:
                answer = closed[candidate.key]
            elif answers is None:
                answer = self.assess(template, policy, shape, candidate, missing, more_gprs=begun)
            else:
                answer = _at_most(self._ask(answers, position, template, policy, shape), missing)
            if isinstance(answer, Refusal):
                refusals.append(answer)
                continue
            if answers is None:  # GPRs are bounded for none of a kind
                begun += not self.held(workload)[candidate.key]
            yield answer


def _at_most(answer: Candidate | Refusal, replicas: int) -> Candidate | Refusal:
    """Lower the room that a candidate has to so many replicas."""
    if isinstance(answer, Candidate) and replicas < answer.room:
        return answer.with_room(answer.shape, answer.fits, replicas)
    return answer
