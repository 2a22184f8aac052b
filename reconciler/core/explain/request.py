"""The explanation of a request: the offer of each cluster, by the functions that place it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.core.capacity.pod_requirements import Gang, ManifestPods, pods_of_request, request_requirements
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.engines.deployment import target_namespace
from reconciler.core.explain.placement_notes import notes_by_placement
from reconciler.core.explain.pod_additions import describe_additions, describe_prerequisites
from reconciler.core.explain.request_state import RequestState, state_of_request, suppressed_by_request
from reconciler.core.explain.wait_time import describe_start
from reconciler.core.explain.workload import (
    Explanation,
    assessment_of,
    describe_gang_starts,
    describe_partial_gangs,
    describe_suppressed,
)
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Assessment, Plan, Suppressed
from reconciler.model.request import RequestRecord
from reconciler.text.timestamps import format_time
from reconciler.text.wording import amounts, as_clause, count, join_names


def explain_request(record: RequestRecord, inputs: PassInput, plan: Plan) -> Explanation:
    """Explain one request at one moment; an open one is among the workloads of `inputs`."""
    workload = record.workload
    held = suppressed_by_request(plan).get(workload, ())
    stands = state_of_request(record, inputs, held)
    policy = inputs.desired.policies.get(workload)
    finder = CandidateFinder(inputs, WorkingPlan(inputs))
    assessments = assessment_of(workload, inputs).candidates if policy is not None else ()
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
            *_conclusion(stands, assessments, held, _pods(record, inputs)),
            *describe_partial_gangs(inputs, stands.placements),
            *describe_start(workload, inputs, plan),
            *_describe_additions(record, inputs, assessments),
            *describe_prerequisites(finder, workload),
        ),
        request=stands,
        notes=notes_by_placement(inputs, stands.placements),
    )


def _describe_additions(record: RequestRecord, inputs: PassInput, assessments: Sequence[Assessment]) -> Iterator[str]:
    """Describe the additions of its clusters to its pods."""
    for assessment in assessments:
        seen = inputs.observed.clusters.get(assessment.cluster)
        if seen is not None:
            requirements = request_requirements(record.request, seen, _pods(record, inputs))
            yield from describe_additions(seen, (part.shape for part in requirements.parts))


def _pods(record: RequestRecord, inputs: PassInput) -> ManifestPods:
    request, workspace = record.request, inputs.desired.workspaces.get(record.request.workspace)
    namespace = target_namespace(request.spec, workspace) if workspace is not None else ""
    return pods_of_request(request, inputs.desired.kinds, namespace)


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
