"""Replicas that come home because they are no longer missing there."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core import lifecycle
from reconciler.core.demand import ceiling, next_fall
from reconciler.core.ending import revert
from reconciler.core.growth import MOST
from reconciler.core.overstepping import overstepping
from reconciler.core.quotas import quotas
from reconciler.core.seats import site
from reconciler.core.sharing import given_back, with_reason
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.wording import count, plain
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.placements import Lent
from reconciler.model.plan import Reason, Resize, Suppressed, Why
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import format_duration
from reconciler.model.workloadspread import WorkloadSpread


def give_back_what_is_not_needed(situation: Situation, standing: Standing) -> None:
    """Shrink and revert what is above a limit at once, and what is not missing any more after the scale-down window."""
    beyond = frozenset(overstepping(situation, standing))
    for workload in standing.placed():
        demand, policy = situation.demands.get(workload), situation.desired.policies.get(workload)
        if policy is None:
            continue
        if workload in beyond:
            if policy.spread is not None:
                _keep_subsets(situation, standing, workload, policy, policy.spread)
            _keep_limits(situation, standing, workload, policy)
        # What a blind primary has lent is left where it is; `lending` tells that it is blind.
        if isinstance(demand, Demand):
            _follow_demand(situation, standing, demand, policy)
        if policy.spread is not None:
            _keep_subsets(situation, standing, workload, policy, policy.spread)


def _unsure(situation: Situation, lent: Lent, policy: BurstPolicy) -> bool:
    """Tell whether the policy that these were placed by may be in the file that cannot be read."""
    return situation.desired.incomplete and any(placement.policy != policy.name for placement in lent.placements)


def _keep_subsets(
    situation: Situation, standing: Standing, workload: WorkloadId, policy: BurstPolicy, spread: WorkloadSpread
) -> None:
    """Carry out the maximums of subsets, last first; what the primary has above one is only told.

    OpenKruise leaves what is above a maximum until there are too many; here a maximum that people lower is carried
    out at once, as everywhere. A percentage of fewer replicas may be less, so it goes on until all have theirs.
    """
    clusters, before, placed = situation.desired.clusters, 0, standing.replicas(workload)
    if _unsure(situation, standing.lent(workload), policy):
        return
    while placed != before:
        for quota in reversed(quotas(situation, workload, spread, placed)):
            name, placements = plain(quota.subset.name), standing.of(workload)
            here = [one for one in placements if site(one, policy, clusters)[1] == quota.subset.name]
            above = sum(one.replicas for one in here) - (MOST if quota.lent is None else quota.lent)
            detail = f"subset {name} of WorkloadSpread {spread.id} may have {quota.most}"
            _drain(situation, standing, above, here, why=Why.POLICY, detail=detail)
        before, placed = placed, standing.replicas(workload)


def _keep_limits(situation: Situation, standing: Standing, workload: WorkloadId, policy: BurstPolicy) -> None:
    """Carry out limits that people have lowered: of one cluster, and of all together."""
    lent, tightest = standing.lent(workload), situation.reach.tightest(workload)
    within = policy.max_replicas is None or lent.replicas <= policy.max_replicas
    if within and (tightest is None or lent.most <= tightest):
        return
    if _unsure(situation, lent, policy):
        return
    for rung in situation.reach.order(workload):
        here = [placement for placement in standing.of(workload) if placement.cluster == rung.cluster]
        if policy.spread is not None:
            here = [one for one in here if site(one, policy, situation.desired.clusters) == rung.site]
        above = sum(placement.replicas for placement in here) - (MOST if rung.limit is None else rung.limit)
        detail = f"policy {policy.name} allows {rung.limit} on {rung.cluster}"
        _drain(situation, standing, above, here, why=Why.POLICY, detail=detail)
    if policy.max_replicas is not None:
        above = standing.replicas(workload) - policy.max_replicas
        detail = with_reason(f"policy {policy.name} allows {count(policy.max_replicas, 'replica')}", policy)
        _drain(situation, standing, above, standing.of(workload), why=Why.POLICY, detail=detail)


def _follow_demand(situation: Situation, standing: Standing, demand: Demand, policy: BurstPolicy) -> None:
    """Give back, last cluster first, what has not been missing for the whole scale-down window."""
    placed, window = standing.replicas(demand.workload), policy.scale_down_window
    if placed <= demand.deficit:
        return
    if demand.unheard:
        standing.suppress(_deaf(demand, placed))
        return
    highest = ceiling(demand, window)
    keep = placed if highest is None else min(placed, highest)
    if keep > demand.deficit:
        but = "nobody has watched for the whole" if highest is None else f"up to {highest} were needed within the"
        standing.suppress(
            Suppressed(
                workload=demand.workload,
                reason=Reason.SCALE_DOWN_WINDOW,
                message=f"{demand.deficit} of {placed} placed replicas are needed now, but {but} scale-down window of"
                f" {format_duration(window)}",
                replicas=placed - demand.deficit,
                until=next_fall(demand, window),
            )
        )
    if placed > keep:
        detail = f"no more than {keep} of {placed} replicas were needed in the last {format_duration(window)}"
        placements, detail = standing.of(demand.workload), with_reason(detail, policy)
        _drain(situation, standing, placed - keep, placements, why=Why.DEMAND_GONE, detail=detail)


def _deaf(demand: Demand, placed: int) -> Suppressed:
    """Say that nothing is given back, since a signal that may still ask for it cannot be heard."""
    return Suppressed(
        workload=demand.workload,
        reason=Reason.SIGNAL_UNHEARD,
        message=f"{'; '.join(demand.unheard)}; its {count(placed, 'replica')} elsewhere stay until they expire",
        replicas=placed - demand.deficit,
    )


def _drain(
    situation: Situation,
    standing: Standing,
    surplus: int,
    placements: Sequence[Placement],
    *,
    why: Why,
    detail: str,
) -> None:
    """Take a surplus away from some placements of one workload, in the reverse of how they were shared out."""
    if surplus <= 0:
        return
    for placement, rest in given_back(situation, standing, surplus, placements):
        if rest == 0:
            revert(situation, standing, placement, why, detail)
            continue
        after = lifecycle.renewed(placement, situation.desired, situation.now, rest)
        standing.change(Resize(before=placement, after=after, detail=detail))
