"""Whatever is seen, asked and deleted, and in whatever order: a request runs once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.ledger.request_record import write_request
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts
from reconciler.model.action import Action
from reconciler.model.gpr import GprTerms
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Drift, Ledger, Placements
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.request import Request, RequestRecord
from reconciler.model.rollout import EngineState
from tests.builders.examples import examples
from tests.builders.inputs import NOW, free, inputs
from tests.builders.plans import begun
from tests.builders.requests import deployment, holds, manifests, request, wants

CLUSTERS = ("worker-1", "worker-2", "worker-3")
NAMES = ("a", "b")


@dataclass(frozen=True)
class Step:
    """What is so at one pass: how long after the one before, what is free, asked for, deleted by hand, and failed."""

    after: timedelta
    free: tuple[int, int, int]
    asked: tuple[Request, ...]
    unreadable: bool
    deleted: frozenset[str]
    failed: frozenset[str]


requests = st.builds(
    request,
    name=st.sampled_from(NAMES),
    clusters=st.lists(st.sampled_from(CLUSTERS).map(ClusterName), unique=True, max_size=3).map(tuple),
    placements=st.none() | st.integers(1, 2),
    terms=st.builds(GprTerms, priority=st.sampled_from([1, 101, 300]), requeue=st.booleans()),
    spec=st.builds(
        manifests,
        st.integers(1, 3).map(deployment),
        lasting=st.sampled_from([timedelta(minutes=5), timedelta(minutes=15), None]),
    ),
).map(lambda one: one if one.clusters else replace(one, placements=one.placements or 1))
steps = st.builds(
    Step,
    after=st.sampled_from([timedelta(seconds=1), timedelta(minutes=4), timedelta(minutes=16), timedelta(days=40)]),
    free=st.tuples(*[st.sampled_from([0, 2, 9])] * 3),
    asked=st.lists(requests, max_size=2, unique_by=lambda one: one.name).map(tuple),
    unreadable=st.booleans(),
    deleted=st.frozensets(st.sampled_from(CLUSTERS), max_size=1),
    failed=st.frozensets(st.sampled_from(CLUSTERS), max_size=1),
)
stories = st.lists(steps, min_size=1, max_size=8)


def pass_(ledger: Ledger, step: Step, now: datetime) -> Plan:
    gone = [one for one in ledger.placements.values() if one.cluster in step.deleted]
    there = replace(
        ledger,
        placements=ledger.placements.changed({}, [one.path for one in gone]),
        drifted=tuple(Drift(placement=one, removed=True, files={}) for one in gone),
    )
    ailing: dict[ClusterName, ClusterRollouts] = {}
    for one in there.placements.values():
        if one.cluster in step.failed:
            ailment = RolloutFailure(digest=one.digest, state=EngineState.FAILED, message="gave up", since=now)
            ward = ailing.get(one.cluster, ClusterRollouts())
            ailing[one.cluster] = replace(ward, ailing={**ward.ailing, one.path: ailment})
    seen = [free(name, gpus, at=now) for name, gpus in zip(CLUSTERS, step.free, strict=True)]
    wanted = wants(*step.asked, incomplete=step.unreadable)
    return decide(replace(inputs(*seen, wanted=wanted, there=there, now=now), rollouts=Rollouts.of(ailing)))


def applied(ledger: Ledger, step: Step, plan: Plan) -> Ledger:
    """Return the ledger after a person's deletions and the plan."""
    placements = {path: one for path, one in ledger.placements.items() if one.cluster not in step.deleted}
    requests = dict(ledger.requests)
    for change in plan.changes:
        if change.action is Action.PLACE:
            assert change.placement.path not in placements
            placements[change.placement.path] = replace(change.placement, digest="sha256-1")
        elif change.action is Action.EXTEND:
            placements[change.after.path] = change.after
        elif change.action is Action.REVERT:
            placements.pop(change.placement.path, None)
        if change.action is Action.FORGET:
            requests.pop(change.workload)
        elif change.record is not None:
            requests[change.workload] = change.record
    return replace(ledger, placements=Placements(placements), requests=requests)


def played(story: list[Step]) -> list[tuple[datetime, Ledger, Step, Plan, Ledger]]:
    ledger, now, passes = holds(), NOW, []
    for step in story:
        now += step.after
        plan = pass_(ledger, step, now)
        after = applied(ledger, step, plan)
        passes.append((now, ledger, step, plan, after))
        ledger = after
    return passes


def ended(records: Mapping[WorkloadId, RequestRecord]) -> set[WorkloadId]:
    return {workload for workload, record in records.items() if record.ended is not None}


def pairs(placements: Placements) -> Counter[tuple[WorkloadId, ClusterName]]:
    return Counter((one.workload, one.cluster) for one in placements.values())


def is_sound(placement: Placement, ledger: Ledger, now: datetime) -> bool:
    record = ledger.requests.get(placement.workload)
    return record is not None and record.ended is None and record.began_at is not None and placement.expires_at > now


@given(stories)
@examples(3)
def test_a_request_runs_once_at_a_time_on_one_cluster_and_never_after_its_end(story: list[Step]):
    for now, before, _, plan, after in played(story):
        assert max(pairs(after.placements).values(), default=0) <= 1
        placed = {placement.workload for placement in begun(plan)}
        assert not placed & ended(before.requests)
        assert not placed & ended(after.requests)
        for placement in after.placements.values():
            assert is_sound(placement, after, now)
        for workload, record in after.requests.items():
            assert len({one.expires_at for one in after.placements.of(workload).placements}) <= 1
            assert write_request(record)


@given(stories)
def test_a_pass_leaves_nothing_to_do_and_the_same_inputs_give_the_same_plan(story: list[Step]):
    for now, before, step, plan, after in played(story):
        assert pass_(before, step, now) == plan
        quiet = replace(step, deleted=frozenset(), failed=frozenset())
        if not step.failed:
            assert pass_(after, quiet, now).changes == ()


@given(stories, st.lists(steps, min_size=1, max_size=4))
def test_what_has_ended_stays_as_it_is_while_its_file_stands(story: list[Step], later: list[Step]):
    *_, (now, _, last, _, ledger) = played(story)
    over = {workload: ledger.requests[workload] for workload in ended(ledger.requests)}
    for step in later:
        now += step.after
        files = tuple(one for one in last.asked if one.workload in over)
        plan = pass_(ledger, replace(step, asked=files, unreadable=True), now)
        ledger = applied(ledger, step, plan)
        assert {workload: ledger.requests.get(workload) for workload in over} == over
