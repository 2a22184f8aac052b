"""A reservation keeps GPUs of one cluster from other workspaces until its time is over or nobody asks for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.messages import subject
from reconciler.core.decide.candidates.reservations import gpus_used
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.gprs import gpr_views
from reconciler.core.explain.wait_time import GpuDemand, estimate_waits
from reconciler.core.ledger.request_record import read_request, request_path, write_request
from reconciler.model.action import Action
from reconciler.model.gpr import GprState, GprTerms, GpuAsk, WorkspaceLimits
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Ledger
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Availability, Desired
from reconciler.model.request import Asker, Provisioning, RequestRecord
from tests.builders.gprs import LLM, record, request, reservation
from tests.builders.gpu_nodes import cluster_of, nodes
from tests.builders.inputs import NOW, VLLM, cluster, desired, inputs, ledger, ordering, placement, shape, short
from tests.builders.plans import begun

OTHERS = WorkloadId(WorkspaceName("vision"), TemplateName("train"), request=True)
HOUR = timedelta(hours=1)


def held(gpus: int = 8, node_count: int = 1, *, began: timedelta = timedelta(minutes=1)) -> RequestRecord:
    """Let GPUs of worker-2 be reserved for workspace llm."""
    asked = reservation(gpus=gpus, nodes=node_count)
    asked = replace(asked, terms=GprTerms(exit_duration=HOUR))
    return record(asked, began_at=NOW - began, cluster=ClusterName("worker-2"))


def theirs(gpus: int = 4) -> RequestRecord:
    """Let workspace vision wait for GPUs of worker-2."""
    return record(replace(request(ask=GpuAsk(gpus=gpus)), workspace=OTHERS.workspace))


def fleet(**fields: object) -> Desired:
    made = desired(ordering("worker-2"), workloads=(VLLM, OTHERS._replace(request=False)), **fields)
    return replace(made, templates={VLLM: made.templates[VLLM]}, policies={VLLM: made.policies[VLLM]})


def knowing(*records: RequestRecord) -> Ledger:
    return ledger(requests={one.workload: one for one in records})


def placed(plan: Plan) -> list[str]:
    return [str(placement.workload) for placement in begun(plan)]


def test_a_reservation_gets_the_first_cluster_that_has_room_and_git_says_which() -> None:
    asked = replace(reservation(gpus=4, nodes=2), clusters=(ClusterName("worker-3"), ClusterName("worker-2")))
    known = record(replace(asked, terms=GprTerms(exit_duration=HOUR)))
    seen = (cluster_of(nodes(8), name="worker-3"), cluster_of(nodes(4, 4)))
    (change,) = decide(inputs(*seen, there=knowing(known), wanted=desired(policies={}))).changes
    assert change.action is Action.AMEND
    assert (change.record.cluster, change.record.began_at) == ("worker-2", NOW)
    assert change.detail == "2 nodes with 4 GPUs each reserved on worker-2 for 1h"
    assert subject(change) == "request(llm/hold): reserved on worker-2"
    assert read_request(write_request(change.record), request_path(known.workload)) == change.record


@pytest.mark.parametrize(
    ("key", "way"),
    [
        ("team", "take the taint team:NoSchedule off nodes there, or free or add nodes without it"),
        ("nvidia.com/gpu", ""),
    ],
)
def test_a_reservation_that_only_a_taint_keeps_off_is_told_the_taint(key: str, way: str) -> None:
    asked = replace(reservation(gpus=4), clusters=(ClusterName("worker-2"),), terms=GprTerms(exit_duration=HOUR))
    seen = cluster_of(replace(nodes(8), taints=(Taint(key=key),)))
    made = decide(inputs(seen, there=knowing(record(asked)), wanted=desired(policies={})))
    assert [one.remedy for held in made.suppressed for one in held.refusals] == ([way] if way else [])
    assert bool(made.changes) is not bool(way)


def test_what_is_reserved_is_not_given_to_others_and_the_rest_is() -> None:
    seen = cluster_of(nodes(8, 3))
    waiting = decide(inputs(seen, wanted=fleet(), there=knowing(held(), theirs(4))))
    assert not placed(waiting)
    assert any(one.workload == OTHERS and one.reason is Reason.NOTHING_FITS for one in waiting.suppressed)
    assert placed(decide(inputs(seen, wanted=fleet(), there=knowing(held(), theirs(3))))) == ["vision/train"]


def test_the_workspace_itself_uses_what_it_has_reserved() -> None:
    made = decide(inputs(short(2, replica=shape(4)), cluster_of(nodes(8)), wanted=fleet(), there=knowing(held())))
    assert placed(made) == ["llm/vllm"]


def test_what_the_workspace_uses_there_is_not_held_a_second_time() -> None:
    mine = placement(replicas=1, shape=shape(5), created=NOW - timedelta(seconds=30))
    seen = cluster_of(nodes(3, 4), bound={mine.name: 1})
    there = ledger(mine, requests={one.workload: one for one in (held(), theirs(4))})
    assert placed(decide(inputs(short(1, replica=shape(5)), seen, wanted=fleet(), there=there))) == ["vision/train"]


@pytest.mark.parametrize(
    ("age", "given"), [(30, ["vision/train"]), (60, []), (90, [])], ids=["since", "at that moment", "before"]
)
def test_only_what_the_workspace_has_placed_since_uses_what_it_has_reserved(age: int, given: list[str]) -> None:
    mine = placement(replicas=1, shape=shape(8), created=NOW - timedelta(seconds=age))
    seen = cluster_of(nodes(0, 8), bound={mine.name: 1})
    there = ledger(mine, requests={one.workload: one for one in (held(), theirs(8))})
    assert placed(decide(inputs(short(1, replica=shape(8)), seen, wanted=fleet(), there=there))) == given


def test_each_reservation_is_used_by_what_was_placed_after_it() -> None:
    first = held(4, began=timedelta(minutes=3))
    second = replace(held(4), request=replace(held(4).request, name=TemplateName("more")))
    mine = placement(replicas=1, shape=shape(4), created=NOW - timedelta(minutes=2))
    assert [(one.request.name, used) for one, used in gpus_used([first, second], [mine])] == [("more", 0), ("hold", 4)]


@pytest.mark.parametrize(
    ("gpus", "cluster", "fits"), [(8, "worker-2", True), (8, "worker-3", False), (0, "worker-2", False)]
)
def test_a_reservation_does_not_count_beside_what_uses_it(gpus: int, cluster: str, fits: bool) -> None:
    wanted = fleet(limits={LLM: WorkspaceLimits(workspace=LLM, most=1)})
    seen = (cluster_of(nodes(8)), cluster_of(nodes(8), name="worker-3"))
    asked = record(request(clusters=(cluster,), ask=GpuAsk(gpus=gpus)))
    made = decide(inputs(*seen, wanted=wanted, there=knowing(held(), asked)))
    assert placed(made) == (["llm/train"] if fits else [])
    assert any(one.reason is Reason.GPR_LIMIT for one in made.suppressed) is not fits


def test_what_uses_a_reservation_counts_in_its_place() -> None:
    mine = placement(replicas=1, shape=shape(4), created=NOW - timedelta(seconds=30))
    another = record(request(clusters=("worker-2",), ask=GpuAsk(gpus=4)))
    there = ledger(mine, requests={one.workload: one for one in (held(), another)})
    seen = (short(1, replica=shape(4)), cluster_of(nodes(4), bound={mine.name: 1}))
    for most, given in ((1, []), (2, ["llm/train"])):
        wanted = fleet(limits={LLM: WorkspaceLimits(workspace=LLM, most=most)})
        assert placed(decide(inputs(*seen, wanted=wanted, there=there))) == given


def test_of_two_reservations_one_counts_while_only_the_other_is_used() -> None:
    two = held(4), replace(held(4), request=replace(held(4).request, name=TemplateName("more")))
    mine = placement(replicas=1, shape=shape(4), created=NOW - timedelta(seconds=30))
    elsewhere = record(request(clusters=("worker-3",), ask=GpuAsk(gpus=4)))
    there = ledger(mine, requests={one.workload: one for one in (*two, elsewhere)})
    seen = (
        short(1, replica=shape(4)),
        cluster_of(nodes(4), bound={mine.name: 1}),
        cluster_of(nodes(8), name="worker-3"),
    )
    for most, given in ((2, []), (3, ["llm/train"])):
        wanted = fleet(limits={LLM: WorkspaceLimits(workspace=LLM, most=most)})
        assert placed(decide(inputs(*seen, wanted=wanted, there=there))) == given


def test_a_second_reservation_needs_room_beside_the_first() -> None:
    second = record(replace(reservation("more", gpus=8), terms=GprTerms(exit_duration=HOUR)))
    waiting = decide(inputs(cluster_of(nodes(8)), wanted=fleet(), there=knowing(held(), second)))
    assert not waiting.changes
    (one,) = [one for one in waiting.suppressed if one.workload == second.workload]
    assert one.message == (
        "1 node with 8 GPUs is free on no cluster; worker-2: needs 8 GPUs on one node; its only eligible node has none"
        " free (free or add nodes there)"
    )
    made = decide(inputs(cluster_of(nodes(8, 8)), wanted=fleet(), there=knowing(held(), second)))
    assert [change.action for change in made.changes] == [Action.AMEND]


def test_a_reservation_whose_time_is_over_is_completed_and_holds_nothing() -> None:
    seen = inputs(cluster_of(nodes(8)), wanted=fleet(), there=knowing(held(began=HOUR), theirs()))
    made = decide(seen)
    (close,) = [change for change in made.changes if change.action is Action.CLOSE]
    assert close.record.ended is not None
    assert (close.record.ended.status, close.record.ended.message) == (Provisioning.COMPLETED, "its 1h are over")
    assert placed(made) == ["vision/train"]


def test_the_end_of_a_reservation_is_waited_for() -> None:
    assert decide(inputs(cluster_of(nodes(8)), wanted=fleet(), there=knowing(held()))).wake_at == NOW + HOUR - (
        timedelta(minutes=1)
    )


def test_a_reservation_whose_file_goes_is_released_early() -> None:
    known = replace(held(), asker=Asker.FILE)
    made = decide(inputs(cluster_of(nodes(8)), wanted=fleet(), there=knowing(known, theirs())))
    assert [change.action for change in made.changes] == [Action.FORGET, Action.PLACE]


@pytest.mark.parametrize(("most", "reserved"), [(1, False), (2, True)])
def test_reservations_count_as_gprs_of_their_workspace(most: int, reserved: bool) -> None:
    second = record(replace(reservation("more", gpus=1), terms=GprTerms(exit_duration=HOUR)))
    wanted = fleet(limits={LLM: WorkspaceLimits(workspace=LLM, most=most)})
    made = decide(inputs(cluster_of(nodes(8, 8)), wanted=wanted, there=knowing(held(), second)))
    assert bool(made.changes) is reserved


def test_a_reservation_is_a_gpr_of_its_own() -> None:
    (one,) = gpr_views(enrolled(held(gpus=4, node_count=2)), Plan())
    assert (one.state, one.cluster, one.gpus, one.nodes) == (GprState.SUCCESSFUL, "worker-2", 4, 2)
    assert one.left == HOUR - timedelta(minutes=1)


def test_others_wait_until_a_reservation_ends() -> None:
    asking = GpuDemand(
        workspace=OTHERS.workspace, ask=GpuAsk(gpus=4), priority=101, clusters=(ClusterName("worker-2"),)
    )
    (answer,) = estimate_waits(asking, enrolled(held()), Plan())
    assert answer.wait == HOUR - timedelta(minutes=1)
    assert answer.reasons == ("when reservation llm/hold at 2026-11-20T11:04:00Z ends",)
    (mine,) = estimate_waits(replace(asking, workspace=LLM), enrolled(held()), Plan())
    assert mine.wait == timedelta()


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ((), "worker-2: it has not been observed"),
        ((cluster_of(nodes(8, labels={})),), "no node has any Tesla-T4; there is nvidia.com/gpu"),
    ],
)
def test_a_reservation_that_waits_says_why(seen: tuple[object, ...], reason: str) -> None:
    asked = replace(reservation(), ask=GpuAsk(gpus=1, shape="Tesla-T4"))
    made = decide(inputs(*seen, wanted=desired(policies={}), there=knowing(record(asked))))
    (one,) = made.suppressed
    assert reason in one.message


def enrolled(*records: RequestRecord) -> PassInput:
    there = knowing(*records)
    seen = inputs(cluster_of(nodes(8)), wanted=fleet(), there=there)
    return seen.with_requests(there.requests)


def test_a_cluster_that_is_cordoned_takes_no_reservation() -> None:
    wanted = desired(
        clusters=(cluster("worker-1"), cluster("worker-2", availability=Availability.CORDONED)), policies={}
    )
    made = decide(inputs(cluster_of(nodes(8)), wanted=wanted, there=knowing(record(reservation()))))
    assert "it is Cordoned" in made.suppressed[0].message
