"""The explanation of a workload: each cluster's filter, fit and score, and the remedies.

Calls the functions that decide, for every cluster of the workspace instead of the needed ones alone, so that an
explanation never differs from the commits. It also describes the additions of clusters to the pods, the replicas
outside of the primary, the changes of other workloads earlier in the pass, and the assignment of missing replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from reconciler.core.capacity.admission_defaults import with_admission_defaults
from reconciler.core.capacity.gangs import GangWorkload
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.cost.prices import price_of
from reconciler.core.decide.assign.assignment import Assignment
from reconciler.core.decide.assign.copies import assess_unit
from reconciler.core.decide.assign.gang_placement import assess_missing, first_within_limit
from reconciler.core.decide.assign.replicas_by_cluster import assign, describe_distribution
from reconciler.core.decide.assign.subset_order import rows_of
from reconciler.core.decide.assign.subset_quota import describe_primary_excess
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import gang_of, unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.lost_cluster import lost_timeout
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.decide.turns.fair_share import FairShares
from reconciler.core.explain.request_state import RequestState
from reconciler.core.explain.scaled_down import scaled_down_by
from reconciler.core.explain.summary import summarize
from reconciler.core.explain.wait_time import describe_start
from reconciler.core.ledger.lifecycle import file_version
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.observe.rollouts import RolloutFailure
from reconciler.core.spread.inject import placement_injection
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads import replica_count
from reconciler.core.workloads.cluster_provides import describe_undeclared
from reconciler.errors import InvalidInput
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.placement import ClusterSubset, Placement, Restraint, RestraintKind, place_name
from reconciler.model.plan import Change, Move, Place, Plan, Reason, Refusal, Resize, Revert, Suppressed
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.score import Score
from reconciler.model.units import Resources, format_duration
from reconciler.text.spelling import nearest
from reconciler.text.timestamps import format_time
from reconciler.text.wording import amounts, count, join_names, sanitize, sentence


def cluster_additions(
    finder: CandidateFinder, workload: WorkloadId, shape: ReplicaShape | None, gang: GangWorkload | None
) -> Iterator[str]:
    """Describe the additions of a workload's clusters to its pods: to this shape, or to those of a gang."""
    desired, sentences = finder.inputs.desired, dict[str, None]()
    template, policy = desired.templates[workload], desired.policies.get(workload)
    shapes = [shape] if shape is not None else []
    if gang is not None and not gang.unknown:
        shapes = [part.shape for part in gang.of(1).parts]
    for candidate in finder.order(workload) if policy is not None else ():
        seen = finder.inputs.observed.clusters.get(candidate.cluster)
        if policy is not None and seen is not None and candidate.cluster in desired.clusters:
            sentences |= dict.fromkeys(
                describe_additions(seen, (finder.shaped(template, policy, candidate, own) for own in shapes))
            )
    yield from sentences


def describe_additions(seen: ClusterObservation, shapes: Iterable[ReplicaShape]) -> Iterator[str]:
    """Describe the additions of a cluster to pods: to their requests, or to the labels of their nodes."""
    for shape in shapes:
        if shape.unstated is None:
            continue
        name = shape.unstated.runtime_class
        given = with_admission_defaults(replace(shape, unstated=shape.unstated._replace(runtime_class="")), seen)
        final = with_admission_defaults(shape, seen)
        more, by_class = _describe_increase(shape, given), _describe_increase(given, final)
        labels = sorted(final.node_selector.items() - shape.node_selector.items())
        if more:
            yield f"On {seen.cluster} LimitRanges give a pod {more} beyond what it requests, which counts."
        if by_class or labels:
            effects = [f"adds {by_class} to a pod, which counts"] if by_class else []
            where = join_names(sanitize(f"{key}={value}") for key, value in labels)
            effects += [f"sends it to nodes with {where}"] if where else []
            yield f"On {seen.cluster} RuntimeClass {sanitize(name)} {', and '.join(effects)}."


