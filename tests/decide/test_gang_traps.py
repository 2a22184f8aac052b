"""What goes wrong with groups elsewhere: more pods that never arrive, and one group whose loss takes all the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.commits.messages import subject
from reconciler.core.commits.templates import render_templates
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts
from reconciler.model.action import Action
from reconciler.model.ids import BlobId, TemplateName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Desired
from reconciler.model.rollout import EngineState
from tests.builders.group_bursts import SET, burst, fleet, lacks
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, ordering, plan
from tests.builders.requests import holds, manifests, placed, record, request, wants
from tests.builders.workload_kinds import lws

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
OURS = "sha256-ours"


def versioned(wanted: Desired, blob: str = "b" * 40) -> Desired:
    template = replace(wanted.templates[VLLM], blob=BlobId(blob))
    return replace(wanted, templates={VLLM: template})


def taken_up(nodes: int, size: int = 6, groups: int = 1) -> tuple[Plan, Desired]:
    """Let a template make groups of another size than the four pods that stand."""
    wanted = versioned(fleet(lws("{{ replicas }}", size)))
    there = burst(groups=groups, template_version="a" * 12, lasting=2 * HOUR)
    seen = free("worker-2", *[8] * nodes, bound={there.name: 4 * groups})
    return plan(lacks(size * groups, running=0), seen, wanted=wanted, there=ledger(there)), wanted


def test_more_pods_of_a_group_come_to_where_it_stands_when_they_fit_there() -> None:
    made, wanted = taken_up(2)
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert (change.after.replicas, change.after.shape.group_size) == (1, 6)
    assert subject(change) == "resize(llm/vllm): 4 to 6 pods on worker-2"
    assert change.detail == "its template makes 6 pods of a replica, 4 before"
    (rendered,) = render_templates(made, wanted).values()
    assert rendered.spec is not None
    assert rendered.spec.manifests[0].manifest["spec"]["leaderWorkerTemplate"]["size"] == 6


def test_more_pods_that_do_not_fit_beside_the_others_wait_and_are_told() -> None:
    made, _ = taken_up(1)
    assert made.changes == ()
    (held,) = made.suppressed
    assert held.reason is Reason.NO_CAPACITY
    assert held.message == (
        "its template makes 6 pods of a replica, 4 before; what it has on worker-2 stays: needs 8 GPUs for each of 2"
        " pods, has room for 1"
    )


def test_fewer_pods_of_a_group_need_no_room() -> None:
    made, _ = taken_up(0, size=3)
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert change.after.shape.group_size == 3


def test_groups_that_run_once_keep_the_pods_that_they_began_with() -> None:
    wanted = versioned(fleet(lws("{{ replicas }}", 6)))
    once = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    there = burst(template_version="a" * 12, lasting=2 * HOUR, runs_once=True)
    seen = free("worker-2", 8, 8, bound={there.name: 4})
    assert plan(lacks(6, running=0, held=True), seen, wanted=once, there=ledger(there)).changes == ()


def test_a_template_that_has_changed_in_other_ways_resizes_nothing() -> None:
    there = burst(template_version="a" * 12, lasting=2 * HOUR)
    seen = free("worker-2", bound={there.name: 4})
    assert plan(lacks(4), seen, wanted=versioned(fleet(SET)), there=ledger(there)).changes == ()


def ailing(placement: Placement, ready: int, wanted: Desired, *, ago: timedelta = HOUR, known: bool = False) -> Plan:
    """Decide while so many pods of a placement serve that its engine has called unhealthy for 20 minutes."""
    seen = free("worker-2", bound={placement.name: ready}, ready={placement.name: ready})
    old = replace(placement, changed_at=NOW - ago, digest=OURS)
    there = (
        ledger(old)
        if not placement.workload.request
        else holds(
            record(request("worker-2", "worker-3", spec=manifests(lws(2, 4)), placements=1), began_at=NOW - ago),
            placed=[old],
        )
    )
    made: PassInput = inputs(lacks(8), seen, wanted=wanted, there=there)
    since = NOW - 20 * MINUTE
    ill = {old.path: RolloutFailure(digest=OURS, state=EngineState.PENDING, message="1 of 2 groups", since=since)}
    ward = ClusterRollouts(ailing=ill, arrived={old.path: OURS} if known else {})
    return decide(replace(made, rollouts=Rollouts.of({old.cluster: ward})))


def test_the_loss_of_one_group_leaves_the_others_where_they_are() -> None:
    there = burst(groups=2, lasting=2 * HOUR)
    assert ailing(there, 4, fleet(SET)).changes == ()


def test_a_set_of_which_no_group_is_left_is_taken_back() -> None:
    (change, *_) = ailing(burst(groups=2, lasting=2 * HOUR), 3, fleet(SET)).changes
    assert change.action is Action.REVERT


def test_a_set_that_never_came_whole_is_taken_back_though_one_of_its_groups_serves() -> None:
    there = burst(groups=2, lasting=2 * HOUR)
    (change, *_) = ailing(there, 4, fleet(SET), ago=21 * MINUTE).changes
    assert change.action is Action.REVERT
    assert ailing(there, 4, fleet(SET), ago=21 * MINUTE, known=True).changes == ()


def test_the_groups_of_one_copy_count_as_well() -> None:
    wanted = fleet(lws(2, 4), policy=ordering("worker-2"), reads_replicas=False)
    assert ailing(burst(groups=1, size=8, lasting=2 * HOUR), 4, wanted).changes == ()
    (change, *_) = ailing(burst(groups=1, size=8, lasting=2 * HOUR), 3, wanted).changes
    assert change.action is Action.REVERT


def test_a_request_keeps_its_other_groups_as_well() -> None:
    one = request("worker-2", "worker-3", spec=manifests(lws(2, 4)), placements=1)
    there = placed(replicas=8, created=NOW - HOUR, expires_at=NOW + HOUR)
    assert ailing(there, 4, wants(one)).changes == ()
    assert ailing(there, 3, wants(one)).changes != ()


def test_the_room_that_one_set_grows_into_is_gone_for_the_next():
    other = WorkloadId(VLLM.workspace, TemplateName("other"))
    wanted = versioned(fleet(lws("{{ replicas }}", 6)))
    second = replace(wanted.templates[VLLM], name=other.name)
    wanted = replace(
        wanted,
        templates={**wanted.templates, other: second},
        policies=dict.fromkeys((VLLM, other), wanted.policies[VLLM]),
    )
    there = [
        burst(template_version="a" * 12, lasting=2 * HOUR),
        burst(template_version="a" * 12, lasting=2 * HOUR, workload=other),
    ]
    seen = free("worker-2", 8, 8, bound={one.name: 4 for one in there})
    made = plan(lacks(6, running=0), seen, wanted=wanted, there=ledger(*there))
    resized = [change for change in made.changes if change.action is Action.RESIZE]
    assert [change.after.workload for change in resized] == [other]
