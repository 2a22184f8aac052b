"""How what runs once ends, and each way in which it could begin a second time: time alone never does it.

docs/reference/kinds.md, "How a run ends", says the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide, sweep
from reconciler.core.decide.orders.steer import plan_release, plan_revert
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps.end import make_revert
from reconciler.core.ledger.lifecycle import end_of
from reconciler.core.ledger.restraints import ledger_path, read_restraints, write_restraints
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts, RolloutSigns, follow
from reconciler.model.action import Action
from reconciler.model.approval import ApprovalRule
from reconciler.model.capacity import ClusterObservation, FailedObject, Node, Observed, PendingPods, Pool, SucceededPods
from reconciler.model.demand import Sample
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, TemplateName
from reconciler.model.ledger import Drift
from reconciler.model.placement import Origin, Placement, Restraint, RestraintKind
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Availability, BurstPolicy, Desired, Fleet, Renewal
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.model.tree import Identity
from tests.builders.gangs import torch
from tests.builders.gprs import TRAIN, binding, gpr_template, record, request
from tests.builders.group_bursts import grouped
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    shape,
    short,
)
from tests.builders.plans import begun
from tests.builders.requests import manifests
from tests.builders.workload_kinds import run, workload

MINUTE = timedelta(minutes=1)
OURS = "sha256-ours"
ADA = Identity(name="Ada", email="ada@example.com")
TEN = 10 * MINUTE
LONG_AGO = {VLLM: (Sample(at=NOW - timedelta(hours=2), missing=0, asked=False),)}
"""A daemon that has seen nothing missing for long."""


def fleet(form: str = "Job", policy: BurstPolicy | None = None, **fields: object) -> Desired:
    """Make a fleet whose only workload runs once: as a Job, as a copy of three replicas, or as a training job."""
    made = desired(policy or ordering("worker-2", "worker-3", default_duration=TEN), **fields)
    template = replace(made.templates[VLLM], runs_once=True)
    match form:
        case "copy":
            template = replace(template, copy=3, uses_replicas=False)
        case "PyTorchJob":
            template = replace(grouped(torch(2), reads_replicas=False), runs_once=True)
        case _:
            pass
    return replace(made, templates={VLLM: template})


def there(form: str = "Job", left: timedelta = timedelta(), **fields: object) -> Placement:
    """Make a run on worker-2 that has lasted for ten minutes, with so much time left."""
    gang = {"replicas": 1, "shape": shape(8, group_size=3)} if form == "PyTorchJob" else {}
    made = {"created": NOW - TEN, "lasting": TEN + left, "runs_once": True, "digest": OURS, **gang, **fields}
    return placement("worker-2", **made)


def home(form: str = "Job", *, missing: int = 3, **fields: object) -> ClusterObservation:
    """Observe the primary, which holds the workload back and lacks all of it."""
    replica = shape(8) if form == "PyTorchJob" else shape()
    return short(missing, running=0, held=fields.pop("held", True), replica=replica, **fields)


def running(burst: Placement, **fields: object) -> ClusterObservation:
    """Observe the cluster of a run, all of whose pods are ready."""
    pods = burst.replicas * burst.shape.group_size
    return free(burst.cluster, 8, 8, bound={burst.name: pods}, ready={burst.name: pods}, **fields)


def roomy() -> ClusterObservation:
    return free("worker-3", 8, 8, 8)


NEVER = ordering("worker-2", "worker-3", default_duration=TEN, renew=Renewal.NEVER)
AT_MOST = ordering("worker-2", "worker-3", default_duration=TEN, max_duration=TEN)
FORMS = ["Job", "copy", "PyTorchJob"]


def hold_of(made: Plan) -> Restraint:
    """Return the hold that the end of a run leaves; nothing is begun beside it."""
    (revert,) = made.changes
    assert revert.action is Action.REVERT
    assert revert.restraint is not None
    assert (revert.restraint.kind, revert.restraint.cluster) == (RestraintKind.HOLD, None)
    assert end_of(revert.restraint) is revert.why
    return revert.restraint


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", [NEVER, AT_MOST], ids=["its time", "its longest time"])
def test_time_alone_never_begins_a_run_a_second_time(form: str, policy: BurstPolicy) -> None:
    burst, wanted = there(form), fleet(form, policy)
    made = plan(home(form), running(burst), roomy(), wanted=wanted, there=ledger(burst))
    hold = hold_of(made)
    assert hold.reason == f"{burst.name} on worker-2 was cut off by its time, and would begin again from its start"
    assert made.suppressed[0].reason is Reason.HELD
    assert made.suppressed[0].message.endswith(
        "(`overspill release llm/vllm` ends that, once burstDuration, or duration.renew and max of its policy, give it"
        " the time it takes)"
    )
    # A new daemon reads the same from git, for as long as the primary misses the run.
    _, read = read_restraints(write_restraints(VLLM, [hold]), ledger_path(VLLM))
    held = ledger(restraints={VLLM: read})
    later = NOW + timedelta(days=30)
    again = plan(home(form, at=later), replace(roomy(), observed_at=later), wanted=wanted, there=held, now=later)
    assert (again.changes, again.suppressed[0].reason) == ((), Reason.HELD)


def test_a_person_begins_a_run_that_was_cut_off_again() -> None:
    wanted = fleet(policy=NEVER)
    hold = hold_of(plan(home(), roomy(), wanted=wanted, there=ledger(there())))
    given = inputs(home(), roomy(), wanted=wanted, there=ledger(restraints={VLLM: (hold,)}))
    (released,) = plan_release(given, VLLM, None, by=ADA, reason="it may take a day").changes
    assert released.restraints == (hold,)
    assert [first.cluster for first in begun(plan(home(), roomy(), wanted=wanted))] == ["worker-3"]


@pytest.mark.parametrize("hold", [timedelta(), timedelta(hours=1)], ids=["no hold", "an hour"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("by", ["everywhere", "on its cluster", "by hand"])
def test_time_alone_begins_no_run_again_that_a_person_has_ended(form: str, by: str, hold: timedelta) -> None:
    wanted = fleet(form, ordering("worker-2", default_duration=TEN, hold=hold))
    burst = there(form, left=TEN)
    if by == "by hand":
        gone = replace(ledger(), drifted=(Drift(placement=burst, removed=True, files=()),))
        (change,) = plan(home(form), running(burst), wanted=wanted, there=gone).changes
    else:
        given = inputs(home(form), running(burst), wanted=wanted, there=ledger(burst))
        (change,) = plan_revert(given, [burst], by="Ada", reason="", everywhere=by == "everywhere").changes
    held, later = ledger(restraints={VLLM: (change.restraint,)}), NOW + timedelta(days=30)
    seen = home(form, at=later), free("worker-2", 8, 8, 8, at=later)
    again = plan(*seen, wanted=wanted, there=held, now=later)
    assert (again.changes, len(again.suppressed)) == ((), 1)


@pytest.mark.parametrize(("gone", "ends"), [("deleted", True), ("runs there", True), ("still held", False)])
def test_the_hold_ends_once_the_primary_has_run_or_deleted_the_workload(gone: str, ends: bool) -> None:
    wanted = fleet(policy=NEVER)
    hold = hold_of(plan(home(), roomy(), wanted=wanted, there=ledger(there())))
    seen = {
        "deleted": free("worker-1"),
        "runs there": short(0, running=3),
        "still held": home(missing=0),
    }[gone]
    made = plan(seen, roomy(), wanted=wanted, there=ledger(restraints={VLLM: (hold,)}), history=LONG_AGO)
    assert bool(made.changes) is ends


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("known", [True, False], ids=["files are read", "the branch alone"])
def test_a_sweep_holds_a_run_that_it_ends(form: str, known: bool) -> None:
    wanted = fleet(form, NEVER) if known else replace(fleet(form), templates={}, policies={}, incomplete=True)
    hold_of(sweep(inputs(wanted=wanted, there=ledger(there(form)))))


def test_what_may_run_twice_is_placed_again_after_its_time() -> None:
    wanted = desired(NEVER)
    ended, placed = plan(short(3), roomy(), wanted=wanted, there=ledger(there(runs_once=False))).changes
    assert ended.action is Action.REVERT
    assert placed.action is Action.PLACE


# Renewal


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seen", ["missing", "nothing missing", "unseen"])
def test_a_run_is_renewed_while_it_is_not_over_where_no_policy_says_otherwise(form: str, seen: str) -> None:
    burst = there(form, left=MINUTE)
    primary = {"missing": [home(form)], "nothing missing": [home(form, missing=0)], "unseen": []}[seen]
    made = plan(*primary, running(burst), wanted=fleet(form), there=ledger(burst), history=LONG_AGO)
    (extended,) = made.changes
    assert extended.action is Action.EXTEND
    assert extended.after.expires_at == burst.expires_at + TEN
    assert extended.detail == "it runs once, and nothing says that it is complete"


JOB = workload("batch/v1", "Job", {"parallelism": 3, "completions": 3, "template": run(1)})


@pytest.mark.parametrize(
    ("seen", "told", "renewed"),
    [
        (free("worker-2", 8), True, True),
        (free("worker-2", 8), False, False),
        (free("worker-2", 8, at=NOW - TEN), False, True),
        (free("worker-2", 8, bound={"vllm-2095500": 1}), False, True),
        (free("worker-2", 8, unadmitted={"vllm-2095500": "kueue evicted it"}), False, True),
    ],
    ids=["a Job of whose end its pods tell", "no pod", "not seen now", "a pod", "in a queue"],
)
def test_a_run_whose_end_nothing_tells_is_renewed_while_a_pod_of_it_is_seen(
    seen: ClusterObservation, told: bool, renewed: bool
) -> None:
    burst, wanted = there(left=MINUTE), fleet()
    assert burst.name == "vllm-2095500"
    burst = replace(burst, changed_at=NOW - timedelta(hours=1))
    if told:
        wanted = replace(wanted, templates={VLLM: replace(grouped(JOB), runs_once=True)})
    made = plan(home(), seen, wanted=wanted, there=ledger(burst))
    assert [change.action for change in made.changes] == [Action.EXTEND] * renewed


def test_a_run_that_has_gone_unseen_says_so_when_its_time_is_over() -> None:
    burst = there(created=NOW - timedelta(hours=1), lasting=timedelta(hours=1))
    (ended,) = plan(home(), free("worker-2", 8), wanted=fleet(), there=ledger(burst)).changes
    assert ended.detail == "its 1h are over; no pod of it is seen on worker-2 any more"


def test_a_run_is_renewed_up_to_the_longest_time() -> None:
    policy = ordering("worker-2", default_duration=TEN, max_duration=15 * MINUTE)
    burst = there(left=MINUTE)
    (extended,) = plan(home(), running(burst), wanted=fleet(policy=policy), there=ledger(burst)).changes
    assert extended.after.expires_at == burst.created_at + 15 * MINUTE


def test_what_a_person_wrote_stays() -> None:
    burst = there(left=MINUTE)
    assert plan(home(), running(burst), wanted=fleet(policy=NEVER), there=ledger(burst)).changes == ()


def test_what_serves_is_not_renewed_where_no_policy_says_so() -> None:
    burst = there(left=MINUTE, runs_once=False)
    wanted = desired(ordering("worker-2", default_duration=TEN))
    assert plan(short(3), running(burst), wanted=wanted, there=ledger(burst)).changes == ()


def test_a_run_that_no_pass_renewed_in_time_says_so() -> None:
    (ended,) = plan(home(), roomy(), wanted=fleet(), there=ledger(there())).changes
    assert ended.detail == (
        "its 10m are over; no pass ran in time to renew it, and it runs once, and nothing says that it is complete"
    )


# The primary


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("seen", "ends"),
    [("still held", False), ("deleted", True), ("runs there", True), ("done there", True)],
)
def test_pods_that_are_gone_at_home_end_no_run_unless_it_ran_or_was_deleted_there(
    form: str, seen: str, ends: bool
) -> None:
    burst = there(form, left=timedelta(hours=1))
    primary = {
        "still held": home(form, missing=0),
        "deleted": free("worker-1"),
        "runs there": short(0, running=3, replica=shape(8) if form == "PyTorchJob" else shape()),
        "done there": home(form, missing=0, held=False),
    }[seen]
    made = plan(primary, running(burst), wanted=fleet(form), there=ledger(burst), history=LONG_AGO)
    assert [change.why for change in made.changes] == [EndReason.DEMAND_GONE] * ends


# Other ends


def ailing(burst: Placement, given: PassInput, *, arrived: bool, minutes: int = 16) -> PassInput:
    """Let a run have been unhealthy for longer than its rollout timeout, whether or not it was healthy before."""
    failure = RolloutFailure(
        digest=OURS, state=EngineState.PROGRESSING, message="Degraded", since=NOW - minutes * MINUTE
    )
    rollouts = ClusterRollouts(arrived={burst.path: OURS} if arrived else {}, ailing={burst.path: failure})
    return replace(given, rollouts=Rollouts.of({ClusterName("worker-2"): rollouts}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is seen of a run on worker-2 that is reverted as failed."""

    seen: dict[str, object]
    arrived: bool = True
    lasted: int = 16

    def decide(self, form: str) -> Plan:
        burst = there(form, left=timedelta(hours=9), created=NOW - timedelta(hours=1))
        named = {field: {burst.name: value} for field, value in self.seen.items()}
        given = inputs(home(form), free("worker-2", 8, **named), roomy(), wanted=fleet(form), there=ledger(burst))
        return decide(ailing(burst, given, arrived=self.arrived, minutes=self.lasted))