def _describe_increase(before: ReplicaShape, after: ReplicaShape) -> str:
    increase = after.requests.minus(before.requests).amounts
    return join_names(amounts(Resources(amounts={name: amount for name, amount in increase.items() if amount})))


def describe_placed_replicas(inputs: PassInput, placements: Iterable[Placement]) -> str:
    """Count the replicas with a node outside of the primary, those that wait for one, those to come or scaled down."""
    runs, rest = 0, list[str]()
    for placement in placements:
        seen, where = inputs.observed.clusters.get(placement.cluster), sanitize(placement.where)
        if seen is None:
            rest.append(f"{placement.replicas} placed on {where}, which is not seen")
            continue
        bound = min(placement.replicas, replica_count.bound_replicas(placement, seen))
        # Pods that the engine is about to delete are no replicas any more.
        waiting = min(replica_count.pending_replicas(placement, seen), placement.replicas - bound)
        starting = placement.replicas - bound - waiting
        runs += bound
        rest += [f"{waiting} waiting for a node on {where}"] if waiting else []
        scaler = scaled_down_by(placement, inputs)
        unstarted = (
            f"{starting} scaled down on {where} by its {scaler}" if scaler else f"{starting} not started on {where} yet"
        )
        rest += [unstarted] if starting else []
    return ", ".join((f"{runs} run elsewhere", *rest))


def describe_moves(workload: WorkloadId, plan: Plan) -> Iterator[str]:
    """Describe the replicas that move to another cluster or subset, since they cannot run where they are."""
    for change in plan.changes:
        match change:
            case (
                Resize(before=left, restraint=Restraint() as restraint)
                | Move(before=left, restraint=Restraint() as restraint)
                | Revert(placement=left, restraint=Restraint() as restraint)
            ) if left.workload == workload:
                if restraint.move:
                    goes = left.replicas - (change.after.replicas if isinstance(change, Resize) else 0)
                    other = "subset" if restraint.kind is RestraintKind.UNSCHEDULABLE else "cluster"
                    yield f"{change.detail}; {goes} of {sanitize(left.where)} move on to another {other} now."
            case _:
                pass


def describe_share(workload: WorkloadId, inputs: PassInput, working_plan: WorkingPlan, plan: Plan) -> Iterator[str]:
    """Describe the part of its need that a burst has where room is short, beside others of its priority."""
    demand, policy = inputs.demands.get(workload), inputs.desired.policies.get(workload)
    if not isinstance(demand, Demand) or not demand.needed or policy is None:
        return
    level = priority(workload, inputs)
    waiting = [held.workload for held in plan.suppressed if held.reason is Reason.NOTHING_FITS]
    rivals = {name for name in waiting if priority(name, inputs) == level}
    if not rivals or rivals == {workload}:
        return
    shares = FairShares(inputs, working_plan)
    weight = f" by weight {policy.weight}" if policy.weight != 1 else ""
    yield (
        f"Room is short: it has {shares.of_workload(workload):.0%} of what it needs{weight}, and all that wait with its"
        f" priority have {shares.fair(workload):.0%} together; what comes free goes to who has least."
    )


def capacity_taken(plan: Plan, workload: WorkloadId, place: ClusterSubset) -> Refusal | None:
    """Return the refusal of a cluster whose free capacity other workloads took earlier; None if none did.

    A cluster that takes some replicas of the workload in the same pass is not refused for those beyond.
    """
    takers = sorted({str(name) for change in plan.changes for name in _takers(change, place[0]) if name != workload})
    if place in _gains(plan, workload):
        return None
    refusals = (
        refusal
        for held in plan.suppressed
        if held.workload == workload and held.reason is Reason.NOTHING_FITS
        for refusal in held.refusals
        if (refusal.cluster, refusal.subset) == place and refusal.reason is Reason.NO_CAPACITY
    )
    refusal = next(refusals, None)
    if refusal is None or not takers:
        return None
    verb = "takes" if len(takers) == 1 else "take"
    return replace(refusal, message=f"{refusal.message}, after what {join_names(takers)} {verb} in this pass")


