"""The explanation of a workload: what the pass found of each cluster, what it did, and the remedies.

The assessments of the clusters are those of the pass, which is decided from the same input. Beside them stands what no
decision asks for: the replicas outside of the primary, the additions of clusters to its pods, and when it may get room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.core.decide.assign.replicas_by_cluster import describe_distribution
from reconciler.core.decide.assign.subset_quota import describe_primary_excess
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.explain.blocked import describe_blocked
from reconciler.core.explain.placement_notes import describe_placed_replicas, notes_by_placement
from reconciler.core.explain.pod_additions import cluster_additions, describe_prerequisites
from reconciler.core.explain.request_state import RequestState
from reconciler.core.explain.summary import summarize
from reconciler.core.explain.wait_time import describe_start
from reconciler.core.fleet.template import annotate_hint
from reconciler.core.ledger.lifecycle import file_version
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.observe.rollouts import RolloutFailure
from reconciler.errors import InvalidInput
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind, place_name
from reconciler.model.plan import Assessment, NeedShare, Plan, Reason, Suppressed, WorkloadAssessment
from reconciler.model.policy import BurstPolicy
from reconciler.text.spelling import nearest
from reconciler.text.wording import conjugate, count, sanitize, sentence


def describe_moves(workload: WorkloadId, plan: Plan) -> Iterator[str]:
    """Describe the replicas that move to another cluster or subset, since they cannot run where they are."""
    for change in plan.changes:
        restraint = change.restraint
        if change.workload == workload and restraint is not None and restraint.move:
            goes = change.replicas_before - (0 if change.ended is not None else change.replicas_after)
            other = "subset" if restraint.kind is RestraintKind.UNSCHEDULABLE else "cluster"
            yield f"{change.detail}; {goes} of {sanitize(change.former.where)} move on to another {other} now."


def _describe_share(share: NeedShare | None, policy: BurstPolicy | None) -> Iterator[str]:
    """Describe the part of its need that a burst has where room is short, beside others of its priority."""
    if share is None or policy is None:
        return
    weight = f" by weight {policy.weight}" if policy.weight != 1 else ""
    yield (
        f"Room is short: it has {share.has:.0%} of what it needs{weight}, and all that wait with its priority have"
        f" {share.fair:.0%} together; what comes free goes to who has least."
    )


def _describe_assignment(assessment: WorkloadAssessment, suppressed: Iterable[Suppressed]) -> Iterator[str]:
    """Describe the division of missing replicas over clusters; what is among the `suppressed` messages is left out."""
    for candidate in assessment.assigned:
        why = f" ({candidate.because})" if candidate.because else ""
        yield f"{sanitize(place_name(*candidate.key))} would take {candidate.replicas} of what is missing{why}."
    bound = assessment.out_of_reach
    if bound and bound not in {held.message for held in suppressed}:
        yield f"{bound[0].upper()}{bound[1:]}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A workload: its demand, its placements, the capacity of every cluster, and the result of the next pass."""

    workload: WorkloadId
    primary: ClusterName
    policy: str
    # None for a request, which is asked for by name.
    demand: Demand | UnseenPrimary | None
    placements: tuple[Placement, ...]
    # The placements that are not healthy, by directory.
    ailing: Mapping[str, RolloutFailure]
    restraints: tuple[Restraint, ...]
    assessments: tuple[Assessment, ...]
    suppressed: tuple[Suppressed, ...]
    # Sentences: the state, and a remedy for each obstacle.
    conclusion: tuple[str, ...]
    # When the primary was seen last, as far as the demand is known.
    observed_at: datetime | None = None
    # The state of a request.
    request: RequestState | None = None
    # The distribution of the policy; empty where it fills one cluster after the other.
    distribution: str = ""
    # The state in one sentence; empty for a request.
    summary: str = ""
    # Sentences about placements, by directory.
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def explain(workload: WorkloadId, inputs: PassInput, plan: Plan) -> Explanation:
    """Explain one workload at one moment; `explain.request` explains requests.

    Raises InvalidInput when the fleet repository has no such template.
    """
    desired = inputs.desired
    if workload not in desired.templates:
        names = [str(name) for name in desired.templates if not name.request]
        hint = nearest(str(workload), names) or "there are none"
        raise InvalidInput(f"explaining {workload}: no such template ({hint})")
    policy, demand = desired.policies.get(workload), inputs.demands.get(workload)
    placements, assessment = inputs.ledger.placements.of(workload).placements, assessment_of(workload, inputs)
    suppressed = tuple(suppressed for suppressed in plan.suppressed if suppressed.workload == workload)
    conclusion = _conclusion(workload, inputs, placements, assessment, suppressed)
    divides = policy is not None and not policy.fills_in_order and unit_of_workload(inputs, workload).is_single
    lacks = isinstance(demand, Demand) and demand.missing > sum(placement.replicas for placement in placements)
    finder = CandidateFinder(inputs, WorkingPlan(inputs))
    return Explanation(
        workload=workload,
        primary=desired.workspaces[workload.workspace].primary,
        policy=policy.name if policy else "",
        demand=demand,
        observed_at=inputs.seen_at(demand) if isinstance(demand, Demand) else None,
        placements=placements,
        ailing=gang_health.unhealthy_placements(inputs, placements),
        restraints=assessment.restraints,
        assessments=assessment.candidates,
        suppressed=suppressed,
        conclusion=(
            *conclusion,
            *_describe_share(assessment.share, policy),
            *describe_moves(workload, plan),
            *describe_start(workload, inputs, plan),
            *(_describe_assignment(assessment, suppressed) if divides and lacks else ()),
            *cluster_additions(finder, workload),
            *describe_prerequisites(finder, workload),
        ),
        distribution=describe_distribution(policy) if policy is not None else "",
        summary=summarize(demand, inputs, placements, plan)
        if policy is not None and isinstance(demand, Demand)
        else conclusion[0],
        notes=notes_by_placement(inputs, placements),
    )


