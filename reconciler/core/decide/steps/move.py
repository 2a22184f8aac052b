"""The cluster that a placement can move to, whole, within the bounds of its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from reconciler.core.capacity.admission_defaults import with_admission_defaults, with_included_runtime_class
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.copies import assess_unit
from reconciler.core.decide.assign.replicas_by_cluster import describe_label_values
from reconciler.core.decide.assign.subset_limits import refuse_full_subset
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.gang import gang_of, placement_needs, unit_of_workload
from reconciler.core.decide.state.gate import may_not_move
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps import place_requests
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.subset_pods import subset_of
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count, sanitize

_NONE: Mapping[ClusterName, Refusal] = MappingProxyType({})


def find_move(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    placement: Placement,
    *,
    avoided: Mapping[ClusterName, Refusal] = _NONE,
) -> tuple[Candidate | None, tuple[Refusal, ...]]:
    """Find the first candidate with room for a whole placement as it is, and the refusals before it.

    Clusters that are `avoided` are refused as it says there.

    A move never splits a placement. The shape of its replicas is taken from the primary where the subset or the cluster
    has changed the recorded one, and so are the rules of other pods about them, which no record has.
    """
    refusals: list[Refusal] = []
    demand = finder.inputs.demands.get(placement.workload)
    seen = demand.shape if isinstance(demand, Demand) else None
    own = seen if policy.spread is not None or _made_of(finder, template, placement, seen) else None
    shape = own or replace(placement.shape, who=seen.who if seen is not None else ())
    made_for = subset_of(policy.spread, placement.subset) if policy.spread is not None and own is None else None
    unit = unit_of_workload(finder.inputs, placement.workload, placement)
    for candidate in finder.order(placement.workload):
        if candidate.cluster in avoided:
            refusals.append(avoided[candidate.cluster])
            continue
        unapproved = may_not_move(finder.inputs, placement, candidate.cluster)
        if unapproved is not None:
            refusals.append(unapproved)
            continue
        # Each candidate by itself: the placement that moves makes room for the GPR that begins.
        answer = finder.assess(template, policy, shape, candidate, placement.replicas, more_gprs=-1)
        if not isinstance(answer, Refusal):
            if candidate.cluster == placement.cluster:
                continue
            if unit.whole:
                size = placement.replicas
                answer = assess_unit(finder, template, policy, shape, candidate, unit=unit, size=size, more_gprs=-1)
        if not isinstance(answer, Refusal):
            answer = _unsplit(finder, policy, placement, answer, made_for)
        if not isinstance(answer, Refusal):
            return answer, tuple(refusals)
        refusals.append(answer)
    return None, tuple(refusals)


def _made_of(
    finder: CandidateFinder, template: WorkloadTemplate, placement: Placement, seen: ReplicaShape | None
) -> bool:
    """Tell whether a placement's replicas are those of the primary, with the admission defaults of its cluster."""
    observation = finder.inputs.observed.clusters.get(placement.cluster)
    if observation is None or seen is None or seen.unstated is None:
        return False
    shape = with_included_runtime_class(seen, (item.manifest for item in template.spec.manifests))
    return with_admission_defaults(shape, observation).recorded == placement.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class GangMove:
    """The move of a gang."""

    candidate: Candidate
    # The pods that take room there.
    needs: PodRequirements
    # The placement as it will be there.
    placement: Placement


def find_gang_move(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, placement: Placement
) -> tuple[GangMove | None, tuple[Refusal, ...]]:
    """Find the first cluster without replicas of the workload that has room for a whole gang, else for its minimum.

    Also return the refusals of the clusters before it.
    """
    taken = {other.cluster for other in working_plan.of(placement.workload)}
    candidates = (candidate for candidate in finder.order(placement.workload) if candidate.cluster not in taken)

    def ask(candidate: Candidate, *, least: bool) -> GangMove | Refusal:
        return _gang_move(inputs, working_plan, finder, placement, candidate=candidate, least=least)

    return gang_placement.first_with_room(placement_needs(inputs, placement), candidates, ask)