def _takers(change: Change, cluster: ClusterName) -> Iterator[WorkloadId]:
    """Yield the workload that takes more of a cluster by a change."""
    match change:
        case Place(placement=after):
            more = True
        case Resize(before=before, after=after):
            more = after.replicas > before.replicas
        case Move(before=before, after=after):
            more = after.cluster != before.cluster
        case _:
            return
    if more and after.cluster == cluster:
        yield after.workload


def _gains(plan: Plan, workload: WorkloadId) -> Collection[ClusterSubset]:
    """Return where a workload gets missing replicas in this pass."""
    afters = (
        change.placement if isinstance(change, Place) else change.after
        for change in plan.changes
        if isinstance(change, Place | Resize) and change.choice is not None
    )
    return {(after.cluster, after.subset) for after in afters if after.workload == workload}


def placement_notes(inputs: PassInput, placement: Placement) -> tuple[str, ...]:
    """Return notes about one placement, as sentences without a full stop; none for most."""
    return (
        *_describe_source(placement),
        *([f"{sanitize(placement.kept, 600)}; the next placement takes it up"] if placement.kept else []),
        *describe_injection(inputs.desired, placement),
        *_describe_lost_cluster(inputs, placement),
    )


def _describe_source(placement: Placement) -> Iterator[str]:
    """Say what a placement was made from, where its template holds no copy."""
    made_from = placement.made_from
    if made_from is not None:
        images = f", with {made_from.images}" if made_from.images else ""
        yield sanitize(f"made from {made_from.text}{images}", 400)


def describe_injection(desired: Desired, placement: Placement) -> Iterator[str]:
    """Describe the changes of a placement's subset to its pods, by the current file."""
    if placement.cluster not in desired.clusters:
        return
    try:
        injection = placement_injection(desired, placement)
    except InvalidInput:
        return  # reported as NotRendered elsewhere
    if injection is not None and injection.changes:
        yield f"{sanitize(injection.called)} changes its pods: {join_names(_changes(injection))}"


def _changes(injection: Injection) -> Iterator[str]:
    """Yield each change, in the order of injection."""
    for toleration in injection.subset.tolerations:
        key = sanitize(toleration.key) or "every taint"
        yield f"tolerates {key}={sanitize(toleration.value)}" if toleration.value else f"tolerates {key}"
    if injection.preferred:
        labels = (label for preferred in injection.preferred for label in preferred.term.labels)
        yield f"prefers nodes with {join_names(sanitize(str(label)) for label in labels)}"
    if injection.required:
        yield f"requires nodes with {join_names(sanitize(str(term)) for term in injection.required)}"
    fields = [
        sanitize(f"{part}.{name}", 80)
        for part in ("metadata", "spec")
        for name in (injection.subset.patch[part] if isinstance(injection.subset.patch.get(part), Mapping) else ())
    ]
    if fields:
        yield f"patches {join_names(fields)}"
    if injection.start:
        yield f"counts from ordinal {injection.start}"


def _describe_lost_cluster(inputs: PassInput, placement: Placement) -> Iterator[str]:
    """Describe the loss of a placement's cluster, and the time at which it leaves.

    The time of the loss is known to a running daemon only: for a single look, and for its first pass, it is now.
    """
    since = inputs.lost.get(placement.cluster)
    timeout = lost_timeout(inputs, placement) if since is not None else None
    if since is None or timeout is None:
        return
    policy, unit = (
        inputs.desired.policies.get(placement.workload),
        unit_of_workload(inputs, placement.workload, placement),
    )
    gang = bool(unit.groups(placement.replicas))
    if not gang and unit.once:
        return  # it stays, and is suppressed with the reason
    whole = gang and unit.is_set
    goes = "all of it moves" if whole else "its replicas move"
    own = policy is not None and policy.worker_lost_timeout is not None
    whose = f"policy {policy.name}'s" if own and policy is not None else "the Fleet's" if gang else "a policy's"
    lasting = f"{whose} workerLostTimeout of {format_duration(timeout)}"
    if since == inputs.now:
        yield (
            f"{placement.cluster} is lost: {goes} once that has lasted for {lasting},"
            " counted from when the daemon first missed it (--server asks it)"
        )
    elif since + timeout > inputs.now:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}: {goes} at"
            f" {format_time(since + timeout)} if that lasts, after {lasting}"
        )
    else:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}, for longer than {lasting}:"
            f" {goes} as soon as another cluster has room"
        )


