"""Copies: placements of a template that always deploys the same number of replicas.

A placement is one installation, so a cluster, or a subset's part of it, has one copy at most. Copies go to the clusters
in their order, whatever the distribution of the policy: a copy is not divided. A cluster whose room, limit or share of
the missing replicas is less than a copy gets none (docs/reference/kinds.md, "The number that is deployed").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.core.decide.assign.assignment import Assignment
from reconciler.core.decide.assign.subset_limits import room_in
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.scorers import ranked
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.replica_paths import REPLICAS
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count

WAY_OUT = (
    f'write "{{{{ replicas }}}}" where its count belongs, or name the path: {REPLICAS}: <chart or manifest>:<path>'
)
"""How a template stops being one of copies."""


def too_large(copy: int, bound: int, by: str) -> str:
    """Say why no copy may be placed: it is larger than a bound."""
    return f"its template deploys copies of {count(copy, 'replica')}, and {by} {bound} ({WAY_OUT})"


def assign_copies(
    finder: CandidateFinder, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, missing: int
) -> Assignment:
    """Assign a copy to each cluster that has room for one, as long as so many replicas are missing."""
    copy = template.copy or 1
    refusals, chosen, begun = list[Refusal](), list[Candidate](), 0
    in_subset = Counter[str]()
    for candidate in finder.order(template.workload):
        if missing < copy:
            break
        taken = in_subset[candidate.subset]
        answer = assess_copy(finder, template, policy, shape, candidate, taken=taken, more_gprs=begun)
        if isinstance(answer, Refusal):
            refusals.append(answer)
            continue
        chosen.append(answer._replace(replicas=copy))
        in_subset[candidate.subset] += copy
        begun, missing = begun + 1, missing - copy
    return Assignment(chosen=tuple(chosen), refusals=tuple(refusals))


def assess_copy(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    candidate: Candidate,
    *,
    taken: int = 0,
    more_gprs: int = 0,
) -> Candidate | Refusal:
    """Return a candidate with room for one copy, or why it takes none.

    `taken` are the replicas that its subset gets in this pass, `more_gprs` the GPRs that begin beside it.
    """
    copy = template.copy or 1

    def refused(reason: Reason, message: str, remedy: str = "") -> Refusal:
        return Refusal(
            cluster=candidate.cluster, subset=candidate.subset, reason=reason, message=message, remedy=remedy
        )

    # 1. It has one.
    here = finder.held_here(template.workload, policy, candidate)
    if here:
        return refused(Reason.CLUSTER_LIMIT, f"has its copy of {count(here, 'replica')}, and gets one at most", WAY_OUT)
    # 2. It takes no replica at all.
    answer = finder.assess(template, policy, shape, candidate, MOST, more_gprs=more_gprs)
    if isinstance(answer, Refusal):
        return answer
    # 3. It may not have so many, or has no room for them.
    if answer.limit is not None and answer.limit < copy:
        allowed = f"may have {answer.limit} at most, and a copy is {count(copy, 'replica')}"
        return refused(Reason.CLUSTER_LIMIT, allowed, f"raise its maxReplicas in policy {policy.name}")
    if (
        policy.spread is not None
        and (left := room_in(finder, policy.spread, template.workload, candidate) - taken) < copy
    ):
        allowed = f"its subset may get {max(0, left)} more, and a copy is {count(copy, 'replica')}"
        return refused(Reason.SPREAD_LIMIT, allowed, f"raise its maxReplicas in WorkloadSpread {policy.spread.id}")
    if answer.fits < copy:
        lacking = f"has room for {answer.fits} of the {count(copy, 'replica')} of a copy"
        return refused(Reason.NO_CAPACITY, lacking, "free or add nodes there")
    # 4. It runs once, and its topology domains do not hold all of it.
    return finder.assess_domains(template.workload, answer._replace(room=copy), copy)


def take_copies_back(
    inputs: PassInput,
    working_plan: WorkingPlan,
    surplus: int,
    placements: Sequence[Placement],
    *,
    partly: bool,
) -> Iterator[tuple[Placement, int]]:
    """Choose the copies that end for a surplus, each with none left: those of the last cluster in the order first.

    `partly` ends a copy as well of which only a part is too many, as where a limit was lowered.
    """
    policy = inputs.desired.policies[placements[0].workload]
    order = {candidate.key: candidate.rank for candidate in ranked(inputs, working_plan, placements[0].workload)}

    def place(placement: Placement) -> tuple[bool, int, float, str]:
        key = cluster_subset(placement, policy, inputs.desired.clusters)
        return key in order, -order.get(key, 0), -placement.created_at.timestamp(), placement.name

    for placement in sorted(placements, key=place):
        if surplus <= 0:
            return
        if partly or placement.replicas <= surplus:
            surplus -= placement.replicas
            yield placement, 0
