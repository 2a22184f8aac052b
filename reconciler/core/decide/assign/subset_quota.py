"""The maximum and minimum of each subset of a WorkloadSpread in replicas, and those of it that run on the primary.

Percentages are of max(wanted, current) replicas over all clusters, so that a percentage takes nothing away before the
scale-down window lets the replicas themselves go.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.spread.subset_selection import has_required_node, selects_cluster
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.text.wording import sanitize


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


def quotas(inputs: PassInput, workload: WorkloadId, spread: WorkloadSpread, placed: int) -> tuple[SubsetQuota, ...]:
    """Work out the quotas of a workload with so many replicas outside its primary, in the order of the subsets.

    While the primary is unseen, the replicas there are unknown, and percentages set no bound.
    """
    demand = inputs.demands.get(workload)
    running, total = 0, None
    if isinstance(demand, Demand):
        running = demand.running
        total = max(demand.wanted, running + max(demand.missing, placed))
    primary = inputs.desired.clusters.get(inputs.desired.workspaces[workload.workspace].primary)
    seen = None if primary is None else inputs.observed.clusters.get(primary.name)
    at_home = [
        primary is not None and selects_cluster(subset, primary) and has_required_node(subset, primary, seen)
        for subset in spread.subsets
    ]
    last = max((place for place, inside in enumerate(at_home) if inside), default=None)
    subsets = []
    for place, subset in enumerate(spread.subsets):
        bound = subset.most
        most = None if bound is None or (bound.percent and total is None) else bound.of(total or 0)
        home = 0
        if at_home[place]:
            # The subset of a pod on the primary is unknown where that is in several: the first ones count as full.
            home = running if most is None or place == last else min(running, most)
            running -= home
        subsets.append(SubsetQuota(subset=subset, most=most, least=subset.least, home=home, at_home=at_home[place]))
    return tuple(subsets)


def describe_primary_excess(
    inputs: PassInput, workload: WorkloadId, spread: WorkloadSpread, placed: int
) -> tuple[str, ...]:
    """Say where the primary runs more than its subset may hold; replicas on the primary are never touched."""
    primary = inputs.desired.workspaces[workload.workspace].primary
    return tuple(
        f"{primary} runs {quota.home} of subset {sanitize(quota.subset.name)}, which may have {quota.most}:"
        " what runs there is left alone."
        for quota in quotas(inputs, workload, spread, placed)
        if quota.most is not None and quota.home > quota.most
    )
