"""Why a workload is where it is: each cluster's filter, fit and score, and what would have to change.

Made from the very functions that decide, asked about every cluster of the workspace instead of only the ones that were
needed, so that it can never tell another story than the commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core import elsewhere, sharedout, started
from reconciler.core.addednotes import additions
from reconciler.core.demand import UnseenPrimary
from reconciler.core.grouping import whole
from reconciler.core.growth import MOST, CandidateFinder, Offer
from reconciler.core.lifecycle import version
from reconciler.core.outrunning import outrun
from reconciler.core.people import respect_people
from reconciler.core.placementnotes import notes
from reconciler.core.provided import doubts
from reconciler.core.quotas import too_many_at_home
from reconciler.core.reach import Candidate
from reconciler.core.requeststate import RequestState
from reconciler.core.rollouts import RolloutFailure
from reconciler.core.seats import Site
from reconciler.core.shares import ShareOut
from reconciler.core.sharing import describe_distribution as shared
from reconciler.core.sharing import share_out_replicas
from reconciler.core.situation import PassInput
from reconciler.core.standing import WorkingPlan
from reconciler.core.together import offered
from reconciler.core.wording import count, listed, plain
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint, where
from reconciler.model.plan import Plan, Reason, Refusal, Suppressed
from reconciler.model.units import Resources


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
        beyond = sharedout.beyond(outcome)
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
            refusal = answer if isinstance(answer, Refusal) else beyond.get(candidate.site)
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
            ranks = sharedout.ranks(finder, workload, policy, policy.spread, fits)
            assessments = [replace(one, rank=ranks.get(one.site)) for one in assessments]
            assessments.sort(key=lambda one: one.rank or len(assessments))
    suppressed = tuple(one for one in plan.suppressed if one.workload == workload)
    return Explanation(
        workload=workload,
        primary=workspace.primary,
        policy=policy.name if policy else "",
        demand=demand,
        placements=tuple(working_plan.of(workload)),
        ailing=started.ailing(inputs, working_plan.of(workload)),
        restraints=working_plan.restraints(workload),
        assessments=tuple(assessments),
        suppressed=suppressed,
        conclusion=(
            *_conclusion(workload, inputs, working_plan, assessments, suppressed),
            *elsewhere.moving(workload, plan),
            *sharedout.describe_shares(
                outcome, {one.site for one in assessments if one.refusal is not None}, suppressed
            ),
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
    runs = elsewhere.describe_elsewhere(inputs, working_plan.of(workload))
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
        if partly := started.describe_partial_gang(inputs, placement):
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
    return tuple(f"{why}: nothing new comes of it, and nothing is given back meanwhile." for why in demand.unheard)


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