def assessment_of(workload: WorkloadId, inputs: PassInput) -> WorkloadAssessment:
    """Return how the pass of these inputs assesses a workload: it is decided again, with the assessment kept.

    Orders of callers have been carried out by then. Empty where the workload meets a bug of Overspill.
    """
    plan = decide(replace(inputs, orders=()), keep=(workload,))
    return plan.assessments.get(workload, WorkloadAssessment())


def _conclusion(
    workload: WorkloadId,
    inputs: PassInput,
    placements: tuple[Placement, ...],
    assessment: WorkloadAssessment,
    suppressed: tuple[Suppressed, ...],
) -> tuple[str, ...]:
    """Yield sentences about the state, and a remedy for each obstacle."""
    demand = inputs.demands.get(workload)
    # 1. The workload never bursts.
    if workload not in inputs.desired.policies:
        broken = len({problem.path for problem in inputs.desired.problems})
        unread = f" {count(broken, 'file')} with problems may hold one: `overspill check` lists them." if broken else ""
        return (f"{workload} does not burst: no BurstPolicy covers it. Add it to the spec.templates of one.{unread}",)
    if demand is None:
        template = inputs.desired.templates[workload]
        way_out = sentence(annotate_hint(template.spec, template.namespaces))
        return (f"{workload} does not burst: nothing says which object on its primary is counted. {way_out}",)
    # 2. Its primary is unseen, or its object there unknown.
    if isinstance(demand, UnseenPrimary):
        known = "its source can be read" if inputs.desired.templates[workload].ref is None else "the primary is seen"
        return (f"{demand.message}. It keeps what it has and gets nothing new until {known} again.",)
    placed = sum(placement.replicas for placement in placements)
    over = describe_primary_excess(inputs, workload, placed)
    partly = describe_partial_gangs(inputs, placements)
    behind = (
        *describe_blocked(demand),
        *partly,
        *_stale_signals(demand, suppressed),
        *_quiet_forecasts(demand),
        *_outdated_placements(inputs, placements),
        *over,
        *((demand.note,) if demand.reported and demand.note else ()),
    )
    # 3. The object is not found on its primary.
    if not demand.reported:
        others = (item for item in suppressed if item.reason is not Reason.NOT_FOUND)
        note = demand.note or f"{demand.primary} has the object without any pods, so that none of it is missing."
        return (note, *(describe_suppressed(item) for item in others), *behind)
    runs = describe_placed_replicas(inputs, placements)
    if demand.missing <= placed:
        enough = _describe_enough(demand, placed, runs)
        return (enough, *(describe_suppressed(item) for item in suppressed), *behind)
    # 4. Replicas are missing.
    missing = demand.missing - placed
    lacking = max(0, demand.needed - placed)
    what = [f"{count(lacking, 'replica')} missing"] if lacking else []
    what += [f"{count(missing - lacking, 'replica')} wanted beforehand"] if missing > lacking else []
    first = f"{' and '.join(what)}: {demand.primary} runs {demand.running} of {demand.wanted}, {runs}."
    assessments = assessment.candidates
    room = sum(each.fits for each in assessments if each.rank is not None and each.refusal is None)
    lines = [first, *(describe_suppressed(item) for item in suppressed)]
    if room >= missing and not suppressed:
        lines.append(f"There is room for {count(min(room, missing), 'replica')} in its clusters.")
    lines.extend(
        f"To use {sanitize(refusal.where)}: {refusal.remedy} ({refusal.message})."
        for refusal in (each.refusal for each in assessments)
        if refusal is not None and refusal.remedy and room < missing
    )
    return (*lines, *describe_gang_starts(assessments), *behind)