def subset_limit_refusals(assignment: Assignment) -> Mapping[ClusterSubset, Refusal]:
    """Return the refusals of clusters with capacity that get no replicas, by the limit of their subset."""
    limited, chosen = (Reason.SPREAD_LIMIT, Reason.TAKEN), {candidate.key for candidate in assignment.chosen}
    refusals = [refusal for refusal in assignment.refusals if refusal.reason in limited]
    places = {(refusal.cluster, refusal.subset): refusal for refusal in refusals}
    return {place: refusal for place, refusal in places.items() if place not in chosen}


def ranks(
    finder: CandidateFinder,
    workload: WorkloadId,
    policy: BurstPolicy,
    spread: WorkloadSpread,
    fits: Mapping[ClusterSubset, int],
) -> Mapping[ClusterSubset, int]:
    """Rank the clusters of subsets in the order of filling, by the replicas that fit on each."""
    rows = rows_of(finder, workload, spread, finder.held_by_subset(workload, policy), lambda place: fits.get(place, 0))
    ordered = [place for row in rows for place in row if place in fits]
    return {place: rank for rank, place in enumerate(ordered, start=1)}


def describe_assignment(
    assignment: Assignment, refused: Collection[ClusterSubset], held: Iterable[Suppressed]
) -> Iterator[str]:
    """Describe the assignment of missing replicas, with the reason of each cluster that does not refuse after all.

    Messages that are among those `held` back are left out.
    """
    for candidate in assignment.chosen:
        why = f" ({candidate.because})" if candidate.because else ""
        if candidate.key not in refused:
            yield f"{sanitize(place_name(*candidate.key))} would take {candidate.replicas} of what is missing{why}."
    bound = assignment.out_of_reach
    if bound and bound not in {suppressed.message for suppressed in held}:
        yield f"{bound[0].upper()}{bound[1:]}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A cluster, or the part of it in a subset, for a workload."""

    cluster: ClusterName
    # None for a cluster that is not in the order.
    rank: int | None
    # The replicas that it has, and those that it would take now.
    placed: int
    fits: int
    limit: int | None
    # Free amounts of the requested resources on the nodes that admit the workload.
    free: Resources
    price_per_gpu_hour: float | None
    refusal: Refusal | None
    subset: str = ""
    # The pods that start and that wait, of a gang that has room for its minimum alone.
    start: str = ""
    # The scores by which it has its rank; empty where the policy weighs none.
    scores: tuple[Score, ...] = ()

    @property
    def key(self) -> ClusterSubset:
        """The cluster and the subset, empty for none."""
        return self.cluster, self.subset

    @property
    def where(self) -> str:
        """The cluster and the subset in words."""
        return place_name(self.cluster, self.subset)


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
    desired, observed = inputs.desired, inputs.observed
    template = desired.templates.get(workload)
    if template is None:
        names = [str(name) for name in desired.templates if not name.request]
        hint = nearest(str(workload), names) or "there are none"
        raise InvalidInput(f"explaining {workload}: no such template ({hint})")
    policy = desired.policies.get(workload)
    workspace = desired.workspaces[workload.workspace]
    demand = inputs.demands.get(workload)
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # deleted placements are held back as in the next pass
    finder = CandidateFinder(inputs, working_plan)
    assessments: list[Assessment] = []
    shape = _shape(demand, working_plan.of(workload))
    assignment = Assignment(chosen=(), refusals=())
    if policy is not None and shape is not None:
        missing = _missing(demand, policy, working_plan.replicas(workload))
        unit = unit_of_workload(inputs, workload)
        gang = unit.gang
        out_of_bounds: Mapping[ClusterSubset, Refusal] = {}
        if isinstance(demand, Demand) and not policy.fills_in_order and unit.is_single:
            # It shows where one more replica would go.
            trial = assign(finder, template, policy, shape, max(missing, 1), unit=unit)
            out_of_bounds = subset_limit_refusals(trial)
            assignment = trial if missing > 0 else assignment
        candidates = finder.order(workload)
        ranked = {candidate.cluster for candidate in candidates}
        others = [name for name in sorted(workspace.clusters) if name not in ranked and name != workspace.primary]
        limited = _limited(inputs, finder, workload, unit, missing)
        for candidate in (*candidates, *(Candidate(cluster=name, rank=0) for name in others)):
            ask = partial(
                _assess, inputs, finder, workload, candidate, unit=unit, shape=shape, missing=missing, limited=limited
            )
            answer = finder.grow_if_full(candidate, ask)
            if isinstance(answer, Candidate) and isinstance(ask(), Refusal):
                answer = answer._replace(because=finder.describe_growth(answer.cluster, answer.shape))
            answer = (isinstance(answer, Candidate) and capacity_taken(plan, workload, candidate.key)) or answer
            refusal = answer if isinstance(answer, Refusal) else out_of_bounds.get(candidate.key)
            taking = answer if isinstance(answer, Candidate) else candidate
            cluster = desired.clusters.get(candidate.cluster)
            seen = candidate.cluster in observed.clusters
            room = finder.capacity.room(candidate.cluster, workspace.name) if seen else None
            assessments.append(
                Assessment(
                    cluster=candidate.cluster,
                    rank=candidate.rank or None,
                    placed=finder.held_here(workload, policy, candidate),
                    fits=taking.room,
                    limit=taking.limit,
                    free=room.free(finder.shaped(template, policy, candidate, shape)) if room else Resources(),
                    price_per_gpu_hour=price_of(cluster, taking.shape if refusal is None else shape, inputs.now)
                    if cluster
                    else None,
                    refusal=refusal,
                    subset=candidate.subset,
                    start=taking.because,
                    scores=candidate.scores,
                )
            )
        if policy.spread is not None and gang is None:
            fits = {assessment.key: assessment.fits for assessment in assessments if assessment.rank is not None}
            subset_ranks = ranks(finder, workload, policy, policy.spread, fits)
            assessments = [replace(assessment, rank=subset_ranks.get(assessment.key)) for assessment in assessments]
            assessments.sort(key=lambda assessment: assessment.rank or len(assessments))
    suppressed = tuple(suppressed for suppressed in plan.suppressed if suppressed.workload == workload)
    refused = {assessment.key for assessment in assessments if assessment.refusal is not None}
    conclusion = _conclusion(workload, inputs, working_plan, assessments, suppressed)
    return Explanation(
        workload=workload,
        primary=workspace.primary,
        policy=policy.name if policy else "",
        demand=demand,
        observed_at=inputs.seen_at(demand) if isinstance(demand, Demand) else None,
        placements=tuple(working_plan.of(workload)),
        ailing=gang_health.unhealthy_placements(inputs, working_plan.of(workload)),
        restraints=working_plan.restraints(workload),
        assessments=tuple(assessments),
        suppressed=suppressed,
        conclusion=(
            *conclusion,
            *describe_share(workload, inputs, working_plan, plan),
            *describe_moves(workload, plan),
            *describe_start(workload, inputs, plan),
            *describe_assignment(assignment, refused, suppressed),
            *cluster_additions(finder, workload, shape, gang_of(inputs, workload)),
            *describe_prerequisites(workload, inputs),
        ),
        distribution=describe_distribution(policy) if policy is not None else "",
        summary=summarize(demand, inputs, working_plan.of(workload), plan)
        if policy is not None and isinstance(demand, Demand)
        else conclusion[0],
        notes=notes_by_placement(inputs, working_plan.of(workload)),
    )