def _gang_move(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    candidate: Candidate,
    least: bool,
) -> GangMove | Refusal:
    """Make the move of a gang to a candidate with room for all of it, or at `least` for its minimum; else refuse it."""
    unapproved = may_not_move(inputs, placement, candidate.cluster)
    if unapproved is not None:
        return unapproved
    workload, desired = placement.workload, inputs.desired
    if workload.request:
        record = working_plan.requests[workload]
        assessed = place_requests.assess(inputs, finder, record, candidate, more_gprs=-1, least=least)
        if isinstance(assessed, Refusal):
            return assessed
        taking, needed = assessed
        shape, replicas = needed.main.shape, needed.main.replicas
    else:
        gang = gang_of(inputs, workload, placement)
        if gang is None or gang.shape is None:
            message = gang.unknown if gang is not None else "nothing of it runs in groups any more"
            return Refusal(cluster=candidate.cluster, reason=Reason.NO_SHAPE, message=message)
        replicas, shape = placement.replicas, gang.shape
        answer = gang_placement.assess(
            inputs, finder, workload, candidate, gang, replicas=replicas, more_gprs=-1, least=least
        )
        if isinstance(answer, Refusal):
            return answer
        taking, needed = answer, gang.of(replicas)
    cluster = desired.clusters[candidate.cluster]
    moved = replace(
        lifecycle.resized_placement(placement, desired, inputs.now, replicas),
        name=lifecycle.placement_name(workload, cluster.name, inputs.began_at(workload, cluster.name)),
        cluster=cluster.name,
        engine=cluster.engine,
        subset="",
        shape=shape.recorded,
    )
    return GangMove(candidate=taking, needs=needed, placement=moved)


def _unsplit(
    finder: CandidateFinder, policy: BurstPolicy, placement: Placement, candidate: Candidate, made_for: Subset | None
) -> Candidate | Refusal:
    """Return a candidate with room for a whole placement, or say why the placement may not move there."""
    limit = candidate.limit
    refusal: Refusal | None
    if candidate.room < placement.replicas:
        limited = (
            limit is not None and limit - finder.held_here(placement.workload, policy, candidate) == candidate.room
        )
        room = f"may have {candidate.room} more" if limited else f"has room for {candidate.room}"
        refusal = Refusal(
            cluster=candidate.cluster,
            reason=Reason.CLUSTER_LIMIT if limited else Reason.NO_CAPACITY,
            message=f"{room} of its {count(placement.replicas, 'replica')}, which move together",
        )
    elif made_for is not None and made_for.patch and candidate.subset != made_for.name:
        message = f"its replicas without the patch of subset {sanitize(made_for.name)} are unknown"
        refusal = Refusal(cluster=candidate.cluster, reason=Reason.NO_SHAPE, message=message)
    else:
        refusal = _beyond(finder, policy, placement, candidate)
    return candidate if refusal is None else replace(refusal, subset=candidate.subset)


def _beyond(finder: CandidateFinder, policy: BurstPolicy, placement: Placement, candidate: Candidate) -> Refusal | None:
    """Refuse a move that would use more values of the label than the policy allows; None where it would not."""
    if policy.spread is not None:
        return refuse_full_subset(finder, policy.spread, placement, candidate)
    most = policy.distribution.max_groups
    if most is None:
        return None
    stay = finder.held_by_cluster(placement.workload)
    stay[placement.cluster] -= placement.replicas
    groups = {other.group for other in finder.order(placement.workload) if stay[other.cluster] > 0}
    if candidate.group in groups or len(groups) < most:
        return None
    return Refusal(
        cluster=candidate.cluster,
        reason=Reason.SPREAD_LIMIT,
        message=f"policy {policy.name} spreads over {describe_label_values(most, policy)} at most",
        remedy=f"raise spec.distribution.spreadConstraint.maxGroups of policy {policy.name}",
    )