WAITING = PendingPods(replicas=3, shape=shape(), since=NOW - 16 * MINUTE)
HELD = {
    "it was healthy": Failure(seen={}),
    "its object says so": Failure(seen={"failed": FailedObject(message="failed", since=NOW - TEN)}, arrived=False),
    "some of its pods are complete": Failure(seen={"succeeded": SucceededPods(pods=1, at=NOW - TEN)}, arrived=False),
    "it lasted for long before": Failure(seen={}, arrived=False, lasted=30),
}
TRIED = {
    "it never was healthy": Failure(seen={}, arrived=False, lasted=59),
    "a queue has evicted it": Failure(seen={"unadmitted": "kueue evicted it", "pending_pods": WAITING}),
    "its pods have no node": Failure(seen={"pending_pods": WAITING}, arrived=False, lasted=59),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("failure", HELD)
def test_a_run_that_has_failed_does_not_run_again(form: str, failure: str) -> None:
    made = HELD[failure].decide(form)
    assert hold_of(made).reason.endswith(" has failed, and would run again")
    assert made.suppressed[0].reason is Reason.HELD


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("failure", TRIED)
def test_a_run_that_never_began_or_was_evicted_is_tried_on_the_next_cluster(form: str, failure: str) -> None:
    made = TRIED[failure].decide(form)
    assert made.changes[0].why is EndReason.FAILED
    assert [first.cluster for first in begun(made)] == ["worker-3"]


def test_a_run_whose_gpus_are_idle_does_not_begin_again() -> None:
    burst = there(left=timedelta(hours=1), created=NOW - timedelta(hours=1), lasting=timedelta(hours=9))
    wanted = fleet(gpr_templates={"h100": gpr_template(idle=30 * MINUTE, enforce_idle=True)})
    wanted = replace(wanted, bindings=binding({"worker-2": "h100"}))
    seen = free("worker-2", 8, bound={burst.name: 3}, unused={burst.name: NOW - 30 * MINUTE})
    hold = hold_of(plan(home(), seen, roomy(), wanted=wanted, there=ledger(burst)))
    assert hold.reason.endswith(" left its GPUs idle, and would begin again from its start")


@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_is_evicted_for_another_workload_may_begin_again_elsewhere(form: str) -> None:
    """Who wrote `evictable` into its GPRTemplate said so, as of a Job that Kueue preempts."""
    burst = there(form, left=timedelta(hours=1))
    given = inputs(home(form), roomy(), wanted=fleet(form), there=ledger(burst))
    ended = make_revert(given, burst, EndReason.PREEMPTED, "")
    assert ended.restraint is not None
    assert (ended.restraint.kind, ended.restraint.cluster) == (RestraintKind.COOL_DOWN, "worker-2")
    again = plan(home(form), roomy(), wanted=fleet(form), there=ledger(restraints={VLLM: (ended.restraint,)}))
    assert [first.cluster for first in begun(again)] == ["worker-3"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", ["drained", "not named any more"])
def test_files_of_a_person_move_a_run(form: str, change: str) -> None:
    burst = there(form, left=timedelta(hours=1))
    wanted = fleet(form)
    if change == "drained":
        draining = cluster("worker-2", availability=Availability.DRAINING)
        wanted = replace(wanted, clusters={**wanted.clusters, draining.name: draining})
    else:
        wanted = replace(wanted, policies={VLLM: ordering("worker-3", default_duration=TEN)})
    (moved,) = plan(home(form), running(burst), roomy(), wanted=wanted, there=ledger(burst)).changes
    assert moved.action is Action.MOVE
    assert (moved.after.cluster, moved.after.runs_once) == ("worker-3", True)


@pytest.mark.parametrize(("form", "moves"), [("Job", False), ("copy", False), ("PyTorchJob", True)])
def test_only_groups_leave_a_lost_cluster(form: str, moves: bool) -> None:
    burst = there(form, left=timedelta(hours=1))
    given = inputs(home(form), roomy(), wanted=fleet(form), there=ledger(burst))
    made = decide(replace(given, lost={ClusterName("worker-2"): NOW - timedelta(hours=1)}))
    assert [change.action for change in made.changes] == [Action.MOVE] * moves


@pytest.mark.parametrize(("once", "gives"), [(True, False), (False, True)])
def test_a_run_gives_no_room_to_the_share_of_others(once: bool, gives: bool) -> None:
    other = VLLM._replace(name=TemplateName("other"))
    burst = there(left=MINUTE, runs_once=once, created=NOW - timedelta(hours=3), lasting=timedelta(hours=3) + MINUTE)
    policy = ordering("worker-2", default_duration=TEN, renew=Renewal.WHILE_NEEDED)
    wanted = desired(policy, workloads=(VLLM, other))
    wanted = replace(wanted, templates={name: replace(each, runs_once=once) for name, each in wanted.templates.items()})
    lacking = replace(home(), workloads=(*home().workloads, *home(workload=other).workloads))
    full = Pool(name="gpu", nodes=(Node(name="node", free=gpus(0), allocatable=gpus(3)),))
    seen = replace(running(burst), pools=(full,))
    made = plan(lacking, seen, wanted=wanted, there=ledger(burst))
    assert any(change.action in (Action.RESIZE, Action.REVERT) for change in made.changes) is gives


def test_a_run_that_is_over_is_not_proposed() -> None:
    policy = ordering("worker-2", "worker-3", default_duration=TEN, renew=Renewal.NEVER, approval=ApprovalRule())
    hold = hold_of(plan(home(), roomy(), wanted=fleet(policy=policy), there=ledger(there())))
    made = plan(home(), roomy(), wanted=fleet(policy=policy), there=ledger(restraints={VLLM: (hold,)}))
    assert (made.changes, made.suppressed[0].reason) == ((), Reason.HELD)


def test_a_request_of_a_job_is_over_with_its_time() -> None:
    job = workload("batch/v1", "Job", {"parallelism": 2, "completions": 2, "template": run(1)})
    known = record(request(spec=manifests(job), clusters=("worker-2", "worker-3")), began_at=NOW - TEN)
    asked = there(workload=TRAIN, origin=Origin.REQUEST)
    ended, closed = decide(inputs(roomy(), there=ledger(asked, requests={TRAIN: known}))).changes
    assert (ended.why, ended.restraint) == (EndReason.EXPIRED, None)
    assert closed.action is Action.CLOSE
    assert decide(inputs(roomy(), there=ledger(requests={TRAIN: closed.record}))).changes == ()


# Health


@pytest.mark.parametrize(("once", "well"), [(True, True), (False, False)])
def test_a_job_that_runs_is_well_though_its_engine_calls_it_progressing(once: bool, well: bool) -> None:
    """Argo CD calls a Job healthy once it is complete, and Progressing while it runs."""
    burst = there(left=timedelta(hours=9), created=NOW - timedelta(hours=1), runs_once=once)
    said = EngineReport(
        cluster=burst.cluster,
        placement=burst.name,
        digest=OURS,
        revision=ledger().commit,
        state=EngineState.PROGRESSING,
        message="Progressing",
        since=burst.created_at,
    )
    observed = Observed(clusters={burst.cluster: running(burst)}, reports={said.path: said})
    signs = RolloutSigns.of(ledger(burst), observed, Fleet(), NOW)
    judged = follow(Rollouts(), signs, {burst.cluster}, {}, NOW)
    assert judged.has_arrived(burst) is well
    assert (burst.path in judged.ailing) is not well
