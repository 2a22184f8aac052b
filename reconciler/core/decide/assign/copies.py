"""Whole units: copies of a fixed number, runs, replicas that share a domain, and single replicas that move together.

A placement is one installation, so a cluster, or a subset's part of it, has one unit at most. Units go to the clusters
in their order, whatever the strategy of the policy: a unit is not divided. Its bounds on clusters and values of a label
hold all the same. A cluster whose room, limit or share of the missing replicas is less than a unit gets none
(docs/reference/kinds.md, "The number that is deployed"). Of what runs once there is one unit in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign.assignment import NOT_RELEASED, Assignment, Released, assign_within_gpr_limit
from reconciler.core.decide.assign.bounds import divide_in_reach, left_out, off_order, out_of_reach, share_of_unit
from reconciler.core.decide.assign.subset_quota import quota_left
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.fleet.replica_paths import REPLICAS
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy, StrategyName
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count

WAY_OUT = (
    f'write "{{{{ replicas }}}}" where its count belongs, or name the path: {REPLICAS}: <chart or manifest>:<path>'
)
"""How a template stops being one of copies."""


def too_large(copy: int, bound: int, by: str) -> str:
    """Say why no copy may be placed: it is larger than a bound."""
    return f"its template deploys copies of {count(copy, 'replica')}, and {by} {bound} ({WAY_OUT})"


def assign_units(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    replicas: int,
    *,
    unit: PlacementUnit,
    released: Released = NOT_RELEASED,
) -> Assignment:
    """Assign a unit to each cluster that has room for one, while enough replicas are left and it may run.

    A unit that a placement has released goes to one cluster, with room for as many as its template deploys by now.
    """
    given = released.replicas if released.ends else unit.replicas(replicas)
    size, wanted = unit.replicas(given), unit.number(replicas, given)
    is_bounded = policy.distribution.is_bounded
    refusals, able, kind = list[Refusal](), list[Candidate](), finder.burst_kind(template, shape)
    in_subset = Counter[str]()
    for (_, subset), leave in released.places.items():
        in_subset[subset] -= leave
    for candidate in finder.order(template.workload):
        if len(able) == wanted and not is_bounded:
            break
        if candidate.key in released.left:
            continue
        answer = released.closed.get(candidate.key) or assess_unit(
            finder,
            template,
            policy,
            shape,
            candidate,
            unit=unit,
            size=size,
            kind=kind,
            taken=in_subset[candidate.subset],
            more_gprs=(0 if is_bounded else len(able)) - released.ends,
        )
        if isinstance(answer, Refusal):
            refusals.append(answer)
            continue
        able.append(answer.with_replicas(given, answer.because))
        in_subset[candidate.subset] += size
    if is_bounded:
        return _within_bounds(finder, policy, template, able, refusals, wanted=wanted, released=released)
    return Assignment(chosen=tuple(able), refusals=tuple(refusals))


def _within_bounds(
    finder: CandidateFinder,
    policy: BurstPolicy,
    template: WorkloadTemplate,
    able: Sequence[Candidate],
    refusals: Sequence[Refusal],
    *,
    wanted: int,
    released: Released,
) -> Assignment:
    """Choose the clusters that get a unit by the bounds of the policy, each as a share of one."""
    order, stays = finder.order(template.workload), released.staying(finder.held(template.workload))
    in_order = replace(policy.distribution, strategy=StrategyName.ORDERED)

    def divide(beyond: Sequence[Refusal]) -> Assignment:
        takes = {candidate.cluster for candidate in able} - {refusal.cluster for refusal in beyond}
        shares = [
            share_of_unit(each, keeps=int(each.cluster in stays))
            for each in order
            if each.cluster in takes or each.cluster in stays
        ]
        shares += off_order(order, dict.fromkeys(stays, 1))
        division = divide_in_reach(len(stays) + wanted, shares, in_order, lowered=bool(released.replicas))
        chosen = tuple(candidate for candidate in able if candidate.cluster in division.because)
        told = (*refusals, *beyond, *left_out(division, policy))
        unreached = out_of_reach(division, policy, each="one copy")
        return Assignment(chosen=chosen, refusals=told, out_of_reach=unreached)

    return assign_within_gpr_limit(finder, template.workload, divide, released=released)


def assess_unit(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    candidate: Candidate,
    *,
    unit: PlacementUnit,
    size: int,
    kind: tuple[Hashable, ...] | None = None,
    taken: int = 0,
    more_gprs: int = 0,
) -> Candidate | Refusal:
    """Return a candidate with room for one unit of `size` replicas, or why it takes none.

    Bursts of one `kind` share the answers of a cluster. `taken` are the replicas that its subset gets in this pass,
    `more_gprs` the GPRs that begin beside it.
    """

    def refused(reason: Reason, message: str, remedy: str = "") -> Refusal:
        return Refusal(
            cluster=candidate.cluster, subset=candidate.subset, reason=reason, message=message, remedy=remedy
        )

    # 1. It has one.
    here = finder.held(template.workload)[candidate.key]
    if here and not unit.moves:
        return refused(Reason.CLUSTER_LIMIT, unit.held(here), WAY_OUT if unit.is_copy else "")
    # 2. It takes no replica at all.
    answer = finder.assess_alike(kind, template, policy, shape, candidate=candidate, replicas=MOST, more_gprs=more_gprs)
    if isinstance(answer, Refusal):
        return answer
    # 3. It may not have so many, or has no room for them.
    if answer.limit is not None and answer.limit - here < size:
        more = f" and has {here}" if here else ""
        allowed = f"may have {answer.limit} at most{more}, and {unit.clause(size)}"
        return refused(Reason.CLUSTER_LIMIT, allowed, f"raise its maxReplicas in policy {policy.name}")
    left = quota_left(finder, template.workload, candidate) - taken
    if left < size:
        allowed = f"its subset may get {max(0, left)} more, and {unit.clause(size)}"
        return refused(Reason.SPREAD_LIMIT, allowed, f"raise its maxReplicas in {policy.slot_file}")
    if answer.fits < size:
        lacking = f"has room for {answer.fits} of {unit.phrase(size)}"
        lacking += finder.describe_held(candidate.cluster, answer.shape)
        return refused(Reason.NO_CAPACITY, lacking, "free or add nodes there")
    # 4. Its topology domains do not hold all of it.
    return finder.assess_domains(template.workload, answer._replace(room=size), size)