def _missing(demand: Demand | UnseenPrimary | None, policy: BurstPolicy, placed: int) -> int:
    """Count the missing replicas that a pass would place: those within the limit of the policy."""
    missing = demand.missing - placed if isinstance(demand, Demand) else 0
    return missing if policy.max_replicas is None else min(missing, policy.max_replicas - placed)


def _limited(
    inputs: PassInput, finder: CandidateFinder, workload: WorkloadId, unit: PlacementUnit, missing: int
) -> Candidate | None:
    """Return the cluster that takes as many groups of a set as it may have, where none takes all that are missing."""
    gang, candidates = unit.gang, finder.order(workload)
    if gang is None or not unit.is_set or gang.unknown or not gang.divisible or finder.held_by_cluster(workload):
        return None
    answers = (assess_missing(inputs, finder, workload, each, gang, missing=missing) for each in candidates)
    if any(isinstance(answer, Candidate) for answer in answers):
        return None
    return first_within_limit(inputs, finder, workload, candidates, gang, missing=missing)


def _assess(
    inputs: PassInput,
    finder: CandidateFinder,
    workload: WorkloadId,
    candidate: Candidate,
    *,
    unit: PlacementUnit,
    shape: ReplicaShape,
    missing: int,
    limited: Candidate | None,
) -> Candidate | Refusal:
    """Say whether a cluster would take missing units of a workload; `limited` is the one that takes a part of a set."""
    template, policy = inputs.desired.templates[workload], inputs.desired.policies[workload]
    if limited is not None and candidate.cluster == limited.cluster:
        return limited
    if unit.gang is not None and unit.is_set and not unit.gang.unknown:
        return assess_missing(inputs, finder, workload, candidate, unit.gang, missing=missing)
    if unit.whole:
        size = unit.replicas(max(missing, 1))
        return assess_unit(finder, template, policy, shape, candidate, unit=unit, size=size)
    return finder.assess(template, policy, shape, candidate, MOST)


