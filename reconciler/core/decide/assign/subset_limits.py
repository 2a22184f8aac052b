"""The replicas that a subset of a WorkloadSpread may still get, beside those that it has on all of its clusters."""

from __future__ import annotations

from reconciler.core.decide.assign.ordinals import refuse_ordinals
from reconciler.core.decide.assign.subset_quota import SubsetQuota, quotas
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.model.candidate import Candidate
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.text.wording import count, sanitize


def refuse_full_subset(
    finder: CandidateFinder, spread: WorkloadSpread, placement: Placement, candidate: Candidate
) -> Refusal | None:
    """Refuse a subset that may not hold a placement which is to move into it; None where it may."""
    inputs, workload = finder.inputs, placement.workload
    refusal = refuse_ordinals(finder, spread, workload, candidate, moving=placement)
    if refusal is not None or not candidate.subset:
        return refusal
    left, quota = _left(finder, spread, workload, candidate)
    comes_from = cluster_subset(placement, inputs.desired.policies[workload], inputs.desired.clusters)
    moves = 0 if comes_from[1] == candidate.subset else placement.replicas
    if moves <= left or quota.most is None:
        return None
    return refuse_over_limit(spread, quota, quota.most - left, candidate.key)


def room_in(finder: CandidateFinder, spread: WorkloadSpread, workload: WorkloadId, candidate: Candidate) -> int:
    """Count the replicas that a subset may still get by its maximum, whatever its clusters have room for."""
    if refuse_ordinals(finder, spread, workload, candidate) is not None:
        return 0
    return max(0, _left(finder, spread, workload, candidate)[0]) if candidate.subset else MOST


def refuse_over_limit(
    spread: WorkloadSpread, quota: SubsetQuota, has: int, place: ClusterSubset, *, before: int | None = None
) -> Refusal:
    """Refuse a cluster for a subset that has as many replicas as it may, or comes to have them from `before`."""
    name = sanitize(quota.subset.name)
    verb = "has" if before is None or before >= has else "comes to"
    return Refusal(
        cluster=place[0],
        subset=place[1],
        reason=Reason.SPREAD_LIMIT,
        message=f"subset {name} {verb} {has} of at most {count(quota.most or 0, 'replica')}",
        remedy=f"raise maxReplicas of subset {name} in WorkloadSpread {spread.id}",
    )


def _left(
    finder: CandidateFinder, spread: WorkloadSpread, workload: WorkloadId, candidate: Candidate
) -> tuple[int, SubsetQuota]:
    """Count the replicas up to the maximum of a candidate's subset, and return its quota."""
    held = finder.held_by_subset(workload, finder.inputs.desired.policies[workload])
    subsets = quotas(finder.inputs, workload, spread, held.total())
    quota = next(quota for quota in subsets if quota.subset.name == candidate.subset)
    has = quota.home + sum(replicas for (_, name), replicas in held.items() if name == candidate.subset)
    return (MOST if quota.most is None else quota.most - has), quota
