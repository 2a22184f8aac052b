"""The clusters of a workload ranked by the scorers that its policy weighs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_slices import gpu_slices, has_slices, has_whole_gpus
from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.scorers.current_cluster import CurrentCluster
from reconciler.core.decide.candidates.scorers.gpu_pressure import GpuPressure
from reconciler.core.decide.candidates.scorers.packing import Packing
from reconciler.core.decide.candidates.scorers.policy_order import PolicyOrder
from reconciler.core.decide.candidates.scorers.price import Price
from reconciler.core.decide.candidates.scorers.recent_failures import RecentFailures
from reconciler.core.decide.candidates.scorers.scarce_gpu import ScarceGPU
from reconciler.core.decide.candidates.scorers.scorer import Scorer, Subject
from reconciler.core.decide.candidates.scorers.time_to_ready import TimeToReady
from reconciler.core.decide.candidates.scorers.topology import Topology
from reconciler.core.decide.candidates.scorers.wait_time import EstimatedWait
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.policy import BurstPolicy
from reconciler.model.score import Score, ScorerName

SCORERS: Mapping[ScorerName, Scorer] = {
    ScorerName.POLICY_ORDER: PolicyOrder(),
    ScorerName.PRICE: Price(),
    ScorerName.TIME_TO_READY: TimeToReady(),
    ScorerName.WAIT_TIME: EstimatedWait(),
    ScorerName.SCARCE_GPU: ScarceGPU(),
    ScorerName.PACKING: Packing(),
    ScorerName.RECENT_FAILURES: RecentFailures(),
    ScorerName.CURRENT_CLUSTER: CurrentCluster(),
    ScorerName.TOPOLOGY: Topology(),
}
"""The scorers by the names that policies use."""


class Ranking:
    """Ranks the clusters of workloads in one pass; what is equal is scored once."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan, capacity: FleetCapacity | None = None) -> None:
        """Rank for new replicas by their room in `capacity`; without it, for replicas that are given back."""
        self._inputs = inputs
        self._working_plan = working_plan
        self._capacity = capacity
        self._pressure = GpuPressure(inputs, working_plan)
        self._ranked: dict[Hashable, tuple[Candidate, ...]] = {}
        self._sliced: bool | None = None
        self._orders: dict[WorkloadId, tuple[Hashable, tuple[Candidate, ...]]] = {}

    def order(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """Return the clusters that a workload may use, the highest score first, then as its policy has them.

        Each has its rank in that order, and its scores. The subsets of a WorkloadSpread and the tiers of a policy keep
        their order. Clusters that give out slices of GPUs are a tier behind the others of their subset and tier where
        the workload has whole GPUs at home, whatever their score, so that every strategy fills them last. Where a
        policy weighs no scorer, and no cluster has slices, this is the very tuple that the fleet's order has.
        """
        candidates, policy = self._inputs.reach.order(workload), self._inputs.desired.policies[workload]
        if not policy.scoring and not self._have_slices():
            return candidates
        moment, entry = self._moment(policy), self._orders.get(workload)
        if entry is None or entry[0] != moment:
            entry = self._orders[workload] = moment, self._rank(workload, candidates, policy)
        return entry[1]

    def _moment(self, policy: BurstPolicy) -> Hashable:
        """Return a value that changes whenever the scores of a policy's workloads may have changed."""
        grown = self._capacity is not None and self._capacity.is_grown
        if not any(SCORERS[scorer.name].follows_plan for scorer in policy.scoring):
            return grown
        return grown, self._working_plan.position, 0 if self._capacity is None else self._capacity.changes

    def _rank(
        self, workload: WorkloadId, candidates: tuple[Candidate, ...], policy: BurstPolicy
    ) -> tuple[Candidate, ...]:
        """Rank the clusters of one workload, or take the ranks of one that gets equal points."""
        subject = Subject(
            inputs=self._inputs,
            working_plan=self._working_plan,
            workload=workload,
            shape=self._shape(workload),
            capacity=self._capacity,
            pressure=self._pressure,
        )
        keys = tuple(SCORERS[scorer.name].key(subject) for scorer in policy.scoring)
        slices = self._slices(workload, candidates)
        key = id(candidates), policy.scoring, keys, slices
        if key not in self._ranked:
            behind = dict(zip((candidate.key for candidate in candidates), slices, strict=True)) if slices else {}
            ranked = _ranked(_scored(candidates, policy, subject), behind) if policy.scoring or behind else candidates
            self._ranked[key] = ranked
        return self._ranked[key]

    def _have_slices(self) -> bool:
        """Return whether any cluster has slices of GPUs."""
        if self._sliced is None:
            self._sliced = any(map(has_slices, self._inputs.observed.clusters.values()))
        return self._sliced

    def _slices(self, workload: WorkloadId, candidates: Sequence[Candidate]) -> tuple[int, ...]:
        """Say of each candidate whether a replica gets whole GPUs (0), either (1), or slices (2).

        Empty where that orders nothing: the nodes at home give it slices as well, or all candidates are equal.
        """
        clusters, shape = self._inputs.observed.clusters, self._shape(workload) or self._asked_shape(workload)
        home = clusters.get(self._inputs.desired.workspaces[workload.workspace].primary)
        if not self._have_slices() or not has_whole_gpus(home, shape):
            return ()
        found = (gpu_slices(clusters.get(candidate.cluster), shape) for candidate in candidates)
        slices = tuple(0 if each is None else 1 if each.mixed else 2 for each in found)
        return slices if len({*slices}) > 1 else ()

    def _asked_shape(self, workload: WorkloadId) -> ReplicaShape | None:
        """Return the shape of the pods of a request that ask for GPUs."""
        entry = self._inputs.enrolment.entries.get(workload)
        parts = () if entry is None else entry.needs.parts
        return next((part.shape for part in parts if gpus_of_pod(part.shape)), None)

    def _shape(self, workload: WorkloadId) -> ReplicaShape | None:
        """Return the shape of a replica, from the demand, else from a placement; None where it is unknown."""
        demand = self._inputs.demands.get(workload)
        if isinstance(demand, Demand) and demand.shape is not None:
            return demand.shape
        return next((placement.shape for placement in self._working_plan.of(workload)), None)


def ranked(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> tuple[Candidate, ...]:
    """Return the clusters of a workload in the order whose reverse replicas are given back in."""
    return Ranking(inputs, working_plan).order(workload)


def _scored(candidates: Sequence[Candidate], policy: BurstPolicy, subject: Subject) -> Sequence[Candidate]:
    columns = [
        [
            Score(scorer=scorer.name, weight=scorer.weight, value=round(points.value, 2), detail=points.detail)
            for points in SCORERS[scorer.name].points(subject, candidates)
        ]
        for scorer in policy.scoring
    ]
    return [candidate._replace(scores=tuple(scores)) for candidate, *scores in zip(candidates, *columns, strict=True)]


def _ranked(candidates: Sequence[Candidate], behind: Mapping[ClusterSubset, int]) -> tuple[Candidate, ...]:
    subsets: dict[str, int] = {}
    for candidate in candidates:
        subsets.setdefault(candidate.subset, candidate.rank)
    if behind:
        levels = {candidate.key: (candidate.tier, behind[candidate.key]) for candidate in candidates}
        tiers = {level: tier for tier, level in enumerate(sorted({*levels.values()}))}
        candidates = [candidate._replace(tier=tiers[levels[candidate.key]]) for candidate in candidates]
    order = sorted(
        candidates,
        key=lambda candidate: (subsets[candidate.subset], candidate.tier, -candidate.score, candidate.rank),
    )
    return tuple(candidate._replace(rank=rank) for rank, candidate in enumerate(order, start=1))
