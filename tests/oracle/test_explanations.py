"""What `explain` says of each workload is what the pass did, of all kinds of units and beside others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import explain
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Action, Assessment, Reason, Suppressed, WorkloadAssessment
from reconciler.model.units import ONE
from tests.builders.inputs import GPU
from tests.oracle.chains import MOST, chains
from tests.oracle.world import Pass, Unit, Work


def gains(made: Pass, work: Work) -> Mapping[ClusterSubset, int]:
    """Count the missing replicas that a workload gets in a pass, by where it gets them."""
    counts = Counter[ClusterSubset]()
    for change in made.plan.changes:
        after = change.after
        if change.action not in (Action.PLACE, Action.RESIZE) or after is None:
            continue
        missing = work.id.request if change.shortage is None else True  # others leave another cluster
        if after.workload == work.id and missing:
            before = change.before.replicas if change.before is not None else 0
            counts[after.cluster, after.subset] += after.replicas - before
    return counts


def gpus_on(made: Pass, work: Work, place: ClusterSubset) -> int:
    """Return the GPUs of a replica where a pass has put some: a subset may patch them."""
    shapes = {(each.cluster, each.subset): each.shape for each in made.after.placements.of(work.id).placements}
    return shapes[place].requests.amounts.get(GPU, 0) // ONE * work.unit.pods


def kept(made: Pass) -> Mapping[WorkloadId, WorkloadAssessment]:
    """Decide a pass again and keep the assessments of all workloads; the plan is the same otherwise."""
    plan = decide(made.inputs, keep=made.works.keys())
    assert replace(plan, assessments={}) == made.plan
    return plan.assessments


def explained(made: Pass, work: Work) -> tuple[Assessment, ...]:
    """Return the clusters of an explanation."""
    if not work.id.request:
        return explain(work.id, made.inputs, made.plan).assessments
    seen = made.inputs.with_requests(made.after.requests)
    return explain_request(made.after.requests[work.id], seen, made.plan).assessments


def misexplained(made: Pass, work: Work, assessment: WorkloadAssessment) -> Iterator[str]:
    """Yield what an assessment says of a workload that is not what the pass did."""
    gets, waits = gains(made, work), [held for held in made.plan.suppressed if held.workload == work.id]
    clusters = {each.key: each for each in assessment.candidates}
    assigned = {candidate.key: candidate.replicas for candidate in assessment.assigned}
    # 1. What it gets is assigned, and what it would get instead is held back by something that is told.
    if gets and assigned != gets:
        yield f"it gets {gets}, and is said to get {assigned}"
    if assigned and not gets and not waits:
        yield f"it gets nothing, and is said to get {assigned}"
    # 2. No cluster that takes replicas is refused, or has room for fewer.
    for place, replicas in gets.items():
        refusal, free = clusters[place].refusal, clusters[place].free.amounts.get(GPU, 0) // ONE
        if refusal is not None or clusters[place].fits < replicas or free < replicas * gpus_on(made, work, place):
            yield f"{place} takes {replicas}, and is said to have room for {clusters[place].fits} on {free}: {refusal}"
    # 3. Each other cluster is refused for the reason of the pass.
    for place, reason in refused(waits).items():
        refusal = clusters[place].refusal
        if place not in gets and (refusal is None or refusal.reason is not reason):
            yield f"{place} is refused by {reason}, and is said to be by {refusal}"
    # 4. What waits for room has none left, unless subsets or the bounds of the policy keep it from that.
    if refused(waits) and work.policy.spread is None and not work.policy.distribution.is_bounded:
        for place, each in clusters.items():
            left = each.fits - gets.get(place, 0) if work.unit is Unit.REPLICA or place not in gets else 0
            if each.rank is not None and each.refusal is None and left > 0:
                yield f"{place} has room for {left} more, while some wait for room"


def refused(waits: list[Suppressed]) -> Mapping[ClusterSubset, Reason]:
    """Return why clusters have no room for what waits for some."""
    return {
        (refusal.cluster, refusal.subset): refusal.reason
        for held in waits
        if held.reason is Reason.NOTHING_FITS
        for refusal in held.refusals
    }


def wrong(passes: list[Pass]) -> list[str]:
    """List what is explained wrongly in the first pass of a chain in which anything is."""
    for made in passes:
        assessments = kept(made)
        words = [
            f"{work.id}: {each}"
            for work in made.works.values()
            if work.id in assessments
            for each in misexplained(made, work, assessments[work.id])
        ]
        for work in made.works.values():
            if not work.id.request or work.id in made.after.requests:
                assert explained(made, work) == assessments[work.id].candidates
        if words:
            return [*words, str(made)]
    return []


@pytest.mark.parametrize("unit", Unit, ids=lambda unit: unit.name)
@MOST
@given(st.data())
def test_explanation_is_what_the_pass_did(unit: Unit, data: st.DataObject) -> None:
    assert wrong(data.draw(chains(units=(unit,)))) == []


@MOST
@given(chains(units=tuple(Unit)))
def test_explanation_is_what_the_pass_did_where_kinds_of_units_are_mixed(passes: list[Pass]) -> None:
    assert wrong(passes) == []