def _describe_enough(demand: Demand, placed: int, runs: str) -> str:
    """Say that no replica lacks room; `runs` counts the `placed` ones."""
    more = "" if runs.partition(" ")[0] == str(placed) else "more"
    waiting = sum(blocked.replicas for blocked in demand.blocked)
    home = f"{demand.primary} runs {demand.running} of {demand.wanted}"
    if waiting:
        subject = "No other replica" if more else "No replica"
        return f"{subject} lacks room: {home}, {runs}, and {waiting} {conjugate(waiting, 'waits')} for something else."
    return f"{' '.join(filter(None, ('Nothing', more)))} is missing: {home}, {runs}."


def describe_partial_gangs(inputs: PassInput, placements: Iterable[Placement]) -> Iterator[str]:
    """Describe gangs that run with their minimum."""
    for placement in placements:
        if partly := gang_health.describe_partial_gang(inputs, placement):
            yield f"Of {placement.name} on {placement.cluster}, {partly}."


def describe_gang_starts(assessments: Iterable[Assessment]) -> Iterator[str]:
    """Describe what starts on clusters with capacity for the minimum of a gang; none if one fits all of it."""
    able = [each for each in assessments if each.rank is not None and each.refusal is None and each.fits]
    if all(each.start for each in able):
        yield from (f"On {each.cluster} {each.start}." for each in able)


def _stale_signals(demand: Demand, suppressed: tuple[Suppressed, ...]) -> tuple[str, ...]:
    """Name the stale signals, unless the suppressed changes do."""
    if any(held.reason is Reason.SIGNAL_UNHEARD for held in suppressed):
        return ()
    return tuple(f"{why}: nothing new comes of it, and nothing is given back meanwhile." for why in demand.stale)


def _quiet_forecasts(demand: Demand) -> tuple[str, ...]:
    """Tell what is foreseen by the signals that ask for nothing because of it."""
    labels = tuple(f"{step.signal} " for step in demand.waiting if step.signal)
    return tuple(sentence(each) for each in demand.forecasts if not each.startswith(labels))


def _outdated_placements(inputs: PassInput, placements: tuple[Placement, ...]) -> tuple[str, ...]:
    """Name the placements that deploy an earlier version of the template."""
    return tuple(
        f"{placement.name} deploys an earlier version of its template; its next resize takes the new one up."
        for placement in placements
        if placement.template_version not in ("", file_version(inputs.desired.templates[placement.workload]))
    )


def describe_suppressed(suppressed: Suppressed) -> str:
    """Describe a suppressed change, and when it is considered again."""
    until = f"; looked at again at {suppressed.until:%Y-%m-%dT%H:%M:%SZ}" if suppressed.until else ""
    return f"Held back, {suppressed.reason}: {suppressed.message}{until}."
