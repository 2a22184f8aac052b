"""Lower bounds: a workload that has come to have too few clusters or values of a label gets some again.

A loss may leave one region where the policy wants two. As soon as another can be used, as many replicas move there as
the bounds need, and no more (docs/how-to/spread.md, "How many clusters, regions and zones"). Until then it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from reconciler.core.decide.assign.replicas_by_cluster import describe_label_values
from reconciler.core.decide.assign.surplus import take_surplus
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.relocate import Departure, may_relocate, relocate
from reconciler.core.ledger import lifecycle
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.plan import EndReason, Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.text.wording import count


def restore_lower_bounds(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move replicas to as many more clusters, and values of the label, as their policy wants and can be used."""
    for workload in inputs.reach.with_lower_bounds():
        working_plan.decide(workload, partial(_restore, inputs, working_plan, finder, workload))


def _restore(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> None:
    policy, total = inputs.desired.policies[workload], working_plan.replicas(workload)
    if total <= 1:
        return
    distribution = policy.distribution
    groups = {candidate.cluster: candidate.group for candidate in finder.order(workload)}
    held = {cluster: groups.get(cluster, "") for cluster in finder.held_by_cluster(workload)}
    lacking_groups = min(distribution.min_groups, total) - len(set(held.values()))
    lacking_clusters = min(distribution.min_clusters, total) - len(held)
    lacking = max(lacking_groups, lacking_clusters)
    if lacking <= 0:
        return
    # 1. Other clusters count where values of the label are missing only if theirs is another one.
    by_group = lacking_groups > 0
    message = f"has replicas of it, and policy {policy.name} wants others to have some as well"
    closed = {
        candidate.key: Refusal(cluster=candidate.cluster, reason=Reason.BOUND_UNMET, message=message)
        for candidate in finder.order(workload)
        if candidate.cluster in held or (by_group and candidate.group in held.values())
    }
    least, has = _describe_bounds(policy, by_group=by_group, held=held)
    # 2. Replicas go that would be given back first.
    for placement, rest, _ in take_surplus(inputs, working_plan, lacking, working_plan.of(workload), partly=False):
        if may_relocate(inputs, working_plan, placement):
            departure = _departure(inputs, placement, placement.replicas - rest, f"{least}, and {has}", closed)
            relocate(inputs, working_plan, finder, departure)


def _describe_bounds(policy: BurstPolicy, *, by_group: bool, held: Mapping[ClusterName, str]) -> tuple[str, str]:
    distribution = policy.distribution
    if by_group:
        least, has = describe_label_values(distribution.min_groups, policy), len(set(held.values()))
    else:
        least, has = count(distribution.min_clusters, "cluster"), len(held)
    return f"policy {policy.name} spreads over {least} at least", f"it has {has}"


def _departure(
    inputs: PassInput, placement: Placement, replicas: int, detail: str, closed: Mapping[ClusterSubset, Refusal]
) -> Departure:
    return Departure(
        placement=placement,
        replicas=replicas,
        why=EndReason.POLICY,
        detail=detail,
        stays=Reason.BOUND_UNMET,
        restraint=lifecycle.counted_move(placement, EndReason.POLICY, inputs.now),
        closed=closed,
    )
