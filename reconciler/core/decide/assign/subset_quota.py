"""The maximum and minimum of each subset in replicas, those of it that run on the primary, and what it may still get.

A subset is a part of each of its clusters. Replicas in no subset, as all of a workload without a WorkloadSpread, are
those of the last quota, which has no bounds. Percentages are of max(wanted, current) replicas over all clusters, so
that a percentage takes nothing away before the scale-down window lets the replicas themselves go.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.decide.assign.ordinals import refuse_ordinals
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.spread.subset_selection import holds_cluster
from reconciler.model.candidate import Candidate
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.text.wording import count, sanitize


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetQuota:
    """The bounds of one subset, in replicas."""

    subset: Subset
    # The most that it may hold, those on the primary included; None sets no bound.
    most: int | None
    least: int
    # The replicas of it that run on the primary.
    home: int
    # Whether the primary is one of its clusters.
    at_home: bool

    @property
    def elsewhere(self) -> int | None:
        """The most replicas that clusters other than the primary may have; None sets no bound."""
        return None if self.most is None else max(0, self.most - self.home)


_NO_SUBSET = SubsetQuota(subset=Subset(name=""), most=None, least=0, home=0, at_home=False)


def quotas(inputs: PassInput, workload: WorkloadId, placed: int) -> tuple[SubsetQuota, ...]:
    """Work out the quotas of a workload with so many replicas outside its primary, in the order of the subsets.

    The last is that of replicas in no subset. While the primary is unseen, the replicas there are unknown, and
    percentages set no bound.
    """
    policy = inputs.desired.policies[workload]
    demand = inputs.demands.get(workload)
    running, total = 0, None
    if isinstance(demand, Demand):
        running = demand.running
        total = max(demand.wanted, running + max(demand.missing, placed))
    primary = inputs.desired.clusters.get(inputs.desired.workspaces[workload.workspace].primary)
    seen = None if primary is None else inputs.observed.clusters.get(primary.name)
    at_home = [primary is not None and holds_cluster(subset, primary, seen) for subset in policy.subsets]
    last = max((place for place, inside in enumerate(at_home) if inside), default=None)
    subsets = []
    for place, subset in enumerate(policy.subsets):
        bound = subset.most
        most = None if bound is None or (bound.percent and total is None) else bound.of(total or 0)
        home = 0
        if at_home[place]:
            # The subset of a pod on the primary is unknown where that is in several: the first ones count as full.
            home = running if most is None or place == last else min(running, most)
            running -= home
        subsets.append(SubsetQuota(subset=subset, most=most, least=subset.least, home=home, at_home=at_home[place]))
    return (*subsets, _NO_SUBSET)


def quota_left(finder: CandidateFinder, workload: WorkloadId, candidate: Candidate) -> int:
    """Count the replicas that a candidate may still get by the maximum of its subset, whatever has room for them."""
    if refuse_ordinals(finder, workload, candidate) is not None:
        return 0
    subset = finder.inputs.desired.policies[workload].subset(candidate.subset)
    if subset is None or subset.most is None:
        return MOST
    held = finder.held(workload)
    most = next(quota.elsewhere for quota in quotas(finder.inputs, workload, held.total()) if quota.subset is subset)
    has = sum(replicas for (_, name), replicas in held.items() if name == candidate.subset)
    return MOST if most is None else max(0, most - has)


def refuse_over_quota(
    policy: BurstPolicy, quota: SubsetQuota, has: int, place: ClusterSubset, *, before: int
) -> Refusal:
    """Refuse a cluster for a subset that has as many replicas as it may, or gets them beside those of `before`."""
    name = sanitize(quota.subset.name)
    verb = "has" if before >= has else "comes to"
    return Refusal(
        cluster=place[0],
        subset=place[1],
        reason=Reason.SPREAD_LIMIT,
        message=f"subset {name} {verb} {has} of at most {count(quota.most or 0, 'replica')}",
        remedy=f"raise maxReplicas of subset {name} in {policy.slot_file}",
    )


def describe_primary_excess(inputs: PassInput, workload: WorkloadId, placed: int) -> tuple[str, ...]:
    """Say where the primary runs more than its subset may hold; replicas on the primary are never touched."""
    primary = inputs.desired.workspaces[workload.workspace].primary
    return tuple(
        f"{primary} runs {quota.home} of subset {sanitize(quota.subset.name)}, which may have {quota.most}:"
        " what runs there is left alone."
        for quota in quotas(inputs, workload, placed)
        if quota.most is not None and quota.home > quota.most
    )
