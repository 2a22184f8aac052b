"""What `explain` says of pods to which clusters add something when they are made.

What a workload has elsewhere, in words: what runs there, what waits there for a node, and what moves on.

What a cluster was seen to have room for, and what others take of it in a pass before a workload has its turn.

What is to be known of a placement beside its record: whose pods it has, and when it leaves a lost cluster.

What an explanation tells of how missing replicas are shared out over clusters, and over their subsets in order.

Why a workload is where it is: each cluster's filter, fit and score, and what would have to change.

Made from the very functions that decide, asked about every cluster of the workspace instead of only the ones that were
needed, so that it can never tell another story than the commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.capacity.admission_defaults import admitted
from reconciler.core.capacity.gangs import GangWorkload
from reconciler.core.decide.assign.gang_placement import offered
from reconciler.core.decide.assign.share import ShareOut
from reconciler.core.decide.assign.share_out import describe_distribution as shared
from reconciler.core.decide.assign.share_out import share_out_replicas
from reconciler.core.decide.assign.subset_order import rows_of
from reconciler.core.decide.assign.subset_quota import too_many_at_home
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, Offer
from reconciler.core.decide.candidates.gang import gangs_of, whole
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps import gang_health
from reconciler.core.decide.steps.manual_changes import respect_people
from reconciler.core.explain.request_state import RequestState
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.core.ledger.lifecycle import version
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.observe.rollouts import RolloutFailure
from reconciler.core.spread.inject import of_placement
from reconciler.core.spread.placement_subset import Site
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads import replica_count
from reconciler.core.workloads.cluster_provides import doubts
from reconciler.core.workloads.node_affinity import said
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind, where
from reconciler.model.plan import Change, Move, Place, Plan, Reason, Refusal, Resize, Revert, Suppressed
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.units import Resources, format_duration
from reconciler.model.workload_spread import WorkloadSpread
from reconciler.text.timestamps import format_time
from reconciler.text.wording import amounts, count, listed, plain


def additions(
    finder: CandidateFinder, workload: WorkloadId, shape: ReplicaShape | None, whole: GangWorkload | None
) -> Iterator[str]:
    """Say what the clusters of a workload add to its pods: to a replica of this shape, or to all that goes `whole`."""
    desired, told = finder.inputs.desired, dict[str, None]()
    template, policy = desired.templates[workload], desired.policies.get(workload)
    shapes = [shape] if shape is not None else []
    if whole is not None and not whole.unknown:
        shapes = [part.shape for part in whole.of(1).parts]
    for candidate in finder.order(workload) if policy is not None else ():
        seen = finder.inputs.observed.clusters.get(candidate.cluster)
        if policy is not None and seen is not None and candidate.cluster in desired.clusters:
            told |= dict.fromkeys(added(seen, (finder.shaped(template, policy, candidate, one) for one in shapes)))
    yield from told


def added(seen: ClusterObservation, shapes: Iterable[ReplicaShape]) -> Iterator[str]:
    """Say what a cluster adds to pods: to what they request, or to the labels that their nodes must have."""
    for shape in shapes:
        if shape.unstated is None:
            continue
        name = shape.unstated.runtime_class
        given = admitted(replace(shape, unstated=shape.unstated._replace(runtime_class="")), seen)
        there = admitted(shape, seen)
        more, by_class = _more(shape, given), _more(given, there)
        labels = sorted(there.node_selector.items() - shape.node_selector.items())
        if more:
            yield f"On {seen.cluster} LimitRanges give a pod {more} beyond what it requests, which counts."
        if by_class or labels:
            said = [f"adds {by_class} to a pod, which counts"] if by_class else []
            where = listed(plain(f"{key}={value}") for key, value in labels)
            said += [f"sends it to nodes with {where}"] if where else []
            yield f"On {seen.cluster} RuntimeClass {plain(name)} {', and '.join(said)}."


def _more(before: ReplicaShape, after: ReplicaShape) -> str:
    found = after.requests.minus(before.requests).amounts
    return listed(amounts(Resources(amounts={name: amount for name, amount in found.items() if amount})))


def describe_elsewhere(inputs: PassInput, placements: Iterable[Placement]) -> str:
    """Say how many replicas run elsewhere, and where some are seen to wait for a node instead."""
    runs, waiting = 0, list[str]()
    for one in placements:
        seen = inputs.observed.clusters.get(one.cluster)
        # Pods that an engine has not taken away yet are no replicas any more.
        homeless = 0
        if seen is not None:
            homeless = max(0, min(replica_count.waiting(one, seen), one.replicas - replica_count.bound(one, seen)))
        runs += one.replicas - homeless
        if homeless:
            waiting.append(f"{homeless} waiting for a node on {plain(one.where)}")
    return ", ".join((f"{runs} run elsewhere", *waiting))


def moving(workload: WorkloadId, plan: Plan) -> Iterator[str]:
    """Say what of a workload moves on, since it found no node for too long."""
    for change in plan.changes:
        match change:
            case (
                Resize(before=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE, reason=why))
                | Move(before=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE, reason=why))
                | Revert(placement=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE, reason=why))
            ) if left.workload == workload:
                goes = left.replicas - (change.after.replicas if isinstance(change, Resize) else 0)
                yield f"{why}; {goes} of {plain(left.where)} move on to another subset now."
            case _:
                pass


def outrun(plan: Plan, workload: WorkloadId, place: Site) -> Refusal | None:
    """Return why a cluster has no room for a workload in its turn, and who took some of it before; None if nobody did.

    For what is seen to have room there as the pass begins.
    """
    takers = sorted({str(one) for change in plan.changes for one in _takers(change, place[0]) if one != workload})
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
    return replace(refusal, message=f"{refusal.message}, after what {listed(takers)} {verb} in this pass")


def _takers(change: Change, cluster: ClusterName) -> Iterator[WorkloadId]:
    """Yield the workload that gets more of a cluster by a change."""
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


def notes(inputs: PassInput, placement: Placement) -> tuple[str, ...]:
    """Say in sentences, without a stop, what holds for one placement now; nothing for most."""
    return (*of_subset(inputs.desired, placement), *_of_lost(inputs, placement))


def of_subset(desired: Desired, placement: Placement) -> Iterator[str]:
    """Say what the subset of a placement changes in its pods, as its file says it now."""
    if placement.cluster not in desired.clusters:
        return
    try:
        found = of_placement(desired, placement)
    except InvalidInput:
        return  # told as NotRendered where it matters
    if found is not None and found.changes:
        yield f"{plain(found.called)} changes its pods: {listed(_changes(found))}"


def _changes(found: Injection) -> Iterator[str]:
    """Name each thing that is changed, in the order in which it is."""
    for one in found.subset.tolerations:
        key = plain(one.key) or "every taint"
        yield f"tolerates {key}={plain(one.value)}" if one.value else f"tolerates {key}"
    if found.preferred:
        yield f"prefers nodes with {listed(plain(said(one)) for term in found.preferred for one in term.term.labels)}"
    if found.required:
        yield f"requires nodes with {listed(plain(said(one)) for one in found.required)}"
    fields = [
        plain(f"{part}.{name}", 80)
        for part in ("metadata", "spec")
        for name in (found.subset.patch[part] if isinstance(found.subset.patch.get(part), Mapping) else ())
    ]
    if fields:
        yield f"patches {listed(fields)}"
    if found.start:
        yield f"counts from ordinal {found.start}"


def _of_lost(inputs: PassInput, placement: Placement) -> Iterator[str]:
    """Say since when the cluster of what goes whole has been lost, and when that leaves it.

    Only who keeps looking knows since when: to one look, and to the first of a daemon, it has just been lost.
    """
    since = inputs.lost.get(placement.cluster)
    if since is None or not gangs_of(inputs, placement):
        return
    timeout = inputs.desired.fleet.worker_lost_timeout
    lasting = f"the Fleet's workerLostTimeout of {format_duration(timeout)}"
    if since == inputs.now:
        yield (
            f"{placement.cluster} is lost: all of it moves once that has lasted for {lasting},"
            " counted from when the daemon first missed it (--server asks it)"
        )
    elif since + timeout > inputs.now:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}: all of it moves at"
            f" {format_time(since + timeout)} if that lasts, after {lasting}"
        )
    else:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}, for longer than {lasting}:"
            " all of it moves as soon as another cluster has room"
        )


def beyond(outcome: ShareOut) -> Mapping[Site, Refusal]:
    """Gather which clusters that have room get nothing, since their subset may have no more of it."""
    limited, given = (Reason.SPREAD_LIMIT, Reason.TAKEN), {share.offer.candidate.site for share in outcome.shares}
    found = {(one.cluster, one.subset): one for one in outcome.refusals if one.reason in limited}
    return {place: refusal for place, refusal in found.items() if place not in given}


def ranks(
    finder: CandidateFinder, workload: WorkloadId, policy: BurstPolicy, spread: WorkloadSpread, fits: Mapping[Site, int]
) -> Mapping[Site, int]:
    """Give each site its number in the order in which they are filled, by what each has room for."""
    rows = rows_of(finder, workload, spread, finder.seated(workload, policy), lambda place: fits.get(place, 0))
    ordered = [place for row in rows for place in row if place in fits]
    return {place: rank for rank, place in enumerate(ordered, start=1)}


def describe_shares(outcome: ShareOut, refused: Collection[Site], held: Iterable[Suppressed]) -> Iterator[str]:
    """Say how what is missing would be shared out, and what spoke for each cluster that does not refuse after all.

    What is `held` back has been told.
    """
    for share in outcome.shares:
        why = f" ({share.because})" if share.because else ""
        if share.offer.candidate.site not in refused:
            yield f"{plain(where(*share.offer.candidate.site))} would take {share.replicas} of what is missing{why}."
    if outcome.lacking and outcome.lacking not in {one.message for one in held}:
        yield f"{outcome.lacking[0].upper()}{outcome.lacking[1:]}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One cluster as this workload sees it. `rank` is None for one that is not in the order.

    `fits` is the replicas it would take now, `placed` those it has already; `free` is what is free of the requested
    resources on the nodes that admit the workload. With a `subset` all of it is of that one's part of the cluster. Of a
    gang that has room for its minimum only, `start` says what starts and what waits.
    """

    cluster: ClusterName
    rank: int | None
    placed: int
    fits: int
    limit: int | None
    free: Resources
    price_per_gpu_hour: float | None
    refusal: Refusal | None
    subset: str = ""
    start: str = ""

    @property
    def site(self) -> Site:
        """The cluster and the subset that it is looked at for, empty for none."""
        return self.cluster, self.subset

    @property
    def where(self) -> str:
        """The cluster, and the subset that it is looked at for."""
        return where(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One workload: its demand, what it has, what every cluster could give, and what the next pass does about it.

    `ailing` tells which of its placements are not healthy, by directory, and `notes` what else there is to say of each.
    `request` is how what was asked for by name stands; its demand is that somebody asked. `distribution` is how its
    policy shares out, where it does not just fill one cluster after the other.
    """

    workload: WorkloadId
    primary: ClusterName
    policy: str
    demand: Demand | UnseenPrimary | None
    placements: tuple[Placement, ...]
    ailing: Mapping[str, RolloutFailure]
    restraints: tuple[Restraint, ...]
    assessments: tuple[Assessment, ...]
    suppressed: tuple[Suppressed, ...]
    conclusion: tuple[str, ...]
    request: RequestState | None = None
    distribution: str = ""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def explain(workload: WorkloadId, inputs: PassInput, plan: Plan) -> Explanation:
    """Explain one workload at one moment. Raises InvalidInput when the fleet repository has no such template.

    What was asked for by name is for `explaining` to explain.
    """
    desired, observed = inputs.desired, inputs.observed
    template = desired.templates.get(workload)
    if template is None:
        known = ", ".join(str(name) for name in sorted(desired.templates) if not name.request) or "none"
        raise InvalidInput(f"explaining {workload}: no such template (there are: {known})")
    policy = desired.policies.get(workload)
    workspace = desired.workspaces[workload.workspace]
    demand = inputs.demands.get(workload)
    working_plan = WorkingPlan(inputs)
    respect_people(inputs, working_plan)  # what was deleted by hand is held back as the next pass will have it
    finder = CandidateFinder(inputs, working_plan)
    assessments: list[Assessment] = []
    shape = _shape(demand, working_plan.of(workload))
    outcome = nothing = ShareOut(shares=(), refusals=())
    if policy is not None and shape is not None:
        short = demand.deficit - working_plan.replicas(workload) if isinstance(demand, Demand) else 0
        goes_whole = whole(inputs, workload)
        if isinstance(demand, Demand) and not policy.fills_in_order and goes_whole is None:
            outcome = share_out_replicas(finder, template, policy, shape, max(short, 1))  # where one more would go
        out_of_bounds = beyond(outcome)
        outcome = outcome if short > 0 else nothing
        candidates = inputs.reach.order(workload)
        ranked = {candidate.cluster for candidate in candidates}
        others = [name for name in sorted(workspace.clusters) if name not in ranked and name != workspace.primary]
        for candidate in (*candidates, *(Candidate(cluster=name, rank=0, limit=None) for name in others)):
            if goes_whole is not None and not goes_whole.unknown:
                answer = offered(inputs, finder, workload, candidate, goes_whole, lacking=short)
            else:
                answer = finder.assess(template, policy, shape, candidate, MOST)
            answer = (isinstance(answer, Offer) and outrun(plan, workload, candidate.site)) or answer
            refusal = answer if isinstance(answer, Refusal) else out_of_bounds.get(candidate.site)
            start = None if isinstance(answer, Refusal) else answer.start
            cluster = desired.clusters.get(candidate.cluster)
            room = (
                finder.rooms.room(candidate.cluster, workspace.name) if candidate.cluster in observed.clusters else None
            )
            assessments.append(
                Assessment(
                    cluster=candidate.cluster,
                    rank=candidate.rank or None,
                    placed=finder.here(workload, policy, candidate),
                    fits=0 if isinstance(answer, Refusal) else answer.replicas,
                    limit=candidate.limit if isinstance(answer, Refusal) else answer.candidate.limit,
                    free=room.free(finder.shaped(template, policy, candidate, shape)) if room else Resources(),
                    price_per_gpu_hour=cluster.price_per_gpu_hour if cluster else None,
                    refusal=refusal,
                    subset=candidate.subset,
                    start=start.told if start is not None else "",
                )
            )
        if policy.spread is not None and goes_whole is None:
            fits = {one.site: one.fits for one in assessments if one.rank is not None}
            subset_ranks = ranks(finder, workload, policy, policy.spread, fits)
            assessments = [replace(one, rank=subset_ranks.get(one.site)) for one in assessments]
            assessments.sort(key=lambda one: one.rank or len(assessments))
    suppressed = tuple(one for one in plan.suppressed if one.workload == workload)
    return Explanation(
        workload=workload,
        primary=workspace.primary,
        policy=policy.name if policy else "",
        demand=demand,
        placements=tuple(working_plan.of(workload)),
        ailing=gang_health.ailing(inputs, working_plan.of(workload)),
        restraints=working_plan.restraints(workload),
        assessments=tuple(assessments),
        suppressed=suppressed,
        conclusion=(
            *_conclusion(workload, inputs, working_plan, assessments, suppressed),
            *moving(workload, plan),
            *describe_shares(outcome, {one.site for one in assessments if one.refusal is not None}, suppressed),
            *additions(finder, workload, shape, whole(inputs, workload)),
            *first_needs(workload, inputs),
        ),
        distribution=shared(policy) if policy is not None else "",
        notes=noted(inputs, working_plan.of(workload)),
    )


def noted(inputs: PassInput, placements: Iterable[Placement]) -> Mapping[str, tuple[str, ...]]:
    """Gather what there is to say of placements, by directory; those of which there is nothing are left out."""
    return {one.path: found for one in placements if (found := notes(inputs, one))}


def _shape(demand: Demand | UnseenPrimary | None, placements: tuple[Placement, ...]) -> ReplicaShape | None:
    """Take the shape of a replica from the demand, else from what is already placed."""
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
    """Say in sentences what holds now, and the one thing that would change each thing that does not."""
    demand = inputs.demands.get(workload)
    # 1. It never bursts.
    if workload not in inputs.desired.policies:
        return (f"{workload} does not burst: no BurstPolicy covers it. Add it to the spec.templates of one.",)
    if demand is None:
        way_out = "Set the annotation overspill.dev/workload to <namespace>/<name>."
        return (f"{workload} does not burst: nothing says which object on its primary is counted. {way_out}",)
    # 2. Its primary cannot be seen.
    if isinstance(demand, UnseenPrimary):
        return (f"{demand.message}. It keeps what it has and gets nothing new until the primary is seen again.",)
    placed = working_plan.replicas(workload)
    share_out_replicas = inputs.desired.policies[workload].spread
    over = () if share_out_replicas is None else too_many_at_home(inputs, workload, share_out_replicas, placed)
    partly = running(inputs, working_plan.of(workload))
    behind = (*partly, *_unheard(demand, suppressed), *_behind(workload, inputs, working_plan), *over)
    # 3. Its primary knows no such object.
    if not demand.reported:
        ref = inputs.desired.templates[workload].ref
        name = f"{ref.full_kind or 'object'} {ref.namespace}/{ref.name}" if ref else "such object"
        reported = inputs.observed.clusters[demand.primary].workloads
        others = listed(f"{seen.ref.namespace}/{seen.ref.name}" for seen in reported) or "nothing"
        way_out = "Set the annotation overspill.dev/workload to the one that is meant."
        return (
            f"{demand.primary} reports no {name}; it reports {others}. {way_out}",
            *(describe_suppressed(one) for one in suppressed),
            *behind,
        )
    runs = describe_elsewhere(inputs, working_plan.of(workload))
    if demand.deficit <= placed:
        missing = "Nothing" if runs == f"{placed} run elsewhere" else "Nothing more"
        enough = f"{missing} is missing: {demand.primary} runs {demand.running} of {demand.wanted}, {runs}."
        return (enough, *(describe_suppressed(one) for one in suppressed), *behind)
    # 4. It is short of replicas.
    short = demand.deficit - placed
    first = f"{count(short, 'replica')} missing: {demand.primary} runs {demand.running} of {demand.wanted}, {runs}."
    room = sum(assessment.fits for assessment in assessments if assessment.rank is not None)
    lines = [first, *(describe_suppressed(one) for one in suppressed)]
    if room >= short and not suppressed:
        lines.append(f"There is room for {count(min(room, short), 'replica')} in its clusters.")
    lines.extend(
        f"To use {plain(refusal.where)}: {refusal.remedy} ({refusal.message})."
        for refusal in (assessment.refusal for assessment in assessments)
        if refusal is not None and refusal.remedy and room < short
    )
    return (*lines, *starts(assessments), *behind)


def running(inputs: PassInput, placements: Iterable[Placement]) -> Iterator[str]:
    """Say of gangs that they run with their minimum."""
    for placement in placements:
        if partly := gang_health.describe_partial_gang(inputs, placement):
            yield f"Of {placement.name} on {placement.cluster}, {partly}."


def starts(assessments: Iterable[Assessment]) -> Iterator[str]:
    """Say of the clusters that have room for the minimum of a gang what starts there; none where one has for all."""
    found = tuple(one for one in assessments if one.rank is not None and one.fits)
    if all(one.start for one in found):
        yield from (f"On {one.cluster} {one.start}." for one in found)


def first_needs(workload: WorkloadId, inputs: PassInput) -> Iterator[str]:
    """Say of the clusters that a workload may go to what it refers to and nobody knows them to have."""
    desired, observed = inputs.desired, inputs.observed
    if workload not in desired.policies:
        return
    template, policy = desired.templates[workload], desired.policies[workload]
    finder = CandidateFinder(inputs, WorkingPlan(inputs))
    said = dict[str, None]()
    for candidate in inputs.reach.order(workload):
        cluster = desired.clusters.get(candidate.cluster)
        if cluster is not None:
            there = (cluster, observed.clusters.get(candidate.cluster))
            said |= dict.fromkeys(doubts([there], finder.needed(template, policy, candidate)))
    yield from said


def _unheard(demand: Demand, suppressed: tuple[Suppressed, ...]) -> tuple[str, ...]:
    """Tell what cannot be heard, where it does not stand among what is held back already."""
    if any(one.reason is Reason.SIGNAL_UNHEARD for one in suppressed):
        return ()
    return tuple(f"{why}: nothing new comes of it, and nothing is given back meanwhile." for why in demand.stale)


def _behind(workload: WorkloadId, inputs: PassInput, working_plan: WorkingPlan) -> tuple[str, ...]:
    """Name the placements that deploy an earlier version of the template."""
    current = version(inputs.desired.templates[workload])
    return tuple(
        f"{placement.name} deploys an earlier version of its template; its next resize takes the new one up."
        for placement in working_plan.of(workload)
        if placement.template_version not in ("", current)
    )


def describe_suppressed(suppressed: Suppressed) -> str:
    """Say what is held back, and when it will be looked at again."""
    until = f"; looked at again at {suppressed.until:%Y-%m-%dT%H:%M:%SZ}" if suppressed.until else ""
    return f"Held back, {suppressed.reason}: {suppressed.message}{until}."
