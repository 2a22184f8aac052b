"""The explanation of a request: the offer of each cluster, by the functions that place it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from reconciler.core.capacity.pod_requirements import Gang, ManifestPods, pods_of_request, request_requirements
from reconciler.core.cost.prices import price_of
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.place_requests import assess
from reconciler.core.explain.request_state import RequestState, state_of_request, suppressed_by_request
from reconciler.core.explain.wait_time import describe_start
from reconciler.core.explain.workload import (
    Assessment,
    Explanation,
    capacity_taken,
    describe_additions,
    describe_gang_starts,
    describe_partial_gangs,
    describe_prerequisites,
    describe_suppressed,
    notes_by_placement,
)
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Plan, Refusal, Suppressed
from reconciler.model.request import RequestRecord
from reconciler.model.units import Resources
from reconciler.text.timestamps import format_time
from reconciler.text.wording import amounts, as_clause, count, join_names


def explain_request(record: RequestRecord, inputs: PassInput, plan: Plan) -> Explanation:
    """Explain one request at one moment; an open one is among the workloads of `inputs`."""
    workload = record.workload
    held = suppressed_by_request(plan).get(workload, ())
    stands = state_of_request(record, inputs, held)
    policy = inputs.desired.policies.get(workload)
    finder = CandidateFinder(inputs, WorkingPlan(inputs))
    candidates = inputs.reach.order(workload) if policy is not None else ()
    assessments = tuple(_assessment(record, inputs, finder, candidate, plan) for candidate in candidates)
    workspace = inputs.desired.workspaces.get(workload.workspace)
    return Explanation(
        workload=workload,
        primary=workspace.primary if workspace is not None else ClusterName(""),
        policy=policy.name if policy is not None else "",
        demand=None,
        placements=stands.placements,
        ailing=gang_health.unhealthy_placements(inputs, stands.placements),
        restraints=(),
        assessments=assessments,
        suppressed=held,
        conclusion=(
            *_conclusion(stands, assessments, held, pods_of_request(record.request, inputs.desired.kinds)),
            *describe_partial_gangs(inputs, stands.placements),
            *describe_start(workload, inputs, plan),
            *_describe_additions(record, inputs, candidates),
            *describe_prerequisites(workload, inputs),
        ),
        request=stands,
        notes=notes_by_placement(inputs, stands.placements),
    )


def _describe_additions(record: RequestRecord, inputs: PassInput, candidates: Sequence[Candidate]) -> Iterator[str]:
    """Describe the additions of its clusters to its pods."""
    for candidate in candidates:
        seen = inputs.observed.clusters.get(candidate.cluster)
        if seen is not None:
            requirements = request_requirements(record.request, seen, kinds=inputs.desired.kinds)
            yield from describe_additions(seen, (part.shape for part in requirements.parts))


def _assessment(
    record: RequestRecord, inputs: PassInput, finder: CandidateFinder, candidate: Candidate, plan: Plan
) -> Assessment:
    whole = partial(assess, inputs, finder, record, candidate)
    answer, growth = finder.grow_if_full(candidate, whole), ""
    if not isinstance(answer, Refusal) and isinstance(whole(), Refusal):
        growth = finder.describe_growth(candidate.cluster, answer[0].shape)
    if isinstance(answer, Refusal):
        answer = assess(inputs, finder, record, candidate, least=True)
    before = None if isinstance(answer, Refusal) else capacity_taken(plan, record.workload, candidate.key)
    answer = before or answer
    taking = None if isinstance(answer, Refusal) else answer[0]
    cluster, seen = inputs.desired.clusters.get(candidate.cluster), inputs.observed.clusters.get(candidate.cluster)
    here = inputs.ledger.placements.of(record.workload).placements
    needed = request_requirements(record.request, seen, kinds=inputs.desired.kinds)
    return Assessment(
        cluster=candidate.cluster,
        rank=candidate.rank,
        placed=sum(placement.replicas for placement in here if placement.cluster == candidate.cluster),
        fits=taking.room if taking is not None else 0,
        limit=None,
        free=finder.capacity.room(candidate.cluster, record.request.workspace).free(needed.main.shape)
        if seen
        else Resources(),
        price_per_gpu_hour=price_of(cluster, needed.main.shape, inputs.now) if cluster else None,
        refusal=answer if isinstance(answer, Refusal) else None,
        start=growth or (taking.because if taking is not None else ""),
    )


def _conclusion(
    stands: RequestState, assessments: Sequence[Assessment], held: Sequence[Suppressed], pods: ManifestPods
) -> Iterator[str]:
    """Yield sentences about the state, and a remedy for each obstacle."""
    record, placed = stands.record, len(stands.placements)
    # 1. The request has ended.
    if record.ended is not None:
        at = format_time(record.ended.at)
        yield f"It is {record.ended.status} since {at}: {as_clause(record.ended.message)}. Nothing of it begins again."
        return
    unknown = request_requirements(record.request, pods=pods).unknown
    if unknown:
        yield f"What it takes is not known in full: {unknown}. Declare it in gprDetails."
    yield from (_describe_gang(gang) for gang in pods.gangs)
    # 2. The request runs.
    if placed:
        until = f" until {format_time(stands.ends_at)}" if stands.ends_at else ""
        yield f"It has {placed} of {count(stands.wanted, 'placement')}{until}."
    # 3. The request waits.
    yield from (describe_suppressed(suppressed) for suppressed in held)
    if placed < stands.wanted:
        yield from (
            f"To use {refusal.cluster}: {refusal.remedy} ({refusal.message})."
            for refusal in (assessment.refusal for assessment in assessments)
            if refusal is not None and refusal.remedy
        )
        yield from describe_gang_starts(assessments)


def _describe_gang(gang: Gang) -> str:
    """Describe the pods of a request that only run together."""
    asked, several = join_names(amounts(gang.requests)), gang.groups > 1
    each = f", {asked} {'each' if several else 'in all'}" if asked else ""
    needed = "all" if gang.least == gang.size else str(gang.least)
    groups = f"{count(gang.groups, gang.called)} of {count(gang.size, 'pod')}"
    return f"{gang.name} is {groups}{each}; a {gang.called} runs once {needed} of its pods are there."