def notes_by_placement(inputs: PassInput, placements: Iterable[Placement]) -> Mapping[str, tuple[str, ...]]:
    """Return the notes on placements, by directory; placements without notes are left out."""
    return {placement.path: lines for placement in placements if (lines := placement_notes(inputs, placement))}


def _shape(demand: Demand | UnseenPrimary | None, placements: tuple[Placement, ...]) -> ReplicaShape | None:
    """Return the shape of a replica from the demand, else from its placements."""
    if isinstance(demand, Demand) and demand.shape is not None:
        return demand.shape
    return placements[0].shape if placements else None


def _conclusion(
    workload: WorkloadId,
    inputs: PassInput,
    working_plan: WorkingPlan,
    assessments: list[Assessment],
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
        way_out = "Set the annotation overspill.dev/workload to <namespace>/<name>."
        return (f"{workload} does not burst: nothing says which object on its primary is counted. {way_out}",)
    # 2. Its primary is unseen, or its object there unknown.
    if isinstance(demand, UnseenPrimary):
        known = "its source can be read" if inputs.desired.templates[workload].ref is None else "the primary is seen"
        return (f"{demand.message}. It keeps what it has and gets nothing new until {known} again.",)
    placed = working_plan.replicas(workload)
    spread = inputs.desired.policies[workload].spread
    over = () if spread is None else describe_primary_excess(inputs, workload, spread, placed)
    partly = describe_partial_gangs(inputs, working_plan.of(workload))
    behind = (
        *partly,
        *_stale_signals(demand, suppressed),
        *_quiet_forecasts(demand),
        *_outdated_placements(workload, inputs, working_plan),
        *over,
        *((demand.note,) if demand.reported and demand.note else ()),
    )
    # 3. The object is not found on its primary.
    if not demand.reported:
        others = (item for item in suppressed if item.reason is not Reason.NOT_FOUND)
        note = demand.note or f"{demand.primary} has the object without any pods, so that none of it is missing."
        return (note, *(describe_suppressed(item) for item in others), *behind)
    runs = describe_placed_replicas(inputs, working_plan.of(workload))
    if demand.missing <= placed:
        subject = "Nothing" if runs == f"{placed} run elsewhere" else "Nothing more"
        enough = f"{subject} is missing: {demand.primary} runs {demand.running} of {demand.wanted}, {runs}."
        return (enough, *(describe_suppressed(item) for item in suppressed), *behind)
    # 4. Replicas are missing.
    missing = demand.missing - placed
    lacking = max(0, demand.needed - placed)
    what = [f"{count(lacking, 'replica')} missing"] if lacking else []
    what += [f"{count(missing - lacking, 'replica')} wanted beforehand"] if missing > lacking else []
    first = f"{' and '.join(what)}: {demand.primary} runs {demand.running} of {demand.wanted}, {runs}."
    room = sum(assessment.fits for assessment in assessments if assessment.rank is not None)
    lines = [first, *(describe_suppressed(item) for item in suppressed)]
    if room >= missing and not suppressed:
        lines.append(f"There is room for {count(min(room, missing), 'replica')} in its clusters.")
    lines.extend(
        f"To use {sanitize(refusal.where)}: {refusal.remedy} ({refusal.message})."
        for refusal in (assessment.refusal for assessment in assessments)
        if refusal is not None and refusal.remedy and room < missing
    )
    return (*lines, *describe_gang_starts(assessments), *behind)


def describe_partial_gangs(inputs: PassInput, placements: Iterable[Placement]) -> Iterator[str]:
    """Describe gangs that run with their minimum."""
    for placement in placements:
        if partly := gang_health.describe_partial_gang(inputs, placement):
            yield f"Of {placement.name} on {placement.cluster}, {partly}."


def describe_gang_starts(assessments: Iterable[Assessment]) -> Iterator[str]:
    """Describe what starts on clusters with capacity for the minimum of a gang; none if one fits all of it."""
    able = tuple(assessment for assessment in assessments if assessment.rank is not None and assessment.fits)
    if all(assessment.start for assessment in able):
        yield from (f"On {assessment.cluster} {assessment.start}." for assessment in able)


def describe_prerequisites(workload: WorkloadId, inputs: PassInput) -> Iterator[str]:
    """Describe references of a workload that its clusters may lack."""
    desired, observed = inputs.desired, inputs.observed
    if workload not in desired.policies:
        return
    template, policy = desired.templates[workload], desired.policies[workload]
    finder = CandidateFinder(inputs, WorkingPlan(inputs))
    sentences = dict[str, None]()
    for candidate in finder.order(workload):
        cluster = desired.clusters.get(candidate.cluster)
        if cluster is not None:
            places = [(cluster, observed.clusters.get(candidate.cluster))]
            sentences |= dict.fromkeys(describe_undeclared(places, finder.prerequisites(template, policy, candidate)))
    yield from sentences


def _stale_signals(demand: Demand, suppressed: tuple[Suppressed, ...]) -> tuple[str, ...]:
    """Name the stale signals, unless the suppressed changes do."""
    if any(held.reason is Reason.SIGNAL_UNHEARD for held in suppressed):
        return ()
    return tuple(f"{why}: nothing new comes of it, and nothing is given back meanwhile." for why in demand.stale)


def _quiet_forecasts(demand: Demand) -> tuple[str, ...]:
    """Tell what is foreseen by the signals that ask for nothing because of it."""
    labels = tuple(f"{step.signal} " for step in demand.waiting if step.signal)
    return tuple(sentence(each) for each in demand.forecasts if not each.startswith(labels))


def _outdated_placements(workload: WorkloadId, inputs: PassInput, working_plan: WorkingPlan) -> tuple[str, ...]:
    """Name the placements that deploy an earlier version of the template."""
    current = file_version(inputs.desired.templates[workload])
    return tuple(
        f"{placement.name} deploys an earlier version of its template; its next resize takes the new one up."
        for placement in working_plan.of(workload)
        if placement.template_version not in ("", current)
    )


def describe_suppressed(suppressed: Suppressed) -> str:
    """Describe a suppressed change, and when it is considered again."""
    until = f"; looked at again at {suppressed.until:%Y-%m-%dT%H:%M:%SZ}" if suppressed.until else ""
    return f"Held back, {suppressed.reason}: {suppressed.message}{until}."
