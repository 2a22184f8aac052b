"""Where a placement can move to, whole, within the bounds of its policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.core.capacity.admission_defaults import admitted, brought
from reconciler.core.capacity.pod_needs import PodRequirements
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.share_out import values
from reconciler.core.decide.assign.subset_limits import full
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer
from reconciler.core.decide.candidates.gang import needs_there, whole
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps import place_requests
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.subset_pods import subset_of
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.model.workload_spread import Subset
from reconciler.text.wording import count, plain


def elsewhere(
    finder: CandidateFinder, template: WorkloadTemplate, policy: BurstPolicy, placement: Placement
) -> tuple[Offer | None, tuple[Refusal, ...]]:
    """Find the first cluster that takes a placement whole, as it is; a move never splits one.

    What one subset has made of a replica's shape is none of another's, nor is what its cluster has added to it. Whom
    other pods keep away nobody has written down; the primary shows it.
    """
    refusals: list[Refusal] = []
    demand = finder.inputs.demands.get(placement.workload)
    seen = demand.shape if isinstance(demand, Demand) else None
    own = seen if policy.spread is not None or _made_of(finder, template, placement, seen) else None
    shape = own or replace(placement.shape, who=seen.who if seen is not None else ())
    made_for = subset_of(policy.spread, placement.subset) if policy.spread is not None and own is None else None
    for candidate in finder.order(placement.workload):
        # Each by itself: what another could take of it, and does not get, begins nothing there.
        answer = finder.assess(template, policy, shape, candidate, placement.replicas, more=-1)
        if not isinstance(answer, Refusal):
            if candidate.cluster == placement.cluster:
                continue
            answer = _unsplit(finder, policy, placement, answer, made_for)
        if not isinstance(answer, Refusal):
            return answer, tuple(refusals)
        refusals.append(answer)
    return None, tuple(refusals)


def _made_of(
    finder: CandidateFinder, template: WorkloadTemplate, placement: Placement, seen: ReplicaShape | None
) -> bool:
    """Tell whether a placement's replicas are those seen on the primary, with what its cluster adds to them."""
    there = finder.inputs.observed.clusters.get(placement.cluster)
    if there is None or seen is None or seen.unstated is None:
        return False
    here = brought(seen, (one.manifest for one in template.spec.manifests))
    return admitted(here, there).recorded == placement.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTarget:
    """Where a placement has room as a whole, what it takes there, and the placement as it will be."""

    offer: Offer
    needs: PodRequirements
    placement: Placement


def elsewhere_whole(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, placement: Placement
) -> tuple[MoveTarget | None, tuple[Refusal, ...]]:
    """Find the first cluster without any of a workload that has room for all of a placement that goes whole.

    Where none has, it is the first that has room for the minimum of a gang.
    """
    there = {one.cluster for one in working_plan.of(placement.workload)}
    candidates = (candidate for candidate in inputs.reach.order(placement.workload) if candidate.cluster not in there)

    def asked(candidate: Candidate, *, least: bool) -> MoveTarget | Refusal:
        return _whole(inputs, working_plan, finder, placement, candidate=candidate, least=least)

    needed = needs_there(inputs, placement)
    return gang_placement.first(needed, candidates, asked)


def _whole(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    candidate: Candidate,
    least: bool,
) -> MoveTarget | Refusal:
    """Say whether a cluster has room for a placement, of which nothing stays behind: for all, or at `least` enough."""
    workload, desired = placement.workload, inputs.desired
    if workload.request:
        asked = place_requests.assess(inputs, finder, working_plan.requests[workload], candidate, more=-1, least=least)
        if isinstance(asked, Refusal):
            return asked
        offer, needed = asked
        shape, replicas = needed.main.shape, needed.main.replicas
    else:
        goes_whole = whole(inputs, workload, placement)
        if goes_whole is None or goes_whole.shape is None:
            message = goes_whole.unknown if goes_whole is not None else "nothing of it runs in groups any more"
            return Refusal(cluster=candidate.cluster, reason=Reason.NO_SHAPE, message=message)
        replicas, shape = placement.replicas, goes_whole.shape
        answer = gang_placement.assess(
            inputs, finder, workload, candidate, goes_whole, replicas=replicas, more_gprs=-1, least=least
        )
        if isinstance(answer, Refusal):
            return answer
        offer, needed = answer, goes_whole.of(replicas)
    cluster = desired.clusters[candidate.cluster]
    moved = replace(
        lifecycle.renewed(placement, desired, inputs.now, replicas),
        name=lifecycle.placement_name(workload, cluster.name, inputs.now),
        cluster=cluster.name,
        engine=cluster.engine,
        subset="",
        shape=shape.recorded,
    )
    return MoveTarget(offer=offer, needs=needed, placement=moved)


def _unsplit(
    finder: CandidateFinder, policy: BurstPolicy, placement: Placement, offer: Offer, made_for: Subset | None
) -> Offer | Refusal:
    """Say why a placement may not move to a cluster that takes some of it; the offer where it may."""
    candidate, limit = offer.candidate, offer.candidate.limit
    refusal: Refusal | None
    if offer.replicas < placement.replicas:
        limited = limit is not None and limit - finder.here(placement.workload, policy, candidate) == offer.replicas
        what = f"may have {offer.replicas} more" if limited else f"has room for {offer.replicas}"
        refusal = Refusal(
            cluster=candidate.cluster,
            reason=Reason.CLUSTER_LIMIT if limited else Reason.NO_CAPACITY,
            message=f"{what} of its {count(placement.replicas, 'replica')}, which move together",
        )
    elif made_for is not None and made_for.patch and candidate.subset != made_for.name:
        message = f"nobody says what its replicas are without the patch of subset {plain(made_for.name)}"
        refusal = Refusal(cluster=candidate.cluster, reason=Reason.NO_SHAPE, message=message)
    else:
        refusal = _beyond(finder, policy, placement, candidate)
    return offer if refusal is None else replace(refusal, subset=candidate.subset)


def _beyond(finder: CandidateFinder, policy: BurstPolicy, placement: Placement, candidate: Candidate) -> Refusal | None:
    """Say that a move would spread a workload over more values of a label than it may; None where it would not."""
    if policy.spread is not None:
        return full(finder, policy.spread, placement, candidate)
    most = policy.distribution.max_groups
    if most is None:
        return None
    stay = finder.held(placement.workload)
    stay[placement.cluster] -= placement.replicas
    there = {one.group for one in finder.order(placement.workload) if stay[one.cluster] > 0}
    if candidate.group in there or len(there) < most:
        return None
    return Refusal(
        cluster=candidate.cluster,
        reason=Reason.SPREAD_LIMIT,
        message=f"policy {policy.name} spreads over {values(most, policy)} at most",
        remedy=f"raise spec.distribution.spreadConstraint.maxGroups of policy {policy.name}",
    )
