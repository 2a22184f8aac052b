"""What each subset of a WorkloadSpread may hold and has to, in replicas, and what of that runs on the primary.

A percentage is one of all replicas of the workload, wherever they are: those that are wanted, or those that are there
where they are more. So a percentage takes nothing away before the scale-down window lets the replicas themselves go.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.spread.matching import has, takes
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.workload_spread import Subset, WorkloadSpread
from reconciler.text.wording import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetQuota:
    """One subset in replicas: `most` None bounds nothing, and `home` of them run on the primary.

    `at_home` tells that the primary is one of its clusters.
    """

    subset: Subset
    most: int | None
    least: int
    home: int
    at_home: bool

    @property
    def lent(self) -> int | None:
        """How many of it may be elsewhere than on the primary."""
        return None if self.most is None else max(0, self.most - self.home)


def quotas(inputs: PassInput, workload: WorkloadId, spread: WorkloadSpread, placed: int) -> tuple[SubsetQuota, ...]:
    """Work out the quotas of a workload that has so many replicas elsewhere, in the order of the subsets.

    Where the primary cannot be seen, nobody knows what runs there: then only numbers bound.
    """
    demand = inputs.demands.get(workload)
    running, total = 0, None
    if isinstance(demand, Demand):
        running = demand.running
        total = max(demand.wanted, running + max(demand.deficit, placed))
    primary = inputs.desired.clusters.get(inputs.desired.workspaces[workload.workspace].primary)
    seen = None if primary is None else inputs.observed.clusters.get(primary.name)
    at_home = [
        primary is not None and takes(subset, primary) and has(subset, primary, seen) for subset in spread.subsets
    ]
    last = max((place for place, there in enumerate(at_home) if there), default=None)
    found = []
    for place, subset in enumerate(spread.subsets):
        bound = subset.most
        most = None if bound is None or (bound.percent and total is None) else bound.of(total or 0)
        home = 0
        if at_home[place]:
            # Nobody tells which of several subsets a pod of the primary is in: the first ones are taken to be full.
            home = running if most is None or place == last else min(running, most)
            running -= home
        found.append(SubsetQuota(subset=subset, most=most, least=subset.least, home=home, at_home=at_home[place]))
    return tuple(found)


def too_many_at_home(inputs: PassInput, workload: WorkloadId, spread: WorkloadSpread, placed: int) -> tuple[str, ...]:
    """Say where the primary runs more than its subset may hold; that is its own, and nothing is done about it."""
    primary = inputs.desired.workspaces[workload.workspace].primary
    return tuple(
        f"{primary} runs {quota.home} of subset {plain(quota.subset.name)}, which may have {quota.most}:"
        " what runs there is left alone."
        for quota in quotas(inputs, workload, spread, placed)
        if quota.most is not None and quota.home > quota.most
    )
